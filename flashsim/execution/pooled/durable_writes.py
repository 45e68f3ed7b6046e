"""Writes of devices that change what survives a crash, from their beginning to their end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import simpy

from flashsim.storage.log import durable as survives
from flashsim.storage.log.durable import Durable, Write

#: Pages that devices' volatile write buffers hold, where writes are not forced through them.
_BUFFERED = 6


class DurableWrites:
    """Writes that are outstanding, and those that a power cut takes from volatile write buffers.

    Parameters
    ----------
    durable
        What devices say that they have.
    is_forced
        Whether writes are forced through the buffers; otherwise pages stay there until others have driven them out.
    """

    def __init__(self, durable: Durable, is_forced: bool) -> None:
        self.durable, self.is_forced = durable, is_forced
        #: Writes that devices have not completed, by number.
        self.outstanding: dict[int, Write] = {}
        #: Writes so far.
        self.count = 0
        self._buffered: deque[Write] = deque()
        self._media = durable if is_forced else durable.copy()

    def begin(self, write: Write, then: Callable[[], object], event: simpy.Event) -> None:
        """Begin a write that is durable when an event happens, before anybody else hears of that."""
        number, self.count = self.count, self.count + 1
        self.outstanding[number] = write

        def completed(_: simpy.Event) -> None:
            self.durable.apply(self.outstanding.pop(number))
            if not self.is_forced:
                self._buffer(write)
            then()

        assert event.callbacks is not None
        event.callbacks.insert(0, completed)

    def _buffer(self, write: Write) -> None:
        """Keep pages in the buffer until others have driven them out; the log and the tables are written through."""
        if write.target in (survives.PAGES, survives.FRAMES):
            self._buffered.append(write)
            write = self._buffered.popleft() if len(self._buffered) > _BUFFERED else Write(survives.LOG, ())
        self._media.apply(write)

    def crash(self, draw: np.random.Generator | None) -> Durable:
        """State that survives a crash now; without `draw` none of the outstanding writes does."""
        return self._media.crash([*self._buffered, *self.outstanding.values()], draw)

    def truncate(self, first: int) -> None:
        """Give up the records of the log before one."""
        self.durable.truncate(first)
        self._media.truncate(first)

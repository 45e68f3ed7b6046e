"""The contract of engines that replay traces on real devices.

A member defines `TITLE` (a line that says what it is), `PACES` (of ``asap``, ``timed`` and ``think`` those that it keeps), ``check()``
(refuses if it cannot run here) and ``replay(batches, device, pace, depth, observe, progress)``.
"""

from functools import cache
from typing import Protocol

import numpy as np
import pyarrow as pa

from flashsim.core.members import Family
from flashsim.core.protocols import Progress
from flashsim.core.request import COMPLETION, Completions, Integers
from flashsim.device.file import RealDevice
from traces.file.schema import Batches, column, make_batch

#: Most requests from one that a request waits for to that request.
BACK = 1 << 16


class Observer(Protocol):
    """Receives every replayed request once."""

    def __call__(self, batch: pa.RecordBatch, completions: Completions) -> None:
        """Requests as they were replayed, with their times in ns since the replay began, and their completions, in the same order."""


class Engine(Protocol):
    """A member's module."""

    TITLE: str
    PACES: tuple[str, ...]

    def check(self) -> None:
        """Refuse, if the engine cannot run here.

        Raises
        ------
        FlashsimError
            Says what is missing.
        """

    def replay(
        self, batches: Batches, device: RealDevice, pace: str, depth: int, observe: Observer, progress: Progress | None = None
    ) -> str:
        """Replay requests that the device can serve; return how that was done, in a few words.

        Parameters
        ----------
        batches
            Reads, writes and flushes, aligned to the device's blocks and within it; in memory one after another.
        device
            Where they go, or with others the devices where they do (`flashsim.device.file.RealDevice.beside`).
        pace
            ``asap``: `depth` requests are outstanding, and the next one takes a place that becomes free.  ``timed``: at the trace's
            times, counted from the first.  ``think``: so long after the request that was waited for as in the trace.
        progress
            Is told how many requests have been replayed.

        Raises
        ------
        FlashsimError
            The device fails, or the engine does.
        """


ENGINES = Family("traces.replay", "replay engine", Engine)


#: A member, by name or as the path of a Python file.
load_engine = cache(ENGINES.load)


def replay_records(
    batch: pa.RecordBatch, first: int, arrival: Integers, started: Integers, completed: Integers
) -> tuple[pa.RecordBatch, Completions]:
    """Requests with new times, and the same as completions, as an `Observer` takes them; `first` were replayed before these."""
    names = ("device", "operation", "offset", "length", "stream", "priority", "flags", "tag", "dependency", "think")
    columns = {name: batch.column(name) for name in names}
    completions = np.zeros(len(arrival), COMPLETION)
    completions["id"], completions["tag"] = np.arange(first, first + len(arrival)), column(batch, "tag")
    completions["submitted"], completions["started"], completions["completed"] = arrival, started, completed
    times = {"arrival": arrival, "started": started, "completed": completed}
    return make_batch(columns | times, first, batch.column("label")), completions

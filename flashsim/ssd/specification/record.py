"""The record of what the parts of the drive's event model did: `flashsim.core.spans`."""

import numpy as np

from flashsim.core.spans import HOST, MOST_UNITS, SPAN, Spans
from flashsim.ssd.ideals import refuse_ideals
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.dies import Die
from flashsim.ssd.specification.parts import Command, Operation
from flashsim.ssd.specification.shared import SharedServer


class SpanRecord:
    """A drive's record (`flashsim.core.spans.SpanSource`): empty unless it is switched on."""

    dies: list[Die]
    channels: list[SharedServer]
    link: SharedServer
    controller: SharedServer
    bus: SharedServer
    parameters: SsdParameters
    _spans: list[tuple[int, ...]] | None = None

    def record_spans(self, on: bool) -> None:
        """Begin or stop to record what the parts of the drive do."""
        refuse_ideals(self.parameters)
        self._spans = [] if on else None

    def spans(self) -> Spans:
        """Holds that ended since the last call, and reads of cells."""
        spans = np.array(self._spans or [], SPAN)
        self.record_spans(self._spans is not None)
        return spans

    def note(
        self, server: int, kind: int, work: Operation | Command, begin: int, level: int = -1, units: int = 1, die: int = -1
    ) -> None:  # fmt: skip
        """An operation, or a command, gives up a server that it has held since `begin`, or its page is out of the cells."""
        now = int(self.controller._env.now)
        if self._spans is None or begin == now:
            return
        if isinstance(work, Command):
            cause, page, request = HOST, -1, work.request
        else:
            cause, page, request = work.cause, work.logical, work.command.request
        self._spans.append((server, kind, cause, request.id, page, begin, now, level, min(units, MOST_UNITS), die))

    def server_number(self, server: SharedServer) -> int:
        """The number of the link, the controller or the bus."""
        return len(self.dies) + len(self.channels) + (self.link, self.controller, self.bus).index(server)

"""Group commit, told with SimPy: what commits while the log is written is written all together, right after."""

from collections.abc import Callable

import simpy

from flashsim.core.request import SECTOR, WRITE
from flashsim.execution.specified_devices import SpecifiedDevices


class GroupCommit:
    """The log's writer.

    Parameters
    ----------
    env
        The clock.
    devices, number
        Which of them the log is on: it goes round its whole length.
    note
        Is told of each write.
    """

    def __init__(self, env: simpy.Environment, devices: SpecifiedDevices, number: int, note: Callable[..., None]) -> None:
        self.env, self.devices, self.number, self.note = env, devices, number, note
        self._waiting: list[tuple[simpy.Event, int]] = []
        self._is_writing, self._end = False, 0

    def commit(self, length: int) -> simpy.Event:
        """Have so many bytes of log written; the event happens when they are."""
        event = self.env.event()
        self._waiting.append((event, length))
        if not self._is_writing:
            self._write()
        return event

    def _write(self) -> None:
        group, self._waiting, self._is_writing = self._waiting, [], True
        length = -(-sum(length for _, length in group) // SECTOR) * SECTOR
        if self._end + length > self.devices.devices[self.number][1]:
            self._end = 0
        self.note(log_writes=1)
        event = self.devices.ask(self.number, WRITE, self._end, length)
        self._end += length
        assert event.callbacks is not None
        event.callbacks.append(lambda _: self._wake([event for event, _ in group]))

    def _wake(self, group: list[simpy.Event]) -> None:
        for event in group:
            event.succeed()
        self._is_writing = False
        if self._waiting:
            self._write()

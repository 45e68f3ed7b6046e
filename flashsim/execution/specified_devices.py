"""Devices under one SimPy clock, which processes ask and wait for, and writers before them; the counterpart of the compiled loop.

What falls on one nanosecond happens in this order: devices, drive by drive; those who waited for what completed, in the order in which it
did, and whoever they wake; whatever else is due, by its own priority below `SENDING`; and last what was asked for meanwhile arrives.
"""

from collections.abc import Callable, Sequence
from typing import Any

import simpy

from flashsim.core.host_queue import one_command_each
from flashsim.core.host_specification import delay, follow
from flashsim.core.model import DeviceModel
from flashsim.core.request import SECTOR, WRITE, make_requests
from flashsim.core.units import NEVER

#: Priorities of events at one nanosecond, after SimPy's own two: drives in order, completions, and requests that are sent.
_DRIVES, _COMPLETIONS, SENDING = 2, 1 << 20, 1 << 60


class CausalEnvironment(simpy.Environment):
    """A clock that knows after which request's completion it is that something happens: what an event lets happen later has its cause."""

    def __init__(self) -> None:
        super().__init__()
        #: The request, -1 for none.
        self.cause = -1
        self._causes: dict[simpy.Event, int] = {}

    def schedule(self, event: simpy.Event, *args: Any, **kwargs: Any) -> None:
        self._causes[event] = self.cause
        super().schedule(event, *args, **kwargs)

    def step(self) -> None:
        if self._queue:
            self.cause = self._causes.pop(self._queue[0][-1])
        super().step()


class SpecifiedDevices:
    """Devices, each of one drive or of several that are striped.

    `env`: the clock; `devices`: of each the models of its drives, and bytes of a stripe; `processor`: which of them is one, whose requests
    are no causes: what it worked for goes on being one.
    """

    def __init__(self, env: CausalEnvironment, devices: Sequence[tuple[Sequence[DeviceModel], int]], processor: int = -1) -> None:
        self.env, self.devices, self._processor = env, devices, processor
        self.write_flags = [0] * len(devices)  #: Flags of the writes of each device (`flashsim.core.request`).
        self.pending = [0] * len(devices)  #: Outstanding requests of each device.
        #: Requests: when, of which device, operation, offset and length; for each the one after whose completion it was made; and
        #: completions: when, at which device, the number of the request.
        self.requests: list[tuple[int, int, int, int, int]] = []
        self.causes: list[int] = []
        self.completed: list[tuple[int, int, int]] = []
        self._drives = [(drive, number) for number, (drives, _) in enumerate(devices) for drive in drives]
        self._first = [sum(len(drives) for drives, _ in devices[:number]) for number in range(len(devices))]
        self._next_times = [NEVER] * len(self._drives)
        self._events: dict[int, simpy.Event] = {}
        self._sent_count = 0
        self._finished: list[int] = []

    @property
    def sent_requests(self) -> list[tuple[int, int, int, int, int]]:
        """Requests that have arrived at their devices."""
        return self.requests[: self._sent_count]

    def ask(self, device: int, operation: int, offset: int, length: int, event: simpy.Event | None = None) -> simpy.Event:
        """Make a request of a device; the event, a new one if none is given, happens when it completes."""
        if self._sent_count == len(self.requests):
            self._then(0, SENDING, self._send)
        event = self._events[len(self.requests)] = event or self.env.event()
        follow(event, lambda: self._less(device))
        self.requests.append((int(self.env.now), device, operation, offset, length))
        self.causes.append(self.env.cause)
        self.pending[device] += 1
        return event

    def _less(self, device: int) -> None:
        self.pending[device] -= 1

    def _then(self, duration: int, priority: int, call: Callable[[], None]) -> None:
        follow(delay(self.env, duration, priority), call)

    def _send(self) -> None:
        for tag in range(self._sent_count, len(self.requests)):
            _, device, operation, offset, length = self.requests[tag]
            drives, stripe = self.devices[device]
            number, within = divmod(offset, stripe)
            requests = make_requests(operation, number // len(drives) * stripe + within, length)
            requests["tag"], requests["flags"] = tag, self.write_flags[device] if operation == WRITE else 0
            drive = number % len(drives)
            drives[drive].submit(requests, one_command_each(requests), int(self.env.now))
            self._wait(self._first[device] + drive)
        self._sent_count = len(self.requests)

    def _wait(self, drive: int) -> None:
        self._next_times[drive] = self._drives[drive][0].next_event
        if self._next_times[drive] < NEVER:
            self._then(self._next_times[drive] - int(self.env.now), _DRIVES + drive, lambda: self._step(drive))

    def _step(self, drive: int) -> None:
        """Let happen what is due, unless something came before what this waited for."""
        if self._next_times[drive] != self.env.now:
            return
        model = self._drives[drive][0]
        tags = model.advance(int(self.env.now), every=True)["tag"].tolist()
        if tags and not self._finished:
            self._then(0, _COMPLETIONS, self._tell)
        self._finished += tags
        self._wait(drive)

    def _tell(self) -> None:
        finished, self._finished = self._finished, []
        for tag in finished:
            device = self.requests[tag][1]
            self.completed.append((int(self.env.now), device, tag))
            self.env.cause = self.causes[tag] if device == self._processor else tag
            self._events.pop(tag).succeed()


#: The first page of a write, how many there are, how many of them are cleaned, what happens when it has ended, and the caller's own.
_Write = tuple[int, int, int, simpy.Event, Any]


class DiskWrites:
    """Writes of pages, none of which begins while another one of the same page is outstanding: a disk may serve the later one first.

    `env`: the clock; `ask`: asks the disk for the writing of pages: the first, how many, what happens when it has ended, and what the
    caller gave besides; `note`: counts by name.
    """

    def __init__(self, env: simpy.Environment, ask: Callable[[int, int, simpy.Event, Any], object], note: Callable[..., None]) -> None:
        self._env, self._ask, self._note = env, ask, note
        self._outstanding: set[int] = set()
        self._deferred: list[_Write] = []

    def write(self, page: int, count: int, cleaned: int = 0, contents: Any = None) -> simpy.Event:
        """Write pages as soon as no earlier write of one of them is outstanding or deferred."""
        event = self._env.event()
        write = page, count, cleaned, event, contents
        if self._must_wait(page, count, self._deferred):
            self._deferred.append(write)
        else:
            self._begin(*write)
        return event

    def _must_wait(self, page: int, count: int, ahead: Sequence[_Write]) -> bool:
        overlaps = any(first < page + count and page < first + pages for first, pages, *_ in ahead)
        return overlaps or not self._outstanding.isdisjoint(range(page, page + count))

    def _begin(self, page: int, count: int, cleaned: int, event: simpy.Event, contents: Any) -> None:
        self._note(disk_writes=1, disk_pages_written=count, pages_cleaned=cleaned)
        self._outstanding.update(range(page, page + count))
        assert event.callbacks is not None
        event.callbacks.insert(0, lambda _: self._end(page, count))  # before whoever waits for it
        self._ask(page, count, event, contents)

    def _end(self, page: int, count: int) -> None:
        self._outstanding.difference_update(range(page, page + count))
        deferred, self._deferred = self._deferred, []
        for write in deferred:
            if self._must_wait(*write[:2], self._deferred):
                self._deferred.append(write)
            else:
                self._begin(*write)


class GroupCommit:
    """The log's writer: what commits while the log is written is written all together, right after.

    The log is on device `number`, whose whole length it goes round; `note` counts by name.
    """

    def __init__(self, devices: SpecifiedDevices, number: int, note: Callable[..., None]) -> None:
        self.devices, self.number, self.note = devices, number, note
        self._waiting: list[tuple[simpy.Event, int]] = []
        self._is_writing, self._end = False, 0

    def commit(self, length: int) -> simpy.Event:
        """Have so many bytes of log written; the event happens when they are."""
        event = self.devices.env.event()
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
        follow(event, lambda: self._wake([event for event, _ in group]))

    def _wake(self, group: list[simpy.Event]) -> None:
        for event in group:
            event.succeed()
        self._is_writing = False
        if self._waiting:
            self._write()

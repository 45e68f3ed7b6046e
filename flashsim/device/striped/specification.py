"""The readable model of an array of equal disks: each drive is a device of its own, and all share the array's clock.

Each drive gets its commands of a request (`device.striping`) as one request of its own; with the last of these the request completes.
Requests that wait for no other are handed over in bulk, and the drives then go on apart.  Where some wait, the array steps from event to
event: arrivals first, in order of time and id, and of drives that do something at the same nanosecond the first in the row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.host_queue import check_arrivals, check_commands
from flashsim.core.model import DeviceModel
from flashsim.core.request import COMPLETION, Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER
from flashsim.device.striped.drives import StripedDrives
from flashsim.device.striping import Striping
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.report import HddPowerCut


@dataclass(slots=True)
class _Request:
    """A request that has not completed: its parts that no drive has got yet, and the requests that wait for it."""

    tag: int
    think: int
    left: int  # drives that are not done with it
    arrived: int
    parts: list[tuple[int, Requests, Commands]] = field(default_factory=list)
    dependents: list[int] = field(default_factory=list)


class StripedSpecification(StripedDrives[DeviceModel]):
    """Equal disks under one virtual clock (`core.model.DeviceModel`), stepped one by one; they may be specifications or engines."""

    def __init__(self, drives: Sequence[DeviceModel], parameters: HddParameters, striping: Striping) -> None:
        super().__init__(drives, parameters, striping)
        self._now = self._next_id = self._blocked = 0
        self._open: dict[int, _Request] = {}
        self._arrivals: list[tuple[int, int]] = []  # a heap of (time, id)
        self._events = [NEVER] * len(drives)

    @property
    def now(self) -> int:
        """The clock, ns."""
        return self._now

    @property
    def outstanding(self) -> int:
        return len(self._open)

    @property
    def next_event(self) -> int:
        """When something happens next; see `core.model.DeviceModel.next_event`."""
        return min(self._arrivals[0][0] if self._arrivals else NEVER, *self._events)

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host_queue.HostQueue.append`)."""
        check_arrivals(requests, at, self._now)
        check_commands(commands, len(requests))
        pieces = self._split(requests, commands)
        drives, pieces["offset"] = np.divmod(pieces["offset"], self.parameters.capacity)
        ids = np.arange(self._next_id, self._next_id + len(requests))
        arrivals = np.broadcast_to(at, len(requests))
        for one, arrival, number in zip(requests, arrivals.tolist(), ids.tolist(), strict=True):
            self._open[number] = _Request(int(one["tag"]), int(one["think"]), 0, arrival)
        in_bulk = not self._arrivals and not self._blocked and not (requests["dependency"] >= 0).any()
        for drive in range(len(self._drives)):
            own = pieces[drives == drive]
            rows, own["request"], counts = np.unique(own["request"], return_inverse=True, return_counts=True)
            for row in rows.tolist():
                self._open[self._next_id + row].left += 1
            if in_bulk:
                self._give(drive, ids[rows], requests[rows], own, arrivals[rows])
                continue
            for row, part in zip(rows.tolist(), np.split(own, np.cumsum(counts))[:-1], strict=True):
                part["request"] = 0
                self._open[self._next_id + row].parts.append((drive, requests[row : row + 1], part))
        if not in_bulk:
            for number, before, arrival in zip(ids.tolist(), requests["dependency"].tolist(), arrivals.tolist(), strict=True):
                if before >= 0:
                    self._open[self._next_id + before].dependents.append(number)
                    self._blocked += 1
                else:
                    heappush(self._arrivals, (arrival, number))
        self._next_id += len(requests)
        return ids

    def _give(self, drive: int, owners: Integers, requests: Requests, commands: Commands, at: int | Integers) -> None:
        if len(owners):
            own = requests.copy()
            own["tag"], own["dependency"], own["think"] = owners, -1, 0
            self._drives[drive].submit(own, commands, at)
            self._events[drive] = self._drives[drive].next_event

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`."""
        if until < self._now:
            raise InvalidParameterError("until", f"{until} ns", f"the clock is already at {self._now} ns")
        found: list[tuple[int, int, int, int, int]] = []
        apart = until == NEVER and not self._arrivals and not self._blocked and (every or wait >= len(self._open))
        if apart:
            self._advance_apart(every, found)
        while not apart and (every or len(found) < wait):
            drive = min(range(len(self._events)), key=self._events.__getitem__)
            due, event = self._arrivals[0][0] if self._arrivals else NEVER, self._events[drive]
            if min(due, event) > until or min(due, event) == NEVER:
                break
            self._now = max(self._now, min(due, event))  # a drive that nobody waits for may be behind
            if due <= event:
                self._arrive(heappop(self._arrivals)[1])
            else:
                for completed in self._drives[drive].advance(event):
                    self._part_done(int(completed["tag"]), event, found)
                self._events[drive] = self._drives[drive].next_event
        if until != NEVER and (every or len(found) < wait):
            self._now = until
        return np.array(found, COMPLETION)

    def _advance_apart(self, every: bool, found: list[tuple[int, int, int, int, int]]) -> None:
        """Let all drives go on by themselves, to their end or, unless it is for `every`, to their last completions."""
        done = []
        for number, drive in enumerate(self._drives):
            if every or drive.outstanding:
                done.append(drive.advance(every=every, wait=max(1, drive.outstanding)))
                self._events[number] = drive.next_event
        completions = np.concatenate([*done, np.zeros(0, COMPLETION)])
        for row in np.argsort(completions["completed"], kind="stable"):
            self._part_done(int(completions["tag"][row]), int(completions["completed"][row]), found)
        self._now = max(self._now, *(drive.now for drive in self._drives))

    def _arrive(self, number: int) -> None:
        request = self._open[number]
        request.arrived = self._now
        for drive, one, commands in request.parts:
            self._give(drive, np.array([number]), one, commands, self._now)

    def _part_done(self, number: int, time: int, found: list[tuple[int, int, int, int, int]]) -> None:
        """A drive is done with its part of a request; the last part completes it, and those that waited for it are due."""
        request = self._open[number]
        request.left -= 1
        if request.left == 0:
            del self._open[number]
            found.append((number, request.tag, request.arrived, request.arrived, time))
            for other in request.dependents:
                self._blocked -= 1
                heappush(self._arrivals, (time + self._open[other].think, other))

    def power_cut(self, at: int) -> HddPowerCut:
        """Run to `at`, then lose power; see `flashsim.hdd.engine.drive.HddEngine.power_cut`."""
        self.advance(at, every=True)
        cut = self._cut(at, sorted(self._open))
        self._open, self._arrivals, self._blocked = {}, [], 0
        self._events = [NEVER] * len(self._drives)
        return cut

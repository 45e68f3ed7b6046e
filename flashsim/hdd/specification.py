"""The readable model of a hard disk: a controller and a mechanism, two SimPy processes.

The controller serves commands one at a time, in the order in which they are admitted.  What it does with the two cache segments is
told in `hdd.cache`, and what the mechanism does in `hdd.stream`; here both are acted out.

Order of events that fall on one nanosecond: what follows without delay, arrivals by request id, the controller, the mechanism.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import simpy

from flashsim.core.errors import InvalidParameterError
from flashsim.core.host_specification import OPERATIONS, HostRequest, SpecifiedHost, delay
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE, Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER
from flashsim.hdd import report
from flashsim.hdd.cache import crossing_time
from flashsim.hdd.checks import check_supported
from flashsim.hdd.mechanism import Mechanism, Steps
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.seek import lee_curve


class Controller:
    """Serves commands over the link, from the segments and through the mechanism."""

    def __init__(self, env: simpy.Environment, parameters: HddParameters, seeks: Integers, first_id: int = 0) -> None:
        self.env = env
        self.parameters = parameters
        self.host = SpecifiedHost(env, parameters.queue_depth, self._admit, first_id)
        self.mechanism = Mechanism(env, parameters, seeks)
        self.read_ahead = parameters.read_ahead // parameters.sector_size
        self.write_behind = parameters.write_behind // parameters.sector_size
        self.kept = (0, 0)  # the read-ahead segment; its end moves with the mechanism while that reads ahead
        self.acknowledged: list[tuple[int, int, int]] = []  # (request, first sector, after the last) of writes in the write stream
        self.counters = dict.fromkeys(report.COUNTERS, 0)
        self._admitted: deque[tuple[HostRequest, int, int]] = deque()
        self._idle = env.event()
        env.process(self._work())

    @property
    def reading(self) -> bool:
        """Whether the mechanism's stream is a read."""
        return self.mechanism.limit > 0 and not self.mechanism.writing

    def _admit(self, request: HostRequest, offset: int, length: int) -> None:
        self._admitted.append((request, offset // self.parameters.sector_size, length // self.parameters.sector_size))
        if not self._idle.triggered:
            self._idle.succeed()

    def _work(self) -> Steps:
        while True:
            while not self._admitted:
                self._idle = self.env.event()
                yield self._idle
            request, first, sectors = self._admitted.popleft()
            yield from self._pause(self.parameters.overhead)
            if request.operation == READ:
                yield from self._read(first, first + sectors)
            elif request.operation == WRITE:
                yield from self._write(request, first, first + sectors)
            elif request.operation == FLUSH:
                self.counters["flushes"] += 1
                yield from self._destaged()
            self.host.command_done(request)

    def _read(self, first: int, end: int) -> Steps:
        crossing = self._cross("read", end - first)
        limit = min(end + self.read_ahead, self.parameters.sectors)
        if self.reading:
            hit = self.read_ahead > 0 and self.kept[0] <= first <= self.mechanism.position
        else:
            hit = self.kept[0] <= first and end <= self.kept[1]
        if hit:
            self.counters["read_hits"] += 1
            if self.reading:
                self.mechanism.extend(limit, int(self.env.now))
        else:
            yield from self._destaged()
            self.mechanism.begin(first, limit, False, int(self.env.now))
        self.kept = (end, self.kept[1])
        if self.reading:
            yield from self.mechanism.passed(first)
        crossed = int(self.env.now) + crossing
        if self.reading:
            yield from self.mechanism.passed(end - 1)
        last = crossing_time(self.parameters.sector_size, self.parameters.link_rate)
        yield from self._pause(max(crossed - int(self.env.now), last))

    def _write(self, request: HostRequest, first: int, end: int) -> Steps:
        crossing = self._cross("written", end - first)
        mechanism = self.mechanism
        if self.reading:
            self.kept = (self.kept[0], mechanism.position)
        if first < self.kept[1] and self.kept[0] < end:
            self.kept = (self.kept[0], self.kept[0])
        fits = end - first <= self.write_behind
        if mechanism.writing and not mechanism.resting and first == mechanism.limit and fits:
            yield from mechanism.passed(end - self.write_behind - 1)
            mechanism.extend(end, int(self.env.now) + crossing)
        else:
            yield from self._destaged()
            self.acknowledged.clear()
            self.counters["destages"] += 1
            mechanism.begin(first, end, True, int(self.env.now) + crossing)
        yield from self._pause(crossing)
        if fits and not request.flags & FORCE_UNIT_ACCESS:
            self.acknowledged.append((request.id, first, end))
        else:
            yield from mechanism.passed(end - 1)

    def _destaged(self) -> Steps:
        """Wait until the write-behind segment is empty."""
        if self.mechanism.writing:
            yield from self.mechanism.passed(self.mechanism.limit - 1)

    def _cross(self, direction: str, sectors: int) -> int:
        """Count a transfer over the link and return its duration."""
        size = sectors * self.parameters.sector_size
        crossing = crossing_time(size, self.parameters.link_rate)
        self.counters["reads" if direction == "read" else "writes"] += 1
        self.counters[f"{direction}_bytes"] += size
        self.counters["link_time"] += crossing
        return crossing

    def _pause(self, duration: int) -> Steps:
        yield delay(self.env, duration, OPERATIONS)

    def count(self) -> dict[str, int]:
        """The counters, the mechanism's included."""
        own = self.mechanism
        return {
            **self.counters,
            "seeks": own.seek_count,
            "seek_time": own.seek_time,
            "seek_cylinders": own.seek_cylinders,
            "waits": own.wait_count,
            "wait_time": own.wait_time,
        }


class HddSpecification:
    """A hard disk under a virtual clock (`core.model.DeviceModel`), told in SimPy.

    Parameters
    ----------
    parameters
        The drive.
    """

    def __init__(self, parameters: HddParameters) -> None:
        check_supported(parameters)
        self.parameters = parameters
        self._seeks = lee_curve(parameters.cylinders, parameters.seek_single, parameters.seek_average, parameters.seek_full)
        self._env = simpy.Environment()
        self._controller = Controller(self._env, parameters, self._seeks)
        self._unfinished: set[int] = set()
        self._before = dict.fromkeys(report.COUNTERS, 0)  # counted before the last power cut
        self._next_id = 0

    @property
    def capacity(self) -> int:
        """Bytes that the host can address."""
        return self.parameters.capacity

    @property
    def now(self) -> int:
        """The clock, ns."""
        return int(self._env.now)

    @property
    def outstanding(self) -> int:
        """Requests submitted and not yet completed."""
        return self._controller.host.outstanding

    @property
    def next_event(self) -> int:
        """When something happens next; see `flashsim.core.model.DeviceModel.next_event`."""
        return int(min(self._env.peek(), NEVER))

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host.HostQueue.append`)."""
        self.parameters.check(requests, commands)
        ids = self._controller.host.append(requests, commands, at)
        self._unfinished.update(ids.tolist())
        self._next_id += len(ids)
        return ids

    def advance(self, until: int = NEVER, *, every: bool = False) -> Completions:
        """Let time pass up to the earlier of `until` and the next completion, or with `every` up to `until`; return what completed."""
        if until < self.now:
            raise InvalidParameterError("until", f"{until} ns", f"the clock is already at {self.now} ns")
        env, host = self._env, self._controller.host
        while env.peek() <= until and (until != NEVER or host.outstanding) and (every or not host.completed):
            env.step()
        if until != NEVER and env.now < until and (every or not host.completed):
            env.run(int(until))
        completions = host.collect()
        self._unfinished.difference_update(completions["id"].tolist())
        return completions

    def load(self, offset: int, length: int) -> None:
        """Nothing: whether a sector has been written does not change a hard disk's times."""

    def power_cut(self, at: int) -> report.HddPowerCut:
        """Run to `at`, then lose power: segments and queue are emptied, and the arm parks over the outermost track.

        Completions up to `at` that have not been returned by `advance` are not returned any more.
        """
        self.advance(at, every=True)
        controller = self._controller
        size, durable = self.parameters.sector_size, controller.mechanism.position
        unsettled = [
            (request, first * size, (end - first) * size)
            for request, first, end in controller.acknowledged
            if controller.mechanism.writing and end > durable
        ]
        cut = report.power_cut(at, self._unfinished, unsettled)
        self._before = self._counted()
        self._unfinished = set()
        self._env = simpy.Environment(int(at))
        self._controller = Controller(self._env, self.parameters, self._seeks, self._next_id)
        return cut

    def _counted(self) -> dict[str, int]:
        now = self._controller.count()
        return {name: self._before[name] + now[name] for name in report.COUNTERS}

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made (`hdd.report.COUNTERS`); each counts when it happens."""
        return report.statistics(self._counted())

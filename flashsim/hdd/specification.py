"""The readable model of hard disks: for each drive a controller and a mechanism, two SimPy processes.

Order of events that fall on one nanosecond: what follows without delay, arrivals by request id, the controllers, the mechanisms.
"""

from __future__ import annotations

from typing import Any

import simpy

from flashsim.core.errors import InvalidParameterError
from flashsim.core.host_specification import HostRequest, SpecifiedHost
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER
from flashsim.hdd import report, striping
from flashsim.hdd.controller import Controller
from flashsim.hdd.geometry import Geometry
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.seek import seek_curve

#: An array's host may have any number of commands on the way, since each drive has a queue.
_ANY_DEPTH = 1 << 40


class Drives:
    """The drives of an array, or the only one, and the host that they serve, from power-up to a power cut."""

    def __init__(self, env: simpy.Environment, parameters: HddParameters, geometry: Geometry, seeks: Integers, first_id: int) -> None:
        depth = parameters.queue_depth if parameters.drives == 1 else _ANY_DEPTH
        self.parameters = parameters
        self.host = SpecifiedHost(env, depth, self._admit, first_id)
        done = self.host.command_done
        self.controllers = [Controller(env, parameters, geometry, seeks, number, done) for number in range(parameters.drives)]

    def _admit(self, request: HostRequest, offset: int, length: int) -> None:
        told = self.parameters
        drive = min(offset // told.capacity, told.drives - 1)
        first = (offset - drive * told.capacity) // told.sector_size
        self.controllers[drive].admit(request, first, first + length // told.sector_size)

    def unsettled(self) -> list[tuple[int, int, int]]:
        """Request, address and length of the acknowledged writes that are not wholly on the media."""
        size, found = self.parameters.sector_size, []
        for controller in self.controllers:
            start, mechanism = controller.number * self.parameters.capacity, controller.mechanism
            for request, first, end in controller.acknowledged:
                if mechanism.writing and end > mechanism.position:
                    found.append((request, start + first * size, (end - first) * size))
        return found

    def count(self) -> dict[str, int]:
        """The counters of all drives together."""
        counts = [controller.count() for controller in self.controllers]
        return {name: sum(each[name] for each in counts) for name in report.COUNTERS}


class HddSpecification:
    """A hard disk, or an array of them, under a virtual clock (`core.model.DeviceModel`), told in SimPy.

    Parameters
    ----------
    parameters
        The drive.
    """

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters
        self._geometry = Geometry(parameters)
        self._seeks = seek_curve(parameters)
        self._unfinished: set[int] = set()
        self._before = dict.fromkeys(report.COUNTERS, 0)  # counted before the last power cut
        self._next_id = 0
        self._power_up(0)

    def _power_up(self, at: int) -> None:
        self._env = simpy.Environment(at)
        self._drives = Drives(self._env, self.parameters, self._geometry, self._seeks, self._next_id)

    @property
    def capacity(self) -> int:
        """Bytes that the host can address."""
        return self.parameters.total_capacity

    @property
    def now(self) -> int:
        """The clock, ns."""
        return int(self._env.now)

    @property
    def outstanding(self) -> int:
        """Requests submitted and not yet completed."""
        return self._drives.host.outstanding

    @property
    def next_event(self) -> int:
        """When something happens next; see `flashsim.core.model.DeviceModel.next_event`."""
        return int(min(self._env.peek(), NEVER))

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host_queue.HostQueue.append`)."""
        self.parameters.check(requests, commands)
        ids = self._drives.host.append(requests, striping.split(requests, commands, self.parameters), at)
        self._unfinished.update(ids.tolist())
        self._next_id += len(ids)
        return ids

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`."""
        if until < self.now:
            raise InvalidParameterError("until", f"{until} ns", f"the clock is already at {self.now} ns")
        env, host = self._env, self._drives.host
        wait = NEVER if every else wait
        while env.peek() <= until and (until != NEVER or host.outstanding) and len(host.completed) < wait:
            env.step()
        if until != NEVER and env.now < until and len(host.completed) < wait:
            env.run(int(until))
        completions = host.collect()
        self._unfinished.difference_update(completions["id"].tolist())
        return completions

    def load(self, offset: int, length: int) -> None:
        """Nothing: whether a sector has been written does not change a hard disk's times."""

    def power_cut(self, at: int) -> report.HddPowerCut:
        """Run to `at`, then lose power: buffers and queues are emptied, and the arms park over the outermost track.

        Completions up to `at` that have not been returned by `advance` are not returned any more.
        """
        self.advance(at, every=True)
        cut = report.power_cut(at, self._unfinished, self._drives.unsettled(), self.parameters)
        self._before = self._counted()
        self._unfinished = set()
        self._power_up(int(at))
        return cut

    def _counted(self) -> dict[str, int]:
        now = self._drives.count()
        return {name: self._before[name] + now[name] for name in report.COUNTERS}

    def statistics(self) -> dict[str, Any]:
        """Counters since the drives were made (`hdd.report.COUNTERS`); each counts when it happens."""
        return report.statistics(self._counted())

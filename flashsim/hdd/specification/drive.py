"""The readable model of hard disks: a controller and a mechanism, two SimPy processes.

Order of events that fall on one nanosecond: what follows without delay, arrivals by request id, the controller, the mechanism.
"""

from typing import Any

import simpy

from flashsim.core.errors import InvalidParameterError
from flashsim.core.host_specification import HostRequest, SpecifiedHost
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER
from flashsim.hdd import report
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.specification.controller import Controller
from flashsim.hdd.state.geometry import Geometry
from flashsim.hdd.state.seek import seek_curve


class HddSpecification:
    """A hard disk under a virtual clock (`core.model.DeviceModel`), told in SimPy.

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
        self._host = SpecifiedHost(self._env, self.parameters.queue_depth, self._admit, self._next_id)
        self._controller = Controller(self._env, self.parameters, self._geometry, self._seeks, self._host.command_done)

    def _admit(self, request: HostRequest, offset: int, length: int) -> None:
        first = offset // self.parameters.sector_size
        self._controller.admit(request, first, first + length // self.parameters.sector_size)

    @property
    def capacity(self) -> int:
        return self.parameters.capacity

    @property
    def now(self) -> int:
        """The clock, ns."""
        return int(self._env.now)

    @property
    def outstanding(self) -> int:
        return self._host.outstanding

    @property
    def next_event(self) -> int:
        """When something happens next; see `flashsim.core.model.DeviceModel.next_event`."""
        return int(min(self._env.peek(), NEVER))

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host_queue.HostQueue.append`)."""
        self.parameters.check(requests, commands)
        ids = self._host.append(requests, commands, at)
        self._unfinished.update(ids.tolist())
        self._next_id += len(ids)
        return ids

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`."""
        if until < self.now:
            raise InvalidParameterError("until", f"{until} ns", f"the clock is already at {self.now} ns")
        env, host = self._env, self._host
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
        cut = report.power_cut(at, self._unfinished, self._controller.unsettled())
        self._before = self._counted()
        self._unfinished = set()
        self._power_up(int(at))
        return cut

    def _counted(self) -> dict[str, int]:
        now = self._controller.count()
        return {name: self._before[name] + now[name] for name in report.COUNTERS}

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made (`hdd.report.COUNTERS`); each counts when it happens."""
        return report.statistics(self._counted())

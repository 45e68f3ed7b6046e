"""The queueing station told with SimPy events."""

from typing import Any

import numpy as np
import simpy

from flashsim.core.host_specification import OPERATIONS, HostRequest, SpecifiedHost, delay
from flashsim.core.model import PowerCut
from flashsim.core.request import READ, Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER
from flashsim.device.station.parameters import StationParameters, service_time


class StationSpecification:
    """A queueing station under a virtual clock (`flashsim.core.model.DeviceModel`), told in SimPy."""

    def __init__(self, parameters: StationParameters) -> None:
        self.parameters = parameters
        self._vector = parameters.vector()
        self._started = 0
        self._unfinished: set[int] = set()
        self._counts = {"reads": 0, "writes": 0, "busy_time": 0}
        self._power_up(0, 0)

    def _power_up(self, at: int, first_id: int) -> None:
        self._env = simpy.Environment(at)
        self._host = SpecifiedHost(self._env, self.parameters.servers, self._serve, first_id)
        self._next_id = first_id

    def _serve(self, request: HostRequest, offset: int, length: int) -> None:
        time = int(service_time(self._vector, request.id, request.operation, offset, length))
        event = delay(self._env, time, OPERATIONS + self._started)
        assert event.callbacks is not None
        event.callbacks.append(lambda _: self._host.command_done(request))
        self._started += 1
        self._counts["reads" if request.operation == READ else "writes"] += 1
        self._counts["busy_time"] += time

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
        """Take requests, split into commands; see `flashsim.core.host_queue.HostQueue.append`."""
        ids = self._host.append(requests, commands, at)
        self._unfinished.update(ids.tolist())
        self._next_id += len(ids)
        return ids

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`."""
        wait = NEVER if every else wait
        while self._env.peek() <= min(until, NEVER - 1) and len(self._host.completed) < wait:
            self._env.step()
        if self.now < until < NEVER and len(self._host.completed) < wait:
            self._env.run(until)
        completions = self._host.collect()
        self._unfinished.difference_update(completions["id"].tolist())
        return completions

    def load(self, offset: int, length: int) -> None:
        """Nothing: what was written does not change a station's times."""

    def power_cut(self, at: int) -> PowerCut:
        """Run to `at`, then lose power: nothing is served any more; see `flashsim.core.model.DeviceModel.power_cut`."""
        self.advance(at, every=True)
        lost, self._unfinished = np.array(sorted(self._unfinished), np.int64), set()
        self._power_up(self.now, self._next_id)
        return PowerCut(self.now, lost)

    def statistics(self) -> dict[str, Any]:
        """Commands begun since the station was made, and the time that they take of its servers, ns."""
        return dict(self._counts)

"""The queueing station in SimPy: each service is an event."""

from typing import Any

import simpy

from flashsim.core.host_specification import OPERATIONS, HostRequest, SpecifiedDevice, SpecifiedHost, delay, follow
from flashsim.core.model import PowerCut
from flashsim.core.request import READ
from flashsim.device.station import StationParameters, service_time


class StationSpecification(SpecifiedDevice):
    """A queueing station under a virtual clock (`flashsim.core.model.DeviceModel`), told in SimPy."""

    def __init__(self, parameters: StationParameters) -> None:
        self.parameters = parameters
        self.env = simpy.Environment()
        self.host = SpecifiedHost(self.env, parameters.servers, self._serve)
        self._vector = parameters.vector()
        self._count = 0
        self._counts = {"reads": 0, "writes": 0, "busy_time": 0}

    def _serve(self, request: HostRequest, offset: int, length: int) -> None:
        time = int(service_time(self._vector, request.id, request.operation, offset, length))
        follow(delay(self.env, time, OPERATIONS + self._count), lambda: self.host.command_done(request))
        self._count += 1
        self._counts["reads" if request.operation == READ else "writes"] += 1
        self._counts["busy_time"] += time

    def power_cut(self, at: int) -> PowerCut:
        self.advance(at, every=True)
        lost, self.env = self.host.unfinished_requests, simpy.Environment(self.now)
        self.host.clear(self.env)
        return PowerCut(self.now, lost)

    def statistics(self) -> dict[str, Any]:
        """Commands begun since the station was made, and the time that they take of its servers, ns."""
        return dict(self._counts)

"""The readable model of hard disks: a controller and a mechanism, two SimPy processes.

Order of events that fall on one nanosecond: what follows without delay, arrivals by request id, the controller, the mechanism.
"""

from typing import Any

import numpy as np
import simpy

from flashsim.core.host_specification import HostRequest, SpecifiedDevice, SpecifiedHost
from flashsim.core.request import Commands, Integers, Requests
from flashsim.core.spans import SPAN, Spans
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.specification.controller import Controller
from flashsim.hdd.state.disk import COUNTER_NAMES, HddPowerCut, power_cut, statistics


class HddSpecification(SpecifiedDevice):
    """A hard disk under a virtual clock (`core.model.DeviceModel`), told in SimPy."""

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters
        self._counters = dict.fromkeys(COUNTER_NAMES, 0)
        self.env = simpy.Environment()
        self.host = SpecifiedHost(self.env, parameters.queue_depth, self._admit)
        self._power_up()

    def _power_up(self) -> None:
        self._controller = Controller(self.env, self.parameters, self._counters, self.host.command_done)

    def _admit(self, request: HostRequest, offset: int, length: int) -> None:
        first = offset // self.parameters.sector_size
        self._controller.admit(request, first, first + length // self.parameters.sector_size)

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        self.parameters.check(requests, commands)
        return super().submit(requests, commands, at)

    def power_cut(self, at: int) -> HddPowerCut:
        self.advance(at, every=True)
        cut = power_cut(at, self.host.unfinished_requests.tolist(), self._controller.unsettled_writes())
        self.env = simpy.Environment(int(at))
        self.host.clear(self.env)
        self._power_up()
        return cut

    def record_spans(self, on: bool) -> None:
        """Begin or stop to record what commands wait for; see `flashsim.core.spans.SpanSource`."""
        self._controller.record = [] if on else None

    def spans(self) -> Spans:
        """Parts of commands that have ended since the last call."""
        rows = np.array(self._controller.record or [], SPAN)
        self.record_spans(self._controller.record is not None)
        return rows

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made (`hdd.state.disk.COUNTERS`); each counts when it happens."""
        return statistics(self._counters)

"""The readable model of an array of equal disks: each drive is a device of its own, and all share the array's clock.

Each drive gets its commands of a request (`device.striped`) as one request of its own, when that arrives; with the last of these the
request completes.  Arrivals come first, in order of time and id; of drives that do something at the same nanosecond, the first in the row.
"""

from collections.abc import Sequence

import numpy as np
import simpy

from flashsim.core.host_specification import HostRequest, SpecifiedDevice, SpecifiedHost
from flashsim.core.model import DeviceModel
from flashsim.core.request import COMMAND, Commands, Integers, Requests, make_requests
from flashsim.core.units import NEVER
from flashsim.device.striped import ANY_DEPTH, StripedDrives, Striping
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.disk import HddPowerCut


class StripedSpecification(StripedDrives[DeviceModel], SpecifiedDevice):
    """Equal disks under one virtual clock (`core.model.DeviceModel`), stepped one by one; they may be specifications or engines."""

    def __init__(self, drives: Sequence[DeviceModel], parameters: HddParameters, striping: Striping) -> None:
        super().__init__(drives, parameters, striping)
        self.env = simpy.Environment()
        self.host = SpecifiedHost(self.env, ANY_DEPTH, self._admit)
        self._events = [NEVER] * len(drives)  # when each drive does something next

    @property
    def next_event(self) -> int:
        return min(super().next_event, *self._events)

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        return super().submit(requests, self._split(requests, commands), at)

    def _admit(self, request: HostRequest, offset: int, length: int) -> None:
        """Hand the commands of a request to the drives, once the last of them is dispatched: all are at once."""
        if request.queue.dispatched:
            return
        for number, drive in enumerate(self._drives):
            if extents := self._extents_on(number, request):
                whole = make_requests(request.operation, 0, 0)
                whole["flags"], whole["tag"] = request.flags, request.id
                drive.submit(whole, np.array([(0, *extent) for extent in extents], COMMAND), self.now)
                self._events[number] = drive.next_event

    def _extents_on(self, drive: int, request: HostRequest) -> list[tuple[int, int]]:
        begin, end = drive * self.parameters.capacity, (drive + 1) * self.parameters.capacity
        return [(offset - begin, length) for offset, length in request.commands if begin <= offset < end]

    def _step(self) -> None:
        event = min(self._events)
        if self.env.peek() <= event:
            self.env.step()
            return
        if self.now < event:
            self.env.run(event)
        number = self._events.index(event)
        for completion in self._drives[number].advance(event):
            request = self.host.open[int(completion["tag"])]
            for _ in self._extents_on(number, request):
                self.host.command_done(request)
        self._events[number] = self._drives[number].next_event

    def power_cut(self, at: int) -> HddPowerCut:
        self.advance(at, every=True)
        cut = self._cut(at, self.host.unfinished_requests.tolist())
        self.env = simpy.Environment(int(at))
        self.host.clear(self.env)
        self._events = [NEVER] * len(self._drives)
        return cut

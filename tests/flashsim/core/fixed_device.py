"""A device that serves every command at once, each in its own fixed time: the least that drives the two host queues."""

from __future__ import annotations

import heapq

import numpy as np
import simpy

from flashsim.core.host import arrive, command_done, next_arrival, next_queue, take_command
from flashsim.core.host_queue import HostQueue
from flashsim.core.host_specification import OPERATIONS, HostRequest, SpecifiedDevice, SpecifiedHost, delay
from flashsim.core.request import SECTOR, Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER


def service_time(offset: int, length: int) -> int:
    """1 to 5 ns, so that many commands end together."""
    return 1 + (offset // SECTOR * 3 + length // SECTOR) % 5


class FixedEngine:
    """The compiled host queue before the fixed device."""

    def __init__(self, depth: int, queues: int = 1) -> None:
        self.host = HostQueue(depth, queues)
        self._operations: list[tuple[int, int, int]] = []  # (end, operation id, command)
        self.admitted: list[int] = []  # the requests of the commands

    @property
    def now(self) -> int:
        return self.host.now

    @property
    def outstanding(self) -> int:
        return self.host.outstanding

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        return self.host.append(requests, commands, at)

    def advance(self, until: int = NEVER) -> Completions:
        host = self.host
        completed = False
        while not completed:
            arrival, _ = next_arrival(host.tables)
            end = self._operations[0][0] if self._operations else NEVER
            if min(arrival, end) > until or min(arrival, end) == NEVER:
                host.scalars.now = host.now if until == NEVER else until
                break
            if arrival <= end:
                arrive(host.tables)
            else:
                host.scalars.now, _, command = heapq.heappop(self._operations)
                completed = bool(command_done(host.tables, command))
            self._admit()
        return host.collect()

    def _admit(self) -> None:
        host = self.host
        while (queue := next_queue(host.tables)) >= 0:
            command = take_command(host.tables, queue)
            row = host.commands[command - host.scalars.command_base]
            end = host.now + service_time(int(row.offset), int(row.length))
            heapq.heappush(self._operations, (end, len(self.admitted), int(command)))
            self.admitted.append(int(row.owner))


class FixedSpecification(SpecifiedDevice):
    """The specified host queue before the fixed device."""

    def __init__(self, depth: int, queues: int = 1) -> None:
        self.env = simpy.Environment(initial_time=0)
        self.host = SpecifiedHost(self.env, depth, self._admit, queues=queues)
        self.admitted: list[int] = []

    def _admit(self, request: HostRequest, offset: int, length: int) -> None:
        event = delay(self.env, service_time(offset, length), OPERATIONS + len(self.admitted))
        assert event.callbacks is not None
        event.callbacks.append(lambda _: self.host.command_done(request))
        self.admitted.append(request.id)


def run(device: FixedEngine | FixedSpecification) -> Completions:
    """Everything that is left."""
    parts = []
    while len(part := device.advance()):
        parts.append(part)
    return np.concatenate(parts) if parts else device.advance()

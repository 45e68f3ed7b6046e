"""The queueing station compiled: requests wait in the host's own queue, since a station takes no more than its servers can serve."""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from flashsim.core.groups import group_type
from flashsim.core.host import HOST_TABLES, Host, arrive, command_done, heap_pop, heap_push, next_arrival, next_queue, take_command
from flashsim.core.host_queue import HostQueue
from flashsim.core.kernel import inlined_kernel, kernel_of
from flashsim.core.model import CompiledEngine, PowerCut
from flashsim.core.records import MATRIX, VECTOR
from flashsim.core.request import READ, Integers
from flashsim.core.state_table import ADVANCE, State, state_of
from flashsim.core.units import NEVER
from flashsim.device.station import StationParameters, service_time

# Scalars of the station; the first free place of a server leads to the others.
_BUSY, _STARTED, _FREE, _READS, _WRITES, _BUSY_TIME = range(6)
COUNTERS = ("reads", "writes", "busy_time")

_PLACE_BITS = 16
_PLACE_MASK = (1 << _PLACE_BITS) - 1


class Servers(NamedTuple):
    """The tables of a station."""

    parameters: Integers
    scalars: Integers
    heap: Integers  #: Time at which each server ends and the number of its service, with its place below; shape (servers, 2).
    places: Integers  #: The command at each place, or the next free place; shape (servers,).


_STATE = types.Tuple((HOST_TABLES, group_type((VECTOR, VECTOR, MATRIX, VECTOR), Servers)))
_state_of = state_of(_STATE)


@inlined_kernel
def _serve(host: Host, station: Servers, queue: int) -> None:
    command = take_command(host, queue)
    row = command - host.scalars.command_base
    operation = host.commands[row].operation
    time = service_time(station.parameters, host.commands[row].owner, operation, host.commands[row].offset, host.commands[row].length)
    place = station.scalars[_FREE]
    station.scalars[_FREE] = station.places[place]
    station.places[place] = command
    key = station.scalars[_STARTED] << _PLACE_BITS | place
    station.scalars[_STARTED] += 1
    station.scalars[_BUSY] = heap_push(station.heap, station.scalars[_BUSY], host.scalars.now + time, key)
    station.scalars[_READS if operation == READ else _WRITES] += 1
    station.scalars[_BUSY_TIME] += time


@inlined_kernel
def _end_service(host: Host, station: Servers) -> None:
    host.scalars.now = station.heap[0, 0]
    place = station.heap[0, 1] & _PLACE_MASK
    station.scalars[_BUSY] = heap_pop(station.heap, station.scalars[_BUSY])
    command = station.places[place]
    station.places[place] = station.scalars[_FREE]
    station.scalars[_FREE] = place
    command_done(host, command)


@kernel_of(ADVANCE)
def advance(table: State, until: int, wait: int) -> int:
    """Let events happen up to `until`, or until so many completions wait to be collected; return when something happens next."""
    host, station = _state_of(table)
    while True:
        queue = next_queue(host)
        while queue >= 0:
            _serve(host, station, queue)
            queue = next_queue(host)
        arrival, _ = next_arrival(host)
        end = station.heap[0, 0] if station.scalars[_BUSY] > 0 else NEVER
        due = min(arrival, end)
        if host.scalars.finished >= wait:
            return int(due)
        if due > until or due == NEVER:
            if until != NEVER:
                host.scalars.now = max(host.scalars.now, until)
            return int(due)
        if arrival <= end:
            arrive(host)
        else:
            _end_service(host, station)


class StationEngine(CompiledEngine):
    """A queueing station under a virtual clock (`flashsim.core.model.DeviceModel`), compiled."""

    def __init__(self, parameters: StationParameters) -> None:
        self.parameters = parameters
        super().__init__(HostQueue(parameters.servers), advance, _STATE)
        servers = parameters.servers
        self._station = Servers(parameters.vector(), np.zeros(6, np.int64), np.zeros((servers, 2), np.int64), np.arange(1, servers + 1))

    @property
    def next_event(self) -> int:
        end = int(self._station.heap[0, 0]) if self._station.scalars[_BUSY] else NEVER
        return min(end, self.host.next_arrival)

    @property
    def state_arrays(self) -> tuple[Any, ...]:
        return self.host.tables, self._station

    def recover(self, status: int) -> None:
        """Nothing: a station's loop never stops short."""

    def power_cut(self, at: int) -> PowerCut:
        self._run(at, NEVER)
        lost = self.host.unfinished_requests
        self.host.clear()
        self._station.scalars[[_BUSY, _FREE]] = 0
        self._station.places[:] = np.arange(1, self.parameters.servers + 1)
        return PowerCut(self.now, lost)

    def statistics(self) -> dict[str, Any]:
        """Commands begun since the station was made, and the time that they take of its servers, ns."""
        return dict(zip(COUNTERS, self._station.scalars[_READS:].tolist(), strict=True))

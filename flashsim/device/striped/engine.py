"""The fast model of an array of equal disks: a compiled loop over the compiled loops of its drives.

The array's host holds nothing back, since each drive has a queue of its own.  A request that arrives is handed to the drives at once, each
gets its commands of it as one request, whose tag is the array's id.  Equal, to the nanosecond, to `device.striped.specification`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from flashsim.core import host as hosts
from flashsim.core.host_queue import HostQueue
from flashsim.core.kernel import address_of, is_compiled, kernel_of, lean_kernel
from flashsim.core.model import check_until
from flashsim.core.policies import function_at
from flashsim.core.records import MATRIX, VECTOR
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.state_table import ADVANCE, State, StateTable, state_of
from flashsim.core.units import NEVER
from flashsim.device.striped import ANY_DEPTH, StripedDrives, Striping
from flashsim.hdd.engine import drive as disk
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.disk import HddPowerCut

_NO_ROOM = -1 << 40  #: Result of `advance` if a drive's tables are too short for the next request.

# Columns of the drives' rows: when each does something next, and the row of the request that is being handed to it (-1: none).
_EVENT, _ENTERED = range(2)

#: The array's own queue, the rows of its drives, and the capacity of each with the address of their loop.
_ARRAY = types.Tuple((hosts.HOST_TABLES, MATRIX, VECTOR))
_array_of = state_of(_ARRAY)
_disk_of = state_of(disk.ENGINE)
_loop_at = function_at(types.FunctionType(ADVANCE))


@lean_kernel
def _has_room(table: State, commands: int) -> bool:
    """True if a drive's tables have room for another request of so many commands, and are not nearly full then."""
    host, _, _ = _disk_of(table)
    requests, most = host.requests.shape[0], host.commands.shape[0]
    if host.scalars.rows < requests and host.scalars.command_rows + commands <= most:
        return True
    hosts.drop_collected(host)
    return bool(2 * (host.scalars.rows + 1) <= requests and 2 * (host.scalars.command_rows + commands) <= most)


@lean_kernel
def _hand_out(table: State, disks: Any) -> None:
    host, drives, each = _array_of(table)
    drives[:, _ENTERED] = -1
    while True:
        queue = hosts.next_queue(host)
        if queue < 0:
            break
        command = hosts.take_command(host, queue) - host.scalars.command_base
        drive = host.commands[command].offset // each[0]
        own, _, _ = _disk_of(disks[drive])
        if drives[drive, _ENTERED] < 0:
            drives[drive, _ENTERED] = hosts.add_request(own, host.scalars.now, 0, host.commands[command].owner, 0)
        hosts.add_command(
            own, drives[drive, _ENTERED], host.commands[command].operation, host.commands[command].request_flags,
            host.commands[command].offset - drive * each[0], host.commands[command].length,
        )  # fmt: skip
    for drive in range(drives.shape[0]):
        if drives[drive, _ENTERED] >= 0:
            own, _, _ = _disk_of(disks[drive])
            hosts.expect(own, drives[drive, _ENTERED])
            drives[drive, _EVENT] = min(drives[drive, _EVENT], host.scalars.now)


@lean_kernel
def _take_back(host: hosts.Host, own: hosts.Host) -> None:
    for index in range(own.scalars.finished):
        row = own.finished[index] - own.scalars.request_base
        command = host.requests[own.requests[row].tag - host.scalars.request_base].first_command
        for _ in range(own.requests[row].commands):
            hosts.command_done(host, command)
        own.requests[row].pending = hosts.DONE_WITH
    own.scalars.collected += own.scalars.finished
    own.scalars.finished = 0


@kernel_of(types.int64(VECTOR, MATRIX, types.int64, types.int64))
def advance(table: State, disks: Any, until: int, wait: int) -> int:
    """As `flashsim.hdd.engine.drive.run`, for the disks whose state is given row by row; may also return _NO_ROOM."""
    host, drives, numbers = _array_of(table)
    while True:
        arrival, request = hosts.next_arrival(host)
        which = 0
        for drive in range(1, drives.shape[0]):
            if drives[drive, _EVENT] < drives[which, _EVENT]:
                which = drive
        due = min(arrival, drives[which, _EVENT])
        if host.scalars.finished >= wait:
            return int(due)
        if due > until or due == NEVER:
            if until != NEVER:
                host.scalars.now = until
            return int(due)
        if arrival > due:
            host.scalars.now = due
            own, _, _ = _disk_of(disks[which])
            drives[which, _EVENT] = _loop_at(numbers[1])(disks[which], due, 1)
            if drives[which, _EVENT] < 0:
                return int(drives[which, _EVENT])
            _take_back(host, own)
            continue
        for drive in range(drives.shape[0]):
            if not _has_room(disks[drive], host.requests[request - host.scalars.request_base].commands):
                return _NO_ROOM
        hosts.arrive(host)
        _hand_out(table, disks)


class StripedEngine(StripedDrives[disk.HddEngine]):
    """Equal disks under one virtual clock (`core.model.DeviceModel`), compiled."""

    def __init__(self, drives: Sequence[disk.HddEngine], parameters: HddParameters, striping: Striping) -> None:
        super().__init__(drives, parameters, striping)
        self.host = HostQueue(ANY_DEPTH)
        self._rows = np.full((len(self._drives), 2), NEVER, np.int64)
        self._each = np.array([parameters.capacity, address_of(disk.advance)], np.int64 if is_compiled() else object)
        self._table = StateTable(_ARRAY)

    @property
    def now(self) -> int:
        return self.host.now

    @property
    def outstanding(self) -> int:
        return self.host.outstanding

    @property
    def next_event(self) -> int:
        return int(self._rows[:, _EVENT].min(initial=self.host.next_arrival))

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        return self.host.append(requests, self._split(requests, commands), at)

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        check_until(until, self.now)
        while True:
            states = [drive.crossing() for drive in self._drives]
            disks = np.array(states) if is_compiled() else states
            status = advance(self._table.crossing((self.host.tables, self._rows, self._each)), disks, until, NEVER if every else wait)
            if status != _NO_ROOM:
                break
            most = int(self.host.requests.commands.max())
            for drive in self._drives:
                drive.make_room(most)
        if status < 0:
            raise self._drives[0].refusal()
        return self.host.collect()

    def power_cut(self, at: int) -> HddPowerCut:
        self.advance(at, every=True)
        cut = self._cut(at, self.host.unfinished_requests.tolist())
        self.host.clear()
        self._rows[:, _EVENT] = NEVER
        return cut

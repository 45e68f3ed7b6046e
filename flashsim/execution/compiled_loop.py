"""The compiled loop: several device engines and a host side under one clock, all compiled, for work of very many requests.

At every step the clock goes to the earliest event of all.  First each engine that has one at that time lets it happen; then the host
side is told of the requests that completed, by engine and in the order in which they did; then it acts for itself, if it wanted to at that
time; and last the requests that it issued meanwhile arrive at their devices.  What these do with them at the same nanosecond belongs to the
next step.

The host side is one compiled function, `ACT`, which is given by its address.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types

from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.host import DONE_WITH, HOST_TABLES, add_command, add_request, drop_collected, expect
from flashsim.core.kernel import address_of, inlined_kernel, is_compiled, kernel_of, lean_kernel
from flashsim.core.model import CompiledModel
from flashsim.core.policies import function_at
from flashsim.core.records import MATRIX, VECTOR
from flashsim.core.request import FLUSH, READ, SECTOR, WRITE, Integers
from flashsim.core.state_table import ADVANCE, State, StateTable, state_of, vector_at
from flashsim.core.units import NEVER

#: The one signature of a host side: ``act(state, outbox, now, device, tag)``.  It is told that a request with that tag completed at that
#: device, or, with device -1, that it may act for itself as it wanted.  It issues requests into the outbox (`issue`), and returns when it
#: wants to act next; NEVER, if only completions matter to it.
ACT = types.int64(VECTOR, MATRIX, types.int64, types.int64, types.int64)

# Columns of the engines: the address of an engine's loop, that and the length of its state, when something happens there, how many commands
# may be entered before it must make room, whether completions may wait, and the device that it is part of.
_LOOP, _STATE, _STATE_LENGTH, _DUE, _ROOM, _ADVANCED, _DEVICE = range(7)
# Columns of the devices: the first of their engines, how many there are, how bytes are spread over these, and flags of writes.
_FIRST, _ENGINES, _STRIPE, _CAPACITY, _WRITE_FLAGS = range(5)
# Entries of the clock: the time, when the host side acts, requests completed, rows of the log, rows of the outbox that were sent, and the
# engine, or the row of the outbox, on account of which the loop stopped short.
_NOW, _ACTS, _COMPLETED, _LOGGED, _SENT, _REASON = range(6)
# Why the loop stopped; an engine's own reasons are negative.
_DONE, _NO_ROOM, _REFUSED, _OVERFLOW, _PAUSED = range(5)
# Columns of the outbox, below its first row, of which the first entry is their number and the second whether the host side wants a pause.
_TO, _OPERATION, _OFFSET, _LENGTH, _TAG, _QUEUE = range(6)

_loop_at, _act_at = function_at(types.FunctionType(ADVANCE)), function_at(types.FunctionType(ACT))
_host_of = state_of(types.Tuple((HOST_TABLES,)))  # with which every engine's state begins


@inlined_kernel
def issue(outbox: Integers, device: int, operation: int, offset: int, length: int, tag: int, queue: int = 0) -> None:
    """Issue a request of at most the loop's longest command to a queue of a device; of a striped one a request within one stripe."""
    row = outbox[0, 0] + 1
    outbox[0, 0] = row
    if row < outbox.shape[0]:
        outbox[row, _TO] = device
        outbox[row, _OPERATION] = operation
        outbox[row, _OFFSET] = offset
        outbox[row, _LENGTH] = length
        outbox[row, _TAG] = tag
        outbox[row, _QUEUE] = queue


@inlined_kernel
def pause(outbox: Integers) -> None:
    """Come back to Python at the end of this step, for something that the host side wants to be done there (`HostSide.paused`)."""
    outbox[0, 1] = 1


@inlined_kernel
def _is_refused(devices: Integers, request: Integers, longest: int) -> bool:
    device, operation, offset, length = request[_TO], request[_OPERATION], request[_OFFSET], request[_LENGTH]
    if device < 0 or device >= devices.shape[0] or operation < READ or operation > FLUSH:
        return True
    if offset < 0 or offset % SECTOR != 0 or length % SECTOR != 0 or length > longest or offset > devices[device, _CAPACITY] - length:
        return True
    stripe = devices[device, _STRIPE]
    return length < (0 if operation == FLUSH else 1) or offset % stripe > stripe - length


@inlined_kernel
def _send(engines: Integers, devices: Integers, clock: Integers, outbox: Integers, longest: int) -> int:
    if outbox[0, 0] >= outbox.shape[0]:
        return _OVERFLOW
    while clock[_SENT] < outbox[0, 0]:
        request = outbox[clock[_SENT] + 1]
        if _is_refused(devices, request, longest):
            clock[_REASON] = clock[_SENT] + 1
            return _REFUSED
        device = request[_TO]
        stripe, drives = devices[device, _STRIPE], devices[device, _ENGINES]
        number = request[_OFFSET] // stripe
        engine, offset = devices[device, _FIRST] + number % drives, number // drives * stripe + request[_OFFSET] % stripe
        host = _host_of(vector_at(engines[engine, _STATE], engines[engine, _STATE_LENGTH]))[0]
        rows, commands = host.requests.shape[0], host.commands.shape[0]
        if host.scalars.rows == rows or host.scalars.command_rows == commands:
            drop_collected(host)
            if 2 * (host.scalars.rows + 1) > rows or 2 * (host.scalars.command_rows + 1) > commands:
                engines[engine, _ROOM] = 0
        if engines[engine, _ROOM] == 0:
            clock[_REASON] = engine
            return _NO_ROOM
        row = add_request(host, clock[_NOW], 0, request[_TAG], request[_QUEUE])
        flags = devices[device, _WRITE_FLAGS] if request[_OPERATION] == WRITE else 0
        add_command(host, row, request[_OPERATION], flags, offset, request[_LENGTH])
        expect(host, row)
        engines[engine, _ROOM] -= 1
        engines[engine, _DUE] = clock[_NOW]
        clock[_SENT] += 1
    clock[_SENT] = outbox[0, 0] = 0
    return _DONE


@lean_kernel
def _advance_engines(engines: Integers, clock: Integers) -> int:
    """Let happen what is due in the engines; the reason of one that stopped short, a negative number, or 0."""
    for engine in range(engines.shape[0]):
        if engines[engine, _DUE] <= clock[_NOW]:
            state = vector_at(engines[engine, _STATE], engines[engine, _STATE_LENGTH])
            due = _loop_at(engines[engine, _LOOP])(state, clock[_NOW], NEVER)
            engines[engine, _ADVANCED] = 1
            if due < 0:
                clock[_REASON] = engine
                return int(due)
            engines[engine, _DUE] = due
    return 0


@kernel_of(types.int64(MATRIX, MATRIX, VECTOR, types.int64, VECTOR, MATRIX, MATRIX, types.int64, types.int64, types.int64))
def _run(
    engines: Integers, devices: Integers, clock: Integers, side: Any, state: State, outbox: Integers, log: Integers, longest: int,
    until: int, completions: int,
) -> int:  # fmt: skip
    """Take steps up to `until`, or until so many requests have completed since the beginning; why it stopped."""
    act = _act_at(side)
    while True:
        status = _send(engines, devices, clock, outbox, longest)
        if status != _DONE:
            return status
        time = clock[_ACTS]
        for engine in range(engines.shape[0]):
            time = min(time, engines[engine, _DUE])
        if time > until or time == NEVER or clock[_COMPLETED] >= completions:
            return _DONE
        clock[_NOW] = time
        status = _advance_engines(engines, clock)
        if status < 0:
            return status
        for engine in range(engines.shape[0]):
            if engines[engine, _ADVANCED] == 0:
                continue
            engines[engine, _ADVANCED] = 0
            host = _host_of(vector_at(engines[engine, _STATE], engines[engine, _STATE_LENGTH]))[0]
            for index in range(host.scalars.finished):
                row = host.finished[index] - host.scalars.request_base
                device, tag = engines[engine, _DEVICE], host.requests[row].tag
                host.requests[row].pending = DONE_WITH
                clock[_COMPLETED] += 1
                if clock[_LOGGED] < log.shape[0]:
                    log[clock[_LOGGED], 0] = time
                    log[clock[_LOGGED], 1] = device
                    log[clock[_LOGGED], 2] = tag
                    clock[_LOGGED] += 1
                clock[_ACTS] = act(state, outbox, time, device, tag)
            host.scalars.collected += host.scalars.finished
            host.scalars.finished = 0
        while clock[_ACTS] <= time:
            clock[_ACTS] = act(state, outbox, time, -1, 0)
        if outbox[0, 1]:
            return _PAUSED


@dataclass(frozen=True)
class HostSide:
    """A host side for the loop."""

    act: Any  #: The function, compiled by ``kernel_of(ACT)``.
    #: What it works on, as `flashsim.core.state_table.StateTable` takes it.
    state: tuple[Any, ...]
    state_type: Any
    first: int  #: When it acts for itself first, ns.
    most: int  #: The most requests that it issues between two steps.
    longest: int  #: Bytes of its longest request.
    #: What is done when it wants a pause (`pause`); returns the state as it is from then on.
    paused: Callable[[], tuple[Any, ...]] | None = None
    write_flags: Sequence[int] = ()  #: Flags of the writes of each device (`flashsim.core.request`); none without them.


@dataclass(frozen=True)
class Striped:
    """Equal drives as one device: stripe after stripe of so many bytes goes to the next in turn."""

    drives: Sequence[CompiledModel]
    stripe: int

    @property
    def capacity(self) -> int:
        return self.drives[0].capacity // self.stripe * self.stripe * len(self.drives)


class CompiledLoop:
    """Devices and a host side under one clock.

    `devices`: engines, or striped ones; all idle. `side`: the host side. `log`: how many of the first completions to keep in `log_rows`.
    Raises InvalidParameterError: no device, the same drive twice, requests outstanding, or a stripe of no whole sectors or longer than a
    drive.
    """

    def __init__(self, devices: Sequence[CompiledModel | Striped], side: HostSide, log: int = 0) -> None:
        arrays = [each if isinstance(each, Striped) else Striped([each], each.capacity) for each in devices]
        self._engines = [drive for each in arrays for drive in each.drives]
        different = len({id(engine) for engine in self._engines}) == len(self._engines)
        if not arrays or not all(each.drives for each in arrays) or not different or any(engine.outstanding for engine in self._engines):
            raise InvalidParameterError("devices", len(devices), "there must be some, each of its own drives, and all idle")
        for each in arrays:
            if each.stripe < SECTOR or each.stripe > each.drives[0].capacity or (len(each.drives) > 1 and each.stripe % SECTOR):
                raise InvalidParameterError("stripe", f"{each.stripe} B", "it must be whole sectors, and no more than a drive holds")
        self._side, self._state, self._table = side, side.state, StateTable(side.state_type)
        self._rows = np.zeros((len(self._engines), 7), np.int64 if is_compiled() else object)
        self._devices = np.zeros((len(arrays), 5), np.int64)
        engine = 0
        for number, each in enumerate(arrays):
            capacity = sum(drive.capacity // each.stripe * each.stripe for drive in each.drives)
            self._devices[number] = engine, len(each.drives), each.stripe, capacity, 0
            self._rows[engine : engine + len(each.drives), _DEVICE] = number
            engine += len(each.drives)
        if side.write_flags:
            self._devices[:, _WRITE_FLAGS] = side.write_flags
        self._clock = np.zeros(6, np.int64)
        self._clock[_NOW] = max(engine.now for engine in self._engines)
        self._clock[_ACTS] = side.first
        self._outbox = np.zeros((side.most + 1, 6), np.int64)
        self._log = np.zeros((log, 3), np.int64)
        for number, drive in enumerate(self._engines):
            self._rows[number, _DUE] = drive.next_event
            self._make_room(number)

    @property
    def now(self) -> int:
        return int(self._clock[_NOW])

    @property
    def completions(self) -> int:
        """Requests completed since the beginning."""
        return int(self._clock[_COMPLETED])

    @property
    def log_rows(self) -> Integers:
        """The first completions, shape (n, 3): time, device and tag."""
        return self._log[: self._clock[_LOGGED]]

    def run(self, until: int = NEVER, completions: int = NEVER) -> None:
        """Let time pass up to `until`, or until at least so many requests have completed since the beginning."""
        for engine in range(len(self._engines)):  # a copy's stand elsewhere
            self._refresh(engine)
        state, side = self._table.crossing(self._state), address_of(self._side.act)
        while status := _run(
            self._rows, self._devices, self._clock, side, state, self._outbox, self._log, self._side.longest, until, completions
        ):  # fmt: skip
            reason = int(self._clock[_REASON])
            if status == _NO_ROOM:
                self._make_room(reason)
            elif status < 0:
                self._engines[reason].recover(status)
                self._refresh(reason)
            elif status == _PAUSED:
                assert self._side.paused is not None
                self._outbox[0, 1] = 0
                self._state = self._side.paused()
                state = self._table.crossing(self._state)
            elif status == _REFUSED:
                request = dict(zip(("device", "operation", "offset", "length"), self._outbox[reason].tolist(), strict=False))
                raise InvalidParameterError("request", str(request), f"no device serves that, or it is longer than {self._side.longest} B")
            else:
                raise FlashsimError(f"host side: it issued {self._outbox[0, 0]} requests at once, but said at most {self._side.most}")

    def act_at(self, time: int) -> None:
        """Let the host side act for itself at a time that is to come, or sooner."""
        self._clock[_ACTS] = min(self._clock[_ACTS], time)

    def _make_room(self, engine: int) -> None:
        self._rows[engine, _ROOM] = self._engines[engine].room_for(self._side.longest)
        self._refresh(engine)

    def _refresh(self, engine: int) -> None:
        loop, state = self._engines[engine].compiled_loop()
        self._rows[engine, _LOOP] = loop
        self._rows[engine, _STATE] = state.ctypes.data if is_compiled() else state
        self._rows[engine, _STATE_LENGTH] = len(state)

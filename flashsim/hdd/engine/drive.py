"""The fast model of hard disks: a compiled loop over arrivals and completions, with everything in between computed at once.

Every drive serves one command at a time, so all that a command does is known when it starts (`hdd.engine.cache`), and read-ahead and
destaging in the background are part of that (`hdd.engine.stream`).  Equal, to the nanosecond, to `hdd.specification.drive`.
"""

from typing import Any

import numpy as np
from numba import types

from flashsim.core import spans
from flashsim.core.errors import FlashsimError
from flashsim.core.host import HOST_TABLES, Host, arrive, command_done, next_arrival, next_queue, take_command
from flashsim.core.host_queue import HostQueue
from flashsim.core.kernel import inlined_kernel, kernel_of, lean_kernel
from flashsim.core.model import CompiledEngine
from flashsim.core.policies import Policies, policy_vector
from flashsim.core.records import VECTOR, RecordArray, empty_record, empty_table
from flashsim.core.request import READ, WRITE, Commands, Integers, Requests
from flashsim.core.spans import SPAN, Spans
from flashsim.core.state_table import ADVANCE, State, state_of
from flashsim.core.units import NEVER
from flashsim.hdd.description import BOUNDS, HEAD_ORDERS
from flashsim.hdd.engine import buffer
from flashsim.hdd.engine.cache import serve
from flashsim.hdd.engine.stream import arm_at, move_time, position
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.scheduler.base import CANDIDATE, CHOOSE, choose_of
from flashsim.hdd.state import disk as tables
from flashsim.hdd.state.geometry import extent_of, passing, piece_first, revolution_for, track_angle, track_of
from flashsim.hdd.state.layout import SLOT_UNIT, extent_table
from flashsim.hdd.state.seek import seek_curve

_SIZES = ("read_ahead", "read_ahead_least", "segment_size", "write_behind", "command_size")
_SHARES = ("read_start", "write_start")
_NAMES = {"head_order": HEAD_ORDERS, "read_ahead_bound": BOUNDS}

BAD_CHOICE = -2  #: Answer of `choose` with which the engine cannot go on.
_LOG_FULL = -3  #: Answer of the loop if there is no room for what another command may log.
#: Rows of the log, and the most that a command takes.
_LOG_ROWS, _MOST_LOGGED = 65536, 8
#: State of a disk's loop: its host's queue, the disk, and its policies.
ENGINE = types.Tuple((HOST_TABLES, tables.DISK, VECTOR))
_state_of = state_of(ENGINE)


@inlined_kernel
def _leave(disk: tables.DiskState, index: int) -> int:
    command = disk.waiting[index]
    disk.state.waiting_count -= 1
    for place in range(index, disk.state.waiting_count):
        disk.waiting[place] = disk.waiting[place + 1]
    return command


@lean_kernel
def _list_candidates(host: Host, disk: tables.DiskState, count: int) -> int:
    source, source_extent = arm_at(disk, host.scalars.now)
    for index in range(count):
        at = disk.waiting[index] - host.scalars.command_base
        disk.candidates[index].cylinder = source // disk.control.heads
        disk.candidates[index].delay = 0
        if host.commands[at].operation in (READ, WRITE):
            sector = host.commands[at].offset // disk.control.sector_size
            extent = extent_of(disk.extents, sector)
            track = track_of(disk.extents, extent, sector)
            free = host.scalars.now + buffer.overhead_of(
                disk.control, host.commands[at].operation, host.commands[at].length // disk.control.sector_size
            )
            there = free + move_time(disk, source, source_extent, track, extent, host.commands[at].operation == WRITE)
            index_on_track = sector - piece_first(disk.extents, extent, sector)
            part = track_angle(disk.extents, extent, track, disk.control.heads) + index_on_track * SLOT_UNIT
            offset = passing(part, disk.extents[extent].slots, disk.control.rotation)
            disk.candidates[index].cylinder = track // disk.control.heads
            disk.candidates[index].delay = revolution_for(there, offset, disk.control.rotation) + offset - host.scalars.now
    return source // disk.control.heads


@inlined_kernel
def admit(host: Host, disk: tables.DiskState, policies: Policies) -> int:
    """Take what the host dispatches, and start the next command if the drive is free; return 0, or BAD_CHOICE."""
    while True:
        queue = next_queue(host)
        if queue < 0:
            break
        disk.waiting[disk.state.waiting_count] = take_command(host, queue)
        disk.state.waiting_count += 1
    count = disk.state.waiting_count
    if disk.state.active >= 0 or count == 0:
        return 0
    index = 0
    if count > 1:
        cylinder = _list_candidates(host, disk, count)
        index = choose_of(policies)(disk.candidates, count, cylinder, disk.state.direction)
        if index < 0 or index >= count:
            return BAD_CHOICE
        if disk.candidates[index].cylinder != cylinder:
            disk.state.direction = 1 if disk.candidates[index].cylinder > cylinder else -1
    _begin_command(host, disk, _leave(disk, index))
    return 0


@inlined_kernel
def _begin_command(host: Host, disk: tables.DiskState, command: int) -> None:
    disk.before[0] = disk.state
    row = command - host.scalars.command_base
    first = host.commands[row].offset // disk.control.sector_size
    end = first + host.commands[row].length // disk.control.sector_size
    disk.state.active = command
    owner = host.commands[row].owner
    disk.state.busy_until = serve(
        disk, owner, host.requests[owner - host.scalars.request_base].tag, host.commands[row].operation, host.commands[row].request_flags,
        first, end, host.scalars.now,
    )  # fmt: skip
    if disk.log.shape[0] > 0:
        _note_command(disk, owner, host.scalars.now, buffer.overhead_of(disk.control, host.commands[row].operation, end - first))


@lean_kernel
def _note_command(disk: tables.DiskState, request: int, start: int, overhead: int) -> None:
    """Log what the command that was served waits for, one after the other."""
    state = disk.state
    time = _note(disk, request, spans.COMMAND, start, start + overhead)
    time = _note(disk, request, spans.DESTAGE, time, state.freed)
    if state.waits:
        time = _note(disk, request, spans.COMMAND, time, state.set_out)
        time = _note(disk, request, spans.SEEK, time, state.arrived)
        time = _note(disk, request, spans.TRANSFER, time, state.able)
        time = _note(disk, request, spans.ROTATION, time, state.passed)
    _note(disk, request, spans.HIT if state.hit else spans.TRANSFER, time, state.busy_until)


@inlined_kernel
def _note(disk: tables.DiskState, request: int, kind: int, begin: int, end: int) -> int:
    """Log a part of a command, as far as it waits for that; return when the next begins."""
    end = min(end, disk.state.busy_until)
    if end <= begin:
        return begin
    span = disk.log[disk.logged[0]]
    disk.logged[0] += 1
    span.server, span.kind, span.cause, span.request, span.page = 0, kind, spans.HOST, request, -1
    span.begin, span.end, span.level, span.units, span.die = begin, end, -1, 1, -1
    return end


@inlined_kernel
def run(host: Host, disk: tables.DiskState, policies: Policies, until: int, wait: int) -> int:
    """Let events happen up to `until`, or until so many completions wait to be collected.

    Returns when something happens next, or a negative number.
    """
    while True:
        arrival, _ = next_arrival(host)
        command = disk.state.active
        end_time = disk.state.busy_until if command >= 0 else NEVER
        due = min(arrival, end_time)
        if host.scalars.finished >= wait:
            return int(due)
        if disk.log.shape[0] > 0 and disk.logged[0] + _MOST_LOGGED > disk.log.shape[0]:
            return _LOG_FULL
        if due > until or due == NEVER:
            if until != NEVER:
                host.scalars.now = until
            return int(due)
        if arrival <= end_time:
            arrive(host)
        else:
            host.scalars.now = end_time
            disk.state.active = -1
            command_done(host, command)
        status = admit(host, disk, policies)
        if status != 0:
            return int(status)


@kernel_of(ADVANCE, unlocked=True, seconds=5)
def advance(table: State, until: int, wait: int) -> int:
    """`run`, as Python calls it."""
    host, disk, policies = _state_of(table)
    return run(host, disk, policies, until, wait)


def control_of(parameters: HddParameters) -> RecordArray:
    """tables.CONTROL: the parameters in ns, sectors, and millionths of shares."""
    values = {name: getattr(parameters, name) for name in tables.FIELDS}
    for name in _SIZES:
        values[name] //= parameters.sector_size
    for name in _SHARES:
        values[name] = round(values[name] * tables.SHARE_UNIT)
    for name, choices in _NAMES.items():
        values[name] = choices.index(values[name])
    values["bus_read"] = max(parameters.bus_read, parameters.bulk_transfer)
    values["bus_write"] = max(parameters.bus_write, parameters.bulk_transfer)
    control = empty_record(tables.CONTROL)
    for name in tables.CONTROL.names or ():
        control[name] = (values[f"{name}_after_read"], values[f"{name}_after_write"]) if name in tables.PAIRS else int(values[name])
    return control


class HddEngine(CompiledEngine):
    """A hard disk under a virtual clock (`core.model.DeviceModel`), compiled.

    Raises UnknownNameError or MissingFileError or FlashsimError: the scheduler cannot be loaded.
    """

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters
        self._policies = policy_vector({CHOOSE: parameters.scheduler})
        super().__init__(HostQueue(parameters.queue_depth), advance, ENGINE)
        # Every write in the ring has a sector in the buffer, but for those that a command not yet acknowledged pushes out.
        writes = parameters.write_behind // parameters.sector_size + 2
        self._disk = tables.DiskState(
            control_of(parameters),
            empty_record(tables.STATE),
            empty_table(1, tables.STATE),
            empty_record(tables.COUNTERS),
            extent_table(parameters),
            seek_curve(parameters),
            empty_table(parameters.segments, tables.SEGMENT),
            empty_table(writes, tables.WRITE_BEHIND),
            np.zeros(parameters.queue_depth, np.int64),
            empty_table(parameters.queue_depth, CANDIDATE),
            empty_table(0, SPAN),
            np.zeros(1, np.int64),
        )
        self._spans: list[Spans] = []
        self._power_up()

    def _power_up(self) -> None:
        state = empty_record(tables.STATE)
        state.current = state.active = -1
        state.direction = 1
        state.arm = self._disk.extents[0].track
        self._disk = self._disk._replace(state=state, segments=empty_table(self.parameters.segments, tables.SEGMENT))

    @property
    def next_event(self) -> int:
        state = self._disk.state
        return min(int(state.busy_until) if state.active >= 0 else NEVER, self.host.next_arrival)

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        self.parameters.check(requests, commands)
        return super().submit(requests, commands, at)

    @property
    def state_arrays(self) -> tuple[Any, ...]:
        return self.host.tables, self._disk, self._policies

    def make_room(self, commands: int) -> None:
        """Let a kernel enter a request of so many commands."""
        self.host.make_room(1, commands)

    def recover(self, status: int) -> None:
        if status != _LOG_FULL:
            raise self.refusal()
        self._move_spans()

    def record_spans(self, on: bool) -> None:
        """Begin or stop to record what commands wait for; see `flashsim.core.spans.SpanSource`."""
        self._move_spans()
        self._disk = self._disk._replace(log=empty_table(_LOG_ROWS if on else 0, SPAN))

    def spans(self) -> Spans:
        """Parts of commands that were begun since the last call; see `flashsim.core.spans.SpanSource`."""
        self._move_spans()
        parts, self._spans = self._spans, []
        return np.concatenate(parts)

    def _move_spans(self) -> None:
        self._spans.append(np.array(self._disk.log[: self._disk.logged[0]], SPAN))
        self._disk.logged[0] = 0

    def refusal(self) -> FlashsimError:
        """The error for a scheduler that the engine cannot go on with."""
        return FlashsimError(f"{CHOOSE.family.kind}: '{self.parameters.scheduler}' chose a command that does not wait")

    def power_cut(self, at: int) -> tables.HddPowerCut:
        """Run to `at`, then lose power: buffers and queues are emptied, and the arms park over the outermost track.

        Completions up to `at` that have not been returned by `advance` are not returned any more.
        """
        self.advance(at, every=True)
        host = self.host
        cut = tables.power_cut(at, host.unfinished_requests.tolist(), self._unsettled_writes(at))
        host.clear()
        self._power_up()
        return cut

    def _unsettled_writes(self, at: int) -> list[tables.Unsettled]:
        """Request, its tag, address and length of the writes in the buffer that are not wholly on the media at `at`."""
        disk = self._disk._replace(state=self._disk.before[0]) if self._disk.state.active >= 0 else self._disk
        if disk.state.stream != tables.WRITING:
            return []
        durable = position(disk, at, False)
        slots = (disk.state.ring_head + np.arange(disk.state.ring_count)) % len(disk.ring)
        size = self.parameters.sector_size
        pending = disk.ring[slots][disk.ring[slots].end > durable].tolist()
        return [(request, tag, first * size, (end - first) * size) for first, end, request, tag in pending]

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made (`hdd.state.disk.COUNTERS`); a command counts from the moment it starts."""
        return tables.statistics(dict(zip(tables.COUNTER_NAMES, self._disk.counters.tolist(), strict=True)))

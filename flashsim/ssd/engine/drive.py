"""The fast drive: the event model of `flashsim.ssd.specification`, compiled; both agree to the nanosecond."""

from typing import Any

import numpy as np
from numba import types

from flashsim.core.errors import CapacityError
from flashsim.core.host import HOST_TABLES, arrive, heap_pop, next_arrival
from flashsim.core.host_queue import HostQueue
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.model import CompiledEngine, PowerCut
from flashsim.core.records import VECTOR, RecordArray, empty_table
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.spans import HOST, SPAN, Spans
from flashsim.core.state_table import ADVANCE, State, state_of
from flashsim.core.units import NEVER
from flashsim.ssd.engine.admission import DONE, LOG_FULL, POLICY_FAILED, dispatch
from flashsim.ssd.engine.events import happen
from flashsim.ssd.engine.flow import FLOW, OPERATION, TIMES, Flow, Times
from flashsim.ssd.engine.operations import COMMAND_KIND, ROW_BITS, ROW_MASK, empty_engine, empty_gates, empty_servers
from flashsim.ssd.engine.span_log import is_full, taken_spans
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.drive_state import DriveState, ids_needed, ids_of_command, statistics_with_times
from flashsim.ssd.state.flash import FLASH
from flashsim.ssd.state.flash_array import BUFFER_PAGE, ERASE_BLOCK, PROGRAM_PAGE, STORE_PAGE, erased
from flashsim.ssd.state.recovery import recover
from flashsim.ssd.state.write_buffer import waiting_entries

_FIRST_ROWS = 1024
_SPAN_ROWS = 65536
#: For so many commands of a compiled loop there are write ids before it must ask again.
_COMMANDS_AT_ONCE = 1 << 16

_STATE = types.Tuple((HOST_TABLES, FLOW, FLASH, TIMES, VECTOR))
_state_of = state_of(_STATE)


@lean_kernel
def next_event(flow: Flow) -> int:
    """The time of the next event, NEVER if none is due; events of steps that were interrupted meanwhile are dropped."""
    while flow.engine.events > 0:
        row = flow.heap[0, 1] & ROW_MASK
        if flow.operations[row].id == flow.heap[0, 1] >> ROW_BITS and flow.operations[row].due == flow.heap[0, 0]:
            return flow.heap[0, 0]
        flow.engine.events = heap_pop(flow.heap, flow.engine.events)
    return NEVER


@kernel_of(ADVANCE)
def advance(table: State, until: int, wait: int) -> int:
    """Let events happen in order of (time, arrivals first, id) up to `until`, or until so many completions wait to be collected.

    Returns when something happens next, or why it stopped short, a negative number.
    """
    host, flow, flash, times, policies = _state_of(table)
    while True:
        status = dispatch(host, flow, flash, times, policies)
        if status == DONE and is_full(flow, flash.control):
            status = LOG_FULL
        if status != DONE:
            return int(status)
        arrival, _ = next_arrival(host)
        event = next_event(flow)
        due = min(arrival, event)
        if host.scalars.finished >= wait:
            return int(due)
        if due > until or due == NEVER:
            if until != NEVER:
                host.scalars.now = max(host.scalars.now, until)
            return int(due)
        if arrival <= event:
            arrive(host)
        else:
            row = flow.heap[0, 1] & ROW_MASK
            flow.engine.events = heap_pop(flow.heap, flow.engine.events)
            flow.engine.happened += 1
            host.scalars.now = event
            happen(host, flow, flash, times, row)


class SsdEngine(CompiledEngine):
    """A solid state drive under a virtual clock (`flashsim.core.model.DeviceModel`).

    Parameters
    ----------
    parameters
        The drive.

    Raises
    ------
    InvalidParameterError, UnknownNameError, MissingFileError, FlashsimError
        Impossible parameters, or a policy that cannot be loaded.
    """

    def __init__(self, parameters: SsdParameters) -> None:
        self.parameters = parameters
        self.state = DriveState(parameters)
        self._times = Times(self.state.timing.record(), self.state.timing.links(), self.state.counters)
        self._spans: list[Spans] = []
        submission = (parameters.read_submission, parameters.write_submission)
        super().__init__(HostQueue(parameters.queue_depth, parameters.queues, submission), advance, _STATE)
        self._refused = 0  # write commands that the caller knows to have been refused
        self._flow = self._idle(empty_table(0, SPAN))

    def _idle(self, log: RecordArray) -> Flow:
        parameters = self.parameters
        return Flow(
            empty_engine(int(self.state.buffer.places)),
            # An operation with a pending event holds a die or its cache register, the link or the controller; interrupted ones leave
            # events that are dropped in time.
            np.empty((parameters.dies * (2 + parameters.suspend_limit) + 2, 2), np.int64),
            log,
            empty_table(_FIRST_ROWS, OPERATION),
            *empty_servers(parameters.dies, parameters.channels),
            empty_gates(parameters.pools * parameters.blocks_per_plane),
        )

    @property
    def next_event(self) -> int:
        """When something happens next; see `flashsim.core.model.DeviceModel.next_event`."""
        # an interrupted step's event, which is dropped in time, is early at worst
        event = int(self._flow.heap[0, 0]) if self._flow.engine["events"] else NEVER
        return max(self.now, min(event, self._host.next_arrival))

    @property
    def events(self) -> int:
        """Events that happened since power came: each is one entry of the heap, put in and taken out."""
        return int(self._flow.engine.happened)

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        needed = ids_needed(self.state, requests, commands)
        if self.state.ids_left < needed:
            self._renumber(needed)
        return super().submit(requests, commands, at)

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`."""
        self._run(until, NEVER if every else wait)
        if self.state.refused > self._refused:
            self._refused = self.state.refused
            raise self.state.read_only()
        return self._host.collect()

    @property
    def state_arrays(self) -> tuple[Any, ...]:
        return self._host.tables, self._flow, self.state.flash, self._times, self.state.policies

    def room_for(self, longest: int) -> int:
        super().room_for(longest)
        needed = ids_of_command(self.state, longest)
        if self.state.ids_left < _COMMANDS_AT_ONCE * needed:
            self._renumber(_COMMANDS_AT_ONCE * needed)
        return self.state.ids_left // needed

    def recover(self, status: int) -> None:
        if status == POLICY_FAILED:
            raise self.state.bad_victim()
        if status == LOG_FULL:
            self._spans.append(taken_spans(self._flow))
        else:
            self._grow()

    def record_spans(self, on: bool) -> None:
        """Begin or stop to record what the parts of the drive do; see `flashsim.core.spans.SpanSource`."""
        if on and not len(self._flow.log):
            self._flow = self._flow._replace(log=empty_table(_SPAN_ROWS + self.parameters.dies, SPAN))
        self._flow.engine.recording = on

    def spans(self) -> Spans:
        """Holds that ended since the last call; see `flashsim.core.spans.SpanSource`."""
        spans, self._spans = [*self._spans, taken_spans(self._flow)], []
        return np.concatenate(spans)

    def _renumber(self, needed: int) -> None:
        """See that there are write ids left; those of operations in flight and of the write buffer go with the others."""
        rows = self._flow.operations[: self._flow.engine.watermark]
        kind = np.where(rows.id >= 0, rows.kind, COMMAND_KIND)
        programs, stores = np.isin(kind, (PROGRAM_PAGE, STORE_PAGE, BUFFER_PAGE)), (kind == STORE_PAGE) & (rows.cause == HOST)
        places = [(rows.write_id, programs), (rows.arrived_id, stores)]
        entries = waiting_entries(self.state.flash)
        in_flight = [int(known) for ids, chosen in places for known in ids[chosen] if known > 0]
        in_flight += [int(known) for entry in entries for known in (entry.write_id, entry.arrived) if known > 0]
        shift = self.state.make_ids(needed, min(in_flight, default=None))
        for ids, chosen in places:
            ids[chosen] -= np.where(ids[chosen] > 0, shift, 0)
        for entry in entries:
            entry.write_id -= shift * (entry.write_id > 0)
            entry.arrived -= shift * (entry.arrived > 0)

    def load(self, offset: int, length: int) -> None:
        """Write bytes in no time; see `DriveState.load`.  Refused while requests are outstanding; what goes on beside them ends first."""
        self.settle()
        self.state.load(offset, length, self.outstanding)

    def settle(self) -> None:
        """If no requests are outstanding, let what goes on beside them end, and empty the write buffer in no time."""
        if not self.outstanding:
            self._run(NEVER, NEVER)
            self.state.empty_buffer()
            self._flow.engine.room = self.state.buffer.places

    def version(self, page: int) -> int:
        """The write id of a flash page's worth of the address space; see `DriveState.version`."""
        return self.state.version(page)

    def power_cut(self, at: int) -> PowerCut:
        """Run to `at`, then lose power: commands in the drive vanish, and the map is rebuilt from what the flash pages hold.

        Completions up to `at` that were not yet collected are not returned any more: call ``advance(at, every=True)`` before to see them.
        """
        self._run(at, NEVER)
        lost = self._host.unfinished
        arrived = self._arrived() if self.parameters.power_protected else []
        self._finish_erases()
        self._host.clear()
        before = self._flow
        self._flow = self._idle(before.log)
        self._flow.servers.busy_ns = before.servers.busy_ns
        self._flow.engine.spans, self._flow.engine.recording = before.engine.spans, before.engine.recording
        self.state.pools.queued = 0
        recover(self.state)
        self.state.write_out(arrived)
        return PowerCut(self.now, lost)

    def _arrived(self) -> list[tuple[int, int]]:
        """The pages that had come into the write buffer and were not yet on flash, with their write ids."""
        held = [(int(entry.page), int(entry.arrived)) for entry in waiting_entries(self.state.flash)]
        rows = self._flow.operations[: self._flow.engine.watermark]
        leaving = rows[(rows.id >= 0) & (rows.kind == STORE_PAGE) & (rows.cause == HOST)]
        return [known for known in (*held, *zip(leaving.logical.tolist(), leaving.arrived_id.tolist(), strict=True)) if known[1] > 0]

    def _finish_erases(self) -> None:
        dies = self._flow.servers[: self.parameters.dies]
        for first in (*dies.busy, *dies.suspended):
            row = int(first) - 1
            while row >= 0:
                operation = self._flow.operations[row]
                if operation.kind == ERASE_BLOCK:
                    erased(self.state.flash, int(operation.place))
                row = int(operation.next_in_die)

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made; busy times are of finished holds."""
        dies, channels = self.parameters.dies, self.parameters.channels
        busy = self._flow.servers.busy_ns.tolist()
        return statistics_with_times(self.state, busy[:dies], busy[dies : dies + channels], busy[-2], busy[-1])

    def _grow(self) -> None:
        rows = len(self._flow.operations)
        if 2 * rows > ROW_MASK:
            raise CapacityError(f"commands: more than {rows} flash operations at once; split requests into smaller commands")
        operations = empty_table(2 * rows, OPERATION)  # rows that no operation had take no memory
        operations[: self._flow.engine.watermark] = self._flow.operations[: self._flow.engine.watermark]
        self._flow = self._flow._replace(operations=operations)

"""The fast drive: the event model of `flashsim.ssd.specification`, compiled; both agree to the nanosecond."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import types

from flashsim.core.errors import CapacityError, RefusedError
from flashsim.core.hints import prefetch
from flashsim.core.host import HOST_TABLES, arrive, heap_push, next_arrival
from flashsim.core.host_queue import HostQueue
from flashsim.core.kernel import inlined_kernel, kernel_of
from flashsim.core.model import CompiledEngine
from flashsim.core.policies import addresses_of
from flashsim.core.records import VECTOR, empty_table
from flashsim.core.spans import HOST, SPAN, Spans
from flashsim.core.state_table import ADVANCE, State, state_of
from flashsim.core.units import NEVER
from flashsim.ssd.engine import admission, agenda, tables
from flashsim.ssd.engine.admission import dispatch
from flashsim.ssd.engine.dies import put_off
from flashsim.ssd.engine.events import happen
from flashsim.ssd.engine.folding import fold, folds_at
from flashsim.ssd.engine.tables import FLOW, TIMES, Flow, Timings, dispatch_of, fold_of
from flashsim.ssd.ideals import refuse_ideals
from flashsim.ssd.model import FlashModel
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash import FLASH, TIMING
from flashsim.ssd.state.geometry import filled_record
from flashsim.ssd.timing import slots_of

_SPAN_ROWS = 65536
#: Commands of a compiled loop for which there are write ids before it must ask again.
_COMMANDS_AT_ONCE = 1 << 16

# The vectors are those of the policies and of the engine's steps.
_STATE = types.Tuple((HOST_TABLES, FLOW, FLASH, TIMES, VECTOR, VECTOR))
_state_of = state_of(_STATE)


@inlined_kernel
def next_event(flow: Flow) -> tuple[int, int]:
    """The time of the next event, NEVER if none is due, and its lane; events of what was interrupted meanwhile are put off or dropped."""
    while True:
        lane = agenda.earliest(flow.agenda)
        time, key = flow.agenda.fronts[lane, 0], flow.agenda.fronts[lane, 1]
        if time == NEVER:
            return time, lane
        operation = flow.operations[key & tables.ROW_MASK]
        if operation.id == key >> tables.ROW_BITS and operation.due == time:
            return time, lane
        agenda.take(flow.agenda, lane)
        if operation.id == key >> tables.ROW_BITS:
            put_off(flow, key & tables.ROW_MASK, time)


@kernel_of(ADVANCE, unlocked=True, seconds=8)
def advance(table: State, until: int, wait: int) -> int:
    """Let events happen in order of (time, arrivals first, id) up to `until`, or until so many completions wait to be collected.

    Returns when something happens next, or why it stopped short, a negative number.
    """
    host, flow, flash, times, policies, steps = _state_of(table)
    while True:
        if host.scalars.able > 0 or flow.engine.flushing >= 0:
            status = dispatch_of(steps)(host, flow, flash, times, policies)
            if status != admission.DONE:
                return int(status)
        # One more event may free one part of each kind, or end a read of cells, and interrupt every die.
        if flow.engine.recording and flow.engine.spans + flash.control.dies + 5 > flow.log.shape[0]:
            return admission.LOG_FULL
        arrival, _ = next_arrival(host)
        event, lane = next_event(flow)
        folds = folds_at(flow, flash, times, host.scalars.now) if times.timing.slc_idle else NEVER
        due = min(arrival, event, folds)
        if host.scalars.finished >= wait:
            return int(due)
        if due > until or (arrival == NEVER and event == NEVER and until == NEVER):  # nobody waits for what is folded
            if until != NEVER:
                host.scalars.now = max(host.scalars.now, until)
            return int(due)
        if folds < arrival and folds < event:
            host.scalars.now = folds
            status = fold_of(steps)(host, flow, flash, times, policies)
            if status != admission.DONE:
                return int(status)
        elif arrival <= event:
            arrive(host)
        else:
            row = flow.agenda.fronts[lane, 1] & tables.ROW_MASK
            agenda.take(flow.agenda, lane)
            prefetch(flow.operations, flow.agenda.fronts[lane, 1] & tables.ROW_MASK)
            flow.engine.happened += 1
            host.scalars.now = event
            happen(host, flow, flash, times, row)


class SsdEngine(FlashModel, CompiledEngine):
    """A solid state drive under a virtual clock (`flashsim.core.model.DeviceModel`).

    Raises
    ------
    InvalidParameterError, UnknownNameError, MissingFileError, FlashsimError
        Impossible parameters, or a policy that cannot be loaded.
    """

    def __init__(self, parameters: SsdParameters) -> None:
        self.parameters = parameters
        self.state = DriveState(parameters)
        timing, lists = self.state.timing, (parameters.read_pages, parameters.program_pages)
        links = np.array([timing.link_read, timing.link_write, timing.bus, timing.channel], np.int64)
        cells = [times or (time,) * parameters.levels for times, time in zip(lists, (parameters.read, parameters.program), strict=True)]
        between = [parameters.multi_plane, parameters.cache_read, parameters.cache_program, timing.suspend_program, parameters.slc_cache]
        varied = {"unbroken": parameters.group == 1 and not any(between) and not parameters.ideal}
        varied |= dict.fromkeys(("cache_read", "cache_program"), False) if timing.boundless_dies else {}
        varied |= {"read_levels": bool(lists[0]) or parameters.retries or parameters.slc_cache > 0, "program_levels": bool(lists[1])}
        record = filled_record(TIMING, parameters, **{**timing._asdict(), **varied})
        self._times = Timings(record, links, np.array(cells, np.int64), self.state.counters)
        self._spans: list[Spans] = []
        submission = (parameters.read_submission, parameters.write_submission)
        self._steps = addresses_of(dispatch, *((fold,) if parameters.slc_idle else ()))
        host = HostQueue(parameters.queue_depth, parameters.queues + (parameters.bus_rate > 0), submission, slots_of(parameters))
        super().__init__(host, advance, _STATE)
        self._flow = tables.idle_flow(parameters, empty_table(0, SPAN))

    @property
    def next_event(self) -> int:
        """Time of the next event; see `flashsim.core.model.DeviceModel.next_event`."""
        # an interrupted step's event, which is dropped in time, is early at worst
        engine = self._flow.engine
        event = int(self._flow.agenda.fronts[:, 0].min())
        folds = int(engine["idle_since"]) + self.parameters.slc_idle if engine["idle_since"] >= 0 else NEVER
        return max(self.now, min(event, folds, self.host.next_arrival))

    @property
    def events(self) -> int:
        """Events that happened since power came: each is put into the agenda once, and taken out."""
        return int(self._flow.engine.happened)

    @property
    def state_arrays(self) -> tuple[Any, ...]:
        return self.host.tables, self._flow, self.state.flash, self._times, self.state.policies, self._steps

    def room_for(self, longest: int) -> int:
        if self.parameters.zone_size:
            raise RefusedError("zone_size: a compiled host loop does not know where zones are to be written; submit requests instead")
        super().room_for(longest)
        self.state.expect_use()
        ids = (longest // self.parameters.unit_size + 2) * self.state.ids_of_page  # of a command, at most
        if self.state.ids_left < _COMMANDS_AT_ONCE * ids:
            self._make_ids(_COMMANDS_AT_ONCE * ids)
        return self.state.ids_left // ids

    def recover(self, status: int) -> None:
        """Do what the loop stopped for: move the spans out of the log, or let the operation table grow."""
        if status == admission.POLICY_FAILED:
            raise self.state.bad_victim()
        if status == admission.LOG_FULL:
            self._move_spans()
            return
        rows = len(self._flow.operations)
        if 2 * rows > tables.ROW_MASK:
            raise CapacityError(f"commands: more than {rows} flash operations at once; split requests into smaller commands")
        self._flow = tables.with_more_rows(self._flow)

    def record_spans(self, on: bool) -> None:
        """Begin or stop to record what the parts of the drive do; see `flashsim.core.spans.SpanSource`."""
        refuse_ideals(self.parameters)
        self._end_transfers(True)
        if on and not len(self._flow.log):
            self._flow = self._flow._replace(log=empty_table(_SPAN_ROWS + self.parameters.dies, SPAN))
        self._flow.engine.recording = on
        rows = self._flow.operations
        rows.left_over[(rows.phase == tables.IN_CELLS) & np.isin(rows.kind, (flash_array.READ_PAGE, flash_array.FETCH_PAGE))] = self.now

    def spans(self) -> Spans:
        """Holds that ended since the last call; see `flashsim.core.spans.SpanSource`."""
        self._move_spans()
        spans, self._spans = self._spans, []
        return np.concatenate(spans)

    def _move_spans(self) -> None:
        self._spans.append(np.array(self._flow.log[: self._flow.engine.spans], SPAN))
        self._flow.engine.spans = 0

    def _make_ids(self, count: int) -> None:
        rows = self._flow.operations[: self._flow.engine.watermark]
        programs = np.isin(rows.kind, (flash_array.PROGRAM_PAGE, flash_array.STORE_PAGE, flash_array.BUFFER_PAGE))
        places = [(rows.write_id, programs & (rows.id >= 0)), (rows.arrived_id, self._is_store(rows))]
        shift = self.state.make_ids(count, [int(write_id) for ids, chosen in places for write_id in ids[chosen]])
        for ids, chosen in places:
            ids[chosen & (ids > 0)] -= shift

    def _is_store(self, rows: Any) -> Any:
        """Mask of the rows of the operation table that bring a page from the write buffer to flash."""
        return (rows.id >= 0) & (rows.kind == flash_array.STORE_PAGE) & (rows.cause == HOST)

    def _stores(self) -> Iterable[tuple[int, int]]:
        rows = self._flow.operations[: self._flow.engine.watermark]
        stores = rows[self._is_store(rows)]
        return zip(stores.logical.tolist(), stores.arrived_id.tolist(), strict=True)

    def _set_room(self, pages: int) -> None:
        self._flow.engine.room = pages

    def _erasing(self) -> Iterable[int]:
        dies = self._flow.servers[: self.parameters.dies]
        for first in (*dies.busy, *dies.suspended):
            row = int(first) - 1
            while row >= 0:
                operation = self._flow.operations[row]
                if operation.kind == flash_array.ERASE_BLOCK:
                    yield int(operation.place)
                row = int(operation.next[tables.IN_DIE])

    def _restart(self) -> None:
        before, busy = self._flow, self._busy_times()
        self._end_transfers(True)
        for first in before.servers.busy[: self.parameters.dies]:
            operation = before.operations[first - 1]
            if first and operation.phase == tables.IN_PROGRAM:
                self.state.spare[operation.place] = flash_array.TORN
        self.host.clear()
        self._flow = tables.idle_flow(self.parameters, before.log)
        self._flow.servers.busy_ns = busy
        self._flow.engine.spans, self._flow.engine.recording = before.engine.spans, before.engine.recording

    def _busy_times(self) -> list[int]:
        self._end_transfers(False)
        servers = self._flow.servers
        under_way = np.where(servers.busy != 0, self.now - servers.since, 0)
        under_way[: self.parameters.dies] = 0
        busy: list[int] = (servers.busy_ns + under_way).tolist()
        return busy

    def _end_transfers(self, every: bool) -> None:
        """Account for transfers without an event that are over; give every other one its event, too."""
        flow = self._flow
        for part in flow.servers[self.parameters.dies : self.parameters.dies + self.parameters.channels]:
            if 0 < part.until <= self.now:
                part.busy_ns += part.until - part.since
                part.busy = part.until = 0
            elif part.until > 0 and every:
                row = part.busy - 1
                operation, heap = flow.operations[row], flow.agenda.lanes[agenda.HEAP]
                operation.phase, operation.due = tables.ON_CHANNEL, part.until
                heap.count = heap_push(flow.agenda.heap, heap.count, part.until, int(operation.id) << tables.ROW_BITS | row)
                flow.agenda.fronts[agenda.HEAP] = flow.agenda.heap[0]
                part.until = 0

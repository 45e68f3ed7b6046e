"""The fast drive: the event model of `flashsim.ssd.specification`, compiled; both agree to the nanosecond."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from flashsim.core.array_types import MATRIX, VECTOR
from flashsim.core.errors import CapacityError
from flashsim.core.host import FINISHED, LEFT, NOW, REQUEST_BASE, HostQueue, arrive, heap_pop, next_arrival
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.model import PowerCut
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.spans import Spans
from flashsim.core.units import NEVER
from flashsim.ssd.engine.admission import DONE, LOG_FULL, POLICY_FAILED, dispatch
from flashsim.ssd.engine.events import happen
from flashsim.ssd.engine.operations import (
    ARRIVED_ID,
    BUSY,
    BUSY_NS,
    COMMAND_KIND,
    DUE,
    EVENTS,
    HAPPENED,
    ID,
    NEXT_IN_DIE,
    OPERATION_COLUMNS,
    ROOM,
    ROW_BITS,
    ROW_MASK,
    SUSPENDED,
    WATERMARK,
    empty_engine,
    empty_gates,
    empty_servers,
)
from flashsim.ssd.engine.span_log import RECORDING, empty_log, is_full, taken_spans
from flashsim.ssd.ftl.base import TRANSLATE
from flashsim.ssd.gc.base import VICTIM_FUNCTION
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.array_types import BLOCKS, MAP, PAGES
from flashsim.ssd.state.drive_state import DriveState, check_commands_fit, ids_needed, statistics_with_times
from flashsim.ssd.state.flash_array import (
    BUFFER_PAGE,
    CAUSE,
    ERASE_BLOCK,
    HOST,
    KIND,
    LOGICAL,
    PLACE,
    PROGRAM_PAGE,
    QUEUED,
    STORE_PAGE,
    WRITE_ID,
    Narrow,
    erased,
)
from flashsim.ssd.state.geometry import REFUSED
from flashsim.ssd.state.recovery import recover
from flashsim.ssd.state.write_buffer import ARRIVED, ENTRY_ID, PAGE, PLACES, waiting_entries
from flashsim.ssd.state.write_ids import ids_left
from flashsim.ssd.wear.base import WEAR_FUNCTION

_FIRST_ROWS = 1024
_SPAN_ROWS = 65536

_RUN = types.int64(
    types.int64, types.int64, VECTOR, MATRIX, MATRIX, VECTOR, MATRIX, VECTOR, VECTOR, MATRIX, MATRIX, MATRIX, MATRIX, BLOCKS, VECTOR,
    MATRIX, BLOCKS, MAP, PAGES, MAP, MAP, VECTOR, MATRIX, MATRIX, VECTOR, MATRIX, VECTOR, TRANSLATE, VICTIM_FUNCTION, WEAR_FUNCTION,
    WEAR_FUNCTION,
)  # fmt: skip


@lean_kernel
def next_event(engine: Integers, heap: Integers, operations: Integers) -> int:
    """The time of the next event, NEVER if none is due; events of steps that were interrupted meanwhile are dropped."""
    while engine[EVENTS] > 0:
        row = heap[0, 1] & ROW_MASK
        if operations[row, ID] == heap[0, 1] >> ROW_BITS and operations[row, DUE] == heap[0, 0]:
            return heap[0, 0]
        engine[EVENTS] = heap_pop(heap, engine[EVENTS])
    return NEVER


@kernel_of(_RUN)
def run(
    until: int,
    wait: int,
    host: Integers,
    requests: Integers,
    commands: Integers,
    order: Integers,
    delayed: Integers,
    finished: Integers,
    engine: Integers,
    heap: Integers,
    log: Integers,
    operations: Integers,
    servers: Integers,
    gates: Integers,
    control: Integers,
    pools: Integers,
    blocks: Integers,
    mapping: Narrow,
    pages: Narrow,
    spare: Narrow,
    trimmed: Narrow,
    own: Integers,
    plan: Integers,
    buffer: Integers,
    timing: Integers,
    links: Integers,
    counters: Integers,
    translate: Any,
    victim: Any,
    opens: Any,
    levels: Any,
) -> int:
    """Let events happen in order of (time, arrivals first, id) up to `until`, or until so many completions wait to be collected."""
    while True:
        status = dispatch(
            host, requests, commands, engine, heap, operations, servers, gates, control, pools, blocks, mapping, pages, trimmed, own,
            plan, buffer, timing, counters, translate, victim, opens, levels,
        )  # fmt: skip
        if status == DONE and is_full(log, control):
            return LOG_FULL
        if status != DONE or host[FINISHED] >= wait:
            return int(status)
        arrival, _ = next_arrival(host, requests, order, delayed)
        event = next_event(engine, heap, operations)
        if min(arrival, event) > until or min(arrival, event) == NEVER:
            if until != NEVER:
                host[NOW] = max(host[NOW], until)
            return DONE
        if arrival <= event:
            arrive(host, requests, order, delayed)
        else:
            row = heap[0, 1] & ROW_MASK
            engine[EVENTS] = heap_pop(heap, engine[EVENTS])
            engine[HAPPENED] += 1
            host[NOW] = event
            happen(
                host, requests, commands, delayed, finished, engine, heap, log, operations, servers, gates, control, pools, blocks, pages,
                spare, buffer, timing, links, counters, row,
            )  # fmt: skip


class SsdEngine:
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
        self._timing = self.state.timing.scalars()
        self._links = self.state.timing.links()
        self._log = empty_log(0)
        self._spans: list[Spans] = []
        self._host = HostQueue(parameters.queue_depth, parameters.queues)
        self._refused = 0  # write commands that the caller knows to have been refused
        self._power_up()

    def _power_up(self) -> None:
        parameters = self.parameters
        self._engine = empty_engine(int(self.state.buffer[0, PLACES]))
        self._operations = np.empty((_FIRST_ROWS, OPERATION_COLUMNS), np.int64)
        self._servers = empty_servers(parameters.dies, parameters.channels)
        self._gates = empty_gates(parameters.pools * parameters.blocks_per_plane)
        # An operation with a pending event holds a die or its cache register, the link or the controller; interrupted ones leave events
        # that are dropped in time.
        self._heap = np.empty((parameters.dies * (2 + parameters.suspend_limit) + 2, 2), np.int64)

    @property
    def capacity(self) -> int:
        """Bytes that the host can address."""
        return self.parameters.capacity

    @property
    def now(self) -> int:
        """The clock, ns."""
        return self._host.now

    @property
    def outstanding(self) -> int:
        """Requests submitted and not yet completed."""
        return self._host.outstanding

    @property
    def next_event(self) -> int:
        """When something happens next; see `flashsim.core.model.DeviceModel.next_event`."""
        event = int(self._heap[0, 0]) if self._engine[EVENTS] else NEVER  # an interrupted step's, dropped in time, is early at worst
        return max(self.now, min(event, self._host.next_arrival))

    @property
    def events(self) -> int:
        """Events that happened since power came: each is one entry of the heap, put in and taken out."""
        return int(self._engine[HAPPENED])

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands; see `flashsim.core.host.HostQueue.append`."""
        check_commands_fit(self.parameters, requests, commands)
        needed = ids_needed(self.state, commands)
        if ids_left(self.state.control) < needed:
            self._renumber(needed)
        return self._host.append(requests, commands, at)

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`.

        Raises
        ------
        ReadOnlyDeviceError
            The drive ran out of blocks and refused write commands since the last call; completions wait for the next call.
        """
        self._run(until, NEVER if every else wait)
        if self.state.control[REFUSED] > self._refused:
            self._refused = int(self.state.control[REFUSED])
            raise self.state.read_only()
        return self._host.collect()

    def _run(self, until: int, wait: int) -> None:
        host, state = self._host, self.state
        while True:
            status = run(
                until, wait, host.scalars, host.requests, host.commands, host.order, host.delayed, host.finished,
                self._engine, self._heap, self._log, self._operations, self._servers, self._gates, state.control, state.pools, state.blocks,
                state.mapping, state.pages, state.spare, state.trimmed, state.own, state.plan, state.buffer, self._timing,
                self._links, state.counters, state.translate, *state.policies,
            )  # fmt: skip
            if status == POLICY_FAILED:
                raise state.bad_victim()
            if status == DONE:
                return
            if status == LOG_FULL:
                self._spans.append(taken_spans(self._log))
            else:
                self._grow()

    def record_spans(self, on: bool) -> None:
        """Begin or stop to record what the parts of the drive do; see `flashsim.core.spans.SpanSource`."""
        if on and len(self._log) <= 1:
            self._log = empty_log(_SPAN_ROWS + self.parameters.dies)
        self._log[0, RECORDING] = on

    def spans(self) -> Spans:
        """Holds that ended since the last call; see `flashsim.core.spans.SpanSource`."""
        spans, self._spans = [*self._spans, taken_spans(self._log)], []
        return np.concatenate(spans)

    def _renumber(self, needed: int) -> None:
        """See that there are write ids left; those of operations in flight and of the write buffer go with the others."""
        rows = self._operations[: self._engine[WATERMARK]]
        kind = np.where(rows[:, ID] >= 0, rows[:, KIND], COMMAND_KIND)
        programs, stores = np.isin(kind, (PROGRAM_PAGE, STORE_PAGE, BUFFER_PAGE)), (kind == STORE_PAGE) & (rows[:, CAUSE] == HOST)
        places = [(rows, programs, WRITE_ID), (rows, stores, ARRIVED_ID)]
        places += [
            (entry[None], np.ones(1, bool), column) for entry in waiting_entries(self.state.buffer) for column in (ENTRY_ID, ARRIVED)
        ]
        in_flight = [int(found) for array, chosen, column in places for found in array[chosen, column] if found > 0]
        shift = self.state.make_ids(needed, min(in_flight, default=None))
        for array, chosen, column in places:
            array[chosen, column] -= np.where(array[chosen, column] > 0, shift, 0)

    def load(self, offset: int, length: int) -> None:
        """Write bytes in no time; see `DriveState.load`.  Refused while requests are outstanding; what goes on beside them ends first."""
        self.settle()
        self.state.load(offset, length, self.outstanding)

    def settle(self) -> None:
        """If no requests are outstanding, let what goes on beside them end, and empty the write buffer in no time."""
        if not self.outstanding:
            self._run(NEVER, True)
            self.state.empty_buffer()
            self._engine[ROOM] = self.state.buffer[0, PLACES]

    def version(self, page: int) -> int:
        """The write id of a flash page's worth of the address space; see `DriveState.version`."""
        return self.state.version(page)

    def power_cut(self, at: int) -> PowerCut:
        """Run to `at`, then lose power: commands in the drive vanish, and the map is rebuilt from what the flash pages hold.

        Completions up to `at` that were not yet collected are not returned any more: call ``advance(at, every=True)`` before to see them.
        """
        self._run(at, True)
        requests = self._host.requests
        lost = np.flatnonzero(requests[:, LEFT] > 0) + int(self._host.scalars[REQUEST_BASE])
        arrived = self._arrived() if self.parameters.power_protected else []
        self._finish_erases()
        self._host.clear()
        busy = self._servers[:, BUSY_NS].copy()
        self._power_up()
        self.state.pools[QUEUED] = 0
        self._servers[:, BUSY_NS] = busy
        recover(self.state)
        self.state.write_out(arrived)
        return PowerCut(self.now, lost)

    def _arrived(self) -> list[tuple[int, int]]:
        """The pages that had come into the write buffer and were not yet on flash, with their write ids."""
        held = [(int(entry[PAGE]), int(entry[ARRIVED])) for entry in waiting_entries(self.state.buffer)]
        rows = self._operations[: self._engine[WATERMARK]]
        leaving = rows[(rows[:, ID] >= 0) & (rows[:, KIND] == STORE_PAGE) & (rows[:, CAUSE] == HOST)]
        return [known for known in (*held, *map(tuple, leaving[:, [LOGICAL, ARRIVED_ID]].tolist())) if known[1] > 0]

    def _finish_erases(self) -> None:
        """Erases that were cut off, or had been interrupted, are finished when power is back."""
        for column in (BUSY, SUSPENDED):
            for first in self._servers[: self.parameters.dies, column] - 1:
                row = int(first)
                while row >= 0:
                    if self._operations[row, KIND] == ERASE_BLOCK:
                        erased(self.state.control, self.state.blocks, self.state.spare, int(self._operations[row, PLACE]))
                    row = int(self._operations[row, NEXT_IN_DIE])

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made; busy times are of finished holds."""
        dies, channels = self.parameters.dies, self.parameters.channels
        busy = self._servers[:, BUSY_NS].tolist()
        return statistics_with_times(self.state, busy[:dies], busy[dies : dies + channels], busy[-2], busy[-1])

    def _grow(self) -> None:
        """Double the operation table."""
        rows = len(self._operations)
        if 2 * rows > ROW_MASK:
            raise CapacityError(f"commands: more than {rows} flash operations at once; split requests into smaller commands")
        operations = np.empty((2 * rows, OPERATION_COLUMNS), np.int64)  # rows that no operation had take no memory
        operations[: self._engine[WATERMARK]] = self._operations[: self._engine[WATERMARK]]
        self._operations = operations

"""A drive's state without its clock, shared by the engine and the specification: arrays, policies, bulk loading, counters."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import numpy as np
from numba import types

from flashsim.core.errors import FlashsimError, InvalidParameterError, ReadOnlyDeviceError, RefusedError
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.policies import Policies, Policy, policy_vector
from flashsim.core.records import COMMANDS, REQUESTS, VECTOR, empty_record, empty_table, field_views
from flashsim.core.request import COMMAND, FLUSH, OPERATIONS, READ, REQUEST, SECTOR, WRITE, Commands, Integers, Requests
from flashsim.core.spans import CAUSES
from flashsim.ssd.ftl import base as ftl_family
from flashsim.ssd.ftl.base import TRANSLATE, plan_page, translate_of
from flashsim.ssd.gc import base as gc_family
from flashsim.ssd.gc.base import VICTIM
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.flash import COUNTERS, FLASH, FLASH_PAGE, MAP, PLAN, Flash, Narrow, Planned
from flashsim.ssd.state.flash_array import (
    BAD_VICTIM,
    ERASE_BLOCK,
    MOVE_PAGE,
    PROGRAM_PAGE,
    STORE_PAGE,
    count_wear,
    empty_arrays,
    erased,
    lookup,
    programmed,
)
from flashsim.ssd.state.geometry import BROKEN_LEVELS, BROKEN_OPENS, control_of
from flashsim.ssd.state.timing import timing_of
from flashsim.ssd.state.write_buffer import clear_buffer, empty_buffer, find_entry, waiting_entries
from flashsim.ssd.state.write_ids import LAST_WRITE_ID, ids_left, renumber
from flashsim.ssd.wear.base import LEVELS, OPENS

#: Logical pages that one call of the compiled loop writes when a drive is loaded.
LOADED_AT_ONCE = 1 << 16


@lean_kernel
def apply(row: int, flash: Flash) -> None:
    """Carry out one flash operation of a plan on the physical state, at once."""
    kind = flash.plan[row].kind
    if kind == ERASE_BLOCK:
        erased(flash, flash.plan[row].place)
    elif kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
        programmed(flash, flash.plan[row].place, flash.plan[row].source, flash.plan[row].logical, flash.plan[row].write_id)


@kernel_of(types.int64(MAP, FLASH, VECTOR, VECTOR))
def _write_pages(targets: Narrow, flash: Flash, policies: Policies, programs: Integers) -> int:
    """Write logical pages in no time, adding up flash programs in ``programs[0]``; how many were written, or BAD_VICTIM."""
    for number in range(len(targets)):
        if flash.control.read_only or ids_left(flash.control) < flash.control.plan_rows:
            return number
        rows = translate_of(policies)(WRITE, int(targets[number]), 0, flash, policies)
        if rows < 0 or flash.control.broken:
            return BAD_VICTIM
        for row in range(rows):
            apply(row, flash)
            programs[0] += flash.plan[row].kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE)
    return len(targets)


def policies_of(parameters: SsdParameters) -> dict[Policy, str]:
    collector = parameters.gc if parameters.gc != "none" else "greedy"  # never asked
    return {TRANSLATE: parameters.ftl, VICTIM: collector, OPENS: parameters.wear, LEVELS: parameters.wear}


class DriveState:
    """The flash array of one drive and the policies that manage it."""

    def __init__(self, parameters: SsdParameters) -> None:
        self.parameters = parameters
        self.timing = timing_of(parameters)
        self.layer = ftl_family.checked(parameters)
        chosen = policies_of(parameters)
        policy, self.policies = chosen[VICTIM], policy_vector(chosen)
        map_pages, plan_rows = self.layer.map_pages(parameters), self.layer.plan_rows(parameters)
        control = control_of(parameters, gc_family.rounds_of(policy), map_pages, plan_rows)
        own: Any = self.layer.own_table(parameters)
        if not isinstance(own, np.ndarray) or own.dtype != np.int64 or own.ndim != 1:
            raise FlashsimError(f"flash translation layer: own_table of '{parameters.ftl}' must return an int64 vector")
        flash_pages = parameters.pools * parameters.blocks_per_plane * parameters.pages_per_block
        self.flash = Flash(
            control,
            *empty_arrays(parameters),
            np.zeros(parameters.logical_pages + map_pages, np.int32),
            empty_table(flash_pages, FLASH_PAGE),
            np.zeros(flash_pages, np.int32),
            np.zeros(parameters.logical_pages, np.int32),
            own,
            empty_table(int(control.plan_rows), PLAN),
            *empty_buffer(parameters),
        )
        (
            self.control, self.pools, self.active, self.by_valid, self.blocks, self.mapping, self.pages, self.spare, self.trimmed, self.own,
            self.plan, self.buffer, self.entries,
        ) = self.flash  # fmt: skip
        self._see_scalars()
        count_wear(self.control, self.blocks)
        self.counters = empty_record(COUNTERS)
        self.layer.prepare(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> DriveState:
        memo[id(self.layer)] = self.layer
        copied = memo[id(self)] = object.__new__(type(self))
        vars(copied).update(deepcopy(vars(self), memo))
        copied._see_scalars()
        return copied

    def _see_scalars(self) -> None:
        self._sequence, self._id_base, self._refused = field_views(self.control, "sequence", "id_base", "refused")
        self._map_pages, self._plan_rows = field_views(self.control, "map_pages", "plan_rows")

    @property
    def ids_left(self) -> int:
        """How many pages can be written and trimmed before write ids must be renumbered."""
        return LAST_WRITE_ID - int(self._sequence[0] - self._id_base[0])

    @property
    def ids_of_page(self) -> int:
        """The most write ids that writing a page can take."""
        return int(self._plan_rows[0]) if self._map_pages[0] else 2

    @property
    def refused(self) -> int:
        """Write commands that the drive refused since it is read-only."""
        return int(self._refused[0])

    def plan_page(self, operation: int, page: int, partial: bool) -> list[Planned]:
        """The flash operations that one logical page of a command takes; the logical state changes at once."""
        rows = plan_page(operation, page, int(partial), self.flash, self.policies)
        if rows < 0 or self.control.broken:
            raise self.bad_victim()
        return self.planned(rows)

    def planned(self, rows: int) -> list[Planned]:
        """The first rows of the plan."""
        return [Planned(*row) for row in self.plan[:rows].tolist()]

    def apply_plan(self, rows: int) -> None:
        """Carry out the first rows of the plan at once."""
        for row in range(rows):
            apply(row, self.flash)

    def load(self, offset: int, length: int, outstanding: int) -> None:
        """Write bytes in no time and outside the counters, from the first page to the last.

        Raises
        ------
        InvalidParameterError
            The bytes do not lie within the drive, on sector boundaries.
        RefusedError
            Requests are outstanding: their operations would mingle with what takes no time; or the drive has worn out.
        """
        check_extent(self.parameters, "load", offset, length)
        if outstanding:
            raise RefusedError(f"load: {outstanding} requests are outstanding, but a drive is loaded while it is idle")
        size = self.parameters.page_size
        end = -(-(offset + length) // size)
        for first in range(offset // size, end, LOADED_AT_ONCE):
            self.write_pages(np.arange(first, min(first + LOADED_AT_ONCE, end), dtype=np.int32))

    def write_pages(self, targets: Narrow) -> int:
        """Write whole logical pages in no time and outside the counters, one after another; return how many flash pages were programmed."""
        programs = np.zeros(1, np.int64)
        while len(targets):
            if self.control.read_only:
                raise self.read_only()
            self.make_ids(int(self.control.plan_rows))
            done = _write_pages(targets, self.flash, self.policies, programs)
            if done == BAD_VICTIM:
                raise self.bad_victim()
            targets = targets[done:]
        return int(programs[0])

    def make_ids(self, count: int, oldest_in_flight: int | None = None) -> int:
        """Check that `count` pages can be written and trimmed; returns by how much the write ids in flight, from that one on, shrink."""
        if self.ids_left >= count:
            return 0
        return renumber(self.control, self.spare, self.trimmed, count, oldest_in_flight)

    def empty_buffer(self) -> None:
        """Write all that waits in the write buffer, in no time."""
        waiting = [(int(entry.page), int(entry.write_id)) for entry in waiting_entries(self.flash)]
        clear_buffer(self.buffer, self.entries)
        self.write_out(waiting)

    def write_out(self, pages: list[tuple[int, int]]) -> None:
        """Write pages of the write buffer, given with their write ids, in no time; what is newer on flash stays."""
        for page, write_id in sorted(pages, key=lambda known: known[1]):
            flash_page = lookup(self.mapping, page)
            if write_id > max(self.trimmed[page], self.spare[flash_page] if flash_page >= 0 else 0):
                self.write_anew(page, write_id)

    def write_anew(self, page: int, write_id: int) -> None:
        """Write a page in no time with content that is known by an earlier write id."""
        rows = self.plan_page(WRITE, page, False)
        own = self.plan[: len(rows)]
        own.write_id[own.kind == PROGRAM_PAGE] = write_id
        self.apply_plan(len(rows))

    def bad_victim(self) -> FlashsimError:
        """The error for a policy that breaks its contract (``control.broken`` says which)."""
        parameters = self.parameters
        if self.control.broken == BROKEN_OPENS:
            return FlashsimError(f"wear levelling policy: '{parameters.wear}' opened a block that is not free, or not of that plane")
        if self.control.broken == BROKEN_LEVELS:
            return FlashsimError(f"wear levelling policy: '{parameters.wear}' levelled a block that is not closed")
        return FlashsimError(f"garbage collection policy: '{parameters.gc}' chose a block that is not closed or has no invalid page")

    def read_only(self) -> ReadOnlyDeviceError:
        """The error for writes to a drive whose blocks ran out."""
        refused = self.refused
        return ReadOnlyDeviceError(
            f"drive: read-only, as a plane has no spare block left; refused so far: {refused} write commands; reads go on"
        )

    def version(self, page: int) -> int:
        """The write id (1, 2, ... in order of admission, trims included) of what a logical page reads as; 0 where it is unmapped.

        Meaningful while no request is outstanding.  After some 2^31 of them write ids are numbered anew, in the same order.
        """
        entry, flash_page = find_entry(self.flash, page), lookup(self.mapping, page)
        if entry >= 0:
            return int(self.entries[entry].write_id)
        return int(self.spare[flash_page]) if flash_page >= 0 else 0

    def statistics(self) -> dict[str, Any]:
        """Counters by name, write amplification, wear, and the over-provisioning that garbage collection can use.

        ``programs_gc`` and the like are flash pages (or erased blocks) by cause, ``flash_programs`` and the like their sums.  Write
        amplification is flash bytes programmed over host bytes written (NaN before the first).  `victim_steps` are the blocks and lists
        that policies looked at since the drive was made, loading included.  Effective over-provisioning is the flash pages outside spare
        blocks and reserve over the logical and the translation pages, less 1.  `remaining_life` is 1 less the mean erases of a block over
        `endurance`, and 0 once the drive is read-only.
        """
        numbers: dict[str, Any] = {}
        for name in COUNTERS.names or ():
            if name in ("reads", "programs", "erases"):
                numbers |= {f"{name}_{cause}": int(count) for cause, count in zip(CAUSES, self.counters[name], strict=True)}
            else:
                numbers[name] = int(self.counters[name])
        for what in ("reads", "programs", "erases"):
            numbers[f"flash_{what}"] = sum(numbers[f"{what}_{cause}"] for cause in CAUSES)
        programmed_bytes = numbers["flash_programs"] * self.parameters.page_size
        numbers["write_amplification"] = programmed_bytes / numbers["host_write_bytes"] if numbers["host_write_bytes"] else float("nan")
        numbers |= self._wear()
        numbers["victim_steps"] = int(self.control.gc_steps)
        kept = self.parameters.logical_pages + int(self.control.map_pages)
        numbers["effective_overprovisioning"] = self.parameters.usable_pages / kept - 1
        return numbers | self.layer.statistics(self)

    def _wear(self) -> dict[str, Any]:
        """Erases of the blocks in use, retired and spare blocks, refused writes, and the share of endurance that is left."""
        control, read_only = self.control, bool(self.control.read_only)
        if not control.at_fewest or not control.at_most:  # nobody has as few, or as many, any more
            count_wear(control, self.blocks)
        in_use, total, squares = (int(number) for number in (control.in_use, control.erase_sum, control.erase_squares))
        deviation = math.sqrt(in_use * squares - total * total) / in_use
        wear: dict[str, Any] = {
            "block_erases": {"min": int(control.fewest), "max": int(control.most), "mean": total / in_use, "std": deviation},
            "retired_blocks": int(control.retired),
            "spare_blocks": int(self.pools.spares.sum()),
            "read_only": read_only,
            "refused_writes": self.refused,
        }
        if self.parameters.endurance:
            wear["remaining_life"] = 0.0 if read_only else max(0.0, 1 - wear["block_erases"]["mean"] / self.parameters.endurance)
        return wear


def statistics_with_times(state: DriveState, dies: list[int], channels: list[int], link: int, controller: int) -> dict[str, Any]:
    """The drive's statistics with the busy times, ns, of its parts."""
    return {
        **state.statistics(),
        "die_busy_ns": dies,
        "channel_busy_ns": channels,
        "link_busy_ns": link,
        "controller_busy_ns": controller,
    }


def ids_needed(state: DriveState, requests: Requests, commands: Commands) -> int:
    """The most write ids that commands can take: one for each page, one more where it leaves a buffer, and those of translation pages."""
    requests, commands = np.ascontiguousarray(requests, REQUEST), np.ascontiguousarray(commands, COMMAND)
    pages = _pages_touched(requests, commands, state.parameters.capacity, state.parameters.page_size)
    if pages < 0:
        _refuse(state.parameters, requests, commands)
    return int(pages) * state.ids_of_page


def ids_of_command(state: DriveState, length: int) -> int:
    """The most write ids that a command of so many bytes can take."""
    return (length // state.parameters.page_size + 2) * state.ids_of_page


@kernel_of(types.int64(REQUESTS, COMMANDS, types.int64, types.int64))
def _pages_touched(requests: Requests, commands: Commands, capacity: int, page_size: int) -> int:
    """The most flash pages that commands touch, each with one more at either end; -1 if one of them is to be refused."""
    for row in range(requests.shape[0]):
        if requests[row]["operation"] < READ or requests[row]["operation"] > FLUSH:
            return -1
    pages = 0
    for row in range(commands.shape[0]):
        request, offset, length = commands[row]["request"], commands[row]["offset"], commands[row]["length"]
        if request < 0 or request >= requests.shape[0]:
            return -1
        operation = requests[request]["operation"]
        if length == 0 and operation in (READ, WRITE):
            return -1
        outside = offset < 0 or length < 0 or length > capacity or offset > capacity - length
        if operation != FLUSH and (outside or offset % SECTOR != 0 or length % SECTOR != 0):
            return -1
        pages += length // page_size + 2
    return pages


def check_extent(parameters: SsdParameters, what: str, offset: int, length: int) -> None:
    """Refuse bytes outside the drive or off its sectors."""
    if offset < 0 or length < 0 or offset % SECTOR or length % SECTOR:
        raise InvalidParameterError(what, f"{length} B at {offset}", f"offset and length must be multiples of {SECTOR} B and not negative")
    if offset + length > parameters.capacity:
        raise InvalidParameterError(what, f"{length} B at {offset}", f"the drive ends at {parameters.capacity} B")


def _refuse(parameters: SsdParameters, requests: Requests, commands: Commands) -> None:
    """Say what is wrong with commands of which one is to be refused."""
    unknown = np.flatnonzero((requests["operation"] < READ) | (requests["operation"] > FLUSH))
    if len(unknown):
        raise InvalidParameterError("operation", int(requests["operation"][unknown[0]]), "it must be read, write, trim or flush")
    operation = requests["operation"][commands["request"]]
    offset, length = commands["offset"], commands["length"]
    off = (offset < 0) | (length < 0) | (offset % SECTOR != 0) | (length % SECTOR != 0) | (offset > parameters.capacity - length)
    for row in np.flatnonzero(off & (operation != FLUSH))[:1]:
        check_extent(parameters, OPERATIONS[operation[row]], int(offset[row]), int(length[row]))
    if np.any((length == 0) & ((operation == READ) | (operation == WRITE))):
        raise InvalidParameterError("length", "0 B", f"a read or write moves at least {SECTOR} B")

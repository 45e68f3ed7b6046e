"""A drive's state without its clock, shared by the engine and the specification: arrays, policies, bulk loading, counters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from io import BufferedReader
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from numba import types

from flashsim.core.errors import FlashsimError, ReadOnlyDeviceError
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.large_arrays import SparseMemory
from flashsim.core.policies import Policies, Policy, policy_vector
from flashsim.core.records import VECTOR, as_table, empty_record, empty_table, field_views
from flashsim.core.request import READ, WRITE, Integers
from flashsim.core.spans import CAUSES, FOLD
from flashsim.ssd.ftl import base as ftl_family
from flashsim.ssd.ftl.base import TRANSLATE, plan_page, translate_of
from flashsim.ssd.gc import base as gc_family
from flashsim.ssd.gc.base import VICTIM
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state import flash_array, geometry
from flashsim.ssd.state.collection import GROUPED, fold_idle, write_group, write_group_of
from flashsim.ssd.state.flash import COUNTERS, FLASH, FLASH_PAGE, MAP, MEMBER, PLAN, Flash, Narrow, PlannedOperation
from flashsim.ssd.state.flash_array import ERASE_BLOCK, lookup
from flashsim.ssd.state.geometry import control_of
from flashsim.ssd.state.write_buffer import clear_buffer, empty_buffer, find_entry, waiting_entries
from flashsim.ssd.timing import timing_of
from flashsim.ssd.wear.base import LEVELS, OPENS

LOADED_AT_ONCE = 1 << 16  #: Logical pages that one call of the compiled loop writes when a drive is loaded.
_SHARE_OF_ALL = 1 / 64  #: A drive is expected to be used as a whole once this share of its flash pages was written.


@lean_kernel
def apply(row: int, flash: Flash) -> None:
    """Carry out one flash operation of a plan on the physical state, at once."""
    kind = flash.plan[row].kind
    if kind == ERASE_BLOCK:
        flash_array.end_erase(flash, flash.plan[row].place)
    elif flash_array.is_program(kind):
        flash_array.start_program(flash, flash.plan[row].place, flash.plan[row].source)
        flash_array.end_program(flash, flash.plan[row].place, flash.plan[row].source, flash.plan[row].logical, flash.plan[row].write_id)


@kernel_of(types.int64(MAP, FLASH, VECTOR, VECTOR))
def _write_pages(targets: Narrow, flash: Flash, policies: Policies, programs: Integers) -> int:
    """Write logical pages in no time, adding up flash programs in ``programs[0]``; the number that was written, or BAD_VICTIM."""
    number = 0
    while number < len(targets):
        if flash.control.read_only or flash_array.ids_left(flash.control) < flash.control.plan_rows:
            return number
        count = min(int(flash.control.group), len(targets) - number)
        if flash.control.group == 1:
            rows = translate_of(policies)(WRITE, int(targets[number]), 0, flash, policies)
        else:
            for at in range(count):
                member = flash.group[at]
                member.page, member.part, member.write_id = int(targets[number + at]), 0, 0
            rows = write_group_of(policies)(flash, policies, count)
        if rows < 0 or flash.control.broken:
            return flash_array.BAD_VICTIM
        for row in range(rows):
            apply(row, flash)
            programs[0] += flash_array.is_program(flash.plan[row].kind)
            if flash.control.group > 1 and flash_array.is_program(flash.plan[row].kind):
                following = flash.plan[row + 1].place if row + 1 < rows and flash_array.is_program(flash.plan[row + 1].kind) else -1
                programs[0] += flash_array.empty_slots(flash.control, flash.plan[row].place, flash.plan[row].source, following)
        number += count
    return len(targets)


def policies_of(parameters: SsdParameters) -> dict[Policy, str]:
    collector = parameters.gc if parameters.gc != "none" else "greedy"  # never asked
    return {TRANSLATE: parameters.ftl, VICTIM: collector, OPENS: parameters.wear, LEVELS: parameters.wear}


def _bytes_of(part: Any) -> npt.NDArray[np.uint8]:
    """The memory of a table or record, byte by byte."""
    return np.asarray(part).reshape(-1).view(np.ndarray).view(np.uint8)


@dataclass(frozen=True)
class BlockMap:
    """Counts by die and block of the die (plane by plane), shape (dies, blocks) each; a block has `pages` pages."""

    valid: Integers
    written: Integers
    erases: Integers
    retired: npt.NDArray[np.bool_]
    pages: int


class DriveState:
    """The flash array of one drive and the policies that manage it."""

    def __init__(self, parameters: SsdParameters) -> None:
        self.parameters = parameters
        self.timing = timing_of(parameters)
        self.layer = ftl_family.compatible_layer(parameters)
        chosen = policies_of(parameters)
        policy = chosen[VICTIM]
        self.policies = policy_vector(chosen, *(GROUPED if parameters.group > 1 or parameters.slc_cache else ()))
        map_pages, plan_rows = self.layer.map_pages(parameters), self.layer.plan_rows(parameters)
        control = control_of(parameters, gc_family.rounds_of(policy), map_pages, plan_rows)
        own: Any = self.layer.own_table(parameters)
        if not isinstance(own, np.ndarray) or own.dtype != np.int64 or own.ndim != 1:
            raise FlashsimError(f"flash translation layer: own_table of '{parameters.ftl}' must return an int64 vector")
        flash_pages = parameters.pools * parameters.blocks_per_plane * parameters.slots_per_block
        self._memory, self._few_writes = SparseMemory(), _SHARE_OF_ALL * flash_pages
        zeros = self._memory.zeros
        self.flash = Flash(
            control,
            *flash_array.empty_arrays(parameters),
            np.zeros(parameters.logical_pages + map_pages, np.int32),
            as_table(zeros(flash_pages, FLASH_PAGE)),
            zeros(flash_pages, np.int32),
            np.zeros(parameters.logical_pages, np.int32),
            own,
            empty_table(int(control.plan_rows), PLAN),
            *empty_buffer(parameters),
            empty_table(parameters.group, MEMBER),
        )
        self._see_parts()
        flash_array.count_wear(self.control, self.blocks)
        self.counters = empty_record(COUNTERS)
        self.layer.prepare(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> DriveState:
        memo[id(self.layer)] = self.layer
        copied = memo[id(self)] = object.__new__(type(self))
        vars(copied).update(deepcopy(vars(self), memo))
        copied._see_scalars()
        return copied

    def _see_parts(self) -> None:
        (
            self.control, self.pools, self.active, self.by_valid, self.blocks, self.mapping, self.pages, self.spare, self.trimmed, self.own,
            self.plan, self.buffer, self.entries, self.group,
        ) = self.flash  # fmt: skip
        self._see_scalars()

    def _see_scalars(self) -> None:
        self._sequence, self._id_base, self._refused = field_views(self.control, "sequence", "id_base", "refused")
        #: The most write ids that writing a page can take.
        self.ids_of_page = int(self.control.plan_rows) if self.control.map_pages else 2

    def outline(self) -> tuple[Any, ...]:
        """What a new drive has in common with those whose content it can take over: geometry, thresholds, and sizes of tables."""
        return self.parameters.ftl, self.control.tobytes(), self.buffer.tobytes(), *(each.shape for each in self.flash)

    def take_content(self, other: DriveState) -> None:
        """Hold what a drive of the same `outline` holds, whose times may be others."""
        for own, given in zip(self.flash, other.flash, strict=True):
            for column in own.dtype.names or (...,):  # a record is written by its fields
                own[column] = given[column]
        self.expect_use()

    @property
    def is_unused(self) -> bool:
        """Nothing was ever written, and no block was erased."""
        return not self._sequence[0] and not self.blocks.erases.any()

    def write_content(self, file: BinaryIO) -> None:
        """Write what the drive holds to a file."""
        for part in self.flash:
            file.write(_bytes_of(part).data)

    def read_content(self, file: BufferedReader) -> None:
        """Hold what a drive of the same parameters wrote to a file, `size` bytes."""
        self.expect_use(of_all=True)
        for part in self.flash:
            file.readinto(_bytes_of(part).data)

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return sum(_bytes_of(part).nbytes for part in self.flash)

    @property
    def ids_left(self) -> int:
        """Pages that can be written and trimmed before write ids must be renumbered."""
        return flash_array.LAST_WRITE_ID - int(self._sequence[0] - self._id_base[0])

    @property
    def refused_writes(self) -> int:
        """Write commands that the drive refused since it is read-only."""
        return int(self._refused[0])

    def block_map(self) -> BlockMap:
        """State of the erase blocks: the content of each, and its erases."""
        shape = (self.parameters.dies, -1)
        valid, written, erases, standing = (np.array(self.blocks[name]).reshape(shape) for name in ("valid", "written", "erases", "state"))
        return BlockMap(valid, written, erases, standing == flash_array.RETIRED_BLOCK, self.parameters.slots_per_block)

    def expect_use(self, *, of_all: bool = False) -> None:
        """Have memory ready for all that the drive can hold, if much of it was written or is to be."""
        if of_all or self._sequence[0] > self._few_writes:
            self._memory.expect_all()

    def plan_page(self, operation: int, page: int, partial: bool) -> list[PlannedOperation]:
        """The flash operations that one logical page of a command takes; the logical state changes at once."""
        return self.planned_operations(plan_page(operation, page, int(partial), self.flash, self.policies))

    def plan_group(self, count: int) -> list[PlannedOperation]:
        """The flash operations that the first `count` logical pages of `group` take, programmed at once."""
        return self.planned_operations(write_group(self.flash, self.policies, count))

    def plan_folding(self, pool: int) -> list[PlannedOperation]:
        """The flash operations by which an idle pool folds a block of its SLC cache, or makes room for that."""
        return self.planned_operations(fold_idle(self.flash, self.policies, pool))

    @contextmanager
    def beside_cache(self) -> Iterator[None]:
        """Let writes pass the SLC cache by, and placement handles: what takes no time lies where it stays."""
        stream, self.control.stream, self.control.slc_bypass = int(self.control.stream), 0, 1
        try:
            yield
        finally:
            self.control.stream, self.control.slc_bypass = stream, 0

    def planned_operations(self, rows: int) -> list[PlannedOperation]:
        """The first rows of the plan, of which there are none if a policy breaks its contract."""
        if rows < 0 or self.control.broken:
            raise self.bad_victim()
        return [PlannedOperation(*row) for row in self.plan[:rows].tolist()]

    def apply_plan(self, rows: int) -> None:
        for row in range(rows):
            apply(row, self.flash)

    def write_pages(self, targets: Narrow) -> int:
        """Write whole logical pages in no time and outside the counters, one after another; return how many flash pages were programmed."""
        programs = np.zeros(1, np.int64)
        while len(targets):
            if self.control.read_only:
                raise self.read_only()
            self.make_ids(int(self.control.plan_rows))
            self.expect_use()
            with self.beside_cache():
                count = _write_pages(targets, self.flash, self.policies, programs)
            if count < 0:
                raise self.bad_victim()
            targets = targets[count:]
        return int(programs[0])

    def take_over(self, other: DriveState) -> None:
        """Hold what another drive holds, which differs in times alone, and is not used any more."""
        parameters, control = other.parameters, other.control
        rounds = gc_family.rounds_of(policies_of(parameters)[VICTIM])
        new = control_of(parameters, rounds, int(control.map_pages), int(control.plan_rows)), empty_buffer(parameters)[0]
        for ours, theirs, usual in zip((self.control, self.buffer), (control, other.buffer), new, strict=True):
            for name in ours.dtype.names or ():
                if ours[name] != usual[name]:  # a parameter's value, and no state
                    theirs[name] = ours[name]
        self.flash = other.flash
        self._see_parts()

    def make_ids(self, count: int, in_flight: Iterable[int] = ()) -> int:
        """See that `count` pages can be written and trimmed; returns by how much the write ids in flight (0: none) shrink.

        Those of the write buffer shrink with them.
        """
        if self.ids_left >= count:
            return 0
        entries = waiting_entries(self.flash)
        write_ids = [*in_flight, *(int(write_id) for entry in entries for write_id in (entry.write_id, entry.arrived))]
        oldest = min((write_id for write_id in write_ids if write_id > 0), default=None)
        shift = flash_array.renumber(self.control, self.spare, self.trimmed, count, oldest)
        for entry in entries:
            entry.write_id -= shift * (entry.write_id > 0)
            entry.arrived -= shift * (entry.arrived > 0)
        return shift

    def empty_buffer(self) -> None:
        """Write all that waits in the write buffer, in no time."""
        waiting = [(int(entry.page), int(entry.write_id)) for entry in waiting_entries(self.flash)]
        clear_buffer(self.buffer, self.entries)
        self.write_out(waiting)

    def write_out(self, pages: list[tuple[int, int]]) -> None:
        """Write pages of the write buffer, given with their write ids, in no time; what is newer on flash stays."""
        anew: dict[tuple[int, int], None] = {}
        for page, write_id in sorted(pages, key=lambda pair: pair[1]):
            flash_page = lookup(self.mapping, page)
            if write_id > max(self.trimmed[page], self.spare[flash_page] if flash_page >= 0 else 0):
                anew[page, write_id] = None
        self.write_anew(list(anew))

    def write_anew(self, pages: list[tuple[int, int]]) -> None:
        """Write pages in no time with content that is known by an earlier write id, and with these."""
        group = self.parameters.group
        for first in range(0, len(pages), group):
            together = pages[first : first + group]
            if group == 1:
                with self.beside_cache():
                    rows = self.plan_page(WRITE, pages[first][0], False)
                own = self.plan[: len(rows)]
                own.write_id[own.kind == flash_array.PROGRAM_PAGE] = pages[first][1]
            else:
                for at, (page, write_id) in enumerate(together):
                    self.group[at].page, self.group[at].part, self.group[at].write_id = page, 0, write_id
                with self.beside_cache():
                    rows = self.plan_group(len(together))
            self.apply_plan(len(rows))

    def bad_victim(self) -> FlashsimError:
        """The error for a policy that breaks its contract (``control.broken`` says which)."""
        wear, collector = f"wear levelling policy: '{self.parameters.wear}'", f"garbage collection policy: '{self.parameters.gc}'"
        if self.control.broken == geometry.BROKEN_OPENS:
            return FlashsimError(f"{wear} opened a block that is not free, or not of that plane")
        if self.control.broken == geometry.BROKEN_LEVELS:
            return FlashsimError(f"{wear} levelled a block that is not closed")
        return FlashsimError(f"{collector} chose a block that is not closed or has no invalid page")

    def read_only(self) -> ReadOnlyDeviceError:
        """The error for writes to a drive whose blocks ran out."""
        refused = f"refused so far: {self.refused_writes} write commands; reads go on"
        return ReadOnlyDeviceError(f"drive: read-only, as a plane has no spare block left; {refused}")

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
        amplification is flash bytes programmed over bytes written, by the host and by programs inside (NaN before the first).
        `victim_steps` are the blocks and lists that policies looked at since the drive was made, loading included.  Effective
        over-provisioning is the flash pages outside spare blocks and reserve over the logical and the translation pages, less 1.
        Where flash pages are mapped in units, units stand for pages: `padded_programs`, among the programs, are slots that were left empty,
        and `shared_reads`, among the reads, came out of the cells with another unit of their flash page.
        `read_retries` stands there of drives that have them.
        Of an SLC cache, `slc_programs` are the programs that went there, ``programs_fold`` the pages that moved out, ``erases_fold`` its
        erases; blocks that are kept for it have their wear apart, in `slc_block_erases`.
        `remaining_life` is 1 less the mean erases of a block over `endurance`, and 0 once the drive is read-only.
        """
        counters = self.counters
        (reads, writes, trims, flushes), (read_bytes, written_bytes, *_) = counters.commands.tolist(), counters.bytes.tolist()
        numbers: dict[str, Any] = {"host_reads": reads, "host_read_bytes": read_bytes, "host_writes": writes}
        numbers |= {"host_write_bytes": written_bytes, "host_trims": trims, "host_flushes": flushes}
        numbers |= {name: int(counters[name]) for name in ("read_modify_write_reads", "buffer_read_hits", "buffer_overwrites")}
        numbers |= {"continued_reads": int(counters.continued[READ]), "continued_writes": int(counters.continued[WRITE])}
        causes = CAUSES if self.parameters.slc_cache else CAUSES[:FOLD]
        for each in ("reads", "programs", "erases"):
            numbers |= {f"{each}_{cause}": count for cause, count in zip(causes, counters[each].tolist(), strict=False)}
        numbers |= {f"flash_{each}": int(counters[each].sum()) for each in ("reads", "programs", "erases")}
        if self.parameters.group > 1:
            numbers |= {name: int(counters[name]) for name in ("padded_programs", "shared_reads")}
        if self.parameters.slc_cache:
            numbers["slc_programs"] = int(counters.slc_programs)
            own = self.blocks.erases[self.blocks.state == flash_array.OWN_SLC_BLOCK]
            numbers |= {"slc_block_erases": {"min": int(own.min()), "max": int(own.max()), "mean": float(own.mean())}} if len(own) else {}
        if self.parameters.retries:
            numbers["read_retries"] = int(counters.read_retries)
        programmed_bytes = numbers["flash_programs"] * self.parameters.unit_size
        stored_bytes = written_bytes + int(counters.internal_bytes[WRITE])
        numbers["write_amplification"] = programmed_bytes / stored_bytes if stored_bytes else float("nan")
        if self.parameters.bus_rate:
            for name in ("internal_commands", "internal_bytes", "memory_bytes"):
                kind, _, unit = name.partition("_")
                numbers |= {f"{kind}_{way}_{unit}": int(count) for way, count in zip(("read", "write"), counters[name], strict=True)}
        numbers |= self._wear()
        numbers["victim_steps"] = int(self.control.gc_steps)
        stored = self.parameters.logical_pages + int(self.control.map_pages)
        numbers["effective_overprovisioning"] = self.parameters.usable_pages / stored - 1
        return numbers | self.layer.statistics(self)

    def _wear(self) -> dict[str, Any]:
        """Erases of the blocks in use, retired and spare blocks, refused writes, and the share of endurance that is left."""
        control, read_only = self.control, bool(self.control.read_only)
        if not control.at_fewest or not control.at_most:  # nobody has as few, or as many, any more
            flash_array.count_wear(control, self.blocks)
        in_use, total, squares = (int(number) for number in (control.in_use, control.erase_sum, control.erase_squares))
        deviation = math.sqrt(in_use * squares - total * total) / in_use
        wear: dict[str, Any] = {
            "block_erases": {"min": int(control.fewest), "max": int(control.most), "mean": total / in_use, "std": deviation},
            "retired_blocks": int(control.retired),
            "spare_blocks": int(self.pools.spares.sum()),
            "read_only": read_only,
            "refused_writes": self.refused_writes,
        }
        if self.parameters.endurance:
            wear["remaining_life"] = 0.0 if read_only else max(0.0, 1 - wear["block_erases"]["mean"] / self.parameters.endurance)
        return wear

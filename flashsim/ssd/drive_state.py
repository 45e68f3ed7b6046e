"""A drive's state without its clock, shared by the engine and the specification: arrays, policies, bulk loading, counters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from flashsim.core.errors import FlashsimError, InvalidParameterError, RefusedError
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.request import FLUSH, OPERATIONS, READ, SECTOR, WRITE, Commands, Integers, Requests
from flashsim.ssd.flash_array import (
    BAD_VICTIM,
    ERASE_BLOCK,
    ERASES,
    KIND,
    LOGICAL,
    MOVE_PAGE,
    PAGE_COLUMNS,
    PLACE,
    PLAN_COLUMNS,
    PROGRAM_PAGE,
    SOURCE,
    WRITE_ID,
    Narrow,
    empty_arrays,
    erased,
    lookup,
    programmed,
)
from flashsim.ssd.ftl import base as ftl_family
from flashsim.ssd.ftl.base import TRANSLATE, plan_page
from flashsim.ssd.gc import base as gc_family
from flashsim.ssd.gc.base import VICTIM
from flashsim.ssd.geometry import GC_STEPS, PLAN_ROWS, control_array
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.policies import policy_function
from flashsim.ssd.timing import timing_of

# Counters.
(
    READS, READ_BYTES, WRITES, WRITE_BYTES, TRIMS, FLUSHES, FLASH_READS, FLASH_PROGRAMS, FLASH_ERASES, GC_MOVES, FETCHES,
) = range(11)  # fmt: skip
COUNTERS = (
    "host_reads", "host_read_bytes", "host_writes", "host_write_bytes", "host_trims", "host_flushes",
    "flash_reads", "flash_programs", "flash_erases", "gc_moves", "read_modify_write_reads",
)  # fmt: skip


_VECTOR = types.Array(types.int64, 1, "C")
_MATRIX = types.Array(types.int64, 2, "C")
_MAP = types.Array(types.int32, 1, "C")
_PAGES = types.Array(types.int32, 2, "C")
_LOAD = types.boolean(
    TRANSLATE, VICTIM, types.int64, types.int64, _VECTOR, _MATRIX, _MATRIX, _MAP, _PAGES, _VECTOR, _MATRIX
)  # fmt: skip


@lean_kernel
def apply(row: int, plan: Integers, control: Integers, blocks: Integers, pages: Narrow, spare: Integers) -> None:
    """Carry out one flash operation of a plan on the physical state, at once."""
    if plan[row, KIND] == ERASE_BLOCK:
        erased(control, blocks, spare, plan[row, PLACE])
    elif plan[row, KIND] == PROGRAM_PAGE or plan[row, KIND] == MOVE_PAGE:
        programmed(pages, spare, plan[row, PLACE], plan[row, SOURCE], plan[row, LOGICAL], plan[row, WRITE_ID])


@kernel_of(_LOAD)
def _load_pages(
    translate: Any, victim: Any, first: int, end: int, control: Integers, dies: Integers, blocks: Integers, mapping: Narrow,
    pages: Narrow, spare: Integers, plan: Integers,
) -> bool:  # fmt: skip
    for page in range(first, end):
        rows = translate(WRITE, page, 0, control, dies, blocks, mapping, pages, plan, victim)
        if rows < 0:
            return False
        for row in range(rows):
            apply(row, plan, control, blocks, pages, spare)
    return True


class DriveState:
    """The flash array of one drive and the policies that manage it.

    Raises
    ------
    InvalidParameterError, UnknownNameError, MissingFileError, FlashsimError
        Impossible parameters, or a policy that cannot be loaded.
    """

    def __init__(self, parameters: SsdParameters) -> None:
        self.parameters = parameters
        self.timing = timing_of(parameters)
        self.translate: Any = policy_function(ftl_family.FAMILY, parameters.ftl, "translate", TRANSLATE)
        self.victim: Any = policy_function(gc_family.FAMILY, parameters.gc, "victim", VICTIM)
        flash_pages = parameters.dies * parameters.blocks_per_die * parameters.pages_per_block
        self.control = control_array(parameters, gc_family.rounds_of(parameters.gc))
        self.dies, self.blocks = empty_arrays(parameters)
        self.mapping = np.zeros(parameters.logical_pages, np.int32)
        self.pages = np.zeros((flash_pages, PAGE_COLUMNS), np.int32)
        self.spare = np.zeros(flash_pages, np.int64)  # write id of what each flash page holds: 0 erased, TORN unreadable
        self.trimmed = np.zeros(parameters.logical_pages, np.int64)  # write id of each logical page's last trim
        self.plan = np.zeros((int(self.control[PLAN_ROWS]), PLAN_COLUMNS), np.int64)
        self.counters = np.zeros(len(COUNTERS), np.int64)

    def plan_page(self, operation: int, page: int, partial: bool) -> list[tuple[int, ...]]:
        """The flash operations (rows of a plan) that one logical page of a command takes; the logical state changes at once."""
        rows = plan_page(
            self.translate,
            operation,
            page,
            int(partial),
            self.control,
            self.dies,
            self.blocks,
            self.mapping,
            self.pages,
            self.plan,
            self.victim,
        )
        if rows == BAD_VICTIM:
            raise self.bad_victim()
        return [tuple(row) for row in self.plan[:rows].tolist()]

    def load(self, offset: int, length: int, outstanding: int) -> None:
        """Write bytes in no time and outside the counters, from the first page to the last.

        Raises
        ------
        InvalidParameterError
            The bytes do not lie within the drive, on sector boundaries.
        RefusedError
            Requests are outstanding: their operations would mingle with what takes no time.
        """
        check_extent(self.parameters, "load", offset, length)
        if outstanding:
            raise RefusedError(f"load: {outstanding} requests are outstanding, but a drive is loaded while it is idle")
        size = self.parameters.page_size
        done = _load_pages(
            self.translate, self.victim, offset // size, -(-(offset + length) // size), self.control, self.dies, self.blocks,
            self.mapping, self.pages, self.spare, self.plan,
        )  # fmt: skip
        if not done:
            raise self.bad_victim()

    def bad_victim(self) -> FlashsimError:
        """The error for a policy that breaks its contract."""
        return FlashsimError(f"garbage collection policy: '{self.parameters.gc}' chose a block that is not closed or has no invalid page")

    def version(self, page: int) -> int:
        """The write id (1, 2, ... in order of admission, trims included) of what a logical page reads as; 0 where it is unmapped.

        Meaningful while no request is outstanding.
        """
        flash_page = lookup(self.mapping, page)
        return int(self.spare[flash_page]) if flash_page >= 0 else 0

    def statistics(self) -> dict[str, Any]:
        """Counters by name, write amplification, wear, and the over-provisioning that garbage collection can use.

        Write amplification is flash bytes programmed over host bytes written (NaN before the first).  `victim_steps` are the blocks and
        lists looked at to choose victims since the drive was made, loading included.
        """
        numbers: dict[str, Any] = {name: int(value) for name, value in zip(COUNTERS, self.counters, strict=True)}
        programmed_bytes = numbers["flash_programs"] * self.parameters.page_size
        numbers["write_amplification"] = programmed_bytes / numbers["host_write_bytes"] if numbers["host_write_bytes"] else float("nan")
        erases = self.blocks[ERASES]
        numbers["block_erases"] = {"min": int(erases.min()), "max": int(erases.max()), "mean": float(erases.mean())}
        numbers["victim_steps"] = int(self.control[GC_STEPS])
        numbers["effective_overprovisioning"] = self.parameters.effective_overprovisioning
        return numbers


def statistics_with_times(state: DriveState, dies: list[int], channels: list[int], link: int, controller: int) -> dict[str, Any]:
    """The drive's statistics with the busy times, ns, of its parts."""
    return {
        **state.statistics(),
        "die_busy_ns": dies,
        "channel_busy_ns": channels,
        "link_busy_ns": link,
        "controller_busy_ns": controller,
    }


def check_extent(parameters: SsdParameters, what: str, offset: int, length: int) -> None:
    """Refuse bytes outside the drive or off its sectors."""
    if offset < 0 or length < 0 or offset % SECTOR or length % SECTOR:
        raise InvalidParameterError(what, f"{length} B at {offset}", f"offset and length must be multiples of {SECTOR} B and not negative")
    if offset + length > parameters.capacity:
        raise InvalidParameterError(what, f"{length} B at {offset}", f"the drive ends at {parameters.capacity} B")


def check_commands_fit(parameters: SsdParameters, requests: Requests, commands: Commands) -> None:
    """Refuse commands outside the drive or off its sectors, reads and writes of nothing, and operations that no drive knows."""
    unknown = np.flatnonzero((requests["operation"] < READ) | (requests["operation"] > FLUSH))
    if len(unknown):
        raise InvalidParameterError("operation", int(requests["operation"][unknown[0]]), "it must be read, write, trim or flush")
    operation = requests["operation"][commands["request"]]
    offset, length = commands["offset"], commands["length"]
    off = (offset < 0) | (length < 0) | (offset % SECTOR != 0) | (length % SECTOR != 0) | (offset + length > parameters.capacity)
    for row in np.flatnonzero(off & (operation != FLUSH))[:1]:
        check_extent(parameters, OPERATIONS[operation[row]], int(offset[row]), int(length[row]))
    if np.any((length == 0) & ((operation == READ) | (operation == WRITE))):
        raise InvalidParameterError("length", "0 B", f"a read or write moves at least {SECTOR} B")

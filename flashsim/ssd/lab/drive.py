"""A drive to take apart: small, without a clock, one logical page and one flash operation at a time.

>>> drive = LabDrive()
>>> drive.write(5)
program block 0 page 0: logical page 5 (host)
>>> drive.write(5)
program block 32 page 0: logical page 5 (host)
>>> drive.read(5)
read    block 32 page 0: logical page 5 (host)

``print(drive)`` shows all blocks and pages::

    die 0
      0 c x##x####  6  2 |   1 a ##......  2  1 |   2   ........  0  2

A block's number, its state (a letter), its pages, how many of them are valid, and how often it was erased. It runs compiled and as plain
Python: under ``NUMBA_DISABLE_JIT=1`` a debugger steps from `LabDrive.begin` into the translation layer and into garbage collection.
`flashsim.ssd.lab.clock` has the same drive in time.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.parameters import build
from flashsim.core.request import OPERATIONS, READ, SECTOR, TRIM, WRITE
from flashsim.core.spans import CAUSES, HOST
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.drive_state import DriveState, apply
from flashsim.ssd.state.flash import PlannedOperation
from flashsim.ssd.state.pools import next_write_id
from flashsim.ssd.state.recovery import recover

#: Two dies of 32 blocks of 8 pages, on a channel each: few enough to be drawn.  The times are no chip's, but round numbers near those of
#: one with a bit a cell: a page takes 10 us over its channel and 10 us over the host link, the controller 5 us a read and 10 us a write.
LAB_VALUES: dict[str, Any] = {
    "page_size": "4KiB", "pages_per_block": 8, "blocks_per_plane": 32, "planes_per_die": 1, "dies_per_package": 1,
    "packages_per_channel": 1, "channels": 2, "read": "25us", "program": "200us", "erase": "1500us", "channel_rate": "409600KB/s",
    "link_read_rate": "409600KB/s", "link_write_rate": "409600KB/s", "read_latency": "40us", "write_latency": "220us", "queue_depth": 4,
    "gc_reserve": 2,
}  # fmt: skip
#: Logical pages, where nothing else is said: a fifth more flash pages than these can be used outside the reserve.
LAB_PAGES = 400

_VERBS = ("read", "zeros", "fetch", "program", "store", "move", "erase")  # by kind of operation
_PROGRAMS = (flash_array.PROGRAM_PAGE, flash_array.STORE_PAGE, flash_array.MOVE_PAGE)


def lab_parameters(pages: int = LAB_PAGES, **changes: Any) -> SsdParameters:
    """A 64-block drive of so many logical pages; `changes` replace values of LAB_VALUES, in the units of presets.

    Raises InvalidParameterError or UnknownNameError or RefusedError: as a preset with such values.

    >>> lab_parameters().pools * lab_parameters().blocks_per_plane, round(lab_parameters().effective_overprovisioning, 3)
    (64, 0.2)
    """
    values = {**LAB_VALUES, **changes}
    page_size = build(SsdParameters, {**LAB_VALUES, "capacity": SECTOR, "page_size": values["page_size"]}).page_size  # in bytes
    return build(SsdParameters, {"capacity": pages * page_size, **values})


def operation_line(pages_per_block: int, kind: int, place: int, source: int, logical: int, cause: int) -> str:
    """One flash operation in words.

    >>> operation_line(8, flash_array.MOVE_PAGE, 56, 25, 12, 1)
    'move    block 3 page 1 -> block 7 page 0: logical page 12 (gc)'
    """
    pages = (f"block {page // pages_per_block} page {page % pages_per_block}" for page in (source, place) if page >= 0)
    if kind == flash_array.ERASE_BLOCK:
        what = f"block {place}"
    else:
        what = f"{'nothing is mapped' if kind == flash_array.ZERO_PAGE else ' -> '.join(pages)}: logical page {logical}"
    return f"{_VERBS[kind]:<7} {what} ({CAUSES[cause]})"


@dataclass(frozen=True)
class PagePlan:
    """The flash operations that one logical page takes, in order; shown as a line each.

    `rows` are rows of a plan (docs/decisions/0006).
    """

    rows: tuple[PlannedOperation, ...]
    pages_per_block: int

    def lines(self) -> list[str]:
        return [operation_line(self.pages_per_block, row.kind, row.place, row.source, row.logical, row.cause) for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return "\n".join(self.lines()) or "nothing to do on the flash"


class LabDrive:
    """A small drive whose flash operations take no time, and are carried out one by one.

    It has so many logical pages; changes are other values of `LAB_VALUES` or of `SsdParameters`, such as ``gc="my_policy.py"``.

    Raises InvalidParameterError or UnknownNameError or MissingFileError or RefusedError or FlashsimError: impossible parameters, or
    policies that cannot be loaded.
    """

    def __init__(self, pages: int = LAB_PAGES, **changes: Any) -> None:
        self.parameters = lab_parameters(pages, **changes)
        if self.parameters.write_buffer:
            raise RefusedError("write_buffer: a drive without a clock has none; flashsim.ssd.lab.clock.SteppedDrive can have one")
        self.state = DriveState(self.parameters)
        self._pending: deque[int] = deque()
        self._plan = PagePlan((), self.parameters.pages_per_block)

    def __str__(self) -> str:
        return picture(self.state)

    @property
    def pages(self) -> int:
        return self.parameters.logical_pages

    @property
    def pending(self) -> PagePlan:
        """Planned operations that are still to be carried out."""
        return PagePlan(tuple(self._plan.rows[row] for row in self._pending), self.parameters.pages_per_block)

    def write(self, page: int, partial: bool = False) -> PagePlan:
        """Write one logical page (`partial`: only a part of it); return what that took."""
        return self._all_of(WRITE, page, partial)

    def read(self, page: int) -> PagePlan:
        return self._all_of(READ, page)

    def trim(self, page: int) -> PagePlan:
        return self._all_of(TRIM, page)

    def write_all(self, pages: Iterable[int]) -> None:
        for page in pages:
            self._all_of(WRITE, page)

    def begin(self, operation: str, page: int, partial: bool = False) -> PagePlan:
        """Plan a ``"write"``, ``"read"`` or ``"trim"``: the map changes at once, the flash with each `step`."""
        if operation not in OPERATIONS[READ : TRIM + 1]:
            raise InvalidParameterError("operation", repr(operation), "it must be read, write or trim")
        return self._begin(OPERATIONS.index(operation), page, partial)

    def step(self) -> str:
        """Carry out the next operation of what was planned, and say what it was; empty if nothing is left."""
        if not self._pending:
            return ""
        state, row = self.state, self._pending.popleft()
        apply(row, state.flash)
        self._count(self._plan.rows[row])
        return self._plan.lines()[row]

    def power_cut(self) -> None:
        """Lose power in the midst of the next operation of what was planned, and rebuild the map from the flash.

        A program that is cut off leaves a torn page, and an erase is finished; what comes after it never happens.
        """
        state = self.state
        if self._pending:
            row = self._plan.rows[self._pending[0]]
            if row.kind == flash_array.ERASE_BLOCK:
                flash_array.end_erase(state.flash, row.place)
            elif row.kind in _PROGRAMS:
                flash_array.start_program(state.flash, row.place, row.source)
        self._pending.clear()
        recover(state)

    def statistics(self) -> dict[str, Any]:
        """Counters, as of `flashsim.ssd.state.drive_state.DriveState.statistics`, since the drive was made or `count_anew`."""
        return self.state.statistics()

    def count_anew(self) -> None:
        """Set the counters of host and flash operations to 0; erases of blocks stay."""
        for name in self.state.counters.dtype.names:
            self.state.counters[name] = 0

    def _all_of(self, operation: int, page: int, partial: bool = False) -> PagePlan:
        plan = self._begin(operation, page, partial)
        self.state.apply_plan(len(plan))
        for row in plan.rows:
            self._count(row)
        self._pending.clear()
        return plan

    def _begin(self, operation: int, page: int, partial: bool) -> PagePlan:
        state, page = self.state, int(page)
        if not 0 <= page < self.pages:
            raise InvalidParameterError("page", page, f"the drive has logical pages 0 to {self.pages - 1}")
        if self._pending:
            raise RefusedError(f"{OPERATIONS[operation]}: {len(self._pending)} flash operations of the last plan are pending (step)")
        if operation == WRITE and state.control.read_only:
            state.control.refused += 1
            raise state.read_only()
        state.make_ids(int(state.control.plan_rows))
        self._plan = PagePlan(tuple(state.plan_page(operation, page, partial)), self.parameters.pages_per_block)
        self._pending = deque(range(len(self._plan)))
        if operation == TRIM:
            state.trimmed[page] = next_write_id(state.control)
        state.counters.commands[operation] += 1
        state.counters.bytes[operation] += self.parameters.page_size // (2 if partial else 1)
        return self._plan

    def _count(self, row: PlannedOperation) -> None:
        counters, kind, cause = self.state.counters, row.kind, row.cause
        counters.reads[cause] += kind in (flash_array.READ_PAGE, flash_array.FETCH_PAGE, flash_array.MOVE_PAGE)
        counters.read_modify_write_reads += kind == flash_array.FETCH_PAGE and cause == HOST
        counters.programs[cause] += kind in _PROGRAMS
        counters.erases[cause] += kind == flash_array.ERASE_BLOCK


# What a flash page can be.  An invalid one waits for the erase of its block: its content is superseded or trimmed, or it was passed over.
# A page in flight is mapped, but its program has not ended.
FREE_PAGE, VALID_PAGE, INVALID_PAGE, PAGE_ON_ITS_WAY, TORN_PAGE = range(5)
PAGE_NAMES = ("free", "valid", "invalid", "in flight", "torn")
MARKS = ".#x+!"
#: The letter and the name of each state of a block, and of one that garbage collection is emptying.
BLOCK_LETTERS = {
    flash_array.FREE_BLOCK: " ", flash_array.ACTIVE_BLOCK: "a", flash_array.CLOSED_BLOCK: "c", flash_array.SPARE_BLOCK: "s",
    flash_array.RETIRED_BLOCK: "r", flash_array.DATA_BLOCK: "d", flash_array.LOG_BLOCK: "l", flash_array.MAP_BLOCK: "m",
    flash_array.OWN_SLC_BLOCK: "o", flash_array.SLC_BLOCK: "o",
}  # fmt: skip
EMPTIED_LETTER = "e"
LEGEND = (
    "pages: " + "  ".join(f"{mark} {name}" for mark, name in zip(MARKS, PAGE_NAMES, strict=True)),
    "blocks: a active  c closed  e being emptied  d data  l log  m map  o of one bit a cell  s spare  r retired;  then valid pages, erases",
)
_WIDTH = 110


def page_states(state: DriveState) -> npt.NDArray[np.int8]:
    """State of each flash page, FREE_PAGE to TORN_PAGE, shape (blocks, pages of a block)."""
    per_block = state.parameters.slots_per_block
    spare = state.spare.reshape(-1, per_block)
    mapped = np.zeros(spare.shape, bool)
    mapped.flat[state.mapping[state.mapping > 0] - 1] = True
    written = np.arange(per_block) < state.blocks.written[:, None]
    # What a block held before an erase that is planned and has not ended is still there.
    whole = (spare > 0) & (state.blocks.cycles == state.blocks.erases)[:, None]
    states = np.where(written | (spare != 0), INVALID_PAGE, FREE_PAGE)
    states[spare == flash_array.TORN] = TORN_PAGE
    states[mapped] = np.where(whole, VALID_PAGE, PAGE_ON_ITS_WAY)[mapped]
    return states.astype(np.int8)


def logical_pages(state: DriveState) -> npt.NDArray[np.int32]:
    """The logical page that each mapped flash page holds, -1 for the others, shape (blocks, pages of a block)."""
    flash_pages = state.mapping[state.mapping > 0] - 1
    pages = np.full(len(state.spare), -1, np.int32)
    pages[flash_pages] = state.pages[flash_pages].owner - 1
    return pages.reshape(-1, state.parameters.slots_per_block)


def block_letters(state: DriveState) -> list[str]:
    letters = [BLOCK_LETTERS[int(standing)] for standing in state.blocks.state]
    for victim in state.pools.victim:
        if victim >= 0:
            letters[victim] = EMPTIED_LETTER
    return letters


def pool_name(state: DriveState, pool: int) -> str:
    """Name of a plane: its die, and its number there if dies have several."""
    planes = state.parameters.planes_per_die
    return f"die {pool // planes}" + (f" plane {pool % planes}" if planes > 1 else "")


def picture(state: DriveState, legend: bool = True) -> str:
    """The blocks and pages of a drive as text, plane by plane; with what the marks mean below."""
    cells = _cells(state)
    per_pool = state.parameters.blocks_per_plane
    fit = max(1, (_WIDTH + 3) // (len(cells[0]) + 3))
    abreast = next(count for count in range(fit, 0, -1) if per_pool % count == 0 or 2 * count <= fit)
    lines = []
    for pool in range(state.parameters.pools):
        lines.append(pool_name(state, pool))
        own = cells[pool * per_pool : (pool + 1) * per_pool]
        lines += [" | ".join(own[first : first + abreast]) for first in range(0, per_pool, abreast)]
    return "\n".join([*lines, *(LEGEND if legend else ())])


def _cells(state: DriveState) -> list[str]:
    rows = ["".join(MARKS[page] for page in block) for block in page_states(state)]
    valid, erases = state.blocks.valid, state.blocks.erases
    widths = [len(str(most)) for most in (len(rows) - 1, state.parameters.slots_per_block, max(9, int(erases.max())))]
    return [
        f"{block:{widths[0]}} {letter} {row} {valid[block]:{widths[1]}} {erases[block]:{widths[2]}}"
        for block, (letter, row) in enumerate(zip(block_letters(state), rows, strict=True))
    ]

"""A drive's flash as text: every page of every block, for drives small enough to look at.

::

    die 0
      0 c x##x####  6  2 |   1 a ##......  2  1 |   2   ........  0  2

A block's number, its state (a letter), its pages, how many of them are valid, and how often it was erased.
"""

import numpy as np
import numpy.typing as npt

from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import (
    ACTIVE_BLOCK,
    CLOSED_BLOCK,
    DATA_BLOCK,
    FREE_BLOCK,
    LOG_BLOCK,
    MAP_BLOCK,
    OWN_SLC_BLOCK,
    RETIRED_BLOCK,
    SLC_BLOCK,
    SPARE_BLOCK,
    TORN,
)

# What a flash page can be.  An invalid one waits for the erase of its block: its content is superseded or trimmed, or it was passed over.
# A page on its way is mapped, but its program has not ended.
FREE_PAGE, VALID_PAGE, INVALID_PAGE, PAGE_ON_ITS_WAY, TORN_PAGE = range(5)
PAGE_NAMES = ("free", "valid", "invalid", "on its way", "torn")
MARKS = ".#x+!"
#: The letter and the name of each state of a block, and of one that garbage collection is emptying.
BLOCK_LETTERS = {
    FREE_BLOCK: " ", ACTIVE_BLOCK: "a", CLOSED_BLOCK: "c", SPARE_BLOCK: "s", RETIRED_BLOCK: "r", DATA_BLOCK: "d", LOG_BLOCK: "l",
    MAP_BLOCK: "m", OWN_SLC_BLOCK: "o", SLC_BLOCK: "o",
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
    states[spare == TORN] = TORN_PAGE
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

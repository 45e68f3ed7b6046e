"""A drive after years of random writes, laid out in one step: which blocks hold how many valid pages, which pages, and how old they are.

Only the flash is written here (spare areas and owners), and then everything else is rebuilt as after a power cut
(`flashsim.ssd.state.recovery`).  So a power cut right after this changes nothing.
"""

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash import Narrow
from flashsim.ssd.state.flash_array import RETIRED_BLOCK, SPARE_BLOCK
from flashsim.ssd.state.recovery import recover

#: Shares of closed blocks with 0, 1, ... valid pages, shape (pages of a block + 1,), or (ages, pages of a block + 1) from the oldest.
Occupancy = npt.NDArray[np.float64]

#: The golden ratio, less 1: its multiples fill the unit interval evenly from any place on.
_GOLDEN = (5**0.5 - 1) / 2


def lay_out(state: DriveState, occupancy: Occupancy, random: np.random.Generator) -> None:
    """Fill an erased drive as random writes to all its logical pages leave it.

    Each plane keeps its reserve of free blocks and has closed all the others: it is about to collect garbage.  Valid pages are divided
    evenly between planes, and as their addresses say where allocation is static.  Blocks are closed in the order of their counts of valid
    pages, the emptiest first, unless `occupancy` tells ages apart.  Which page lies where is drawn at random.

    Raises
    ------
    InvalidParameterError
        `occupancy` has the wrong shape, is no distribution, or its mean is not that of this drive.
    """
    parameters, per_block = state.parameters, state.parameters.pages_per_block
    own = _pages_of_pools(state, random)
    closed = _closed_blocks(state, random)
    check_occupancy(occupancy, per_block, sum(map(len, own)) / closed.size)
    counts = np.stack([_counts(occupancy, closed.shape[1], len(pages), per_block) for pages in own])
    # Write ids in the order of closing, over all planes; one id before them all belongs to the copies that are no longer valid.
    invalid_id = int(state.control.sequence) + 1
    first_ids = (invalid_id + 1 + np.cumsum(counts.T.ravel()) - counts.T.ravel()).reshape(counts.T.shape).T
    state.control.sequence = invalid_id + counts.sum()
    for pool in range(parameters.pools):
        owners = own[pool] if len(own[pool]) else np.zeros(1, np.int32)
        draws = random.random(closed.shape[1] * per_block, np.float32)
        _write_blocks(closed[pool], counts[pool], first_ids[pool], invalid_id, owners, draws, per_block, state.pages, state.spare)
    recover(state)


def check_occupancy(occupancy: Occupancy, per_block: int, mean: float) -> None:
    """Refuse what is no distribution over 0 to `per_block` valid pages with that mean (to 1 % of a block)."""
    if occupancy.ndim not in (1, 2) or occupancy.shape[-1] != per_block + 1 or not len(occupancy):
        bound = f"the counts 0 to {per_block} of valid pages need shape ({per_block + 1},), or one such row for each age"
        raise InvalidParameterError("occupancy", f"an array of shape {occupancy.shape}", bound)
    sums = occupancy.sum(axis=-1)
    if not (np.all(occupancy >= 0) and np.allclose(sums, 1, rtol=0, atol=1e-6)):
        worst = float(np.ravel(sums)[np.argmax(np.abs(np.ravel(sums) - 1))])
        raise InvalidParameterError(
            "occupancy", f"shares from {occupancy.min():.3g} that sum to {worst:.6g}", "shares are at least 0, sum 1"
        )
    found = float((occupancy @ np.arange(per_block + 1)).mean())
    if abs(found - mean) > 0.01 * per_block:
        bound = f"the closed blocks of this drive hold {mean:.2f}: the distribution belongs to another over-provisioning"
        raise InvalidParameterError("occupancy", f"{found:.2f} valid pages a block", bound)


def _pages_of_pools(state: DriveState, random: np.random.Generator) -> list[Narrow]:
    parameters, count = state.parameters, len(state.mapping)
    pages = np.arange(count, dtype=np.int32)
    if parameters.allocation != "static":
        random.shuffle(pages)
    turns = [pages[turn :: parameters.pools].copy() for turn in range(parameters.pools)]
    own = [np.zeros(0, np.int32)] * parameters.pools
    for turn, pool in enumerate(state.pools.order):
        if parameters.allocation == "static":
            random.shuffle(turns[turn])
        own[pool] = turns[turn]
    return own


def _closed_blocks(state: DriveState, random: np.random.Generator) -> Integers:
    """The blocks to fill, shape (pools, blocks of a pool outside its reserve), each row in random order; the order of closing."""
    parameters = state.parameters
    in_use = ~np.isin(state.blocks.state, (RETIRED_BLOCK, SPARE_BLOCK))
    blocks = np.flatnonzero(in_use).reshape(parameters.pools, parameters.good_blocks)
    return random.permuted(blocks, axis=1)[:, parameters.gc_reserve :]


def _counts(occupancy: Occupancy, blocks: int, valid: int, per_block: int) -> Integers:
    """How many valid pages each block holds, in the order of closing: evenly spread quantiles, and `valid` altogether."""
    at = (np.arange(blocks) + 0.5) / blocks
    if occupancy.ndim == 1:
        counts = np.searchsorted(np.cumsum(occupancy), at)
    else:
        ages = np.cumsum(occupancy, axis=1)[(at * len(occupancy)).astype(np.int64)]
        counts = (ages < (np.arange(1, blocks + 1) * _GOLDEN % 1)[:, None]).sum(axis=1)
    counts = np.minimum(counts, per_block)
    while missing := valid - int(counts.sum()):
        step = 1 if missing > 0 else -1
        room = np.flatnonzero((counts < per_block) if step > 0 else (counts > 0))
        chosen = room[np.linspace(0, len(room) - 1, min(abs(missing), len(room))).astype(np.int64)]
        counts[chosen] += step
    return counts


@lean_kernel
def _write_blocks(
    closed: Integers, counts: Integers, first_ids: Integers, invalid_id: int, owners: Narrow, draws: npt.NDArray[np.float32],
    per_block: int, pages: Narrow, spare: Narrow,
) -> None:  # fmt: skip
    """Program whole blocks: each logical page of `owners` once, with ascending write ids, and older copies of them between."""
    valid_page = older = 0
    for number in range(len(closed)):
        left, write_id = counts[number], first_ids[number]
        for place in range(per_block):
            flash_page = closed[number] * per_block + place
            draw = float(draws[number * per_block + place])
            if draw * (per_block - place) < left:  # every choice of places is as likely (Knuth, TAOCP 3.4.2, algorithm S)
                spare[flash_page] = write_id
                pages[flash_page].spare_owner = owners[valid_page] + 1
                left -= 1
                write_id += 1
                valid_page += 1
            else:
                spare[flash_page] = invalid_id
                pages[flash_page].spare_owner = owners[older % len(owners)] + 1
                older += 1

"""Known states of a drive before a measurement, reached in no time: filled in order, filled at random, steady under random writes, aged.

A steady state is laid out in one step: which blocks hold how many valid pages, which pages, and how old they are.  Only the flash is
written then (spare areas and owners), and everything else is rebuilt as after a power cut (`flashsim.ssd.state.recovery`).  So a power cut
right after this changes nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import InvalidParameterError, RefusedError, check_known
from flashsim.core.kernel import lean_kernel
from flashsim.core.protocols import Progress
from flashsim.core.request import Integers
from flashsim.core.rng import generator
from flashsim.ssd.state.drive_state import LOADED_AT_ONCE, DriveState
from flashsim.ssd.state.flash import Narrow
from flashsim.ssd.state.flash_array import OWN_SLC_BLOCK, RETIRED_BLOCK, SPARE_BLOCK, in_use
from flashsim.ssd.state.recovery import recover

FILLS = ("empty", "sequential", "random", "steady")  #: Values of `Precondition.fill`.
#: The most erases of a block: far more than any lasts, and any number of deviations away still far from the end of what counts them.
_MOST_ERASES = 10**12
Workload = Callable[[np.random.Generator, int], Narrow]  #: Draws so many logical pages that the host writes, in order.
#: Shares of closed blocks with 0, 1, ... valid pages, shape (pages of a block + 1,), or (ages, pages of a block + 1) from the oldest.
Occupancy = npt.NDArray[np.float64]

_GOLDEN = (5**0.5 - 1) / 2  #: The golden ratio, less 1: its multiples fill the unit interval evenly from any place on.

#: Pages that are shuffled at once at most, and pages of a piece of more: they fit the processor's caches.
_MOST_SHUFFLED, _PIECE = 1 << 22, 1 << 18
#: Write amplification is measured in windows, so many for each time that all usable pages are programmed, but none with fewer programs
#: than this, since the counts of single victims must not show, nor with more, which would make none of them clearer.
_WINDOWS, _LEAST_WINDOW, _MOST_WINDOW = 16, 1 << 17, 1 << 23
#: A steady state is confirmed when both halves of the last windows, so many, amplify alike to this share.
_JUDGED, _TOLERANCE = 8, 0.005


@dataclass(frozen=True)
class Precondition:
    """State into which a drive is brought; its content is gone.

    Raises UnknownNameError or InvalidParameterError: there is no such fill, a value is out of bounds, or another fill than a steady state
    has an `occupancy`.
    """

    #: ``empty``: nothing is written.  ``sequential``: pages in the order of their addresses.  ``random``: pages in random order, each
    #: once.  ``steady``: all pages, as long random writes leave them.
    fill: str = "sequential"
    share: float = 1.0  #: Of the logical pages, for ``sequential`` (those with the lowest addresses) and ``random``.
    #: For ``steady``, what to start from: the share of closed blocks with 0, 1, ... valid pages, shape (pages of a block + 1,), or with one
    #: row an age, from the oldest blocks to the newest.  `models.occupancy` has those of uniform random writes.  Without one, the drive is
    #: first filled in order: translation layers that merge blocks are soon steady then, others only after many writes.
    occupancy: Occupancy | None = None
    workload: Workload | None = None  #: For ``steady``, the writes that confirm it; uniform ones, if not given.
    #: For ``steady``, how often all usable pages may be programmed until the write amplification is steady; 0 leaves an `occupancy`
    #: unconfirmed.
    longest: int = 16
    #: Mean and standard deviation of the erases that the blocks in use, and those kept for an SLC cache, have seen, drawn from a normal
    #: distribution; None leaves them as they are.  A block in use beyond its endurance is retired, and a spare block has taken the erases
    #: since.
    erases: float | None = None
    erases_spread: float = 0.0
    seed: int = 0  #: Random seed.

    def __post_init__(self) -> None:
        check_known("precondition", self.fill, FILLS)
        bounds = {
            "share": (0, 1),
            "longest": (int(self.occupancy is None), None),
            "erases": (0, _MOST_ERASES),
            "erases_spread": (0, _MOST_ERASES),
            "seed": (0, None),
        }
        for name, (least, most) in bounds.items():
            value = getattr(self, name) or 0
            if most is None and value < least:
                raise InvalidParameterError(name, value, f"it must be at least {least}")
            if most is not None and not least <= value <= most:
                raise InvalidParameterError(name, value, f"it must be from {least} to {most}")
        if self.occupancy is not None and self.fill != "steady":
            raise InvalidParameterError("occupancy", "given", "only a steady state starts from one")


@dataclass(frozen=True)
class Preconditioned:
    """Result of preconditioning."""

    fill: str
    writes: int  #: Logical pages that were written in no time: the fill, or the writes that confirmed a steady state.
    write_amplification: float  #: Flash pages programmed over those; of a steady state, over its last eight windows.  NaN without writes.
    halves: tuple[float, float] | None = None  #: The same of the first and the second half of these windows, for a steady state.
    steady: bool | None = None  #: Whether the halves agree to 0.5 %; None of other fills.


def precondition(state: DriveState, how: Precondition, outstanding: int = 0, progress: Progress | None = None) -> Preconditioned:
    """Bring a drive into a known state, in no time and outside its counters (but for the erases of its blocks)."""
    if outstanding:
        raise RefusedError(f"precondition: {outstanding} requests are outstanding, but a drive is preconditioned while it is idle")
    if state.control.read_only:
        raise state.read_only()
    if how.occupancy is not None and not state.layer.PLACES_FREELY:
        raise RefusedError(f"occupancy: ftl '{state.parameters.ftl}' does not place pages freely; without it, the drive is filled in order")
    _forget(state)
    state.expect_use(of_all=how.fill != "empty")
    if how.erases is not None:
        _age(state, how.erases, how)
    if how.occupancy is not None:
        lay_out(state, how.occupancy, generator(how.seed, "steady state"))
        _stagger(state, generator(how.seed, "staggered dies"))
        return _confirm(state, how, progress) if how.longest else Preconditioned(how.fill, 0, math.nan)
    recover(state)
    pages = _pages_to_fill(state.parameters.logical_pages, how)
    programs = 0
    for first in range(0, len(pages), LOADED_AT_ONCE):
        programs += state.write_pages(pages[first : first + LOADED_AT_ONCE])
        if progress:
            progress(min(first + LOADED_AT_ONCE, len(pages)), len(pages), f"{how.fill} fill")
    if how.fill == "steady":
        return _confirm(state, how, progress)
    return Preconditioned(how.fill, len(pages), programs / len(pages) if len(pages) else math.nan)


def uniform(logical_pages: int) -> Workload:
    return lambda random, count: random.integers(0, logical_pages, count, np.int32)


def hot_cold(logical_pages: int, writes: float, data: float, seed: int = 0) -> Workload:
    """A share `writes` of the writes goes to a share `data` of the pages, which lie spread over the drive.

    Raises InvalidParameterError: a share is not between 0 and 1, or too small for a page.
    """
    hot = round(data * logical_pages)
    if not 0 < writes < 1 or not 0 < hot < logical_pages:
        raise InvalidParameterError("writes, data", (writes, data), f"both must be between 0 and 1, for {logical_pages} pages")
    order = generator(seed, "hot pages").permutation(np.arange(logical_pages, dtype=np.int32))

    def pages(random: np.random.Generator, count: int) -> Narrow:
        is_hot = random.random(count) < writes
        chosen: Narrow = order[np.where(is_hot, random.integers(0, hot, count), random.integers(hot, logical_pages, count))]
        return chosen

    return pages


def _forget(state: DriveState) -> None:
    """Erase all pages and begin to count anew, so that nothing but the blocks' erases depends on what was done before."""
    for ids in (state.spare, state.trimmed):
        if ids.any():  # memory that was never written takes no room
            ids[:] = 0
    state.blocks.slc = 0
    for name in ("sequence", "id_base", "next_pool", "gc_draws", "stream"):
        state.control[name] = 0
    state.pools.wear_hand = 0


def _pages_to_fill(logical_pages: int, how: Precondition) -> Narrow:
    count = round(how.share * logical_pages) if how.fill != "empty" else 0
    pages = np.arange(logical_pages if how.fill == "random" else count, dtype=np.int32)
    if how.fill == "random":
        generator(how.seed, "random fill").shuffle(pages)
    return pages[:count]


def _age(state: DriveState, mean: float, how: Precondition) -> None:
    """Set the erases of an erased drive's blocks; retire those that cannot have had so many, as long as there are spare blocks."""
    blocks, parameters = state.blocks, state.parameters
    used = in_use(blocks)
    draws = mean + how.erases_spread * generator(how.seed, "erases").standard_normal(len(blocks))
    erases = np.maximum(np.rint(draws), 0).astype(np.int64)
    blocks.erases = np.where(used | (blocks.state == OWN_SLC_BLOCK), erases, blocks.erases)
    waiting = np.flatnonzero(used & (blocks.limit > 0) & (blocks.erases >= blocks.limit)).tolist()
    for block in waiting:  # grows by the spares that wear out as well
        first = block // parameters.blocks_per_plane * parameters.blocks_per_plane
        spares = np.flatnonzero(blocks.state[first : first + parameters.blocks_per_plane] == SPARE_BLOCK)
        if not len(spares):
            raise RefusedError(f"erases: with a mean of {mean:g} a plane has no spare block left, and the drive would be read-only")
        spare = first + int(spares[0])
        blocks.state[spare] = blocks.state[block]
        blocks.erases[spare] += blocks.erases[block] - blocks.limit[block]
        blocks.state[block], blocks.erases[block] = RETIRED_BLOCK, blocks.limit[block]
        if blocks.erases[spare] >= blocks.limit[spare]:
            waiting.append(spare)


def _confirm(state: DriveState, how: Precondition, progress: Progress | None) -> Preconditioned:
    """Write at random until the write amplification of the last eight windows does not change from their first half to their second."""
    workload = how.workload or uniform(state.parameters.logical_pages)
    random = generator(how.seed, "steady state writes")
    window = min(max(-(-state.parameters.usable_pages // _WINDOWS), _LEAST_WINDOW), _MOST_WINDOW)
    at_once = min(LOADED_AT_ONCE, window // 32 // state.parameters.group * state.parameters.group)
    longest = _WINDOWS * how.longest
    windows: list[tuple[int, int]] = []  # writes and programs of each
    halves, steady = (math.nan, math.nan), False
    while len(windows) < longest and not steady:
        writes = programs = 0
        while programs < window:
            programs += state.write_pages(workload(random, at_once))
            writes += at_once
        windows.append((writes, programs))
        if progress:
            progress(len(windows), longest, "confirming the steady state")
        if len(windows) >= _JUDGED:
            halves = (_amplification(windows[-_JUDGED : -_JUDGED // 2]), _amplification(windows[-_JUDGED // 2 :]))
            steady = abs(halves[0] - halves[1]) <= _TOLERANCE * halves[1]
    total = sum(writes for writes, _ in windows)
    return Preconditioned(how.fill, total, _amplification(windows[-_JUDGED:]), halves, steady)


def _amplification(windows: list[tuple[int, int]]) -> float:
    return sum(programs for _, programs in windows) / sum(writes for writes, _ in windows)


def lay_out(state: DriveState, occupancy: Occupancy, random: np.random.Generator) -> None:
    """Fill an erased drive as random writes to all its logical pages leave it.

    Each plane keeps its reserve of free blocks and has closed all the others: it is about to collect garbage.  Valid pages are divided
    evenly between planes, and as their addresses say where allocation is static.  Blocks are closed in the order of their counts of valid
    pages, the emptiest first, unless `occupancy` tells ages apart.  Which page lies where is drawn at random.

    Raises InvalidParameterError: `occupancy` has the wrong shape, is no distribution, or its mean is not that of this drive.
    """
    parameters, per_block = state.parameters, state.parameters.slots_per_block
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


def _stagger(state: DriveState, random: np.random.Generator) -> None:
    """Let dies overwrite drawn numbers of their pages: after long use they collect at different times, where writes can choose dies."""
    parameters = state.parameters
    if parameters.allocation != "dynamic" or parameters.gc_pool != "die":
        return
    size = parameters.planes_per_die * parameters.slots_per_block
    for die in range(parameters.dies):
        places = random.integers(0, parameters.blocks_per_plane * size, random.integers(0, size)) + die * parameters.blocks_per_plane * size
        pages = state.pages.owner[places]
        pages = pages[pages > 0] - 1
        state.pools.queued = 1
        state.pools.queued[die] = 0
        state.write_pages(pages[: len(pages) // parameters.group * parameters.group])
    state.pools.queued = 0


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
    valid = float((occupancy @ np.arange(per_block + 1)).mean())
    if abs(valid - mean) > 0.01 * per_block:
        bound = f"the closed blocks of this drive hold {mean:.2f}: the distribution belongs to another over-provisioning"
        raise InvalidParameterError("occupancy", f"{valid:.2f} valid pages a block", bound)


def _pages_of_pools(state: DriveState, random: np.random.Generator) -> list[Narrow]:
    parameters, count = state.parameters, len(state.mapping)
    pages = np.arange(count, dtype=np.int32)
    if parameters.allocation != "static":
        _shuffle(pages, random)
    turns = [pages[turn :: parameters.pools].copy() for turn in range(parameters.pools)]
    own = [np.zeros(0, np.int32)] * parameters.pools
    for turn, pool in enumerate(state.pools.order):
        if parameters.allocation == "static":
            random.shuffle(turns[turn])
        own[pool] = turns[turn]
    return own


def _shuffle(pages: Narrow, random: np.random.Generator) -> None:
    """Bring pages into random order: many are first scattered over pieces that fit the processor's caches (Rao, 1961)."""
    ends = np.zeros(len(pages) // _PIECE if len(pages) > _MOST_SHUFFLED else 1, np.int64)
    if len(ends) > 1:
        _scatter(pages.copy(), random.integers(0, len(ends), len(pages), np.int16), pages, ends)
    for piece in np.split(pages, ends[:-1]):
        random.shuffle(piece)


@lean_kernel
def _scatter(pages: Narrow, numbers: npt.NDArray[np.int16], scattered: Narrow, ends: Integers) -> None:
    """Put each page into the piece of its number; set where each piece ends."""
    for number in numbers:
        ends[number] += 1
    place = len(pages)
    for piece in range(len(ends) - 1, -1, -1):
        place -= ends[piece]
        ends[piece] = place
    for place in range(len(pages)):
        scattered[ends[numbers[place]]] = pages[place]
        ends[numbers[place]] += 1


def _closed_blocks(state: DriveState, random: np.random.Generator) -> Integers:
    """The blocks to fill, shape (pools, blocks of a pool outside its reserve), each row in random order; the order of closing."""
    parameters = state.parameters
    blocks = np.flatnonzero(in_use(state.blocks)).reshape(parameters.pools, parameters.good_blocks)
    return random.permuted(blocks, axis=1)[:, parameters.gc_reserve :]


def _counts(occupancy: Occupancy, blocks: int, valid: int, per_block: int) -> Integers:
    """Valid pages of each block, in the order of closing: evenly spread quantiles, and `valid` altogether."""
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
        pending, write_id = counts[number], first_ids[number]
        for place in range(per_block):
            flash_page = closed[number] * per_block + place
            draw = float(draws[number * per_block + place])
            if draw * (per_block - place) < pending:  # every choice of places is as likely (Knuth, TAOCP 3.4.2, algorithm S)
                spare[flash_page] = write_id
                pages[flash_page].spare_owner = owners[valid_page] + 1
                pending -= 1
                write_id += 1
                valid_page += 1
            else:
                spare[flash_page] = invalid_id
                pages[flash_page].spare_owner = owners[older % len(owners)] + 1
                older += 1

"""The map of demand-based mapping: the entries that the controller's memory holds, and the translation pages that hold all on flash.

Entries enter and leave one by one, the one used longest ago first.  All stands in the vector `own` of a drive: scalars, then the entries,
then the hash table by which a page finds its entry, then a chain of dirty entries for each translation page, so that writing it back costs
what there is to write, then the planes' blocks for translation pages.  Entries are numbered from 1; 0 is none, and the end of the ring that
links them from the one used longest ago to the newest.

A plane has a fixed number of such blocks, filled in turn; the emptiest is cleaned, one page a write.  With at most p translation pages in
blocks of n pages it has one block and as many more as 2p pages fill.  When a block is full and only one other is empty, that is filled
next, and of the full ones the emptiest becomes the victim.  It holds at most n/2 valid pages, since all full ones together hold at most p.
As each write to the region moves one of them before, the victim is empty, erased and of use again when the next block is full.  So a
translation page written takes at most one move, one erase, one fetch and one store, whatever the drive does.
"""

import numpy as np

from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import Integers
from flashsim.core.spans import MAP
from flashsim.ssd.state.collection import next_valid
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, MAP_BLOCK, MOVE_PAGE, STORE_PAGE, lookup, plan_row
from flashsim.ssd.state.geometry import pool_of_block
from flashsim.ssd.state.pools import choose_free, claim_block, collector_of, drop_page, map_page, recycle_block

# Scalars: entries that fit and that are there, entries that a translation page covers, where the other tables start, how often an entry
# was there or not; the page looked up last and how many pages before it were in order; the row of the plan that fetched an entry (-1:
# none); the first translation page that garbage collection made stale; translation pages stored; blocks of a plane for them.
(
    CAPACITY, USED, COVERED, BUCKETS, BUCKET_MASK, CHAINS, REGIONS, HITS, MISSES, LAST_PAGE, RUN, FETCHED, FIRST_STALE, STORES, MAP_BLOCKS,
) = range(15)  # fmt: skip
ENTRIES = 15
# Fields of an entry.  NEXT_DIRTY is 0 for a clean one and LAST at the end of a chain.
PAGE, OLDER, NEWER, NEXT_IN_BUCKET, NEXT_DIRTY = range(5)
ENTRY_FIELDS = 5
# Fields of a translation page: its first dirty entry, and the next stale translation page, counted from 1 (LAST at the end, 0: not stale).
FIRST_DIRTY, NEXT_STALE = range(2)
CHAIN_FIELDS = 2
LAST = -1

ENTRY_BYTES = 8  #: Bytes of an entry in the controller's memory: a logical and a flash page.

_HASH = 2654435761  # 2^32 over the golden ratio (Knuth, The Art of Computer Programming 3, 6.4)

# Fields of a plane's region in the vector `own`: the place of the block that is being filled, the place of the one that is being emptied
# (-1: none) and the page to look at next there; then the blocks.
FILLED, EMPTIED, NEXT_PAGE, FIRST_BLOCK = range(4)

STORE_ROWS = 4  #: The most rows of a plan that a translation page takes to be written.


def empty_cache(capacity: int, covered: int, map_pages: int, pools: int, map_blocks: int) -> Integers:
    """The vector of an empty cache of `capacity` entries; at its end are the regions of the planes, of so many blocks each."""
    regions = pools * (FIRST_BLOCK + map_blocks)
    buckets = 1 << max(0, capacity - 1).bit_length()
    at = np.cumsum([ENTRIES, (capacity + 1) * ENTRY_FIELDS, buckets, map_pages * CHAIN_FIELDS, regions])
    own = np.zeros(at[-1], np.int64)
    own[[CAPACITY, COVERED, BUCKETS, BUCKET_MASK, CHAINS, REGIONS]] = capacity, covered, at[1], buckets - 1, at[2], at[3]
    own[MAP_BLOCKS] = map_blocks
    own[[LAST_PAGE, FIRST_STALE]] = -1, LAST
    return own


def forget_entries(own: Integers) -> None:
    own[ENTRIES : own[REGIONS]] = 0
    own[[USED, RUN]] = 0
    own[[LAST_PAGE, FIRST_STALE]] = -1, LAST


@lean_kernel
def entry_field(entry: int, field: int) -> int:
    return ENTRIES + entry * ENTRY_FIELDS + field


@lean_kernel
def chain_field(own: Integers, map_page: int, field: int) -> int:
    return own[CHAINS] + map_page * CHAIN_FIELDS + field


@lean_kernel
def bucket_of(own: Integers, page: int) -> int:
    """Start of the chain of entries in which a page is sought."""
    return own[BUCKETS] + ((int(page) * _HASH >> 12) & own[BUCKET_MASK])


@lean_kernel
def find(own: Integers, page: int) -> int:
    """A page's entry, or 0."""
    entry = own[bucket_of(own, page)]
    while entry and own[entry_field(entry, PAGE)] != page:
        entry = own[entry_field(entry, NEXT_IN_BUCKET)]
    return entry


@lean_kernel
def oldest(own: Integers) -> int:
    """The entry used longest ago."""
    return own[entry_field(0, NEWER)]


@lean_kernel
def leave_order(own: Integers, entry: int) -> None:
    older, newer = own[entry_field(entry, OLDER)], own[entry_field(entry, NEWER)]
    own[entry_field(older, NEWER)] = newer
    own[entry_field(newer, OLDER)] = older


@lean_kernel
def make_newest(own: Integers, entry: int) -> None:
    newest = own[entry_field(0, OLDER)]
    own[entry_field(entry, OLDER)] = newest
    own[entry_field(entry, NEWER)] = 0
    own[entry_field(newest, NEWER)] = entry
    own[entry_field(0, OLDER)] = entry


@lean_kernel
def is_full_of_dirt(own: Integers) -> bool:
    """True if the next entry can only come in after the oldest was written back."""
    return own[USED] == own[CAPACITY] and own[entry_field(oldest(own), NEXT_DIRTY)] != 0


@lean_kernel
def leave_bucket(own: Integers, entry: int) -> None:
    link = bucket_of(own, own[entry_field(entry, PAGE)])
    while own[link] != entry:
        link = entry_field(own[link], NEXT_IN_BUCKET)
    own[link] = own[entry_field(entry, NEXT_IN_BUCKET)]


@lean_kernel
def bring_in(own: Integers, page: int) -> None:
    """Make a page's entry the newest, in a place that was never used or that of the oldest entry, which must be clean."""
    if own[USED] < own[CAPACITY]:
        own[USED] += 1
        entry = own[USED]
    else:
        entry = oldest(own)
        leave_order(own, entry)
        leave_bucket(own, entry)
    bucket = bucket_of(own, page)
    own[entry_field(entry, PAGE)] = page
    own[entry_field(entry, NEXT_IN_BUCKET)] = own[bucket]
    own[bucket] = entry
    make_newest(own, entry)


@lean_kernel
def bring_in_run(own: Integers, page: int, end: int) -> None:
    """Bring in a page's entry, and those that follow it before `end` if pages came in order: as many as came, without writing back.

    They stand on the translation page that is at hand.  At most half of the cache goes to them.
    """
    bring_in(own, page)
    end = min(end, page + 1 + min(own[RUN], own[CAPACITY] // 2), (page // own[COVERED] + 1) * own[COVERED])
    for following in range(page + 1, end):
        if is_full_of_dirt(own):
            break
        if find(own, following) == 0:
            bring_in(own, following)


@lean_kernel
def note_run(own: Integers, page: int) -> None:
    """Count the pages that were looked up in order up to this one."""
    if page == own[LAST_PAGE] + 1:
        own[RUN] += 1
    elif page != own[LAST_PAGE]:
        own[RUN] = 0
    own[LAST_PAGE] = page


@lean_kernel
def make_dirty(own: Integers, entry: int) -> None:
    """An entry differs from now on from its translation page on flash."""
    if own[entry_field(entry, NEXT_DIRTY)] == 0:
        first = chain_field(own, own[entry_field(entry, PAGE)] // own[COVERED], FIRST_DIRTY)
        own[entry_field(entry, NEXT_DIRTY)] = own[first] if own[first] else LAST
        own[first] = entry


@lean_kernel
def make_clean(own: Integers, map_page: int) -> None:
    """A translation page is written with all that is known of it: its dirty entries become clean."""
    first = chain_field(own, map_page, FIRST_DIRTY)
    entry, own[first] = own[first], 0
    while entry > 0:
        link = entry_field(entry, NEXT_DIRTY)
        entry, own[link] = own[link], 0


@lean_kernel
def make_stale(own: Integers, map_page: int) -> None:
    """Garbage collection moved a page whose entry is not in memory: its translation page must be written."""
    link = chain_field(own, map_page, NEXT_STALE)
    if own[link] == 0:
        own[link] = own[FIRST_STALE]
        own[FIRST_STALE] = map_page + 1


@lean_kernel
def next_stale(own: Integers) -> int:
    """Take a translation page off those that must be written; -1 if there is none."""
    map_page = own[FIRST_STALE] - 1
    if own[FIRST_STALE] == LAST:
        return -1
    link = chain_field(own, map_page, NEXT_STALE)
    own[FIRST_STALE], own[link] = own[link], 0
    return map_page


def blocks_for(map_pages: int, pools: int, pages_per_block: int) -> int:
    """Blocks of a plane for translation pages (0 if there are none)."""
    in_a_plane = -(-map_pages // pools)
    return 1 + -(-2 * in_a_plane // pages_per_block) if map_pages else 0


@lean_kernel
def region_of(own: Integers, pool: int) -> int:
    return own[REGIONS] + pool * (FIRST_BLOCK + own[MAP_BLOCKS])


@lean_kernel
def claim(flash: Flash, pool: int, place: int, block: int) -> None:
    claim_block(flash, block)
    flash.pools[collector_of(flash.control, pool)].free_pages -= flash.control.pages_per_block
    flash.blocks[block].state = MAP_BLOCK
    flash.own[region_of(flash.own, pool) + FIRST_BLOCK + place] = block


@lean_kernel
def claim_region(flash: Flash) -> None:
    """Take the blocks of every plane, the first free ones."""
    for pool in range(flash.control.pools):
        region = region_of(flash.own, pool)
        flash.own[region + FILLED] = 0
        flash.own[region + EMPTIED] = -1
        for place in range(flash.own[MAP_BLOCKS]):
            claim(flash, pool, place, flash.pools[pool].first_free)


@lean_kernel
def open_next(flash: Flash, region: int) -> None:
    """The block that was filled is full: fill an empty one; if it was the last, empty the full one with the fewest valid pages."""
    empties, opened, fewest = 0, -1, -1
    for place in range(flash.own[MAP_BLOCKS]):
        block = flash.own[region + FIRST_BLOCK + place]
        if flash.blocks[block].written == 0:
            empties, opened = empties + 1, place
        elif fewest < 0 or flash.blocks[block].valid < flash.blocks[flash.own[region + FIRST_BLOCK + fewest]].valid:
            fewest = place
    flash.own[region + FILLED] = opened
    if empties == 1:
        flash.own[region + EMPTIED] = fewest
        flash.own[region + NEXT_PAGE] = flash.own[region + FIRST_BLOCK + fewest] * flash.control.pages_per_block


@lean_kernel
def place_map_page(flash: Flash, region: int, page: int) -> int:
    """Give a translation page the next flash page of its region; return it."""
    block = flash.own[region + FIRST_BLOCK + flash.own[region + FILLED]]
    if flash.blocks[block].written == flash.control.pages_per_block:
        open_next(flash, region)
        block = flash.own[region + FIRST_BLOCK + flash.own[region + FILLED]]
    flash_page = block * flash.control.pages_per_block + flash.blocks[block].written
    map_page(flash, flash_page, page)
    return flash_page


@lean_kernel
def clean_up(flash: Flash, policies: Policies, row: int, region: int) -> int:
    """Plan one step of emptying a region's victim: a move, and the erase once it is empty; the number of rows.

    The erased block goes to its plane, and the region takes the one that wear levelling names, so that all blocks wear alike.
    """
    place = flash.own[region + EMPTIED]
    if place < 0:
        return row
    victim = flash.own[region + FIRST_BLOCK + place]
    if flash.blocks[victim].valid > 0:
        flash_page = next_valid(flash, flash.own[region + NEXT_PAGE])
        flash.own[region + NEXT_PAGE] = flash_page + 1
        page = int(flash.pages[flash_page].owner) - 1
        drop_page(flash, page)
        target = place_map_page(flash, region, page)
        row = plan_row(flash.plan, row, MOVE_PAGE, target, flash_page, page, 0, victim, MAP, -1)
    if flash.blocks[victim].valid == 0:
        flash.own[region + EMPTIED] = -1
        row = plan_row(flash.plan, row, ERASE_BLOCK, victim, -1, -1, 0, -1, MAP, -1)
        recycle_block(flash, victim)
        if not flash.control.read_only:
            pool = pool_of_block(flash.control, victim)
            claim(flash, pool, place, choose_free(flash, policies, pool))
    return row


@lean_kernel
def store_map_page(flash: Flash, policies: Policies, row: int, number: int) -> int:
    """Plan to write translation page `number` anew, with all that memory knows; the number of rows.  A read-only drive writes nothing.

    It carries the write id of what the host wrote or trimmed last, so that ids count the host's pages.  Copies of one id may be of
    different age: recovery writes all anew, so that it need not know.
    """
    if flash.control.read_only:
        return row
    region = region_of(flash.own, number % flash.control.pools)
    row = clean_up(flash, policies, row, region)
    page, fetch = flash.control.logical_pages + number, -1
    if lookup(flash.mapping, page) >= 0:
        fetch = row
        row = plan_row(flash.plan, row, FETCH_PAGE, lookup(flash.mapping, page), -1, page, 0, -1, MAP, -1)
    superseded = drop_page(flash, page)
    target = place_map_page(flash, region, page)
    flash.own[STORES] += 1
    make_clean(flash.own, number)
    return plan_row(flash.plan, row, STORE_PAGE, target, -1, page, flash.control.sequence - flash.control.id_base, superseded, MAP, fetch)

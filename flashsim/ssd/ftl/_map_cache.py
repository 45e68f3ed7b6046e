"""The part of the map that the controller's memory holds: single entries, the one used longest ago leaves first.

All of it stands in the vector `own` of a drive: scalars, then the entries, then the hash table by which a page finds its entry, then a
chain of dirty entries for each translation page, so that writing it back costs what there is to write.  Entries are numbered from 1; 0 is
none, and the end of the ring that links them from the one used longest ago to the newest.
"""

import numpy as np

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers

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

#: Bytes of an entry in the controller's memory: a logical and a flash page.
ENTRY_BYTES = 8

_HASH = 2654435761  # 2^32 over the golden ratio (Knuth, The Art of Computer Programming 3, 6.4)


def empty_cache(capacity: int, covered: int, map_pages: int, regions: int, map_blocks: int) -> Integers:
    """The vector of an empty cache; `regions` words at its end are for the blocks that hold translation pages."""
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
    """Where the chain of entries starts in which a page is sought."""
    return own[BUCKETS] + ((page * _HASH >> 12) & own[BUCKET_MASK])


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
    """Whether the next entry can only come in after the oldest was written back."""
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

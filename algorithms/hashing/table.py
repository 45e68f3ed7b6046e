"""Hashing of key codes, in-memory tables that are built once and probed in batches, and block nested loops that build and probe it.

Partitioning at each level, the choice of what stays in memory and the table itself hash with different salts: what one of them has
brought together, the next one spreads again.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from algorithms.files import BATCH, gather, read_block, regions, spans, together
from algorithms.look_ahead import look_ahead
from algorithms.partitioning.base import PartitionParameters
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers, total
from flashsim.execution.requests import Algorithm, Answer, Cpu, Emit, Request, Strand, Work
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples, key_tuples

#: The salt of hash tables; partitioning salts count up from 0.
TABLE_SALT = 1 << 32

#: Lookups whose loads are issued together.
_GROUP = 64

#: Keys that differ are dense if they lie in a range of at most so many times their number.
_DENSE = 32

#: A mask for the half of a hash that buckets and tables use; the upper half says what stays in memory.
LOW_HALF = np.uint64(0xFFFFFFFF)

Hashes = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int32]

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def hash_keys(keys: Integers, salt: int) -> Hashes:
    """64-bit hashes of key codes, shape (n,): the finalizer of SplitMix64 over salted keys.

    Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014 (constants: Stafford's variant 13).
    """
    hashes = keys.view(np.uint64) + np.uint64((salt + 1) * _GOLDEN & _MASK)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashes ^= hashes >> np.uint64(shift)
        hashes *= np.uint64(factor)
    hashes ^= hashes >> np.uint64(31)
    return hashes


class Lookup(Protocol):
    """Tuples of R by key."""

    def matches(self, tuples: Tuples, hashes: Hashes | None = None) -> Iterator[tuple[Integers, Integers]]:
        """Pairs of row ids (of R, of the given tuples) with equal keys, in batches; hashes may save work."""


class HashTable:
    """Tuples of R by key: entries of one slot lie side by side, so a lookup touches two places.

    Tuples are those of R that the table holds; duplicates are welcome.  Hashes are of their keys, shape (n,); the table uses the lower
    halves.
    """

    def __init__(self, tuples: Tuples, hashes: Hashes) -> None:
        self._bits = max(1, (len(tuples) - 1).bit_length())
        self._first, self._entries = _build(self._slots(hashes), tuples.keys, tuples.rows, 1 << self._bits)

    def _slots(self, hashes: Hashes) -> Integers:
        return ((hashes & LOW_HALF) >> np.uint64(32 - self._bits)).view(np.int64)

    def matches(self, tuples: Tuples, hashes: Hashes | None = None) -> Iterator[tuple[Integers, Integers]]:
        """Pairs of row ids (of R, of the given tuples) with equal keys, in batches; hashes are of the table's salt unless given."""
        slots = self._slots(hash_keys(tuples.keys, TABLE_SALT) if hashes is None else hashes)
        position = np.zeros(2, np.int64)  # the next tuple, and how many of its slot's entries are done
        while position[0] < len(tuples):
            pairs = np.empty((2, BATCH), np.int64)
            count = _probe(self._first, self._entries, slots, tuples.keys, tuples.rows, position, pairs)
            if count:
                yield pairs[0, :count], pairs[1, :count]


class DirectTable:
    """Tuples of R whose keys differ and are dense: an array over the range of the keys, and a bit of each, which stay in the caches.

    It finds the pairs that a hash table finds, in the same order.

    `rows` has the row id of each key from the least on, where there is a tuple; `present` has the bits, eight a byte.
    """

    def __init__(self, least: int, rows: Counts, present: npt.NDArray[np.uint8]) -> None:
        self._least, self._rows, self._present = least, rows, present

    def matches(self, tuples: Tuples, hashes: Hashes | None = None) -> Iterator[tuple[Integers, Integers]]:
        """Pairs of row ids (of R, of the given tuples) with equal keys, in batches."""
        position = np.zeros(1, np.int64)
        while position[0] < len(tuples):
            pairs = np.empty((2, min(BATCH, len(tuples) - int(position[0]))), np.int64)
            with np.errstate(over="ignore"):  # a difference of keys that wraps lies outside the array; only plain Python warns
                count = _look_up(self._least, self._rows, self._present, tuples.keys, tuples.rows, position, pairs)
            if count:
                yield pairs[0, :count], pairs[1, :count]


def table_of(tuples: Tuples, hashes: Hashes | None = None) -> Lookup:
    """A table of tuples, direct if their keys allow it, otherwise by hashes, which are of the table's salt unless given."""
    keys, rows = tuples.keys, tuples.rows
    if len(tuples):
        least, most = int(keys.min()), int(keys.max())
        if most - least < _DENSE * len(tuples) and int(rows.min()) >= 0 and int(rows.max()) < 1 << 31:
            row_of, present = np.zeros(most - least + 1, np.int32), np.zeros((most - least) // 8 + 1, np.uint8)
            if _enter(least, row_of, present, keys, rows):
                return DirectTable(least, row_of, present)
    return HashTable(tuples, hash_keys(keys, TABLE_SALT) if hashes is None else hashes)


def build(parts: Sequence[Tuples]) -> Lookup:
    """A table over keys that have not been hashed yet; those who bring the parts account for the work."""
    return table_of(gather(parts))


def build_work(tuples: Tuples) -> Cpu:
    """The work of hashing tuples and putting them into a table."""
    return Cpu({Work.HASH: len(tuples), Work.BUILD: len(tuples)})


def probe(table: Lookup, tuples: Tuples, hashes: Hashes | None = None) -> Algorithm:
    """Look up tuples of S and emit what they join with; hashing is counted where hashes are not given."""
    work: dict[str, int] = {Work.PROBE: len(tuples)}
    if hashes is None:
        work[Work.HASH] = len(tuples)
    matches = 0
    for r_rows, s_rows in table.matches(tuples, hashes):
        matches += len(r_rows)
        yield Emit(r_rows, s_rows)
    # Keys are compared where their whole hashes agree, that is, where they join.
    yield Cpu(work | {Work.COMPARE: matches, Work.EMIT: matches})


def probe_ahead(
    table: Lookup, tuples: Tuples, ends: Integers, hashes: Hashes | None = None
) -> Generator[Request, Answer, dict[str, Integers]]:
    """Look up tuples of many blocks, which end at these numbers, and emit what they join with; returns the work of `probe` for each."""
    places = key_tuples(tuples.keys, np.arange(len(tuples)))
    found = np.zeros(len(ends), np.int64)
    for r_rows, at in table.matches(places, hashes):
        found += np.searchsorted(at, ends)
        yield Emit(r_rows, tuples.rows[at])
    matches, each = np.diff(found, prepend=0), np.diff(ends, prepend=0)
    work: dict[str, Integers] = {Work.PROBE: each}
    if hashes is None:
        work[Work.HASH] = each
    return work | {Work.COMPARE: matches, Work.EMIT: matches}


def ends_of(chosen: npt.NDArray[np.bool_], ends: Integers) -> Integers:
    """Where those end of some tuples that are chosen, by a mask, given where all end."""
    return np.concatenate([[0], np.cumsum(chosen)])[ends]


@kernel
def _build(slots: Integers, keys: Integers, rows: Integers, count: int) -> tuple[Counts, Integers]:
    """The first entry of each slot, shape (count + 1,), and the entries, key and row id, with one more that no slot owns."""
    first = np.zeros(count + 1, np.int32)
    for index in range(slots.shape[0]):
        first[slots[index]] += 1
    for slot in range(1, count + 1):
        first[slot] += first[slot - 1]
    entries = np.zeros((slots.shape[0] + 1, 2), np.int64)
    # Filled from the back: `first` counts down from each slot's end to its beginning, and entries keep their order.
    for index in range(slots.shape[0] - 1, -1, -1):
        slot = slots[index]
        first[slot] -= 1
        entries[first[slot], 0] = keys[index]
        entries[first[slot], 1] = rows[index]
    return first, entries


@kernel
def _probe(first: Counts, entries: Integers, slots: Integers, keys: Integers, rows: Integers, position: Integers, pairs: Integers) -> int:
    """Fill `pairs` as far as it goes; `position` says where to go on.

    Lookups go in groups, and a group first loads all that it will need: without branches in between, the memory's latencies overlap.
    """
    begins, ends, heads = np.empty(_GROUP, np.int64), np.empty(_GROUP, np.int64), np.empty(_GROUP, np.int64)
    count, room = 0, pairs.shape[1]
    skip = position[1]
    for base in range(position[0], slots.shape[0], _GROUP):
        group = min(_GROUP, slots.shape[0] - base)
        for lane in range(group):
            slot = slots[base + lane]
            begins[lane], ends[lane] = first[slot], first[slot + 1]
        for lane in range(group):
            heads[lane] = entries[begins[lane], 0]
        for lane in range(group):
            index = base + lane
            key, row, entry, end = keys[index], rows[index], begins[lane] + skip, ends[lane]
            head = heads[lane] if skip == 0 else entries[min(entry, end), 0]
            while entry < end:
                if head == key:
                    if count == room:
                        position[0], position[1] = index, entry - begins[lane]
                        return count
                    pairs[0, count] = entries[entry, 1]
                    pairs[1, count] = row
                    count += 1
                entry += 1
                head = entries[entry, 0]
            skip = 0
    position[0], position[1] = slots.shape[0], 0
    return count


@kernel
def _enter(least: int, row_of: Counts, present: npt.NDArray[np.uint8], keys: Integers, rows: Integers) -> bool:
    """Put tuples at their keys' places; False if a key comes twice."""
    for index in range(keys.shape[0]):
        place = keys[index] - least
        bit = np.uint8(1 << (place & 7))
        if present[place >> 3] & bit:
            return False
        present[place >> 3] |= bit
        row_of[place] = rows[index]
    return True


@kernel
def _look_up(
    least: int, row_of: Counts, present: npt.NDArray[np.uint8], keys: Integers, rows: Integers, position: Integers, pairs: Integers
) -> int:
    """Fill `pairs` as far as it goes; `position` says where to go on.

    Lookups go in groups, and a group first collects what it finds: without branches, the memory's latencies overlap.
    """
    found, count, room = np.empty(_GROUP, np.int64), 0, pairs.shape[1]
    for base in range(position[0], keys.shape[0], _GROUP):
        hits = 0
        for index in range(base, min(base + _GROUP, keys.shape[0])):
            place = keys[index] - least
            within = np.int64(0 <= place < row_of.shape[0])
            place *= within
            found[hits] = index
            hits += within & (np.int64(present[place >> 3]) >> (place & 7))
        for hit in range(min(hits, room - count)):
            index = found[hit]
            pairs[0, count + hit] = row_of[keys[index] - least]
            pairs[1, count + hit] = rows[index]
        if hits > room - count:
            position[0] = found[room - count]
            return room
        count += hits
    position[0] = keys.shape[0]
    return count


def nested_blocks(r: File, s: File, chunks: int, inner: int, how: PartitionParameters) -> Algorithm:
    """Join chunks of R, as equal as whole pages allow, each read in one I/O block, with S, read in blocks of `inner` pages for each.

    Strands build one table together, each from a region of the chunk, then probe it, each with a region of S, and share `inner`
    (ParaHashJoin: Lai et al., WAIM 2013); fewer do where there are not so many pages.
    """
    if s.pages == 0:
        return
    for chunk in range(chunks):
        first, end = chunk * r.pages // chunks, (chunk + 1) * r.pages // chunks
        table = yield from _table(r, regions(first, end, how.strands), how.page_io)
        parts = regions(0, s.pages, min(how.strands, inner))
        yield from together([_meet(table, s, part, inner // len(parts), how) for part in parts])


def _table(r: File, parts: list[tuple[int, int]], page_io: bool) -> Generator[Request, Tuples | Strand | None, Lookup]:
    """A table of the tuples of R in some regions, in their order, whichever is read first."""
    blocks: dict[int, Tuples] = {}

    def take(first: int, end: int) -> Algorithm:
        blocks[first] = yield from read_block(r, first, end - first, page_io)
        yield build_work(blocks[first])

    yield from together([take(*part) for part in parts])
    return build([blocks[first] for first, _ in parts])


def _meet(table: Lookup, s: File, part: tuple[int, int], block: int, how: PartitionParameters) -> Algorithm:
    begin, end = part
    while how.in_series and begin < end:
        ahead = yield from look_ahead(s, begin, end, block, page_io=how.page_io)
        yield ahead.having((yield from probe_ahead(table, ahead.tuples, ahead.ends)))
        begin += total(ahead.blocks.counts)
    for first, pages in spans(end - begin, block):
        yield from probe(table, (yield from read_block(s, begin + first, pages, how.page_io)))

"""Below the page cache: where files lie on a volume, the journal of its metadata, and requests, which wait for each other.

Files lie behind a journal and other metadata, in the order in which they are first used.  A request waits for the one that its thread
waited for, or for another, and has a time to think.  A thread begins where the one was that made it.  One that has waited for the end of a
process goes on where that, or it itself, was later, as a request waits for one other.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, WRITE
from flashsim.core.units import MIB, NEVER
from flashsim.storage.placement.base import Room
from traces.calls.page_cache import PAGE
from traces.calls.processes import BIRTHS, WAITS
from traces.calls.schema import Call
from traces.file.schema import make_batch

#: Most requests from one that a request waits for to that request (`traces.file.recording`).
_BACK = 1 << 15
#: Bytes of the journal, and of the area of other metadata.
JOURNAL, METADATA = 64 * MIB, 64 * MIB
#: Extents of a file: its byte, the byte of the device, and the length of each.
Extents = Sequence[tuple[int, int, int]]
#: Blocks that one descriptor block lists, and inodes of a block.
_LISTED, _INODES = 255, 16
#: A block of metadata: its kind, and which.
Block = tuple[str, Any]
#: Blocks that change when a file comes or goes.
ALLOCATION: tuple[Block, Block] = ("inodes", 0), ("groups", 0)


@dataclass
class ThreadStrand:
    """A thread, as its requests wait for each other."""

    #: Number of the request that it waited for last; -1: none.
    last: int = -1
    #: When it went on after that, as recorded, ns.
    since: int = 0

    def wait(self, number: int, end: int) -> None:
        self.last, self.since = max(self.last, number), end


class Strands:
    """All threads of a program."""

    def __init__(self) -> None:
        self._threads = defaultdict[int, dict[int, ThreadStrand]](dict)
        #: Threads that were made and have not called, and processes for which a thread waited last.
        self._made, self._ended = dict[int, ThreadStrand](), dict[int, int]()

    def at(self, call: Call) -> ThreadStrand:
        threads, thread = self._threads[call.process], call.thread
        if thread in self._made or thread not in threads:
            threads[thread] = self._made.pop(thread, ThreadStrand())
        strand = self._gone_on(thread, threads[thread])
        if call.result and call.call in BIRTHS:
            self._made[call.result] = replace(strand)
        elif call.result and call.call in WAITS:
            self._ended[thread] = call.result
        return strand

    def _gone_on(self, thread: int, strand: ThreadStrand) -> ThreadStrand:
        """A thread that goes on where a process ended for which it waited."""
        if thread in self._ended:
            ended = self._threads.pop(self._ended.pop(thread), {})
            latest = max([strand, *(self._gone_on(*each) for each in ended.items())], key=lambda each: each.since)
            strand.last, strand.since = latest.last, latest.since
        return strand

    @property
    def latest(self) -> ThreadStrand | None:
        """The thread that waited for the last request; None if there is no thread."""
        return max((each for threads in self._threads.values() for each in threads.values()), key=lambda each: each.last, default=None)


class VolumeRequest(NamedTuple):
    """A request, with columns of `traces.file.schema.SCHEMA`; `tag` is the number of the call that caused it, -1 for none."""

    operation: int
    offset: int
    length: int
    flags: int
    tag: int
    dependency: int
    think: int
    arrival: int
    label: str


class Requests:
    """Requests, and the latest of them that were not handed out; `call` is the number of the call that causes what is added."""

    def __init__(self) -> None:
        self.rows: list[VolumeRequest] = []
        self.count = 0
        self.call = -1
        self._latest = 0

    def add(
        self, operation: int, place: tuple[int, int], strand: ThreadStrand, time: int, label: str = "", after: int = -1, flags: int = 0
    ) -> int:
        """Add a request to a place, which comes after another one, or after the last that its thread waited for; return its number."""
        dependency, think = (after, 0) if after >= 0 else (strand.last, max(0, time - strand.since))
        if dependency < 0:
            think = 0
        elif self.count - dependency > _BACK:
            dependency, think = self.count - 1, max(0, time - self._latest)
        self._latest = max(self._latest, time)
        self.rows.append(VolumeRequest(operation, *place, flags, self.call, dependency, think, self._latest, label))
        self.count += 1
        return self.count - 1

    def batch(self) -> pa.RecordBatch:
        columns: dict[str, Any] = {
            name: list(values) for name, values in zip(VolumeRequest._fields, zip(*self.rows, strict=True), strict=True)
        }
        labels = pa.array(columns.pop("label"), pa.string()).dictionary_encode()
        first, self.rows = self.count - len(self.rows), []
        return make_batch(columns, first, labels)


class RecordedVolume:
    """Files on a device, each in one piece unless its extents are known.

    `sizes` are the bytes that each file has at most, and `extents` where files lie, if that is known, by number.

    Examples
    --------
    >>> volume = RecordedVolume({0: 5000, 1: 100})
    >>> [[place - JOURNAL - METADATA for place, _ in volume.places(file, 50, 10)] for file in (0, 1)]
    [[50], [8242]]
    """

    def __init__(self, sizes: Mapping[int, int], extents: Mapping[int, Extents] | None = None) -> None:
        self._sizes, self._extents = sizes, dict(extents or {})
        self._begins: dict[int, int] = {}
        known = [place + length for pieces in self._extents.values() for _, place, length in pieces]
        self._space = Room(NEVER, max([JOURNAL + METADATA, *known]))

    def places(self, file: int, offset: int, length: int) -> Iterator[tuple[int, int]]:
        """Offsets and lengths on the device of a range of a file."""
        for begin, place, size in self._extents.get(file, ()):
            if begin <= offset < begin + size:
                piece = min(length, begin + size - offset)
                yield place + offset - begin, piece
                offset, length = offset + piece, length - piece
            if not length:
                return
        yield self._begin(file) + offset, length

    def _begin(self, file: int) -> int:
        if file not in self._begins:
            self._begins[file] = self._space.take(self._room(file), f"file {file}")
        return self._begins[file]

    def _room(self, file: int) -> int:
        return max(1, -(-self._sizes.get(file, 0) // PAGE)) * PAGE

    def release(self, file: int) -> None:
        """A file is no more, and its place is free."""
        if file not in self._begins:
            return
        free = self._space.free
        insort(free, (self._begins.pop(file), self._room(file)))
        merged = free[:1]
        for first, length in free[1:]:
            if first == sum(merged[-1]):
                merged[-1] = merged[-1][0], merged[-1][1] + length
            else:
                merged.append((first, length))
        self._space.free = merged


@dataclass
class Transaction:
    """Changes that are not committed."""

    #: When the first one came, ns, and the thread that made it.
    begin: int
    strand: ThreadStrand
    #: Metadata blocks, by number.
    blocks: set[int] = field(default_factory=set)
    #: Files with any change, and with one of size or blocks, by number, and folders by path.
    changed: set[int | str] = field(default_factory=set)
    resized: set[int | str] = field(default_factory=set)


class Journal:
    """The journal of a volume; without one, metadata are not written.  `transaction` is what is not committed."""

    def __init__(self, requests: Requests, exists: bool) -> None:
        self.transaction: Transaction | None = None
        self._requests, self._exists = requests, exists
        self._numbers: dict[Block, int] = {}
        self._place = 0

    def change(
        self, file: int, strand: ThreadStrand, time: int, is_resized: bool, folder: str | None = None, blocks: tuple[Block, ...] = ()
    ) -> None:
        """Metadata change: the file's inode, the folder that it is in, if its name changes, and further blocks, such as bitmaps."""
        if not self._exists:
            return
        if self.transaction is None:
            self.transaction = Transaction(time, replace(strand))
        own: list[Block] = [
            ("inode", file // _INODES),
            *blocks,
            *([("folder", folder), ("inode of", folder)] if folder is not None else []),
        ]
        self.transaction.blocks |= {self._numbers.setdefault(each, len(self._numbers) % (METADATA // PAGE)) for each in own}
        names: set[int | str] = {file} if folder is None else {file, folder}
        self.transaction.changed |= names
        if is_resized:
            self.transaction.resized |= names

    def has(self, names: set[int | str], data_only: bool) -> bool:
        """True if there are changes of these files and folders that a sync, or one of data only, has to commit."""
        if self.transaction is None:
            return False
        return bool(names & (self.transaction.resized if data_only else self.transaction.changed))

    def commit(self, strand: ThreadStrand, time: int) -> tuple[int, list[int]]:
        """Write descriptor and metadata blocks, flush, and write the commit block; the number of the last request, and the blocks."""
        if self.transaction is None:
            return strand.last, []
        blocks, self.transaction = sorted(self.transaction.blocks), None
        after = -1
        for place in self._places(len(blocks) + -(-len(blocks) // _LISTED)):
            after = self._requests.add(WRITE, place, strand, time, "journal", after)
        after = self._requests.add(FLUSH, (0, 0), strand, time, "journal", after)
        for place in self._places(1):
            after = self._requests.add(WRITE, place, strand, time, "journal", after, FORCE_UNIT_ACCESS)
        return after, blocks

    def _places(self, blocks: int) -> Iterator[tuple[int, int]]:
        """Places of the next blocks, in one piece unless the journal begins anew."""
        length = blocks * PAGE
        while length:
            piece = min(length, JOURNAL - self._place)
            yield self._place, piece
            self._place, length = (self._place + piece) % JOURNAL, length - piece

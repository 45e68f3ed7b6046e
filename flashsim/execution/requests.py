"""The requests of an algorithm: it yields these and is answered; it does no input or output itself.

An algorithm is a generator.  ``tuples = yield Read(...)`` is answered with `Tuples`, if any are wanted, a `Psync` of reads with a tuple of
the answers to each, and `Spawn` with a `Strand`; all else with None.
Extents are runs of pages of one file; `Mode.SERIAL` issues each after the one before it has completed (synchronous I/O),
`Mode.BATCH` submits all at once and waits for all (psync I/O).  A `Psync` does so with the extents of several files; of new pages of
many files, `NewPages` and `Series` say so in arrays, and of reads of many `PageReads`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import Any

import numpy as np

from flashsim.core.request import Integers
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples

HOST = "host"  #: Place of CPU work unless an algorithm names another.


class Mode(Enum):
    """Order of the extents of one request."""

    SERIAL = "serial"
    BATCH = "batch"


class Work(StrEnum):
    """Kinds of CPU work, counted in tuples but for the last; the driver prices them.

    Any other name is a kind too: an algorithm may count work of its own.
    """

    READ_TUPLE = "read_tuple"  # taken from a page
    WRITE_TUPLE = "write_tuple"  # copied to an output buffer
    HASH = "hash"  # a key hashed
    BUILD = "build"  # inserted into a hash table
    PROBE = "probe"  # looked up in a hash table
    COMPARE = "compare"  # two keys compared
    EMIT = "emit"  # a result row made
    PAGE = "page"  # a page handed over, read or written; the driver counts it


@dataclass(frozen=True, slots=True)
class Read:
    """Read extents: pages ``starts[i] .. starts[i] + counts[i] - 1`` of a file; answered with their tuples in order."""

    file: File
    starts: Integers
    counts: Integers
    mode: Mode = Mode.SERIAL
    #: Which bytes of every page, as (first byte, bytes) in whole sectors, each a request of its own; whole pages without it.
    parts: tuple[tuple[int, int], ...] | None = None
    #: Columns of the tuples that are answered: all without it, and no tuples if it is empty.  They must lie on the parts that are read,
    #: which `Layout.parts` gives.
    columns: tuple[str, ...] | None = None
    #: Stored columns, by their names in the relation, that must lie on those parts too.  Their values follow from row ids, and are not
    #: answered; but on a real file they are decoded, so that a damaged page is refused.
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """Write extents: pages that the file has, or new ones at the end of a temporary file.

    `tuples.pages` has one entry a page, over all extents, plus one.
    """

    file: File
    starts: Integers
    counts: Integers
    tuples: Tuples
    mode: Mode = Mode.SERIAL
    #: `starts` count from the file's end as it is when the driver takes the request, and the tuples are counted as the file's: strands that
    #: append to one file at a time do not meet.
    append: bool = False

    @property
    def new_pages(self) -> int:
        starts, counts = self.starts, self.counts
        end = starts.item() + counts.item() if starts.size == counts.size == 1 else int((starts + counts).max(initial=0))
        return max(0, end - self.file.pages)


@dataclass(frozen=True, slots=True)
class Psync:
    """Reads, or writes, of any files, handed over at once in one call; answered when the last is done.

    All their extents go at once, whatever their mode.  Writes are of different files.

    Source: H. Roh et al., "B+-tree index optimization by exploiting internal parallelism of flash-based solid state drives", PVLDB 5(4),
    2011.
    """

    requests: Sequence[Read] | Sequence[Write]


class NewPages(Psync):
    """Psync of new pages at the ends of temporary files of one layout, each of another.

    A driver that takes all of them together needs arrays only; its writes, one by one, are made where they are asked for.

    `files`: where each write goes, shape (n,) as the next three. `pages` and `counts`: pages and tuples of each write. `cuts`: pages of a
    write that are one request, if it has more; the rest is another.  With 1 and `page_io`, every page is one. `tuples`: of all writes, one
    after another, on their pages.
    """

    __slots__ = ("counts", "cuts", "files", "page_io", "pages", "tuples")
    files: Sequence[File]
    pages: Integers
    counts: Integers
    cuts: Integers
    tuples: Tuples
    page_io: bool

    def __init__(
        self, files: Sequence[File], pages: Integers, counts: Integers, cuts: Integers, tuples: Tuples, *, page_io: bool = False
    ) -> None:
        values = {"files": files, "pages": pages, "counts": counts, "cuts": cuts, "tuples": tuples, "page_io": page_io}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def extents(self) -> tuple[Integers, Integers, Integers]:
        """The write of each extent, its first page among those of the write, and its pages."""
        if self.page_io:
            of = np.repeat(np.arange(len(self.pages)), self.pages)
            return of, np.arange(len(of)) - np.repeat(np.cumsum(self.pages) - self.pages, self.pages), np.ones(len(of), np.int64)
        first = np.minimum(self.pages, self.cuts)
        of = np.repeat(np.arange(len(first)), 1 + (self.pages > first))
        second = np.diff(of, prepend=-1) == 0
        return of, np.where(second, first[of], 0), np.where(second, self.pages[of] - first[of], first[of])

    @property
    def requests(self) -> Sequence[Write]:
        of, firsts, lengths = self.extents
        writes, tuple_, page, new = [], 0, 0, dict[File, int]()
        bounds = np.searchsorted(of, np.arange(len(self.pages) + 1)).tolist()
        for number, (file, pages, count) in enumerate(zip(self.files, self.pages.tolist(), self.counts.tolist(), strict=True)):
            columns = {name: column[tuple_ : tuple_ + count] for name, column in self.tuples.columns.items()}
            own, boundaries = slice(bounds[number], bounds[number + 1]), self.tuples.pages[page : page + pages + 1] - tuple_
            begin = file.pages + new.get(file, 0)
            writes.append(Write(file, begin + firsts[own], lengths[own], Tuples(columns, boundaries), Mode.BATCH))
            new[file] = new.get(file, 0) + pages
            tuple_, page = tuple_ + count, page + pages
        return writes


@dataclass(frozen=True, slots=True)
class PageReads:
    """Reads of single pages of files with pages of one size, each a request."""

    files: Sequence[File]
    #: The file of each page, by its place in `files`, and the number of the page in that file, shape (n,).
    of: Integers
    numbers: Integers
    columns: tuple[str, ...] | None = None  #: See `Read`.

    @property
    def requests(self) -> Sequence[Read]:
        one, files = np.ones(1, np.int64), [self.files[place] for place in self.of.tolist()]
        return [Read(file, number, one, columns=self.columns) for file, number in zip(files, self.numbers.reshape(-1, 1), strict=True)]


@dataclass(frozen=True, slots=True)
class Series:
    """Writes of new pages, or reads of pages, one after another, with no work between them; a file may have several.

    Reads are answered with their tuples in order.  Only the driver of a serial algorithm in virtual time takes it: an algorithm makes it
    where it is asked to.
    """

    pages: NewPages | PageReads


@dataclass(frozen=True, slots=True)
class Preview:
    """Asks for the tuples on blocks of a file before `Blocks` reads them; takes no time.  Drivers that take `Series` take it too."""

    file: File
    starts: Integers
    counts: Integers


@dataclass(frozen=True, slots=True)
class Blocks:
    """Reads of blocks one after another; behind each come work on its tuples, writes of new pages, and more work.

    `Preview` has given the tuples.  Drivers that take `Series` take it too.
    """

    file: File
    #: First page and pages of each block, shape (n,).
    starts: Integers
    counts: Integers
    #: Work between a block's read and its writes, and behind these: that of each `Cpu`, by kind, shape (n,) each.
    before: Sequence[Mapping[str, Integers]]
    after: Sequence[Mapping[str, Integers]] = ()
    #: The writes, and the block that each follows, rising.
    pages: NewPages | None = None
    of: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    page_io: bool = False  #: A block is read page by page.

    def part(self, first: int, end: int) -> Blocks:
        """Some of the blocks, without the work behind the last one's writes."""
        own = slice(first, end)
        after = [{kind: np.append(counts[first : end - 1], 0) for kind, counts in work.items()} for work in self.after]
        before = [{kind: counts[own] for kind, counts in work.items()} for work in self.before]
        return replace(self, starts=self.starts[own], counts=self.counts[own], before=before, after=after)

    def read(self, block: int) -> Read:
        first, pages = self.starts[block : block + 1], self.counts[block : block + 1]
        if self.page_io:
            first, pages = np.arange(first[0], first[0] + pages[0]), np.ones(pages[0], np.int64)
        return Read(self.file, first, pages)


@dataclass(frozen=True, slots=True)
class Flush:
    """Make what was written to the file's device durable."""

    file: File


@dataclass(frozen=True, slots=True)
class Drop:
    """A temporary file is not needed any more; its pages are free (and trimmed, where the driver trims)."""

    file: File


@dataclass(frozen=True, slots=True)
class Emit:
    """Result rows: row ids of R and S, and of further relations if more than two are joined, shape (n,) each."""

    r_rows: Integers
    s_rows: Integers
    more: tuple[Integers, ...] = ()


@dataclass(frozen=True, slots=True)
class Cpu:
    """Work done since the last request, by kind, on a core of the host or of another place that the machine has."""

    work: Mapping[str, int]
    place: str = HOST


@dataclass(frozen=True, slots=True)
class Phase:
    """The requests that follow belong to the named phase."""

    name: str


@dataclass(eq=False)
class Strand:
    """A strand of control: one of an algorithm's generators, and whether it has ended."""

    name: str
    number: int  # in the order in which strands began; the algorithm itself is number 0
    ended: bool = False


@dataclass(eq=False)
class Latch:
    """A latch, held by one strand at a time; those that wait get it in the order in which they came.  The algorithm makes and names it."""

    name: str


@dataclass(frozen=True, slots=True)
class Spawn:
    """Begin another strand, which runs beside this one; answered with it."""

    algorithm: Algorithm
    name: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Go on when all these strands have ended."""

    strands: Sequence[Strand]


@dataclass(frozen=True, slots=True)
class Sleep:
    """Let time pass, ns."""

    duration: int


@dataclass(frozen=True, slots=True)
class Acquire:
    """Go on when the latch is this strand's."""

    latch: Latch


@dataclass(frozen=True, slots=True)
class Release:
    """Give up a latch that this strand holds."""

    latch: Latch


#: Requests that only drivers of several strands answer.
Control = Spawn | Wait | Sleep | Acquire | Release
Request = Read | Write | Psync | Series | Preview | Blocks | Flush | Drop | Emit | Cpu | Phase | Control
Answer = Tuples | tuple[Tuples | None, ...] | Strand | None
Algorithm = Generator[Request, Answer, None]


def rewrite(
    algorithm: Algorithm, request: Callable[[Request], Request | Generator[Request, Answer, Answer]], until: type[Request] | None = None
) -> Generator[Request, Answer, Any]:
    """An algorithm, and each strand that it begins, with other requests.

    `request` gives what stands for a request: another one, or an algorithm whose value answers it.  At a request of the kind `until` the
    rewriting pauses and returns it as it is, or None at the algorithm's end; rewritten again, the algorithm goes on after that request.

    >>> def hashing():
    ...     yield Phase("build")
    ...     yield Cpu({Work.HASH: 10})
    >>> next(rewrite(hashing(), lambda request: Phase(f"first {request.name}") if isinstance(request, Phase) else request))
    Phase(name='first build')
    """
    answer: Answer = None
    while True:
        try:
            original = algorithm.send(answer)
        except StopIteration:
            return None
        if until is not None and isinstance(original, until):
            return original
        rewritten = request(original)
        if isinstance(rewritten, Generator):
            answer = yield from rewritten
            continue
        if isinstance(rewritten, Spawn):
            rewritten = replace(rewritten, algorithm=rewrite(rewritten.algorithm, request))
        answer = yield rewritten


def rename_phases(algorithm: Algorithm, name: str) -> Algorithm:
    """An algorithm whose phases have other names: `name` with the phase's own in the place of ``{}``."""
    return rewrite(algorithm, lambda request: Phase(name.format(request.name)) if isinstance(request, Phase) else request)


def swap_sides(algorithm: Algorithm) -> Algorithm:
    """An algorithm whose result rows come as (S, R) rather than (R, S)."""
    return rewrite(algorithm, lambda request: Emit(request.s_rows, request.r_rows, request.more) if isinstance(request, Emit) else request)

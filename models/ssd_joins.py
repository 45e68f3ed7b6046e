"""Cost of a join on a drive in detail, and the problem of dividing its buffers.

Commands each wait, rates are apart for reading and writing, and merges on flash add to writes.

The model of Haas et al. (`models.haas`) has three times: a seek, a latency a request, a transfer a page.  A flash drive asks for others.

- A request is cut into *commands* of at most c bytes, 128 KiB with Linux kernels of 2009.  Where the drive takes one command at a time each
  of them waits the latency; where it takes many, only the request does.  So a request of b pages takes

      start + command * ceil(b / c) + page * b.

- Reading and writing have a latency and a rate of their own.
- Flash programs A pages for each that is written.  A depends on how many streams are written at once and how long their pieces are.
- A disk, for which the same model serves, also waits a *move* for each change of position; a request that goes on where the last one ended
  does not, since drives read ahead and write behind.
- A flash drive that acknowledges writes from its buffer still programs when the next read comes, which may wait for it: a *turn*.

What is read and written, in how many requests, is counted by `models.haas`; here it is cut into commands and moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import fmean
from typing import Any, Literal, get_args

from flashsim.core.errors import UnknownNameError, check_known
from flashsim.core.units import MILLISECONDS_A_SECOND
from models.allocation.buffers import Allocation, GraceAllocation, HybridAllocation, NestedLoopsAllocation, SortMergeAllocation, exact
from models.allocation.divisions import grace_as_hybrid
from models.haas import counts
from models.join_costs.base import PhaseCounts, Sizes, Traffic, allocate
from models.ssd_drive import DriveModel, Timing

JOINS = ("bnl", "sort-merge", "grace-hash", "hybrid-hash")  #: The joins that this model knows.


#: Places of temporaries: on a device of their own, each in one piece (TR 1148); on the device of the base relations, in the order in which
#: buffers are written; or there, each in one piece.
Layout = Literal["separate", "packed", "spread"]


@dataclass(frozen=True)
class Load:
    """Requests in one direction, their commands and pages, what flash makes of the pages, and how many requests have several commands."""

    requests: int = 0
    commands: int = 0
    pages: int = 0
    amplification: float = 1.0
    several: int = 0

    @classmethod
    def alike(cls, requests: int, commands: int, pages: int, amplification: float = 1.0) -> Load:
        """Requests of one length: all have several commands, or none, but for those that end a relation."""
        return cls(requests, commands, pages, amplification, min(requests, commands - requests))

    def milliseconds(self, timing: Timing) -> float:
        waits = self.requests * timing.start_ms + self.commands * timing.command_ms + self.several * timing.several_ms
        return waits + self.pages * timing.page_ms * self.amplification


@dataclass(frozen=True)
class PhaseLoad:
    """Load of a drive in a phase of a join."""

    name: str
    reads: Load
    writes: Load = Load()
    moves: int = 0
    turns: int = 0
    rounds_ms: float = 0.0
    hidden_ms: float = 0.0

    def seconds(self, drive: DriveModel) -> float:
        waits = self.moves * drive.move_ms + self.turns * drive.turn_ms + self.rounds_ms - self.hidden_ms
        return (self.reads.milliseconds(drive.read) + self.writes.milliseconds(drive.write) + waits) / MILLISECONDS_A_SECOND


@dataclass(frozen=True)
class DetailedCost:
    """A join's cost, whole and by phase; phases are those of `models.haas.JoinCost`."""

    algorithm: str
    allocation: Allocation
    drive: DriveModel
    phases: tuple[PhaseLoad, ...]

    @property
    def seconds(self) -> float:
        return sum(phase.seconds(self.drive) for phase in self.phases)


def _cut(drive: DriveModel, pages: int, block: int) -> int:
    """Commands of requests of `block` pages that move `pages` pages."""
    whole, rest = divmod(pages, block)
    return whole * drive.commands(block) + drive.commands(rest)


#: How many runs replacement selection makes is known to a tenth or so, hence what share of memory each has in the merge, over the nominal
#: one.  Whether a request ends in a whole command is thus left to chance, and its commands are the mean over these.
RUNS_KNOWN_TO = (0.9, 0.95, 1.0, 1.05, 1.1)


#: Bytes by which the levels of a hash's output buffers drift apart at a time: about ten tuples of some hundred bytes that have one key, as
#: orders of a customer do.
GRAIN = 1024


def _between(layout: Layout, phase: PhaseCounts, bursts: float) -> tuple[int, int, int]:
    """Moves of a phase that reads base relations in order while it writes temporaries, `bursts` a write; those of them to writes; turns.

    On one device there is a turn, and the head goes to and fro, as often as writing interrupts reading, at most as often as there are
    requests of either.  What is written packed is written in order; a temporary in one piece is gone to.  On two devices there are the
    moves that TR counts, and no turns.
    """
    reads, writes = phase.reads.requests, phase.writes.requests
    if layout == "separate":
        return phase.total.seeks, min(phase.total.seeks, writes), 0
    turns = min(reads, writes, math.ceil(writes * bursts))
    to_write = turns if layout == "packed" else writes
    return 2 + turns + to_write, to_write, turns


def bursts_a_write(sizes: Sizes, page_size: int, streams: int, input: float, output: float, share: float = 1.0) -> float:
    """Interruptions of reading by writing a write, while relations are hashed to output buffers.

    All k buffers fill at nearly the same time.  After x pages of a relation their levels differ by a standard deviation of sqrt(g x f / k)
    pages, with g the `GRAIN` and f the share of the relation that is written; on the average over P pages, two thirds of that for x = P.
    A uniform distribution with this deviation is sqrt(12) times as wide, for which (4 / sqrt(3)) sqrt(g P k / f) pages are read.  Of the
    w requests that read them, w (1 - (1 - 1/w)^k) meet at least one full buffer.

    `streams` and `output`: k, and pages of each buffer; `input`: pages of a request that reads; `share`: f.
    """
    if streams == 1:
        return 1.0
    met = 0.0
    for pages in (sizes.r, sizes.s):
        apart = 4 / math.sqrt(3) * math.sqrt(GRAIN / page_size * pages * streams / share)
        requests = max(1.0, min(1 + apart / input, streams * output / (input * share)))
        met += pages * requests * (1 - (1 - 1 / requests) ** streams)
    return met / (streams * max(1, sizes.r + sizes.s))


def _nested_loops(
    sizes: Sizes, a: NestedLoopsAllocation, drive: DriveModel, layout: Layout, phases: tuple[PhaseCounts, ...]
) -> list[PhaseLoad]:
    chunks, (phase,) = a.chunks(sizes.r, sizes.fudge), phases
    outer = drive.commands(a.chunk_pages(sizes.r, sizes.fudge))
    inner = Load.alike(-(-sizes.s // a.inner), _cut(drive, sizes.s, a.inner), sizes.s)
    several = chunks * ((outer > 1) + inner.several)
    reads = Load(phase.reads.requests, chunks * (outer + inner.commands), phase.reads.pages, several=several)
    return [PhaseLoad(phase.name, reads, moves=phase.total.seeks)]


def _sort_merge(
    sizes: Sizes, a: SortMergeAllocation, drive: DriveModel, layout: Layout, phases: tuple[PhaseCounts, ...]
) -> list[PhaseLoad]:
    sort, merge = phases
    runs = max(1, a.runs(sizes.r, sizes.fudge) + a.runs(sizes.s, sizes.fudge))
    # A run's share of memory is whole pages, where TR divides.
    shares = [max(1, round(part * sizes.memory / runs)) for part in RUNS_KNOWN_TO]
    commands = round(fmean(_cut(drive, merge.reads.pages, share) for share in shares))
    return [
        _first(sizes, sort, drive, layout, a.input, a.output, streams=1),
        PhaseLoad(merge.name, _whole(merge.reads, max(merge.reads.requests, commands)), moves=merge.total.seeks),
    ]


def _hybrid(sizes: Sizes, a: HybridAllocation, drive: DriveModel, layout: Layout, phases: tuple[PhaseCounts, ...]) -> list[PhaseLoad]:
    """The second phase reads what was written packed in the pieces in which it was written: a request is cut wherever a piece ends."""
    partition = _first(sizes, phases[0], drive, layout, a.input, max(1, a.output), streams=max(1, a.buckets))
    if len(phases) == 1:
        return [partition]
    join = phases[1]
    if layout == "packed":
        pieces = phases[0].writes.requests
        # A request that ends within a piece cuts it in two; whole pieces are not cut.
        cuts = 0 if a.phase2_input % a.output == 0 else join.reads.requests
        reads = Load.alike(pieces + cuts, partition.writes.commands + cuts, join.reads.pages)
        return [partition, PhaseLoad(join.name, reads, moves=pieces)]
    commands = _cut(drive, join.reads.pages, a.phase2_input) + join.reads.requests
    return [partition, PhaseLoad(join.name, _whole(join.reads, commands), moves=join.total.seeks)]


def _first(sizes: Sizes, phase: PhaseCounts, drive: DriveModel, layout: Layout, input: int, output: int, streams: int) -> PhaseLoad:
    reads = Load.alike(phase.reads.requests, _cut(drive, sizes.r, input) + _cut(drive, sizes.s, input), phase.reads.pages)
    amplification = drive.amplification(1 if layout == "packed" else streams, output)
    commands = max(_cut(drive, phase.writes.pages, output), phase.writes.requests)
    writes = Load.alike(phase.writes.requests, commands, phase.writes.pages, amplification)
    written = phase.writes.pages / max(1, phase.reads.pages)
    bursts = bursts_a_write(sizes, drive.page_size, streams, input, output, written) if written else 0.0
    moves, to_write, turns = _between(layout, phase, bursts)
    whole, rest = divmod(phase.writes.pages, output)
    # A command to which the head has moved does not wait for the place to come round once more.
    rounds = whole * drive.rounds_ms(output) + drive.rounds_ms(rest) - to_write * drive.rounds(min(output, drive.command_pages))
    hidden = min(to_write * drive.move_ms, phase.writes.pages * drive.behind_ms)
    return PhaseLoad(phase.name, reads, writes, moves, turns, max(0.0, rounds), hidden)


def _whole(traffic: Traffic, commands: int) -> Load:
    return Load.alike(traffic.requests, commands, traffic.pages)


def _grace(sizes: Sizes, a: GraceAllocation, drive: DriveModel, layout: Layout, phases: tuple[PhaseCounts, ...]) -> list[PhaseLoad]:
    return _hybrid(sizes, grace_as_hybrid(a), drive, layout, phases)


_LOADS: dict[str, Callable[..., list[PhaseLoad]]] = dict(zip(JOINS, (_nested_loops, _sort_merge, _grace, _hybrid), strict=True))


def detailed_cost(algorithm: str, sizes: Sizes, drive: DriveModel, allocation: Allocation, layout: Layout = "packed") -> DetailedCost:
    """Cost of a join with given buffers.

    Parameters
    ----------
    algorithm
        One of `JOINS`.
    sizes
        Relations, temporaries and memory, in pages of the drive's `page_size`.
    drive
        The device.
    allocation
        The join's buffers.
    layout
        See `Layout`.

    Examples
    --------
    The flash drive of Do and Patel (2009), table 2, with 100 MB of memory:

    >>> page = 8192 / 1000
    >>> drive = DriveModel(8192, Timing(0, 0.35, page / 120), Timing(0, 0.35, page / 80))
    >>> sizes = Sizes(93_440, 655_360, 93_440, 655_360, memory=12_800)
    >>> join = detailed_cost("bnl", sizes, drive, NestedLoopsAllocation(12_784, 16))
    >>> join.phases[0].reads.commands, round(join.seconds, 1)
    (374481, 540.1)
    """
    if algorithm not in _LOADS:
        raise UnknownNameError("algorithm", algorithm, JOINS)
    check_known("layout", layout, get_args(Layout))
    phases = counts(algorithm, sizes, allocation)
    return DetailedCost(algorithm, allocation, drive, tuple(_LOADS[algorithm](sizes, allocation, drive, layout, phases)))


#: Margin of the largest bucket over its share, as a share of memory, since hashing spreads tuples by chance.
SPREAD = 0.02


@dataclass(frozen=True)
class Problem:
    """A join on a drive whose buffers are to be divided."""

    algorithm: str  #: One of `models.ssd_joins.JOINS`.
    #: Relations, temporaries and memory, in pages.
    sizes: Sizes
    drive: DriveModel
    layout: Layout = "packed"  #: See `models.ssd_joins.Layout`.

    def __post_init__(self) -> None:
        check_known("algorithm", self.algorithm, JOINS)
        self.fallback()

    def fallback(self) -> Allocation:
        """A division by Haas et al. that fits where the rules here find none, in hardly any memory; refuses too little, with the bound."""
        return allocate(self.algorithm, self.sizes.r, self.sizes.s, self.sizes.memory, 1, 2, self.sizes.fudge)

    def cost(self, allocation: Allocation) -> DetailedCost:
        return detailed_cost(self.algorithm, self.sizes, self.drive, allocation, self.layout)

    def least(self, candidates: Iterable[Allocation]) -> DetailedCost:
        """The cheapest of some allocations, with input buffers as they are or cut down to whole commands."""
        divisions = list(candidates) or [self.fallback()]
        return min((self.cost(each) for division in divisions for each in self._trim(division)), key=lambda join: join.seconds)

    def _trim(self, allocation: Allocation) -> Iterator[Allocation]:
        yield allocation
        names = [name for name in ("inner", "input", "phase2_input") if getattr(allocation, name, 0) > self.command]
        if names:
            cut: dict[str, Any] = {name: self.whole(getattr(allocation, name)) for name in names}
            yield replace(allocation, **cut)
        if isinstance(allocation, (GraceAllocation, HybridAllocation)) and allocation.phase2_input > allocation.output > 0:
            # Buckets are read back in whole pieces.
            yield replace(allocation, phase2_input=allocation.phase2_input // allocation.output * allocation.output)

    @property
    def command(self) -> int:
        return self.drive.command_pages

    def whole(self, pages: float) -> int:
        """Length of at least one page; above a command, of whole commands."""
        return max(1, math.ceil(pages)) if pages <= self.command else int(pages // self.command) * self.command

    def round_to_commands(self, pages: float) -> set[int]:
        """Whole commands, no more and no fewer pages than that, also with a quicker command at their end; up to a command, whole pages."""
        sizes = {self.whole(pages)}
        if pages > self.command:
            sizes |= {math.ceil(pages), self.whole(pages + self.command)}
        if self.quicker:
            sizes |= {length + more for length in sizes if length >= self.command for more in (self.quicker - self.command, self.quicker)}
        return sizes

    @property
    def quicker(self) -> int:
        """The length of command that waits least for a page, if a shorter one does than a whole one; else 0."""
        rounds, once = self.drive.rounds, self.drive.write.command_ms
        if not rounds.rotation_ms:
            return 0
        best = min(range(self.command, 0, -1), key=lambda pages: (once + rounds(pages)) / pages)
        return best if best < self.command else 0

    @property
    def table(self) -> Fraction:
        return max(1, self.sizes.r) * exact(self.sizes.fudge)

    @property
    def reserve(self) -> int:
        """Pages of the second phase that are left for input: a command, and what chance may add to a bucket."""
        return min(max(1, self.sizes.memory // 4), self.command + math.ceil(SPREAD * self.sizes.memory))

    def second_page(self) -> tuple[float, float]:
        """Milliseconds a page of reading and of writing in requests of many commands."""
        read, write = self.drive.read, self.drive.write
        rounds = self.drive.rounds(self.command)
        return read.page_ms + read.command_ms / self.command, write.page_ms + (write.command_ms + rounds) / self.command


@dataclass(frozen=True)
class RequestPrice:
    """Price of a request besides its pages: once if it is long, and how much more if it is one command."""

    start: float
    command: float

    @classmethod
    def of(cls, timing: Timing, rounds: float = 0.0) -> RequestPrice:
        """The price in one direction, where a command also waits for the platter."""
        return cls(timing.start_ms + timing.several_ms, timing.command_ms + rounds - timing.several_ms)

    @property
    def first(self) -> float:
        return self.start + self.command

    def dearer(self, ms: float) -> RequestPrice:
        return replace(self, start=self.start + ms)

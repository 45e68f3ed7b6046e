"""Buffers of each join by name, and the check that a division of memory is possible."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from flashsim.core.errors import InvalidParameterError, check_least

FUDGE = 1.2  #: do2009, section 3: memory that a hash table needs a page of tuples.


@dataclass(frozen=True)
class NestedLoopsAllocation:
    """Block nested loops: a chunk of R with its hash table, and an input buffer for S.

    ``outer / F`` pages of R fit at a time.  That need not be whole: R is cut into `chunks` equal chunks of `chunk_pages` pages, which
    may exceed `outer` by less than F pages.
    """

    outer: int
    inner: int

    def phases(self) -> tuple[int, ...]:
        return (self.outer + self.inner,)

    def chunks(self, r_pages: int, fudge: float = FUDGE) -> int:
        """The number of chunks of R, NB = ceil(|R| F / M_R) (TR section 3)."""
        return math.ceil(r_pages * exact(fudge) / self.outer)

    def chunk_pages(self, r_pages: int, fudge: float = FUDGE) -> int:
        """Pages of R in a chunk: R divided evenly among the chunks."""
        return math.ceil(Fraction(r_pages, max(1, self.chunks(r_pages, fudge))))


@dataclass(frozen=True)
class _OnePassAllocation:
    workspace: int
    input: int
    output: int

    def phases(self) -> tuple[int, ...]:
        """Pages used in each phase that has a fixed division."""
        return (self.workspace + self.input + self.output,)


class SortMergeAllocation(_OnePassAllocation):
    """Sort-merge, first pass: the tournament tree, the input and the output buffer; the second pass divides all pages among runs."""

    def runs(self, pages: int, fudge: float = FUDGE) -> int:
        """Runs made of a relation; replacement selection makes them 2 WS / F pages long, rounded up (TR section 4)."""
        return math.ceil(Fraction(pages, math.ceil(2 * self.workspace / exact(fudge))))


@dataclass(frozen=True)
class ExternalSortMergeAllocation:
    """The textbook's sort-merge: pages that are sorted at a time, and how many runs are merged at a time, an input buffer each."""

    workspace: int
    fan_in: int

    def phases(self) -> tuple[int, ...]:
        """Pages used for runs, and at least for a merge: a page a run, and an output buffer."""
        return (self.workspace, self.fan_in + 1)


@dataclass(frozen=True)
class DigestAllocation:
    """DigestJoin's projection: an input buffer for a relation, and an output buffer for its digests; other phases divide memory anew."""

    input: int
    output: int

    def phases(self) -> tuple[int, ...]:
        return (self.input + self.output,)


class SimpleHashAllocation(_OnePassAllocation):
    """Simple hash: the hash table, an input buffer, and an output buffer for what is passed over."""


@dataclass(frozen=True)
class GraceAllocation:
    """Grace hash: `output` pages for each of `buckets` buckets and an input buffer; then one bucket's table and an input buffer."""

    buckets: int
    output: int
    input: int
    phase2_input: int
    phase2_workspace: int

    def phases(self) -> tuple[int, ...]:
        return (self.buckets * self.output + self.input, self.phase2_input + self.phase2_workspace)


@dataclass(frozen=True)
class HybridAllocation:
    """Hybrid hash: as Grace hash, and `workspace` pages for a part of R that stays in memory.

    `buckets` counts the buckets on disk.  It is 0 if all of R stays in memory: `output` and the second phase are then 0 as well.
    `workspace` is 0 if nothing stays in memory, which is Grace hash.
    """

    buckets: int
    output: int
    input: int
    workspace: int
    phase2_input: int
    phase2_workspace: int

    def phases(self) -> tuple[int, ...]:
        return (self.buckets * self.output + self.input + self.workspace, self.phase2_input + self.phase2_workspace)


@dataclass(frozen=True)
class LateAllocation:
    """Late materialisation: pages for joining keys, and for the join index meanwhile; the fetch then has both."""

    join: int
    index: int

    def phases(self) -> tuple[int, ...]:
        return (self.join + self.index,)


Allocation = (
    NestedLoopsAllocation
    | SortMergeAllocation
    | ExternalSortMergeAllocation
    | DigestAllocation
    | SimpleHashAllocation
    | GraceAllocation
    | HybridAllocation
    | LateAllocation
)


def check(allocation: Allocation, memory: int) -> None:
    """Refuse an allocation that does not fit its memory, such as one given by a user."""
    optional: set[str] = set()
    if isinstance(allocation, HybridAllocation):
        in_memory = allocation.buckets == 0
        optional = {"buckets", "output", "phase2_input", "phase2_workspace"} if in_memory else {"workspace"}
    for name, pages in vars(allocation).items():
        least = 0 if name in optional else 2 if name == "fan_in" else 1
        if pages < least:
            raise InvalidParameterError(name, pages, f"it must be at least {least}")
    for phase, pages in enumerate(allocation.phases(), start=1):
        if pages > memory:
            raise InvalidParameterError("allocation", f"{pages} pages in phase {phase}", f"memory is {memory} pages")


@cache
def exact(fudge: float) -> Fraction:
    """The fudge factor as the decimal it was written as, so that no page appears by rounding."""
    check_least(1, fudge=fudge)
    return Fraction(fudge).limit_denominator(10**6)


def checked_sizes(r_pages: int, s_pages: int, memory: int) -> tuple[int, int]:
    """The relations' pages, at least one each; a negative size is refused."""
    check_least(0, r_pages=r_pages, s_pages=s_pages, memory=memory)
    return max(1, r_pages), max(1, s_pages)


def checked_ratio(name: str, value: float, least: float) -> float:
    """A figure of the device, which is refused below its least value."""
    if math.isnan(value) or value < least:
        raise InvalidParameterError(name, value, f"it must be at least {least:g}")
    return value


def too_small(memory: int, needs: str) -> InvalidParameterError:
    return InvalidParameterError("memory", f"{memory} pages", needs)


def ceil_sqrt(value: Fraction) -> int:
    """The smallest whole number whose square is at least `value`."""
    whole = math.ceil(value)
    return math.isqrt(whole - 1) + 1 if whole > 0 else 0


def clip(value: float, most: int) -> int:
    """`value` rounded up, at least 1 and at most `most`."""
    return max(1, min(most, math.ceil(value))) if math.isfinite(value) else most

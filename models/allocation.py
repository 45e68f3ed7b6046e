"""How a join divides its buffer pages among its inputs, its outputs and its workspace.

The closed forms are those of Haas, Carey and Livny, "SEEKing the Truth About Ad Hoc Join Costs", UW-Madison TR 1148 (1993), here
*TR*, as listed in table 1 of Do and Patel, "Join Processing for Flash SSDs", DaMoN 2009, here *do2009*; where the printed square
roots are ambiguous, the form taken is the one that minimises the cost it was derived from.

All sizes are pages.  An empty relation is given buffers like one of a single page.  The fudge factor F stands for what a hash
table or a tournament tree needs beyond the pages that it holds.  Numeric minima are found in `models.optimum`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from typing import Literal

from flashsim.core.errors import InvalidParameterError, UnknownNameError

#: do2009, section 3: memory that a hash table needs a page of tuples.
FUDGE = 1.2

HybridRule = Literal["haas", "sqrt-y"]
SecondPhase = Literal["do2009", "haas"]


@dataclass(frozen=True)
class NestedLoopsAllocation:
    """Block nested loops: a chunk of R with its hash table, and an input buffer for S.

    ``outer / F`` pages of R fit at a time.  That need not be whole: R is cut into `chunks` equal chunks of `chunk_pages` pages, which
    may exceed `outer` by less than F pages.
    """

    outer: int
    inner: int

    def phases(self) -> tuple[int, ...]:
        """Pages used in each phase."""
        return (self.outer + self.inner,)

    def chunks(self, r_pages: int, fudge: float = FUDGE) -> int:
        """The number of chunks of R, NB = ceil(|R| F / M_R) (TR section 3)."""
        return math.ceil(r_pages * exact(fudge) / self.outer)

    def chunk_pages(self, r_pages: int, fudge: float = FUDGE) -> int:
        """Pages of R in a chunk: R divided evenly among the chunks."""
        return math.ceil(Fraction(r_pages, max(1, self.chunks(r_pages, fudge))))


@dataclass(frozen=True)
class SortMergeAllocation:
    """Sort-merge, first pass: the tournament tree, the input and the output buffer; the second pass divides all pages among runs."""

    workspace: int
    input: int
    output: int

    def phases(self) -> tuple[int, ...]:
        """Pages used in each phase that has a fixed division."""
        return (self.workspace + self.input + self.output,)

    def runs(self, pages: int, fudge: float = FUDGE) -> int:
        """Runs made of a relation; replacement selection makes them 2 WS / F pages long, rounded up (TR section 4)."""
        return math.ceil(Fraction(pages, math.ceil(2 * self.workspace / exact(fudge))))


@dataclass(frozen=True)
class SimpleHashAllocation:
    """Simple hash: the hash table, an input buffer, and an output buffer for what is passed over."""

    workspace: int
    input: int
    output: int

    def phases(self) -> tuple[int, ...]:
        """Pages used in each iteration."""
        return (self.workspace + self.input + self.output,)


@dataclass(frozen=True)
class GraceAllocation:
    """Grace hash: `output` pages for each of `buckets` buckets and an input buffer; then one bucket's table and an input buffer."""

    buckets: int
    output: int
    input: int
    phase2_input: int
    phase2_workspace: int

    def phases(self) -> tuple[int, ...]:
        """Pages used in each phase."""
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
        """Pages used in each phase."""
        return (self.buckets * self.output + self.input + self.workspace, self.phase2_input + self.phase2_workspace)


Allocation = NestedLoopsAllocation | SortMergeAllocation | SimpleHashAllocation | GraceAllocation | HybridAllocation


def check(allocation: Allocation, memory: int) -> None:
    """Refuse an allocation that does not fit its memory, such as one given by a user.

    Raises
    ------
    InvalidParameterError
        A part is below 1 page, or a phase needs more than `memory` pages.
    """
    parts = asdict(allocation)
    optional: set[str] = set()
    if isinstance(allocation, HybridAllocation):
        in_memory = allocation.buckets == 0
        optional = {"buckets", "output", "phase2_input", "phase2_workspace"} if in_memory else {"workspace"}
    for name, pages in parts.items():
        least = 0 if name in optional else 1
        if pages < least:
            raise InvalidParameterError(name, pages, f"it must be at least {least}")
    for phase, pages in enumerate(allocation.phases(), start=1):
        if pages > memory:
            raise InvalidParameterError("allocation", f"{pages} pages in phase {phase}", f"memory is {memory} pages")


@cache
def exact(fudge: float) -> Fraction:
    """The fudge factor as the decimal it was written as, so that no page appears by rounding."""
    if not 1 <= fudge < math.inf:
        raise InvalidParameterError("fudge", fudge, "it must be at least 1")
    return Fraction(fudge).limit_denominator(10**6)


def _sizes(r_pages: int, s_pages: int, memory: int) -> tuple[int, int]:
    for name, value in (("r_pages", r_pages), ("s_pages", s_pages), ("memory", memory)):
        if value < 0:
            raise InvalidParameterError(name, value, "it must be at least 0")
    return max(1, r_pages), max(1, s_pages)


def _ratio(name: str, value: float, least: float) -> float:
    if math.isnan(value) or value < least:
        raise InvalidParameterError(name, value, f"it must be at least {least:g}")
    return value


def _too_small(memory: int, needs: str) -> InvalidParameterError:
    return InvalidParameterError("memory", f"{memory} pages", needs)


def ceil_sqrt(value: Fraction) -> int:
    """The smallest whole number whose square is at least `value`."""
    whole = math.ceil(value)
    return math.isqrt(whole - 1) + 1 if whole > 0 else 0


def _bounded(value: float, most: int) -> int:
    """`value` rounded up, at least 1 and at most `most`."""
    return max(1, min(most, math.ceil(value))) if math.isfinite(value) else most


def nested_loops_inner(s_pages: int, memory: int, latency_ratio: float) -> float:
    """Unrounded input buffer for S that minimises the continuous cost of block nested loops.

    Source: TR section 3; do2009 table 1.  The term - y|S| stands outside the root.  Tends to M / 2 for a slow start (y to
    infinity) and to 0 for a fast one.
    """
    y, s = latency_ratio, s_pages
    if math.isinf(y):
        return memory / (1 + math.sqrt(1 + memory / s))
    root = math.sqrt(y * s * (y * s + memory * (y + s)))
    return (root - y * s) / (y + s)


def nested_loops(
    r_pages: int, s_pages: int, memory: int, latency_ratio: float, fudge: float = FUDGE, refine: bool = True
) -> NestedLoopsAllocation:
    """Buffers of block nested loops.

    Parameters
    ----------
    r_pages, s_pages, memory
        |R|, |S| and M, in pages.
    latency_ratio
        y = Tl / Tx, a request's latency in page transfers.
    fudge
        F.
    refine
        Keep the number of chunks and give S the pages that R then leaves free; if R fits in memory, also weigh one chunk against
        two (TR section 3, "Using the formulas").

    Raises
    ------
    InvalidParameterError
        Memory for less than one page of R with its table and one of S.
    """
    r, s = _sizes(r_pages, s_pages, memory)
    y = _ratio("latency_ratio", latency_ratio, 0)
    table = r * exact(fudge)
    least = math.ceil(exact(fudge))
    if memory < least + 1:
        raise _too_small(memory, f"bnl needs at least {least + 1}")
    inner = _bounded(nested_loops_inner(s, memory, y), memory - least)
    if not refine:
        return NestedLoopsAllocation(memory - inner, inner)

    def with_chunks(chunks: int) -> NestedLoopsAllocation:
        outer = max(least, math.ceil(table / chunks))
        return NestedLoopsAllocation(outer, memory - outer)

    def requests(allocation: NestedLoopsAllocation) -> tuple[float, int]:
        chunks = allocation.chunks(r, fudge)
        starts = chunks * (1 + math.ceil(Fraction(s, allocation.inner)))
        return (starts if math.isinf(y) else chunks * s + y * starts), chunks

    refined = with_chunks(math.ceil(table / (memory - inner)))
    if memory <= table:
        return refined
    return min((refined, with_chunks(1), with_chunks(2)), key=lambda a: requests(a) if a.inner >= 1 else (math.inf, 0))


def sort_merge_input(r_pages: int, s_pages: int, memory: int, access_ratio: float, fudge: float = FUDGE) -> float:
    """Unrounded input buffer (= output buffer) that minimises the continuous cost of sort-merge: M / (2 + sqrt(z / 2)).

    Source: TR section 4, do2009 table 1.  Equal to the printed (sqrt(2z) - 4) M / (z - 8), z = x F (|R| + |S|) / M, but without
    its 0 / 0 at z = 8.
    """
    z = access_ratio * fudge * (r_pages + s_pages) / memory
    return memory / (2 + math.sqrt(z / 2))


def sort_merge(r_pages: int, s_pages: int, memory: int, access_ratio: float, fudge: float = FUDGE) -> SortMergeAllocation:
    """Buffers of the first pass of sort-merge; the input buffer shrinks where its runs could else not be merged in one pass.

    Parameters
    ----------
    access_ratio
        x = (Tl + Ts) / Tl, a random access in latencies.

    Raises
    ------
    InvalidParameterError
        Memory not above sqrt(F |S|), or, where R is nearly as large as S, too little to merge the runs of both in one pass.
    """
    r, s = _sizes(r_pages, s_pages, memory)
    x = _ratio("access_ratio", access_ratio, 1)

    def division(total: int, buffer: int) -> SortMergeAllocation:
        return SortMergeAllocation(total - 2 * buffer, buffer, buffer)

    def two_passes(total: int, buffer: int) -> bool:
        made = division(total, buffer)
        return made.workspace >= 1 and made.runs(r, fudge) + made.runs(s, fudge) <= total

    root = ceil_sqrt(exact(fudge) * max(r, s))
    if memory <= root:
        raise _too_small(memory, f"sort-merge needs more than sqrt(F |S|) = {root}")
    if not two_passes(memory, 1):
        least = next(total for total in range(root + 1, 2 * root + 8) if two_passes(total, 1))
        raise _too_small(memory, f"sort-merge needs at least {least} to merge all runs in one pass")
    buffer = _bounded(sort_merge_input(r, s, memory, x, fudge), (memory - 1) // 2)
    if not two_passes(memory, buffer):
        fits, fails = 1, buffer
        while fails - fits > 1:
            middle = (fits + fails) // 2
            fits, fails = (middle, fails) if two_passes(memory, middle) else (fits, middle)
        buffer = fits
    return division(memory, buffer)


def simple_hash(r_pages: int, s_pages: int, memory: int, latency_ratio: float, fudge: float = FUDGE) -> SimpleHashAllocation:
    """Buffers of simple hash: I = O = sqrt(y^2 + y M / 2) - y, rounded up (TR section 5).

    Raises
    ------
    InvalidParameterError
        Memory for less than one page of R with its table, one of input and one of output.
    """
    _sizes(r_pages, s_pages, memory)
    y = _ratio("latency_ratio", latency_ratio, 0)
    least = math.ceil(exact(fudge))
    if memory < least + 2:
        raise _too_small(memory, f"simple-hash needs at least {least + 2}")
    closed = memory / 4 if math.isinf(y) else math.sqrt(y * y + y * memory / 2) - y
    buffer = _bounded(closed, (memory - least) // 2)
    return SimpleHashAllocation(memory - 2 * buffer, buffer, buffer)


def grace_buckets(r_pages: int, memory: int, fudge: float = FUDGE) -> float:
    """Unrounded number of buckets at which all buffers of the first phase are as large as the second's input buffer (TR section 6)."""
    table = r_pages * fudge
    return (table + math.sqrt(table * table + 4 * memory * table)) / (2 * memory)


def grace_hash(r_pages: int, s_pages: int, memory: int, fudge: float = FUDGE) -> GraceAllocation:
    """Buffers of Grace hash, all equal as far as they can be (a heuristic: TR section 6; do2009 table 1).

    Raises
    ------
    InvalidParameterError
        Memory not above sqrt(F |R|): a bucket's table would not fit in the second phase.
    """
    r, _ = _sizes(r_pages, s_pages, memory)
    table = r * exact(fudge)
    root = ceil_sqrt(table)
    if memory <= root:
        raise _too_small(memory, f"grace-hash needs more than sqrt(F |R|) = {root}")
    buckets = min(memory - 1, math.ceil(grace_buckets(r, memory, fudge)))
    output = memory // (buckets + 1)
    workspace = math.ceil(table / buckets)
    return GraceAllocation(buckets, output, memory - buckets * output, memory - workspace, workspace)


def hybrid_input(memory: int, latency_ratio: float, rule: HybridRule = "haas") -> float:
    """Unrounded input buffer (= output buffer) of hybrid hash.

    Parameters
    ----------
    rule
        ``"haas"``: 1.1 sqrt(M), as printed (TR table 2; do2009 table 1).  ``"sqrt-y"``: (sqrt(5) / 2) sqrt(M y), what TR's own
        quadratic tends to for a large R and M much above y; see `models.optimum.hybrid_quadratic`.
    """
    if rule == "haas":
        return 1.1 * math.sqrt(memory)
    if rule == "sqrt-y":
        return math.sqrt(5) / 2 * math.sqrt(memory * latency_ratio)
    raise UnknownNameError("rule", rule, ("haas", "sqrt-y"))


def hybrid_division(
    r_pages: int,
    memory: int,
    buffer: int,
    fudge: float = FUDGE,
    second: SecondPhase = "do2009",
    *,
    output: int | None = None,
    least: int | None = None,
) -> HybridAllocation | None:
    """Buffers of hybrid hash for a given input buffer, or None where that leaves no workspace.

    Source: TR section 7: K is the smallest number of buckets with K (M - I2) + WS >= F |R|, WS = M - I - K O.

    Parameters
    ----------
    output, least
        O, and I2, the pages that the second phase has for input at least; both as large as the input buffer unless they are given.
    """
    output, least = output or buffer, least or buffer
    table = max(1, r_pages) * exact(fudge)
    if table <= memory - buffer:
        # No bucket goes to disk; what the table leaves free serves the input.
        workspace = math.ceil(table)
        return HybridAllocation(0, 0, memory - workspace, workspace, 0, 0)
    if memory - least - output < 1:
        return None
    buckets = math.ceil((table - (memory - buffer)) / (memory - least - output))
    workspace = memory - buffer - buckets * output
    if workspace < 1:
        return None
    if second == "haas":
        return HybridAllocation(buckets, output, buffer, workspace, least, memory - least)
    phase2 = math.ceil((table - workspace) / buckets)
    return HybridAllocation(buckets, output, buffer, workspace, memory - phase2, phase2)


def hybrid_hash(
    r_pages: int,
    s_pages: int,
    memory: int,
    latency_ratio: float,
    fudge: float = FUDGE,
    rule: HybridRule = "haas",
    second: SecondPhase = "do2009",
) -> HybridAllocation:
    """Buffers of hybrid hash.  At little memory the rule leaves no workspace: Grace hash's buffers are returned with workspace 0.

    Parameters
    ----------
    rule
        How the input buffer is found: see `hybrid_input`.
    second
        The second phase: ``"do2009"`` gives the input what a bucket's table leaves free, ``"haas"`` as much as in the first.

    Raises
    ------
    InvalidParameterError
        Memory not above sqrt(F |R|).
    """
    r, _ = _sizes(r_pages, s_pages, memory)
    y = _ratio("latency_ratio", latency_ratio, 0)
    if second not in ("do2009", "haas"):
        raise UnknownNameError("second phase", second, ("do2009", "haas"))
    root = ceil_sqrt(r * exact(fudge))
    if memory <= root:
        raise _too_small(memory, f"hybrid-hash needs more than sqrt(F |R|) = {root}")
    buffer = _bounded(hybrid_input(memory, y, rule), memory - 1)
    return hybrid_division(r, memory, buffer, fudge, second) or grace_as_hybrid(grace_hash(r_pages, s_pages, memory, fudge))


def grace_as_hybrid(grace: GraceAllocation) -> HybridAllocation:
    """Grace hash's buffers as a hybrid hash that keeps nothing in memory."""
    return HybridAllocation(grace.buckets, grace.output, grace.input, 0, grace.phase2_input, grace.phase2_workspace)


#: Joins that `allocate` knows.
ALGORITHMS = ("bnl", "sort-merge", "simple-hash", "grace-hash", "hybrid-hash")


def allocate(
    algorithm: str, r_pages: int, s_pages: int, memory: int, latency_ratio: float, access_ratio: float, fudge: float = FUDGE
) -> Allocation:
    """The default division of a join's buffers, by the join's name.

    Parameters
    ----------
    algorithm
        One of `ALGORITHMS`.
    r_pages, s_pages, memory
        |R|, |S| and M, in pages.
    latency_ratio, access_ratio
        y = Tl / Tx and x = (Tl + Ts) / Tl of the device.
    fudge
        F.

    Raises
    ------
    UnknownNameError
        Another algorithm.
    InvalidParameterError
        Too little memory for the algorithm.

    Examples
    --------
    >>> allocate("grace-hash", 93_440, 655_360, 12_800, latency_ratio=24.2, access_ratio=3.16)
    GraceAllocation(buckets=10, output=1163, input=1170, phase2_input=1587, phase2_workspace=11213)
    """
    if algorithm == "bnl":
        return nested_loops(r_pages, s_pages, memory, latency_ratio, fudge)
    if algorithm == "sort-merge":
        return sort_merge(r_pages, s_pages, memory, access_ratio, fudge)
    if algorithm == "simple-hash":
        return simple_hash(r_pages, s_pages, memory, latency_ratio, fudge)
    if algorithm == "grace-hash":
        return grace_hash(r_pages, s_pages, memory, fudge)
    if algorithm == "hybrid-hash":
        return hybrid_hash(r_pages, s_pages, memory, latency_ratio, fudge)
    raise UnknownNameError("algorithm", algorithm, ALGORITHMS)

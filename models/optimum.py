"""The best that any division of a join's buffers can do: numeric minima against which the closed forms are held.

*Continuous* minima are of the smooth costs that the closed forms were derived from, without rounding; *discrete* minima are of the
counts themselves, found by trying every division that can matter.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from scipy.optimize import minimize_scalar

from models.allocation import buffers
from models.allocation.buffers import ceil_sqrt
from models.allocation.divisions import SecondPhase, grace_as_hybrid, grace_buckets, grace_hash, hybrid_division
from models.disk import Disk
from models.haas import JoinCost, cost
from models.join_costs.base import allocate


def nested_loops_cost(
    inner: float, r_pages: float, s_pages: float, memory: float, latency_ratio: float, fudge: float = buffers.FUDGE
) -> float:
    """Continuous cost of block nested loops without its seeks, in page transfers (TR 1148 section 3).

    |R| + |R| F |S| / (M - M_S) + y |R| F / (M - M_S) (1 + |S| / M_S).
    """
    chunks = r_pages * fudge / (memory - inner)
    return r_pages + chunks * s_pages + latency_ratio * chunks * (1 + s_pages / inner)


def sort_merge_cost(
    buffer: float, r_pages: float, s_pages: float, memory: float, access_ratio: float, fudge: float = buffers.FUDGE
) -> float:
    """Continuous cost of sort-merge without its transfers, in latencies (TR 1148 section 4).

    2 (|R| + |S|) / I + x F (|R| + |S|)^2 / (2 M (M - 2 I)).
    """
    pages = r_pages + s_pages
    return 2 * pages / buffer + access_ratio * fudge * pages * pages / (2 * memory * (memory - 2 * buffer))


def continuous(function: Callable[[float], float], memory: float) -> float:
    """The buffer in (0, M) at which a continuous cost is least, to 1e-4 page (SciPy's bounded Brent search).

    `function` is the cost of one buffer size, and the largest buffer is where it turns infinite or negative, or M; `memory` is the upper
    bound of the buffer: M for block nested loops, M / 2 where input and output are equal.
    """
    return float(minimize_scalar(function, bounds=(1e-9 * memory, (1 - 1e-9) * memory), method="bounded", options={"xatol": 1e-4}).x)


def _steps(*sizes: int) -> list[int]:
    """The smallest buffers for each number of requests that a relation of one of `sizes` can be moved in, ascending."""
    smallest = set()
    for pages in sizes:
        requests = 1
        while requests <= pages:
            buffer = -(-pages // requests)
            smallest.add(buffer)
            # The next smaller buffer needs at least this many requests.
            requests = -(-pages // (buffer - 1)) if buffer > 1 else pages + 1
    return sorted(smallest | {1})


def _nested_loops(r: int, s: int, memory: int, fudge: float) -> Iterator[buffers.NestedLoopsAllocation]:
    table, least = r * buffers.exact(fudge), math.ceil(buffers.exact(fudge))
    fewest = math.ceil(table / (memory - 1))
    # At twice the fewest chunks S already has half of memory: four times as many cannot save what they cost.
    for chunks in range(fewest, 4 * fewest + 1):
        outer = max(least, math.ceil(table / chunks))
        if outer < memory:
            # The smallest inner buffer that scans S in as many requests; the chunk of R takes the rest.
            inner = -(-s // -(-s // (memory - outer)))
            yield buffers.NestedLoopsAllocation(memory - inner, inner)


def _sort_merge(r: int, s: int, memory: int, fudge: float) -> Iterator[buffers.SortMergeAllocation]:
    for buffer in _steps(r, s):
        workspace = memory - 2 * buffer
        if workspace < 1:
            return
        shares = buffers.SortMergeAllocation(workspace, buffer, buffer)
        if shares.runs(r, fudge) + shares.runs(s, fudge) <= memory:
            yield shares


def _simple_hash(r: int, s: int, memory: int, fudge: float) -> Iterator[buffers.SimpleHashAllocation]:
    for buffer in range(1, min(math.ceil(memory / 4), (memory - math.ceil(buffers.exact(fudge))) // 2, r + s) + 1):
        yield buffers.SimpleHashAllocation(memory - 2 * buffer, buffer, buffer)


def _grace(r: int, s: int, memory: int, fudge: float) -> Iterator[buffers.GraceAllocation]:
    table = r * buffers.exact(fudge)
    closed = math.ceil(grace_buckets(r, memory, fudge))
    steps = _steps(r, s)
    for buckets in range(math.ceil(table / (memory - 1)), min(memory - 1, 2 * closed + 2) + 1):
        workspace = math.ceil(table / buckets)
        for output in steps:
            if buckets * output >= memory:
                break
            yield buffers.GraceAllocation(buckets, output, memory - buckets * output, memory - workspace, workspace)


def _hybrid(r: int, s: int, memory: int, fudge: float, second: SecondPhase) -> Iterator[buffers.HybridAllocation]:
    # Up to M - F |R| every buffer gives one and the same division: all of R in memory.
    first = max(1, memory - math.ceil(r * buffers.exact(fudge)))
    for buffer in range(first, max(first, min(memory // 2, r + s)) + 1):
        shares = hybrid_division(r, memory, buffer, fudge, second)
        if shares is not None:
            yield shares
    if memory > ceil_sqrt(r * buffers.exact(fudge)):
        yield grace_as_hybrid(grace_hash(r, s, memory, fudge))


_DIVISIONS: dict[str, Callable[[int, int, int, float], Iterator[buffers.Allocation]]] = {
    "bnl": _nested_loops,
    "sort-merge": _sort_merge,
    "simple-hash": _simple_hash,
    "grace-hash": _grace,
}


def discrete(
    algorithm: str, r_pages: int, s_pages: int, memory: int, disk: Disk, *, fudge: float = buffers.FUDGE, second: SecondPhase = "do2009"
) -> JoinCost:
    """The cheapest division in whole pages, and its cost.

    Block nested loops: every number of chunks that can matter.  Sort-merge and hybrid hash: every input buffer equal to the output
    buffer (hybrid hash also as Grace hash).  Simple hash: the same, up to a quarter of memory, which the closed form never exceeds.
    Grace hash: up to twice the closed form's buckets, and every output buffer.
    Hybrid and simple hash take time in proportion to memory: about a second for 10^5 pages.

    `second` is hybrid hash's second phase: see `models.allocation.divisions`.

    Raises UnknownNameError or InvalidParameterError: as for `models.join_costs.base.allocate`.
    """
    r, s = max(1, r_pages), max(1, s_pages)
    # Refuses what is out of bounds, with the bound.
    allocate(algorithm, r_pages, s_pages, memory, disk.latency_ratio, disk.access_ratio, fudge)
    divisions = partial(_hybrid, second=second) if algorithm == "hybrid-hash" else _DIVISIONS[algorithm]
    candidates: Iterable[buffers.Allocation] = divisions(r, s, memory, fudge)
    costs = (cost(algorithm, r_pages, s_pages, memory, disk, candidate, fudge=fudge) for candidate in candidates)
    return min(costs, key=lambda join: join.seconds)

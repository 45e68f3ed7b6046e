"""The best buffers of a join by search, without use of the closed forms."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import brute, fmin

from models.allocation.buffers import Allocation, HybridAllocation, NestedLoopsAllocation, exact
from models.ssd_buffers import divided_grace, divided_hybrid, divided_sort_merge
from models.ssd_joins import JOINS, DetailedCost, Problem


def numeric(problem: Problem) -> DetailedCost:
    """The best division that a search finds, without use of the closed forms, and its cost.

    Block nested loops: every number of chunks that can matter.  The others: SciPy's search on a grid of the logarithms of the buffers'
    lengths, and Nelder and Mead's from its best point; of Grace hash for each number of buckets up to twice the fewest.

    Raises
    ------
    InvalidParameterError
        Too little memory for the join.
    """
    return problem.least(_SEARCHES[problem.algorithm](problem))


def _search_nested_loops(problem: Problem) -> Iterator[Allocation]:
    memory = problem.sizes.memory
    fewest = math.ceil(problem.table / (memory - 1))
    for chunks in range(fewest, 4 * fewest + 1):
        outer = max(math.ceil(exact(problem.sizes.fudge)), math.ceil(problem.table / chunks))
        if outer < memory:
            yield NestedLoopsAllocation(outer, memory - outer)


def _search_sort_merge(problem: Problem) -> Iterator[Allocation]:
    yield from _searched(problem, lambda lengths: [divided_sort_merge(problem, *lengths)], 2)


def _search_grace(problem: Problem) -> Iterator[Allocation]:
    fewest = math.ceil(problem.table / (problem.sizes.memory - problem.reserve))
    for buckets in range(fewest, min(2 * fewest + 2, problem.sizes.memory)):
        yield from _searched(problem, lambda lengths: list(divided_grace(problem, buckets, lengths[0])), 1)  # noqa: B023


def _search_hybrid(problem: Problem) -> Iterator[Allocation]:
    def divide(lengths: Sequence[int]) -> list[HybridAllocation]:
        input, output = lengths
        leasts = (problem.reserve, max(problem.reserve, output), 2 * problem.reserve, 4 * problem.reserve)
        return [divided_hybrid(problem, input, output, least) for least in leasts if least < problem.sizes.memory]

    yield from _searched(problem, divide, 2)


_SEARCHES: dict[str, Callable[[Problem], Iterator[Allocation]]] = dict(
    zip(JOINS, (_search_nested_loops, _search_sort_merge, _search_grace, _search_hybrid), strict=True)
)


#: From how many of the grid's points the search goes on.
_STARTS = 4


def _searched(problem: Problem, divide: Callable[[Sequence[int]], Sequence[Allocation | None]], buffers: int) -> Iterator[Allocation]:
    """Divisions of `divide` at the best lengths of some buffers, each between a page and half of memory, in whole commands or not."""

    def divisions(logarithms: npt.NDArray[np.float64]) -> list[Allocation]:
        lengths = np.exp2(np.clip(logarithms, 0, most)).tolist()
        candidates = [*divide([problem.whole(length) for length in lengths]), *divide([max(1, round(length)) for length in lengths])]
        return [each for each in candidates if each is not None]

    def seconds(logarithms: npt.NDArray[np.float64]) -> float:
        return min((problem.cost(each).seconds for each in divisions(logarithms)), default=math.inf)

    most = math.log2(max(1, problem.sizes.memory // 2))
    _, _, grid, costs = brute(seconds, ((0.0, most),) * buffers, Ns=12, finish=None, full_output=True)
    points = np.reshape(grid, (buffers, -1)).T
    for start in points[np.argsort(costs, axis=None, kind="stable")[:_STARTS]]:
        yield from divisions(fmin(seconds, start, xtol=1e-3, ftol=1e-7, disp=False, maxiter=100))

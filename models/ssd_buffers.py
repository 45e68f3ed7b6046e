"""The best buffers of a join for the detailed cost of `models.ssd_joins`, in closed form.

The closed forms come from the same continuous costs as those of Haas et al., with one difference that decides all: where only commands
wait, what a page waits falls with the length of its request no further than to the length of a command.  So each rule gives a size for a
price a request; the price is that of a request with its first command, and where the size found is longer than a command, that of the
request alone.  On a drive that takes one command at a time that is nothing, and no buffer is longer than a command.

The derivations stand in docs/explanation/optimal_allocations.md.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

from models.allocation.buffers import Allocation, GraceAllocation, HybridAllocation, NestedLoopsAllocation, SortMergeAllocation, exact
from models.allocation.divisions import grace_as_hybrid, hybrid_division, nested_loops_inner
from models.ssd_joins import JOINS, RUNS_KNOWN_TO, DetailedCost, Problem, RequestPrice, bursts_a_write


def _size(price: RequestPrice, rule: Callable[[float], float], command: int) -> float:
    size = rule(price.first)
    return size if size <= command else max(command, rule(price.start))


@dataclass(frozen=True)
class HashPartitioning:
    """Buckets of a hash: their number, the lengths of buffers, and the share of the relations that is written."""

    buckets: int
    input: float
    output: float
    share: float = 1.0

    def bursts(self, problem: Problem, input: float) -> float:
        """`bursts_a_write` with an input buffer of another length."""
        return bursts_a_write(problem.sizes, problem.drive.page_size, self.buckets, input, self.output, self.share)


_LONGER = 0.01  #: Share by which an input buffer is made longer in order to see the saving.


def _hidden_moves(problem: Problem) -> tuple[bool, ...]:
    """Cases of moves to writes: not hidden by the pages written, or on a drive that hides them, both."""
    return (False, True) if problem.drive.behind_ms else (False,)


def _prices(
    problem: Problem, plan: HashPartitioning | None = None, hidden: bool = False
) -> tuple[RequestPrice, RequestPrice, RequestPrice]:
    """Prices of reading a base relation in order, of writing an output buffer, and of reading it back in the second phase.

    On one device a burst of writing also costs two moves, to it and back, and a turn.  With a longer input buffer a hash has fewer of them:
    what that saves, over the saving of requests, is added to the price of reading.  On two devices the moves are TR's: one a buffer of a
    hash join.
    """
    drive, packed = problem.drive, problem.layout == "packed"
    rounds = drive.rounds(problem.command)
    read, write = RequestPrice.of(drive.read), RequestPrice.of(drive.write, rounds)
    again = RequestPrice(read.start + drive.move_ms, read.command)
    # A command to which the head has moved does not wait for the place to come round once more.
    to_write = 0.0 if hidden else drive.move_ms - rounds
    if problem.layout == "separate":
        return read, write.dearer(max(0.0, to_write) if problem.algorithm != "sort-merge" else 0.0), again
    burst = max(0.0, drive.move_ms + (to_write if packed else 0.0)) + drive.turn_ms
    bursts, fewer = 1.0, 0.0
    if plan is not None:
        bursts = plan.bursts(problem, plan.input)
        saved = (bursts - plan.bursts(problem, plan.input * (1 + _LONGER))) / _LONGER  # of a write, in shares of the length
        fewer = saved * plan.share * plan.input / plan.output
    return read.dearer(fewer * burst), write.dearer(max(0.0, bursts * burst + (0.0 if packed else to_write))), again


def closed_form(problem: Problem) -> DetailedCost:
    """The closed form's division in whole pages, and its cost.

    Raises InvalidParameterError: too little memory for the join.
    """
    return problem.least(_CLOSED[problem.algorithm](problem))


def _closed_nested_loops(problem: Problem) -> Iterator[Allocation]:
    """M_S by Haas et al. with the latency of a command, at most a command; the chunks then found are rounded up and down."""
    sizes, (per_page, _) = problem.sizes, problem.second_page()
    price = _prices(problem)[0]
    inner = _size(price, lambda ms: nested_loops_inner(max(1, sizes.s), sizes.memory, ms / per_page), problem.command)
    least = math.ceil(exact(sizes.fudge))
    chunks = problem.table / (sizes.memory - Fraction(min(max(1.0, inner), sizes.memory - least)))
    for count in {max(1, math.floor(chunks)), math.ceil(chunks), math.ceil(chunks) + 1}:
        outer = max(least, math.ceil(problem.table / count))
        if outer < sizes.memory:
            yield NestedLoopsAllocation(outer, sizes.memory - outer)


def _closed_sort_merge(problem: Problem) -> Iterator[Allocation]:
    """Turns are as many as writes or reads, whichever are fewer: a turn is part of the price of the fewer."""
    turn = problem.drive.turn_ms if problem.layout != "separate" else 0.0
    for hidden in _hidden_moves(problem):
        read, write, merge = _prices(problem, hidden=hidden)
        yield from _priced_sort_merge(problem, read, write, merge)
        if turn:
            yield from _priced_sort_merge(problem, read.dearer(turn), write.dearer(-turn), merge)
    yield from _quick_sort_merge(problem)


def _quick_sort_merge(problem: Problem) -> Iterator[Allocation]:
    """Runs are written in requests that end with a quicker command, and what the tree leaves is the input buffer's.

    The tree is one for whole commands in the merge, or the rest is divided by price: then a read costs the two moves to writes and back as
    well, since many of these follow one another.
    """
    memory, command = problem.sizes.memory, problem.command
    outputs = [whole * command + problem.quicker for whole in range(3)] if problem.quicker else []
    read, _, merge = _prices(problem)
    dearer, merging = read.dearer(2 * problem.drive.move_ms), _merging(problem, merge)
    ruled = {problem.whole(_size(price, lambda ms: _divide(problem, ms, 0.0, merging)[0], command)) for price in (read, dearer)}
    for output in outputs:
        inputs = {memory - output - _tree(problem, commands) for commands in _merge_commands(problem)} | ruled
        for shares in (divided_sort_merge(problem, input, output) for input in inputs):
            if shares is None:
                continue
            yield shares
            yield divided_sort_merge(problem, memory - output - _tight(problem, shares), output) or shares


def _priced_sort_merge(problem: Problem, read: RequestPrice, write: RequestPrice, merge: RequestPrice) -> Iterator[Allocation]:
    """Buffers by price, as long and no longer than a command, and the input buffer alone with a tree for whole commands in the merge."""
    memory, command, merging = problem.sizes.memory, problem.command, _merging(problem, merge)
    input = _size(read, lambda ms: _divide(problem, ms, write.first, merging)[0], command)
    output = _size(write, lambda ms: _divide(problem, read.first if input < command else read.start, ms, merging)[1], command)
    lengths_of_both = [(input, output), (min(input, command), min(output, command))]
    for commands in _merge_commands(problem):
        lengths_of_both.append((min(input, command), memory - min(input, command) - _tree(problem, commands)))
    for lengths in lengths_of_both:
        for first, second in product(*(problem.round_to_commands(length) for length in lengths)):
            shares = divided_sort_merge(problem, first, second)
            if shares is not None:
                yield shares
                yield divided_sort_merge(problem, first, memory - first - _tight(problem, shares)) or shares


def _divide(problem: Problem, reading: float, writing: float, merging: float) -> tuple[float, float]:
    """I = v a / (a + b), O = v b / (a + b), v = M / (1 + sqrt(F P m / (2 M (a + b)^2))), with a^2, b^2 and m the prices of requests."""
    sizes, (a, b) = problem.sizes, (math.sqrt(reading), math.sqrt(writing))
    if a + b == 0:
        return 0.0, 0.0
    pages = max(1, sizes.r) + max(1, sizes.s)
    v = sizes.memory / (1 + math.sqrt(sizes.fudge * pages * merging / (2 * sizes.memory * (a + b) ** 2)))
    return v * a / (a + b), v * b / (a + b)


def _merging(problem: Problem, merge: RequestPrice) -> float:
    return merge.first if _merge_share(problem) < problem.command else merge.start


def _merge_share(problem: Problem) -> float:
    """Pages that a run has in the merge if all memory was the tree."""
    sizes = problem.sizes
    return 2 * sizes.memory**2 / (sizes.fudge * (max(1, sizes.r) + max(1, sizes.s)))


def _merge_commands(problem: Problem) -> set[int]:
    """Commands of a request of the merge: one whole command, or as many as the largest tree asks for."""
    return {1, max(1, int(_merge_share(problem) // problem.command))}


def _tight(problem: Problem, plan: SortMergeAllocation) -> int:
    """The smallest tree that makes as many runs: what it gives up is worth more in the output buffer."""
    sizes = problem.sizes
    return max(math.ceil(exact(sizes.fudge) * pages / (2 * plan.runs(pages, sizes.fudge))) for pages in (max(1, sizes.r), max(1, sizes.s)))


def _tree(problem: Problem, commands: int) -> int:
    """The tree with whose runs a request of the merge surely takes so many commands, and hardly fewer."""
    sizes = problem.sizes
    runs = math.ceil(max(RUNS_KNOWN_TO) * sizes.memory / (problem.command * commands))
    return math.ceil((max(1, sizes.r) + max(1, sizes.s)) * sizes.fudge / (2 * runs))


def divided_sort_merge(problem: Problem, input: int, output: int) -> SortMergeAllocation | None:
    """Buffers of the first pass, if all runs can be merged in one."""
    sizes = problem.sizes
    workspace = sizes.memory - input - output
    if min(workspace, input, output) < 1:
        return None
    shares = SortMergeAllocation(workspace, input, output)
    runs = shares.runs(max(1, sizes.r), sizes.fudge) + shares.runs(max(1, sizes.s), sizes.fudge)
    return shares if runs <= sizes.memory else None


_ROUNDS = 6  #: Rounds of prices from buffers, and buffers from prices.


def _closed_grace(problem: Problem) -> Iterator[Allocation]:
    """The fewest buckets whose tables fit, and one more; I = M / (1 + sqrt(k b / a)), the rest for the output buffers."""
    memory = problem.sizes.memory
    fewest = math.ceil(problem.table / (memory - problem.reserve))
    for buckets, hidden in product((fewest, fewest + 1), _hidden_moves(problem)):
        input = float(min(problem.command, max(1, memory // 2)))
        for _ in range(_ROUNDS if buckets < memory else 0):
            output = max(1.0, (memory - input) / buckets)
            read, write, again = _prices(problem, HashPartitioning(buckets, input, output), hidden)
            # Buckets written in pieces are read back in pieces.
            writes = write.first + (again.first if problem.layout == "packed" else 0.0)

            def rule(price: float, writing: float = buckets * writes) -> float:
                return memory / (1 + math.sqrt(writing / price)) if price else 0.0

            input = max(1.0, _size(read, rule, problem.command))
            for rounded in problem.round_to_commands(input):
                yield from divided_grace(problem, buckets, rounded)


def divided_grace(problem: Problem, buckets: int, input: int) -> Iterator[GraceAllocation]:
    """Output buffers of all that is left, or whole commands of it."""
    memory = problem.sizes.memory
    workspace = math.ceil(problem.table / buckets)
    output = (memory - input) // buckets
    if output < 1 or workspace >= memory:
        return
    for pages in {output, problem.whole(output)}:
        yield GraceAllocation(buckets, pages, memory - buckets * pages, memory - workspace, workspace)


def _closed_hybrid(problem: Problem) -> Iterator[Allocation]:
    """I = sqrt(a F |R| / t), O = sqrt(b (F |R| - M) / (k t)): a, b prices of requests, t of a page that is written and read again."""
    for hidden in _hidden_moves(problem):
        yield from _priced_hybrid(problem, hidden)


def _priced_hybrid(problem: Problem, hidden: bool) -> Iterator[Allocation]:
    sizes, command = problem.sizes, problem.command
    table, memory = float(problem.table), sizes.memory
    reading, writing = problem.second_page()
    page = reading + writing * problem.drive.amplification(1, command)
    buckets = max(1, math.ceil((table - memory) / memory))
    input = output = min(command, max(1, memory // 4))
    for _ in range(_ROUNDS):
        spilled = max(1.0, table - memory + input)
        read, write, again = _prices(problem, HashPartitioning(buckets, input, output, min(1.0, spilled / table)), hidden)
        if problem.layout == "packed":
            write = RequestPrice(write.start + again.start, write.command + again.command)
        input = problem.whole(min(memory / 4, _size(read, lambda ms: math.sqrt(ms * table / page), command)))
        output = problem.whole(
            min(memory / 4, _size(write, lambda ms: math.sqrt(ms * spilled / (buckets * page)), command))  # noqa: B023
        )
        buckets = max(1, divided_hybrid(problem, input, output, problem.reserve).buckets)
    outputs = {output, *problem.round_to_commands(output)}
    if hidden:  # so long that a move to it is hidden
        outputs.add(problem.whole(problem.drive.move_ms / problem.drive.behind_ms + command))
    if problem.quicker:
        outputs |= {problem.quicker, command + problem.quicker}
    for first, second in product({input, *problem.round_to_commands(input)}, outputs):
        division = divided_hybrid(problem, first, second, problem.reserve)
        yield division
        yield divided_hybrid(problem, first, second, max(problem.reserve, second))
        # So much longer that a bucket of R or S takes a request fewer; the workspace, and with it what is kept, gets that much smaller.
        for pages in (sizes.r, sizes.s):
            bucket = pages * (1 - division.workspace / table) / max(1, division.buckets)
            requests = math.floor(bucket / second)
            if requests > pages / table:
                fewer = math.ceil((bucket - second * pages / table) / (requests - pages / table))
                yield divided_hybrid(problem, first, fewer, problem.reserve)
    # The longest output buffers that get by with one bucket fewer.
    longest = memory - problem.reserve - (table - memory + input) / max(1, buckets - 1)
    yield divided_hybrid(problem, input, max(1, min(output, math.floor(longest))), problem.reserve)


def divided_hybrid(problem: Problem, input: int, output: int, phase2_input: int) -> HybridAllocation:
    """Hybrid hash's division for given buffers, or Grace hash's where they leave no workspace."""
    sizes = problem.sizes
    shares = hybrid_division(sizes.r, sizes.memory, input, sizes.fudge, output=output, phase2_input=phase2_input)
    return shares or grace_as_hybrid(_best_grace(problem))


@lru_cache(maxsize=4)  # a search asks for it wherever buffers leave no workspace
def _best_grace(problem: Problem) -> GraceAllocation:
    best = closed_form(replace(problem, algorithm="grace-hash")).allocation
    assert isinstance(best, GraceAllocation)
    return best


_CLOSED: dict[str, Callable[[Problem], Iterator[Allocation]]] = dict(
    zip(JOINS, (_closed_nested_loops, _closed_sort_merge, _closed_grace, _closed_hybrid), strict=True)
)

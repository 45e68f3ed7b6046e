"""Joins and their buffers: what block nested loops and Grace hash cost, the buffers that cost least, and the requests of a join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flashsim.apps.labs.grading import Exercise, WholeNumber, answers, obeys
from flashsim.apps.labs.submission import Submission, SubmissionError
from models.allocation.buffers import Allocation, GraceAllocation, NestedLoopsAllocation
from models.haas import counts
from models.join_costs.base import Sizes

TITLE = "joins and their buffers: block nested loops and Grace hash, the best buffers, requests to and fro"

#: What a function of a join's costs takes: pages of R, of S and of memory, and the last argument, which says how memory is divided.
Division = tuple[int, int, int, int]


def draw_sizes(random: np.random.Generator) -> tuple[int, int, int]:
    """Several chunks of R, and at least as many pages as buckets."""
    memory = int(random.integers(12, 60))
    return int(memory * random.uniform(2, 5)), int(memory * random.uniform(3, 9)), memory


def draw_inner(random: np.random.Generator) -> Division:
    """A buffer of S of up to half of memory."""
    sizes = draw_sizes(random)
    return *sizes, int(random.integers(2, sizes[2] // 2))


def draw_buckets(random: np.random.Generator) -> Division:
    """From as many buckets as fit memory one by one."""
    r, s, memory = draw_sizes(random)
    return r, s, memory, int(random.integers(-(-r // (memory - 1)), memory - 2))


def draw_latency(random: np.random.Generator) -> tuple[int, int, int, float]:
    """Cost of a request beside a page: little on flash, much on a disk."""
    return *draw_sizes(random), float(random.choice([0.05, 0.5, 4, 25]))


def _counts(join: str, allocation: Allocation, r: int, s: int, memory: int) -> list[int]:
    phases = [phase.total for phase in counts(join, Sizes(r, s, r, s, memory, fudge=1), allocation)]
    return [sum(phase.requests for phase in phases), sum(phase.pages for phase in phases)]


def nested_loops(r: int, s: int, memory: int, inner: int) -> list[int]:
    """Requests and pages by `models.join_costs.bnl`."""
    return _counts("bnl", NestedLoopsAllocation(memory - inner, inner), r, s, memory)


def grace(r: int, s: int, memory: int, buckets: int) -> list[int]:
    """Requests and pages by `models.join_costs.grace_hash`."""
    output, table = memory // (buckets + 1), -(-r // buckets)
    return _counts("grace-hash", GraceAllocation(buckets, output, memory - buckets * output, memory - table, table), r, s, memory)


def costs_least(name: str, join: Callable[..., list[int]], least: Callable[[int, int], int]) -> Callable[[Submission, Any], str]:
    """Compare a division's cost with the least of all, from a least one on."""

    def fault(submission: Submission, instance: tuple[int, int, int, float]) -> str:
        r, s, memory, latency = instance
        choice = submission.ask(name, *instance)
        costs = {}
        for division in range(least(r, memory), memory):
            requests, pages = join(r, s, memory, division)
            costs[division] = pages + latency * requests
        if not isinstance(choice, WholeNumber) or choice not in costs:
            return f"{name}{instance} is {str(choice)[:40]}, but one of {min(costs)} to {memory - 1} is needed"
        best = min(costs, key=costs.__getitem__)
        worse = costs[choice] > costs[best] * (1 + 1e-9)
        return f"{name}{instance} is {choice}, which costs {costs[choice]:g}, but {best} costs {costs[best]:g}" if worse else ""

    return fault


def draw_keys(random: np.random.Generator) -> tuple[list[int | None], list[int | None]]:
    """Keys that come several times on both sides, and NULLs."""
    sides = [random.permutation([*random.integers(0, 12, 15), 0, 3, 3]) for _ in range(2)]
    build, probe = ([None if key == 0 else key for key in side.tolist()] for side in sides)
    return build, probe


def match(build: list[int | None], probe: list[int | None]) -> list[list[int]]:
    """Nested loops."""
    return [[other, place] for place, key in enumerate(probe) for other, its in enumerate(build) if its == key is not None]


def requests_of(submission: Submission, instance: Division) -> list[Any]:
    """The requests of a submission's plan; refuse one that breaks a rule, and pages that never meet."""
    r, s, memory, inner = instance
    answer, called = submission.ask("plan", *instance), f"plan{instance}"
    requests = answer if isinstance(answer, list) else [answer]
    most, ends, held, meets = {"R": memory - inner, "S": inner}, {"R": r, "S": s}, {"R": slice(0), "S": slice(0)}, np.zeros((r, s), bool)
    for number, request in enumerate(requests, start=1):
        match request:
            case ["R" | "S" as relation, WholeNumber(first), WholeNumber(count)] if 0 <= first < first + count <= ends[relation]:
                if count > most[relation]:
                    raise SubmissionError(f"{called}: request {number}, {request}, is of more than {most[relation]} pages")
                held[relation] = slice(first, first + count)
                meets[held["R"], held["S"]] = True
            case _:
                raise SubmissionError(f"{called}: request {number}, {str(request)[:60]}, asks for no pages that there are")
    if len(apart := np.argwhere(~meets)):
        raise SubmissionError(f"{called}: page {apart[0][0]} of R and page {apart[0][1]} of S never meet")
    return requests


def pages_fault(submission: Submission, instance: Division) -> str:
    """More requests or pages than S to and fro takes (W. Kim, "A New Way to Compute the Product and Join of Relations", SIGMOD 1980)."""
    r, s, memory, inner = instance
    plan, chunks = requests_of(submission, instance), -(-r // (memory - inner))
    last = s % inner or inner
    requests, pages = nested_loops(*instance)
    spared = [last if number % 2 == 0 else inner for number in range(chunks - 1)]
    most, asked = (requests - len(spared), pages - sum(spared)), (len(plan), sum(request[2] for request in plan))
    words = f"{asked[0]} requests for {asked[1]} pages, but {most[0]} for {most[1]} suffice"
    return f"plan{instance}: {words}" if asked[0] > most[0] or asked[1] > most[1] else ""


EXERCISES = {
    "nested_loops": Exercise(15, draw_inner, answers("nested_loops", nested_loops)),
    "best_inner": Exercise(15, draw_latency, costs_least("best_inner", nested_loops, lambda r, memory: 1)),
    "plan": Exercise(20, draw_inner, obeys(requests_of)),
    "plan: few pages": Exercise(15, draw_inner, pages_fault),
    "match": Exercise(10, draw_keys, answers("match", match)),
    "grace": Exercise(15, draw_buckets, answers("grace", grace)),
    "best_buckets": Exercise(10, draw_latency, costs_least("best_buckets", grace, lambda r, memory: -(-r // (memory - 1)))),
}

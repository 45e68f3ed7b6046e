"""Page fetching: a lower bound, the nearest segment of a page graph, and plans in a contest against the bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from flashsim.apps.labs.assignments.replacement import DrawnReferences, misses
from flashsim.apps.labs.grading import Exercise, WholeNumber, answers, obeys
from flashsim.apps.labs.submission import Submission, SubmissionError
from models.page_fetching import least_fetches

TITLE = "page fetching: a lower bound, segments of a page graph, and a contest against the bound"

#: Pairs of pages that must meet, in R's order.
Pairs = list[list[int]]


def draw_pairs(random: np.random.Generator, pages: int, chance: float) -> Pairs:
    """A random bipartite page graph; its pages bear numbers in no order."""
    numbers = random.permutation(1000)[: 2 * pages].tolist()
    ends = np.argwhere(random.random((pages, pages)) < chance).tolist() or [[0, 0]]
    return [[numbers[r], numbers[pages + s]] for r, s in ends]


def draw_bound(random: np.random.Generator) -> tuple[Pairs, int]:
    """Page pairs and frames of an instance in which the pages decide, or one in which the frames do; neither number tells which."""
    frames_decide = random.random() < 0.5
    while True:
        pairs, frames = draw_pairs(random, int(random.integers(5, 9)), random.uniform(0.2, 0.9)), int(random.integers(4, 8))
        if (lower_bound(pairs, frames) > len(np.unique(pairs))) == frames_decide:
            return pairs, frames


def lower_bound(pairs: Pairs, frames: int) -> int:
    """Of a bipartite graph; where the largest degree is less than the other frames, there are more pages than it would let one exclude."""
    return least_fetches(len(np.unique(pairs)), len(pairs), frames, frames)


def draw_held(random: np.random.Generator) -> tuple[Pairs, list[int]]:
    """Pairs of which some pages are in memory, where a segment without its own page, or with what is in memory, is another one."""
    while True:
        pairs = draw_pairs(random, 7, 0.35)
        held = random.permutation(np.unique(pairs))[:5].tolist()
        segments = segments_of(pairs)
        others = {min(sorted(segments), key=lambda page: len(segments[page])), _least(segments, held, with_itself=False)}
        sides = {min(each for each, _ in pairs), min(each for _, each in pairs)}
        if nearest(pairs, held) not in others | sides:
            return pairs, held


def segments_of(pairs: Pairs) -> dict[int, set[int]]:
    """Each page with its partners."""
    segments: dict[int, set[int]] = {}
    for pair in pairs:
        for page in pair:
            segments.setdefault(page, set()).update(pair)
    return segments


def _least(segments: dict[int, set[int]], held: list[int], *, with_itself: bool) -> int:
    return min(sorted(segments), key=lambda page: len(segments[page] - {*held, *([] if with_itself else [page])}))


def nearest(pairs: Pairs, held: list[int]) -> int:
    """The page whose segment has the fewest pages missing (Li et al., MDM 2009, section III); among equals the smallest number."""
    return _least(segments_of(pairs), held, with_itself=True)


def draw_join(random: np.random.Generator) -> tuple[Pairs, int]:
    """Some pairs a page, and fewer frames than the pages of either side."""
    return draw_pairs(random, int(random.integers(24, 36)), 0.13), int(random.integers(5, 12))


def plan_of(submission: Submission, instance: tuple[Pairs, int]) -> list[Any]:
    """A submission's plan; refuse a fetch that breaks a rule, and a pair that never meets."""
    pairs, frames = instance
    plan, held, left = submission.ask("plan", *instance), set[int](), {tuple(pair) for pair in pairs}
    plan = plan if isinstance(plan, list) else [plan]
    for number, fetch in enumerate(plan, start=1):
        where = f"plan of {len(pairs)} pairs in {frames} frames: fetch {number}, {str(fetch)[:40]}"
        match fetch:
            case [WholeNumber(page), WholeNumber() | None as leaves]:
                if page in held or (leaves is not None and leaves not in held):
                    raise SubmissionError(f"{where}: {f'{page} is in memory' if page in held else f'{leaves} is not in memory'}")
                held = held - {leaves} | {page}
                if len(held) > frames:
                    raise SubmissionError(f"{where}: now {len(held)} pages are in memory")
                left -= {pair for pair in left if held.issuperset(pair)}
            case _:
                raise SubmissionError(f"{where}: a page and the page that leaves, or None, are needed")
    if left:
        raise SubmissionError(f"plan({str(pairs)[:600]}, {frames}): pages {min(left)} never meet")
    return plan


def gain(submission: Submission, instance: tuple[Pairs, int]) -> float:
    """The share of avoidable fetches that the plan avoids: 0 as in their order with optimal replacement, 1 as the bound."""
    pairs, frames = instance
    usual, least = misses("opt", DrawnReferences(np.ravel(pairs).tolist(), frames)), lower_bound(pairs, frames)
    return (usual - len(plan_of(submission, instance))) / (usual - least)


EXERCISES = {
    "lower_bound": Exercise(20, draw_bound, answers("lower_bound", lower_bound)),
    "nearest": Exercise(20, draw_held, answers("nearest", nearest)),
    "plan": Exercise(30, draw_join, obeys(plan_of)),
    "plan: few fetches": Exercise(30, draw_join, lambda submission, instance: "", gain, {0.2: 0.25, 0.28: 0.5, 0.35: 1.0}),
}

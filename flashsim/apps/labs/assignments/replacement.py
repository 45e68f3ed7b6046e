"""Page replacement: LRU and CLOCK as they are defined, and a policy of one's own in a contest against the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from algorithms.replacement.base import replacement_policy
from flashsim.apps.labs.grading import Exercise, WholeNumber, in_no_order, is_like, obeys
from flashsim.apps.labs.submission import Submission, SubmissionError
from flashsim.core.replacement import FIRST_PAGE, NEVER_AGAIN
from flashsim.storage.pool.reference import WAS_RESIDENT, PlainPool

TITLE = "page replacement: LRU, CLOCK, and a contest against the optimum"


@dataclass(frozen=True)
class DrawnReferences:
    """Pages that are asked for one after the other, and the frames that there are."""

    pages: list[int]
    frames: int


_policy = cache(replacement_policy)


def outcomes(policy: str, references: DrawnReferences) -> list[int]:
    """What references do in a pool with a policy of `algorithms.replacement`.

    `WAS_RESIDENT`, `TOOK_FREE`, or the page that leaves, counted from `FIRST_PAGE`. Of all policies "opt" misses least (Belady, IBM Systems
    Journal 5(2), 1966).
    """
    pool, coming, uses = PlainPool(_policy(policy), references.frames), dict[int, int](), list[int]()
    for time in range(len(references.pages), 0, -1):  # when each page is asked for again
        page = references.pages[time - 1]
        uses.append(coming.get(page, NEVER_AGAIN))
        coming[page] = time
    return [pool.refer(FIRST_PAGE + page, next_use=use) for page, use in zip(references.pages, reversed(uses), strict=True)]


def misses(policy: str, references: DrawnReferences) -> int:
    """References to pages that are not in the pool."""
    return sum(outcome != WAS_RESIDENT for outcome in outcomes(policy, references))


def draw_stream(random: np.random.Generator) -> DrawnReferences:
    """Few pages in few frames, with runs of one page, pages that come back, and pages that never do."""
    frames = int(random.integers(3, 9))
    popular = random.integers(0, frames + 2, 150)
    once = np.where(random.random(150) < 0.2, 100 + np.arange(150), popular)
    return DrawnReferences(in_no_order([*range(frames), 0, frames + 1, 0, *once.tolist(), *range(2 * frames)], random), frames)


def draw_contest(random: np.random.Generator) -> DrawnReferences:
    """Popular pages, between which others are read once, numbered in no order; the optimum misses a fifth less than LRU."""
    while True:
        frames, parts, page = int(random.integers(30, 60)), list[int](), 10_000
        popular = frames * random.uniform(1.0, 1.6)
        for _ in range(int(random.integers(10, 16))):
            parts += (popular * random.random(int(random.integers(80, 160))) ** 2).astype(int).tolist()
            scan = int(random.integers(frames // 2, 2 * frames))
            parts += range(page, page + scan)
            page += scan
        references = DrawnReferences(in_no_order(parts, random), frames)
        least, usual = misses("opt", references), misses("lru", references)
        if usual - least >= 0.2 * usual:
            return references


def misses_of(submission: Submission, name: str, references: DrawnReferences, like: str = "") -> int:
    """Misses of a policy of a submission; refuses a victim that is not in the pool, or is another one than that of the policy `like`."""
    remote, pool, calls, count = submission.new(name, references.frames), set[int](), list[str](), 0
    right = outcomes(like, references) if like else [0] * len(references.pages)
    for page, outcome in zip(references.pages, right, strict=True):
        method, expected = "hit" if page in pool else "enter", outcome - FIRST_PAGE
        if page not in pool:
            count += 1
            if len(pool) == references.frames:
                leaving = remote.ask("victim")
                if like and not is_like(leaving, expected):
                    called = ", ".join(calls[-12:])
                    words = f"the victim is {str(leaving)[:40]}, but page {expected} had to leave; the last calls were {called}"
                    raise SubmissionError(f"{name}: {words}")
                if not isinstance(leaving, WholeNumber) or leaving not in pool:
                    words = f"its victim at miss {count} is {str(leaving)[:40]}, which is not in the pool"
                    raise SubmissionError(f"with {references.frames} frames {words}")
                pool.remove(leaving)
            pool.add(page)
        calls.append(f"{method}({page})")
        remote.tell(method, page)
    return count


def chooses_like(name: str, policy: str) -> Callable[[Submission, DrawnReferences], str]:
    """Compare every victim with that of a policy."""
    return obeys(lambda submission, references: misses_of(submission, name, references, policy))


def gain(submission: Submission, references: DrawnReferences) -> float:
    """The share of LRU's avoidable misses that the policy avoids: 0 as LRU, 1 as the optimum."""
    least, usual = misses("opt", references), misses("lru", references)
    return (usual - misses_of(submission, "Best", references)) / (usual - least)


EXERCISES = {
    "Lru": Exercise(30, draw_stream, chooses_like("Lru", "lru")),
    "Clock": Exercise(30, draw_stream, chooses_like("Clock", "clock")),
    "Best": Exercise(40, draw_contest, lambda submission, references: "", gain, {0.05: 0.25, 0.2: 0.5, 0.35: 1.0}),
}

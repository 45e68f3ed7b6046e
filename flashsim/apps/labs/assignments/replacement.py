"""Page replacement: LRU and CLOCK as they are defined, and a policy of one's own in a contest against the optimum."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from flashsim.apps.labs.grading import Exercise, Whole, in_no_order, is_like, obeys
from flashsim.apps.labs.submission import Submission, SubmissionError

TITLE = "page replacement: LRU, CLOCK, and a contest against the optimum"


@dataclass(frozen=True)
class References:
    """Pages that are asked for one after the other, and the frames that there are."""

    pages: list[int]
    frames: int


class Reference(Protocol):
    """A policy that says which page is right to evict."""

    def hit(self, page: int) -> None: ...

    def enter(self, page: int) -> None: ...

    def victim(self) -> Any: ...


class Lru:
    """The page that was asked for least recently."""

    def __init__(self, frames: int) -> None:
        self.pages: OrderedDict[int, None] = OrderedDict()

    def hit(self, page: int) -> None:
        self.pages.move_to_end(page)

    def enter(self, page: int) -> None:
        self.pages[page] = None

    def victim(self) -> int:
        return self.pages.popitem(last=False)[0]


class Clock:
    """Frames in a circle: a hand passes pages that were hit since it came by, and takes the first that was not."""

    def __init__(self, frames: int) -> None:
        self.frames: list[int] = []
        self.marks: dict[int, bool] = {}
        self.size, self.hand = frames, 0

    def hit(self, page: int) -> None:
        self.marks[page] = True

    def enter(self, page: int) -> None:
        if len(self.frames) < self.size:
            self.frames.append(page)
        else:
            self.frames[self.hand] = page
            self.hand = (self.hand + 1) % self.size
        self.marks[page] = False

    def victim(self) -> int:
        while self.marks[self.frames[self.hand]]:
            self.marks[self.frames[self.hand]] = False
            self.hand = (self.hand + 1) % self.size
        return self.frames[self.hand]


class Optimum:
    """The page that is asked for again last (Belady, IBM Systems Journal 5(2), 1966); it knows all references."""

    def __init__(self, pages: list[int]) -> None:
        self.uses: dict[int, list[int]] = {}
        for time in range(len(pages) - 1, -1, -1):
            self.uses.setdefault(pages[time], []).append(time)
        self.pages: set[int] = set()

    def hit(self, page: int) -> None:
        self.uses[page].pop()

    def enter(self, page: int) -> None:
        self.uses[page].pop()
        self.pages.add(page)

    def victim(self) -> int:
        leaving = max(self.pages, key=lambda page: (self.uses[page][-1] if self.uses[page] else 1 << 60, page))
        self.pages.remove(leaving)
        return leaving


def draw_stream(random: np.random.Generator) -> References:
    """Few pages in few frames, with runs of one page, pages that come back, and pages that never do."""
    frames = int(random.integers(3, 9))
    popular = random.integers(0, frames + 2, 150)
    once = np.where(random.random(150) < 0.2, 100 + np.arange(150), popular)
    return References(in_no_order([*range(frames), 0, frames + 1, 0, *once.tolist(), *range(2 * frames)], random), frames)


def draw_contest(random: np.random.Generator) -> References:
    """Popular pages, between which others are read once, numbered in no order; the optimum misses a fifth less than LRU."""
    while True:
        frames, parts, page = int(random.integers(30, 60)), list[int](), 10_000
        popular = frames * random.uniform(1.0, 1.6)
        for _ in range(int(random.integers(10, 16))):
            parts += (popular * random.random(int(random.integers(80, 160))) ** 2).astype(int).tolist()
            scan = int(random.integers(frames // 2, 2 * frames))
            parts += range(page, page + scan)
            page += scan
        references = References(in_no_order(parts, random), frames)
        least, usual = misses(Optimum(references.pages), references), misses(Lru(frames), references)
        if usual - least >= 0.2 * usual:
            return references


def misses(policy: Reference, references: References) -> int:
    """References to pages that are not in the pool; refuses a victim that is not there."""
    pool, count = set[int](), 0
    for page in references.pages:
        if page in pool:
            policy.hit(page)
            continue
        count += 1
        if len(pool) == references.frames:
            leaving = policy.victim()
            if not isinstance(leaving, Whole) or leaving not in pool:
                raise SubmissionError(
                    f"with {references.frames} frames its victim at miss {count} is {str(leaving)[:40]}, which is not in the pool"
                )
            pool.remove(leaving)
        policy.enter(page)
        pool.add(page)
    return count


class Called:
    """A policy in the process of a submission, as a `Reference`; beside it one that says which victim is right, if there is one."""

    def __init__(self, submission: Submission, name: str, frames: int, right: Reference | None = None) -> None:
        self.remote, self.right, self.name, self.history = submission.new(name, frames), right, name, list[str]()

    def hit(self, page: int) -> None:
        self._both("hit", page)

    def enter(self, page: int) -> None:
        self._both("enter", page)

    def victim(self) -> Any:
        leaving = self.remote.ask("victim")
        if self.right and not is_like(leaving, expected := self.right.victim()):
            told = ", ".join(self.history[-12:])
            raise SubmissionError(
                f"{self.name}: the victim is {str(leaving)[:40]}, but page {expected} had to leave; the last calls were {told}"
            )
        return leaving

    def _both(self, method: str, page: int) -> None:
        self.history.append(f"{method}({page})")
        self.remote.tell(method, page)
        if self.right:
            getattr(self.right, method)(page)


def chooses_like(name: str, reference: Callable[[int], Reference]) -> Callable[[Submission, References], str]:
    """Compare every victim with that of a reference."""
    return obeys(lambda submission, each: misses(Called(submission, name, each.frames, reference(each.frames)), each))


def gain(submission: Submission, references: References) -> float:
    """The share of LRU's avoidable misses that the policy avoids: 0 as LRU, 1 as the optimum."""
    least, usual = misses(Optimum(references.pages), references), misses(Lru(references.frames), references)
    return (usual - misses(Called(submission, "Best", references.frames), references)) / (usual - least)


EXERCISES = {
    "Lru": Exercise(30, draw_stream, chooses_like("Lru", Lru)),
    "Clock": Exercise(30, draw_stream, chooses_like("Clock", Clock)),
    "Best": Exercise(40, draw_contest, lambda submission, references: "", gain, {0.05: 0.25, 0.2: 0.5, 0.35: 1.0}),
}

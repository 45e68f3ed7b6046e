"""Replacement as in a first lecture: lists that are searched from end to end, by nothing that a member's file holds.

Each function takes a number of frames and references, pairs of a page and whether it is written, and yields for each the page that left,
`HIT`, or `FREE` where a frame was free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

HIT, FREE = "hit", "free"
References = Sequence[tuple[int, bool]]
Outcomes = Iterator[int | str]


class Entry:
    """A page in a frame, and all that any of these policies may want to know."""

    def __init__(self, page: int, now: int, write: bool) -> None:
        self.page, self.entered, self.last, self.count, self.mark, self.dirty = page, now, now, 1, 0, write


def by_key(key: Callable[[Entry], object], frames: int, references: References) -> Outcomes:
    """The page leaves for which something is least."""
    held: list[Entry] = []
    for now, (page, write) in enumerate(references):
        if found := [each for each in held if each.page == page]:
            found[0].last, found[0].count, found[0].dirty = now, found[0].count + 1, found[0].dirty or write
            yield HIT
            continue
        if len(held) == frames:
            leaving = min(held, key=key)  # type: ignore[arg-type]
            held.remove(leaving)
            yield leaving.page
        else:
            yield FREE
        held.append(Entry(page, now, write))


def in_a_circle(limit: int, entering: int, frames: int, references: References) -> Outcomes:
    """Pages move past the hand instead of the hand past them."""
    held: list[Entry] = []
    for now, (page, write) in enumerate(references):
        if found := [each for each in held if each.page == page]:
            found[0].mark = min(limit, found[0].mark + 1)
            yield HIT
            continue
        if len(held) == frames:
            while held[0].mark:
                held[0].mark -= 1
                held.append(held.pop(0))
            yield held.pop(0).page
        else:
            yield FREE
        held.append(Entry(page, now, write))
        held[-1].mark = entering


def sieve(frames: int, references: References) -> Outcomes:
    """Algorithm 1 of the paper on a list from head to tail, with the hand as an index; -1 stands for nil."""
    held: list[Entry] = []
    hand = -1
    for now, (page, write) in enumerate(references):
        if found := [each for each in held if each.page == page]:
            found[0].mark = 1
            yield HIT
            continue
        if len(held) == frames:
            at = hand if hand >= 0 else len(held) - 1
            while held[at].mark:
                held[at].mark = 0
                at = at - 1 if at > 0 else len(held) - 1
            hand = at - 1
            yield held.pop(at).page
        else:
            yield FREE
        held.insert(0, Entry(page, now, write))
        if hand >= 0:
            hand += 1


def clean_first(window: int, frames: int, references: References) -> Outcomes:
    """The oldest clean page of so many percent of the frames, or else the oldest page."""
    held: list[Entry] = []
    for now, (page, write) in enumerate(references):
        if found := [each for each in held if each.page == page]:
            held.remove(found[0])
            held.append(found[0])
            found[0].dirty = found[0].dirty or write
            yield HIT
            continue
        if len(held) == frames:
            clean = [each for each in held[: frames * window // 100] if not each.dirty]
            leaving = (clean or held)[0]
            held.remove(leaving)
            yield leaving.page
        else:
            yield FREE
        held.append(Entry(page, now, write))


def write_reordering(frames: int, references: References) -> Outcomes:
    """LRU in which the mark of a dirty page that comes to the end sends it back once."""
    held: list[Entry] = []
    for now, (page, write) in enumerate(references):
        if found := [each for each in held if each.page == page]:
            held.remove(found[0])
            held.append(found[0])
            found[0].dirty, found[0].mark = found[0].dirty or write, 0
            yield HIT
            continue
        if len(held) == frames:
            while held[0].dirty and not held[0].mark:
                held[0].mark = 1
                held.append(held.pop(0))
            yield held.pop(0).page
        else:
            yield FREE
        held.append(Entry(page, now, write))


def counted_with_age(average: int, frames: int, references: References) -> Outcomes:
    """One list in ascending order of counts, in which a page goes behind all that count no more than it."""
    held: list[Entry] = []
    for now, (page, write) in enumerate(references):
        if found := [each for each in held if each.page == page]:
            one = found[0]
            held.remove(one)
            one.count += 1
        else:
            one = Entry(page, now, write)
            yield held.pop(0).page if len(held) == frames else FREE
        held.insert(sum(each.count <= one.count for each in held), one)
        if found:
            if sum(each.count for each in held) > average * len(held):
                for each in held:
                    each.count = -(-each.count // 2)
            yield HIT


#: What members do with these parameters, by their names.
NAIVE: list[tuple[str, dict[str, int], Callable[[int, References], Outcomes]]] = [
    ("lru", {}, partial(by_key, lambda entry: entry.last)),
    ("mru", {}, partial(by_key, lambda entry: -entry.last)),
    ("fifo", {}, partial(by_key, lambda entry: entry.entered)),
    ("lfu", {"average": 0}, partial(by_key, lambda entry: (entry.count, entry.last))),
    ("lfu", {"average": 1}, partial(counted_with_age, 1)),
    ("lfu", {"average": 2}, partial(counted_with_age, 2)),
    ("lfu", {"average": 3}, partial(counted_with_age, 3)),
    ("clock", {}, partial(in_a_circle, 1, 0)),
    ("clock", {"entering": 1}, partial(in_a_circle, 1, 1)),
    ("gclock", {}, partial(in_a_circle, 5, 1)),
    ("gclock", {"limit": 2, "entering": 0}, partial(in_a_circle, 2, 0)),
    ("gclock", {"limit": 3, "entering": 9}, partial(in_a_circle, 3, 3)),
    ("sieve", {}, sieve),
    ("cflru", {"window": 0}, partial(clean_first, 0)),
    ("cflru", {"window": 50}, partial(clean_first, 50)),
    ("cflru", {"window": 100}, partial(clean_first, 100)),
    ("lru-wsr", {}, write_reordering),
]

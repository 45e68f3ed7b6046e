"""Disk scheduling: which waiting request an arm serves next, and the shortest way to serve all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flashsim.apps.labs.grading import Exercise, WholeNumber, is_like
from flashsim.apps.labs.submission import Submission

TITLE = "disk scheduling: SSTF, LOOK, C-LOOK, and the shortest way"


@dataclass(frozen=True)
class Queue:
    """An arm and its requests: those that wait first, and those that come later, one after each that was served."""

    waiting: list[int]
    later: list[int]
    head: int
    direction: int


def draw_queue(random: np.random.Generator) -> Queue:
    """Few cylinders near the arm, so that requests lie equally far, at the arm and behind it."""
    cylinders = int(random.choice([12, 40, 400]))
    head = int(random.integers(4, cylinders - 4))
    ties = [head - 3, head + 3, head, head + 2, head - 2]
    waiting = [*random.permutation(ties).tolist(), *random.integers(0, cylinders, 4).tolist()]
    return Queue(waiting, random.integers(0, cylinders, 30).tolist(), head, int(random.choice([-1, 1])))


def sstf(waiting: list[int], head: int, direction: int) -> int:
    """The first to come of equally near requests."""
    return min(range(len(waiting)), key=lambda index: abs(waiting[index] - head))


def look(waiting: list[int], head: int, direction: int) -> int:
    """The nearest ahead, where the arm is counts as ahead; if there is none, the nearest behind."""
    ahead = [index for index, cylinder in enumerate(waiting) if (cylinder - head) * direction >= 0]
    return min(ahead or range(len(waiting)), key=lambda index: abs(waiting[index] - head))


def c_look(waiting: list[int], head: int, direction: int) -> int:
    """The nearest inwards; if there is none, the outermost."""
    ahead = [index for index, cylinder in enumerate(waiting) if cylinder >= head]
    return min(ahead or range(len(waiting)), key=lambda index: waiting[index])


def schedules(name: str, reference: Callable[[list[int], int, int], int], *, directed: bool) -> Callable[[Submission, Queue], str]:
    """Compare the choices of a function with those of a reference, until all requests are served."""

    def fault(submission: Submission, queue: Queue) -> str:
        waiting, later, head, direction = list(queue.waiting), list(queue.later), queue.head, queue.direction
        while waiting:
            arguments = [waiting, head, direction] if directed else [waiting, head]
            choice, right = submission.ask(name, *arguments), reference(waiting, head, direction)
            if not is_like(choice, right):
                called = f"{name}({', '.join(map(str, arguments))})"
                return f"{called} is {str(choice)[:40]}, but the request at place {right}, cylinder {waiting[right]}, is next"
            cylinder = waiting.pop(right)
            direction = direction if cylinder == head else 1 if cylinder > head else -1
            head = cylinder
            if later:
                waiting.append(later.pop())
        return ""

    return fault


def draw_tour(random: np.random.Generator) -> tuple[list[int], int]:
    """Requests on both sides of the arm, of which some lie on one cylinder; the nearer end is on either side."""
    head, near, away = int(random.integers(100, 900)), int(random.integers(5, 30)), int(random.integers(40, 90))
    low, high = (near, away) if random.random() < 0.5 else (away, near)
    inside = random.integers(head - low, head + high + 1, 6).tolist()
    return random.permutation([*inside, inside[0], head - low, head + high]).tolist(), head


def way_length(order: list[int], head: int) -> int:
    """Cylinders that the arm crosses."""
    return int(np.abs(np.diff([head, *order])).sum())


def tour_fault(submission: Submission, instance: tuple[list[int], int]) -> str:
    """An order that leaves nothing out and is no longer than to the nearer end first, and then to the other."""
    cylinders, head = instance
    order: Any = submission.ask("shortest_way", cylinders, head)
    called = f"shortest_way({cylinders}, {head})"
    if not isinstance(order, list) or not all(isinstance(each, WholeNumber) for each in order) or sorted(order) != sorted(cylinders):
        return f"{called} is {str(order)[:80]}, but each request must be served once"
    least = max(cylinders) - min(cylinders) + min(head - min(cylinders), max(cylinders) - head)
    length = way_length(order, head)
    return "" if length == least else f"{called} crosses {length} cylinders, but {least} suffice"


EXERCISES = {
    "sstf": Exercise(20, draw_queue, schedules("sstf", sstf, directed=False)),
    "look": Exercise(30, draw_queue, schedules("look", look, directed=True)),
    "c_look": Exercise(20, draw_queue, schedules("c_look", c_look, directed=False)),
    "shortest_way": Exercise(30, draw_tour, tour_fault),
}

"""Write amplification against theory: a drive that collects its blocks in turn, and the equations of what it must measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from flashsim.apps.labs.grading import Exercise, WholeNumber, answers, in_no_order
from flashsim.apps.labs.submission import Submission
from models.write_amplification import fifo, fifo_hot_cold, greedy, separate_pools

TITLE = "write amplification against theory: a drive that collects in turn, its equation, greedy, hot and cold pages"

#: The relative error of solved equations, and the share by which a division of spare pages may be worse than the best one;
#: what each pool has at least, so that it has an amplification.
_ERROR, _WORSE, _LEAST = 1e-5, 1e-3, 1e-6


def draw_writes(random: np.random.Generator) -> tuple[list[int], int, int]:
    """A small drive that is filled, and then overwritten several times, some pages more often than others."""
    blocks, pages = int(random.integers(4, 9)), int(random.choice([2, 4, 8]))
    logical = int(random.uniform(0.5, 0.9) * (blocks - 1) * pages)
    writes = [*range(logical), *(logical * random.random(300) ** 2).astype(int).tolist()]
    return in_no_order(writes, random), blocks, pages


def programs(writes: list[int], blocks: int, pages: int) -> int:
    """The flash as a log: what was programmed a whole flash ago leaves, and is programmed again if it is still the newest."""
    log: list[int] = []
    newest: dict[int, int] = {}

    def program(page: int) -> None:
        newest[page] = len(log)
        log.append(page)

    for page in writes:
        while len(log) % pages == 0:
            gone = len(log) - blocks * pages
            valid = [log[place] for place in range(gone, gone + pages) if gone >= 0 and newest[log[place]] == place]
            for each in valid:
                program(each)
            if len(valid) < pages:
                break
        program(page)
    return len(log)


def draw_alpha(random: np.random.Generator) -> tuple[float]:
    """Usable over logical pages."""
    return (round(random.uniform(1.05, 1.8), 4),)


def draw_greedy(random: np.random.Generator) -> tuple[float, int]:
    """Alpha and pages of a block, few, so that greedy collection gains."""
    return *draw_alpha(random), int(random.integers(2, 17))


def draw_hot_cold(random: np.random.Generator) -> tuple[float, float, float]:
    """Alpha, the share of the writes that goes to hot pages, and their share of the data."""
    return *draw_alpha(random), round(random.uniform(0.7, 0.95), 3), round(random.uniform(0.05, 0.3), 3)


def division_fault(submission: Submission, instance: tuple[float, float, float]) -> str:
    """A division that moves more than the best one, or an amplification that is not its own."""
    answer: Any = submission.ask("divide", *instance)
    best = separate_pools(*instance)
    where = f"divide{instance} is {str(answer)[:80]}"
    match answer:
        case [WholeNumber() | float() as share, WholeNumber() | float() as amplification] if _LEAST <= share <= 1 - _LEAST:
            own = separate_pools(*instance, share).write_amplification
            if own > best.write_amplification * (1 + _WORSE):
                return f"{where}: that share amplifies by {own:.4f}, and {best.share:.3f} by {best.write_amplification:.4f}"
            return "" if abs(amplification - own) <= _WORSE * own else f"{where}, but that share amplifies by {own:.4f}"
    return f"{where}, but a share between 0 and 1 and an amplification are needed"


EXERCISES = {
    "programs": Exercise(30, draw_writes, answers("programs", programs)),
    "in_turn": Exercise(20, draw_alpha, answers("in_turn", fifo, _ERROR)),
    "greedy": Exercise(10, draw_greedy, answers("greedy", greedy, _ERROR)),
    "hot_cold": Exercise(20, draw_hot_cold, answers("hot_cold", fifo_hot_cold, _ERROR)),
    "divide": Exercise(20, draw_hot_cold, division_fault),
}

"""A flash translation layer: victims by greedy and cost-benefit collection, write amplification, and a page map that loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from flashsim.apps.labs.grading import Exercise, WholeNumber, answers, in_no_order, is_like, obeys
from flashsim.apps.labs.submission import Submission, SubmissionError

TITLE = "a flash translation layer: greedy and cost-benefit collection, write amplification, and a page map"

#: Flash pages programmed beyond those of the greedy reference that still bring the points of few moves.
_TOLERANCE = 1.1


@dataclass(frozen=True)
class ClosedBlocks:
    """Valid pages and ages of closed blocks, and pages of a block."""

    valid: list[int]
    age: list[int]
    pages: int


def draw_blocks(random: np.random.Generator) -> ClosedBlocks:
    """Blocks of which two have the fewest valid pages, and no two the same benefit over cost; each rule has another victim."""
    while True:
        pages = int(random.choice([8, 16, 64]))
        valid, age = random.integers(2, pages, 10), random.integers(1, 1000, 10)
        valid[random.permutation(10)[:2]] = valid.min()
        blocks = ClosedBlocks(valid.tolist(), random.permutation(age).tolist(), pages)
        ratios = [benefit(blocks, place) for place in range(10)]
        if len(set(ratios)) == 10 and len({cost_benefit(blocks), greedy(blocks), ages(blocks), of_disks(blocks)}) == 4:
            return blocks


def greedy(blocks: ClosedBlocks) -> int:
    """The fewest valid pages; among equals the first."""
    return blocks.valid.index(min(blocks.valid))


def benefit(blocks: ClosedBlocks, place: int) -> Fraction:
    """Space that is gained, times how long the block stayed unchanged, over what it costs to read and write its valid pages."""
    return Fraction((blocks.pages - blocks.valid[place]) * blocks.age[place], 2 * blocks.valid[place])


def cost_benefit(blocks: ClosedBlocks) -> int:
    """The most benefit over cost (Kawaguchi, Nishioka and Motoda, "A Flash-Memory Based File System", USENIX 1995)."""
    return max(range(len(blocks.valid)), key=lambda place: benefit(blocks, place))


def of_disks(blocks: ClosedBlocks) -> int:
    """As of log-structured disks, where a block is read as a whole (Rosenblum and Ousterhout, ACM TOCS 10(1), 1992)."""
    ratios = [Fraction((blocks.pages - valid) * age, blocks.pages + valid) for valid, age in zip(blocks.valid, blocks.age, strict=True)]
    return ratios.index(max(ratios))


def ages(blocks: ClosedBlocks) -> int:
    """The longest unchanged."""
    return blocks.age.index(max(blocks.age))


def chooses(name: str, reference: Callable[[ClosedBlocks], int]) -> Callable[[Submission, ClosedBlocks], str]:
    """Compare a choice with that of a reference."""

    def fault(submission: Submission, blocks: ClosedBlocks) -> str:
        choice, right = submission.ask(name, blocks.valid, blocks.age, blocks.pages), reference(blocks)
        called = f"{name}({blocks.valid}, {blocks.age}, {blocks.pages})"
        return "" if is_like(choice, right) else f"{called} is {str(choice)[:40]}, but block {right} is the victim"

    return fault


def draw_victims(random: np.random.Generator) -> tuple[list[int], int]:
    """Valid pages of victims, and pages of a block."""
    pages = int(random.choice([8, 64, 256]))
    return random.integers(1, pages - 1, 20).tolist(), pages


def amplification(valid: list[int], pages: int) -> float:
    """All that was programmed over what the host wrote: each victim makes room for its invalid pages."""
    return len(valid) * pages / sum(pages - each for each in valid)


@dataclass(frozen=True)
class DrawnDrive:
    """Erase blocks, their pages, logical pages, and the writes of a host."""

    blocks: int
    pages: int
    logical: int
    writes: list[int]


def draw_drive(random: np.random.Generator) -> DrawnDrive:
    """A small drive that is filled, and then overwritten: nine of ten writes go to a fifth of its pages, whose numbers are in no order."""
    blocks, pages = int(random.integers(10, 16)), int(random.choice([4, 8]))
    logical = int(0.85 * (blocks - 2) * pages)
    hot = random.random(600) < 0.9
    writes = np.where(hot, random.integers(0, logical // 5, 600), random.integers(0, logical, 600))
    return DrawnDrive(blocks, pages, logical, in_no_order([*random.permutation(logical).tolist(), *writes.tolist()], random))


class FlashChip:
    """The flash of a drive: what each page holds, and where the newest version of each logical page is."""

    def __init__(self, drive: DrawnDrive) -> None:
        self.drive = drive
        self.content: list[list[int]] = [[] for _ in range(drive.blocks)]
        self.newest: dict[int, tuple[int, int]] = {}
        self.programs = 0

    def carry_out(self, operation: Any, page: int) -> str:
        """One operation of a write of a page; what it breaks."""
        given: int
        match operation:
            case ["program", WholeNumber(block), WholeNumber(slot), WholeNumber(given)] if 0 <= block < self.drive.blocks:
                if given != page:
                    return f"page {given} is programmed"
            case ["move", WholeNumber(source), WholeNumber(place), WholeNumber(block), WholeNumber(slot)] if (
                min(source, block, place) >= 0 and max(source, block) < self.drive.blocks
            ):
                if place >= len(self.content[source]):
                    return f"page {place} of block {source} is moved, but is empty"
                given = self.content[source][place]
                if self.newest.get(given) != (source, place):
                    return f"page {place} of block {source} is moved, but is no longer valid"
            case ["erase", WholeNumber(block)] if 0 <= block < self.drive.blocks:
                self.content[block] = []
                return ""
            case _:
                return "that is no operation"
        if slot != len(self.content[block]) or slot >= self.drive.pages:
            return f"page {slot} of block {block} cannot be programmed: {len(self.content[block])} of its {self.drive.pages} pages are"
        self.content[block].append(given)
        self.newest[given] = (block, slot)
        self.programs += 1
        return ""

    def lost_pages(self) -> list[int]:
        """Logical pages whose newest version is on the flash no more."""
        return [
            page for page, (block, slot) in self.newest.items() if slot >= len(self.content[block]) or self.content[block][slot] != page
        ]


def run(submission: Submission, drive: DrawnDrive) -> FlashChip:
    """Let a layer serve the writes; what breaks a rule of flash, loses a page or reads the wrong place is refused."""
    flash, layer = FlashChip(drive), submission.new("Ftl", drive.logical, drive.blocks, drive.pages)
    for number, page in enumerate(drive.writes):
        operations: Any = layer.ask("write", page)
        where = f"write {number + 1}, of page {page}"
        if not isinstance(operations, list):
            raise SubmissionError(f"{where}, returns {str(operations)[:40]}, but a list of operations is needed")
        for operation in operations:
            if broken := flash.carry_out(operation, page):
                raise SubmissionError(f"{where}: {str(operation)[:60]}: {broken}")
        if sum(operation[0] == "program" for operation in operations) != 1:
            raise SubmissionError(f"{where}: its page must be programmed once")
        if lost := flash.lost_pages():
            raise SubmissionError(f"{where}: an erase loses page {lost[0]}")
        if number % 5 == 0:
            answer, right = layer.ask("read", page := drive.writes[number // 2]), [*flash.newest[page]]
            if not is_like(answer, right):
                raise SubmissionError(f"read({page}) after {where}, returns {str(answer)[:40]}, but {right}, its block and slot, is right")
    return flash


def least_programs(drive: DrawnDrive) -> int:
    """Programs of a greedy layer with one open block and one to spare."""
    owners: list[set[int]] = [set() for _ in range(drive.blocks)]
    place: dict[int, int] = {}
    free, open_block, filled, programs = list(range(1, drive.blocks)), 0, 0, 0
    for page in drive.writes:
        while filled == drive.pages:
            open_block, filled = free.pop(), 0
            if not free:
                victim = min((block for block in range(drive.blocks) if block != open_block), key=lambda block: len(owners[block]))
                owners[open_block], owners[victim], filled = owners[victim], set(), len(owners[victim])
                place |= dict.fromkeys(owners[open_block], open_block)
                programs += filled
                free.append(victim)
        if page in place:
            owners[place[page]].discard(page)
        owners[open_block].add(page)
        place[page] = open_block
        filled, programs = filled + 1, programs + 1
    return programs


def moves_fault(submission: Submission, drive: DrawnDrive) -> str:
    """More programs than greedy collection takes, and a tenth."""
    programs, least = run(submission, drive).programs, least_programs(drive)
    words = f"{programs} pages are programmed for {len(drive.writes)} writes, but greedy collection takes {least}"
    return "" if programs <= _TOLERANCE * least else words


EXERCISES = {
    "greedy": Exercise(15, draw_blocks, chooses("greedy", greedy)),
    "cost_benefit": Exercise(15, draw_blocks, chooses("cost_benefit", cost_benefit)),
    "amplification": Exercise(10, draw_victims, answers("amplification", amplification, 1e-6)),
    "Ftl": Exercise(40, draw_drive, obeys(run)),
    "Ftl: few moves": Exercise(20, draw_drive, moves_fault),
}

"""N-Hash's memory divided for a drive: buckets, output and input buffers and sub-buffers by a rule in closed form, and by search.

The published rule makes all buffers as long as one another, and leaves to chance what is left over for the input buffer.  Here the fixed
cost of reads is weighed against that of writes.  Reading P pages in blocks of I takes a P / I besides the pages themselves, with a the
price of a read.  Circular buffers with M - I pages in all, of which a call empties a share u, take w P / (u (M - I)), with w the price of
a call and of the requests in it.  The sum is least at

    I = M / (1 + sqrt(w / (u a))).

Sub-buffers are a page: what is left behind in partly filled ones is then least, and a call makes two requests of every circular buffer
however finely it is divided.  Where commands do not overlap these two cost more than the call saves, and buffers are halved, which makes
one request of each, or not divided at all: then they are as long as the longest command, or as the longest that goes on from the last one
at less cost.  All of this is tried, and the published rule too.

What a length gains by being a power of two or close above one, so that sub-buffers of many sizes divide it, no formula of lengths knows:
such lengths are tried with every sub-buffer, and taken where they are quicker by more than `CLOSE`.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from models.allocation.buffers import FUDGE, GraceAllocation, exact
from models.allocation.divisions import grace_hash
from models.join_costs._partitions import published_part
from models.partition_costs import Division, Input, cost, pattern
from models.psync import ParallelDrive, Processor

SPREAD = 0.02  #: Pages of a table that chance may add to a bucket, as a share of memory, as in `models.ssd_joins`.
WORTH = 0.02  #: The closed form is right to about so much: what it tells to gain less is left alone.
#: Share by which a length that many sub-buffers divide must be quicker than the closed form's.
CLOSE = 0.01
_LADDER = (1, 9 / 8, 3 / 2)  #: Such lengths, in powers of two.
_ROUNDS = 6  #: Rounds of prices from buffers, and buffers from prices.


@dataclass(frozen=True)
class PartitionProblem:
    """A Grace hash join whose partition phase is to be short."""

    files: tuple[Input, ...]  #: What is partitioned: R first.
    #: Pages.
    memory: int
    drive: ParallelDrive
    processor: Processor | None = None
    #: As in `models.partition_costs`.
    method: str = "n-hash"
    fudge: float = FUDGE

    @property
    def page_size(self) -> int:
        return self.files[0].page_size

    def seconds(self, division: Division) -> float:
        return sum(cost(self.method, file, division, self.drive, self.processor).total for file in self.files)

    def fewest(self) -> int:
        """Buckets whose tables fit beside a command of input, and what chance may add to one."""
        command = self.drive.read.command // self.page_size
        reserve = min(max(1, self.memory // 4), command + math.ceil(SPREAD * self.memory))
        return max(1, math.ceil(max(1, self.files[0].pages) * exact(self.fudge) / (self.memory - reserve)))

    def sub_buffers(self, output: int) -> list[int]:
        """Bytes of sub-buffers that divide an output buffer of `output` pages evenly, ascending: whole pages, or the halves of one page."""
        sizes = [pages * self.page_size for pages in range(1, output + 1) if output % pages == 0]
        return [self.page_size // 2, *sizes] if output == 1 else sizes

    def division(self, buckets: int, output: int, sub_buffer: int) -> Division | None:
        """The rest of memory is the input buffer; None if there is no rest."""
        rest = self.memory - buckets * output
        return Division(buckets, output, rest, sub_buffer) if output >= 1 and rest >= 1 else None


def published_division(problem: PartitionProblem) -> Division:
    """shin2016, equations 1 to 3, with sub-buffers of 8 KiB or, where a buffer is one page, of half a page.

    Raises InvalidParameterError: memory not above sqrt(F |R|).
    """
    paper = grace_hash(problem.files[0].pages, problem.files[-1].pages, problem.memory, problem.fudge)
    sub_buffer = round(published_part(paper.output, problem.page_size) * problem.page_size)
    return Division(paper.buckets, paper.output, paper.input, sub_buffer)


def division_by_rule(problem: PartitionProblem, worth: float = WORTH) -> Division:
    """The rule's best division in whole pages, or the published one where the closed form knows of no gain that is worth it.

    Raises InvalidParameterError: as `published_division`.
    """
    paper = published_division(problem)
    best_rule, round_lengths = (least(problem, [paper, *divisions]) for divisions in (_by_rule(problem), _of_round_lengths(problem)))
    if problem.seconds(round_lengths) * (1 + CLOSE) < problem.seconds(best_rule):
        best_rule = round_lengths
    return best_rule if problem.seconds(best_rule) * (1 + worth) <= problem.seconds(paper) else paper


def search(problem: PartitionProblem, outputs: Sequence[int], more: Sequence[int]) -> Division:
    """The best of all divisions with output buffers of some lengths, in pages, and with `more` buckets more than the fewest."""
    paper = published_division(problem)
    counts = {paper.buckets, *(problem.fewest() + each for each in more)}
    divisions = (
        problem.division(buckets, output, sub_buffer)
        for buckets, output in product(sorted(counts), outputs)
        for sub_buffer in problem.sub_buffers(output)
    )
    return least(problem, [paper, *(each for each in divisions if each)])


def least(problem: PartitionProblem, divisions: Iterable[Division]) -> Division:
    """The quickest, and the first of several."""
    return min(divisions, key=problem.seconds)


def _by_rule(problem: PartitionProblem) -> Iterator[Division]:
    fewest, write = problem.fewest(), problem.drive.write
    for buckets, which in product({published_division(problem).buckets, fewest, fewest + 1}, (0, -2, -1)):
        output = _output(problem, buckets, which)
        outputs = {math.floor(output), math.ceil(output)}
        if which:
            for longest in (write.command // problem.page_size, write.going_on // problem.page_size):
                outputs |= {longest, math.floor(output / max(1, longest)) * longest, longest // 2}
        for pages in outputs:
            division = problem.division(buckets, pages, _sub_buffer(problem, pages, which)) if pages >= 1 else None
            if division:
                yield division


def _of_round_lengths(problem: PartitionProblem) -> Iterator[Division]:
    fewest = problem.fewest()
    for buckets in {published_division(problem).buckets, fewest, fewest + 1}:
        powers = range((problem.memory // buckets).bit_length())
        for output in {int(step * 2**power) for step in _LADDER for power in powers}:
            yield from filter(None, (problem.division(buckets, output, size) for size in problem.sub_buffers(output)))


def _sub_buffer(problem: PartitionProblem, output: int, which: int) -> int:
    sizes = problem.sub_buffers(output)
    return sizes[max(which, -len(sizes))]


def _output(problem: PartitionProblem, buckets: int, which: int) -> float:
    input = problem.memory / 2
    for _ in range(_ROUNDS):
        output = max(1, math.floor((problem.memory - input) / buckets))
        input = _input(problem, Division(buckets, output, max(1, math.floor(input)), _sub_buffer(problem, output, which)))
    return (problem.memory - input) / buckets


def _input(problem: PartitionProblem, division: Division) -> float:
    """I by the rule of this module, with the prices that a division of about the same lengths has."""
    drive, processor, page = problem.drive, problem.processor or Processor(), problem.page_size
    flushes = pattern(problem.method, problem.files[-1], division)
    size = max(1.0, flushes.length * problem.files[-1].tuple_size)
    reading = drive.read.waiting(division.input * page) + drive.busy_ms + processor.call_ms
    request = drive.write.busy(size) - size * drive.write.byte_ms + processor.command_ms
    writing = drive.write.waiting(size) + processor.call_ms + max(1.0, flushes.at_once) * max(0.0, request)
    input = problem.memory / (1 + math.sqrt(writing / (max(flushes.fill, 1e-9) * reading))) if reading > 0 else 1.0
    command = drive.read.command // page
    return min(input, command) if drive.read.depth == 1 else input


def as_grace(problem: PartitionProblem, division: Division) -> GraceAllocation:
    """The division as the join takes it: the second phase has a bucket's table, and what is left for input."""
    workspace = math.ceil(problem.files[0].pages * exact(problem.fudge) / division.buckets)
    return GraceAllocation(division.buckets, division.output, division.input, problem.memory - workspace, workspace)

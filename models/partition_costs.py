"""Cost of a hash join's partition phase on a drive, by partition method: reads of a + b * size, and calls of some requests.

The closed form reads in requests of a whole input buffer each, and writes by the `models.flush_patterns` of the method.  While a core works
the drive rests, as with one strand; ParaHash has several, which wait for one another only where the drive or the cores are busy.
"""

from dataclasses import dataclass
from statistics import fmean

from flashsim.core.errors import check_known, check_least
from flashsim.core.units import MILLISECONDS_A_SECOND
from models.flush_patterns import FlushPattern, n_hash, traditional
from models.psync import ParallelDrive, Processor

METHODS = ("traditional", "n-hash", "para-hash")


@dataclass(frozen=True)
class Input:
    """A file that is partitioned: its pages, their bytes, its tuples, and which share of them goes to disk."""

    pages: int
    page_size: int
    tuples: float
    share: float = 1.0

    @property
    def tuple_size(self) -> float:
        return self.pages * self.page_size / max(1.0, self.tuples)


@dataclass(frozen=True)
class Division:
    """Memory of the phase: B buckets, pages of an output buffer and of the input buffer, and bytes of a sub-buffer (0: not divided)."""

    buckets: int
    output: int
    input: int
    sub_buffer: int = 0

    def __post_init__(self) -> None:
        check_least(1, buckets=self.buckets, output=self.output, input=self.input)

    @property
    def pages(self) -> int:
        return self.buckets * self.output + self.input


@dataclass(frozen=True)
class PartitionCost:
    """Seconds of reading, writing and computing, and all together: their sum with one strand."""

    read: float
    write: float
    cpu: float
    total: float
    pattern: FlushPattern


def pattern(method: str, file: Input, division: Division) -> FlushPattern:
    check_known("partition method", method, METHODS)
    size, tuples = division.output * file.page_size, file.tuples * file.share
    if method != "n-hash":
        return traditional(division.buckets, size / file.tuple_size, tuples)
    sub_buffer = division.sub_buffer or size
    room = max(1.0, min(sub_buffer, size) / file.tuple_size)  # few tuples are told as larger than they are
    return n_hash(division.buckets, max(1, size // sub_buffer), room, tuples)


def cost(
    method: str, file: Input, division: Division, drive: ParallelDrive, processor: Processor | None = None, strands: int = 1, cores: int = 1
) -> PartitionCost:
    """The closed form of one of `METHODS`.

    Of ``para-hash``, k strands keep k requests outstanding; their buffers are the division's, each strand its share of them.

    Raises InvalidParameterError or UnknownNameError: no such method; a strand or a core less than one.
    """
    check_least(1, strands=strands, cores=cores)
    flushes, processor = pattern(method, file, division), processor or Processor()
    size, block = flushes.length * file.tuple_size, division.input * file.page_size
    calls, requests = flushes.calls + (1 if method == "n-hash" else flushes.last), flushes.requests + flushes.last
    reads, turns = file.pages / division.input, min(file.pages / division.input, flushes.calls)
    reading = drive.read.milliseconds(reads, reads, block) + turns * drive.turn_ms
    rest = max(0.0, file.tuples * file.share - flushes.tuples) * file.tuple_size
    at_end = rest / max(1.0, flushes.last)
    # Where circular buffers wrap, requests of a call have any length up to twice the mean, of which these two stand for all.
    # That only matters where each command is waited for, as the others queue.
    wrap = method == "n-hash" and drive.write.depth == 1 and 0 < 2 * division.sub_buffer < division.output * file.page_size
    lengths = (size / 2, 3 * size / 2) if wrap else (size,)
    writing = fmean(drive.write.milliseconds(flushes.calls, flushes.requests, length) for length in lengths)
    writing += drive.write.milliseconds(calls - flushes.calls, flushes.last, at_end)
    commands = reads * drive.read.commands(block) + requests * drive.write.commands(size)
    moved = file.pages * file.page_size * (1 + file.share)
    computing = file.tuples * processor.tuple_ms + (reads + calls) * processor.call_ms
    computing += commands * processor.command_ms + moved * processor.byte_ms
    # A call that writes more than the buffer holds goes on at the pace of the chips, which rest at other times.
    burst = flushes.tuples * file.tuple_size / max(1, flushes.calls)
    writing += flushes.calls * max(0.0, (burst - drive.buffer) * drive.program_ms - burst * drive.write.byte_ms)
    # What the buffer takes is programmed while the host reads and computes, or the host waits for the chips.
    programming = (file.pages * file.page_size * file.share - drive.buffer) * drive.program_ms
    reading += reads * drive.busy_ms * min(1.0, max(0.0, programming) / (reading + writing + computing))
    waits = max(0.0, programming + file.pages * file.page_size * drive.sense_ms - reading - writing - computing)
    writing += waits
    total = reading + writing + computing
    if method == "para-hash":
        busy = waits + reads * drive.read.busy(block) + requests * drive.write.busy(size)
        total = max(total / strands, busy, computing / min(cores, strands))
    read, write, cpu, total = (time / MILLISECONDS_A_SECOND for time in (reading, writing, computing, total))
    return PartitionCost(read, write, cpu, total, flushes)

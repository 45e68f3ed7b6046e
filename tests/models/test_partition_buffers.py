"""N-Hash's memory divided for a drive: the rule against every division there is, against the published rule, and as prices change."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flashsim.core.errors import InvalidParameterError
from flashsim.device import presets
from flashsim.experiments.formulas.drives import parallel_drive_of
from models.partition_buffers import PartitionProblem, as_grace, division_by_rule, published_division, search
from models.partition_costs import Division, Input, cost
from models.psync import Direction, ParallelDrive
from tests.tiers import examples

FLASH = [name for name in presets.names() if presets.load(name).flash]
#: ORDERS at scale factor 10, and pages of memory at the sizes of Shin et al., table 1, in MB.
ORDERS = Input(268_000, 8192, 15_000_000)
MEMORY = {megabytes: int(0.975 * 128 * megabytes) for megabytes in (5, 10, 20, 30, 50, 100, 200)}


def problem(name: str, megabytes: int) -> PartitionProblem:
    """Shin et al.'s on a preset."""
    return PartitionProblem((ORDERS,), MEMORY[megabytes], parallel_drive_of(presets.load(name)))


def test_published_divisions() -> None:
    """Table 1, all seven rows: B, O and I."""
    rows = {5: (517, 1, 107), 10: (259, 4, 212), 20: (130, 19, 26), 30: (87, 42, 90), 50: (53, 115, 145), 100: (27, 445, 465)}
    for megabytes, row in (rows | {200: (14, 1664, 1664)}).items():
        made = published_division(problem("micron-p300", megabytes))
        assert (made.buckets, made.output, made.input) == row
        assert made.sub_buffer == (4096 if megabytes == 5 else 8192)


@pytest.mark.parametrize("name", FLASH)
@pytest.mark.parametrize("megabytes", [5, 10, 20, 50, 200])
def test_rule_is_within_a_percent_of_every_division(megabytes: int, name: str) -> None:
    """Of table 1's sizes those with few lengths are searched in whole, the others at lengths a sixth apart."""
    asked = problem(name, megabytes)
    most = (asked.memory - 1) // asked.fewest()
    lengths = sorted({round(1.16**step) for step in range(80) if 1.16**step <= most})
    best = asked.seconds(search(asked, lengths, (0, 1)))
    made = division_by_rule(asked, worth=0)
    assert asked.seconds(made) <= 1.01 * best
    assert made.pages == asked.memory


def test_dip_at_twenty_megabytes_goes() -> None:
    """The published rule leaves 26 pages to the input buffer there, and reads longer than with 10 or 30 MB; ours does not."""
    for name in ("micron-p300", "samsung-sas-400gb"):
        asked = [problem(name, megabytes) for megabytes in (10, 20, 30)]
        ten, twenty, thirty = (cost("n-hash", ORDERS, published_division(each), each.drive).read for each in asked)
        assert twenty > 1.08 * max(ten, thirty)
        assert asked[1].seconds(division_by_rule(asked[1])) < 0.94 * asked[1].seconds(published_division(asked[1]))


directions = st.builds(
    Direction,
    latency_ms=st.floats(0.005, 1),
    byte_ms=st.floats(1e-7, 1e-5),
    serial_ms=st.floats(0, 0.1),
    held_ms=st.floats(0, 0.02),
    depth=st.sampled_from([1, 32, 128]),
    call_ms=st.floats(0, 0.1),
)
drives = st.builds(ParallelDrive, read=directions, write=directions)


@settings(max_examples=examples(25))
@given(drive=drives, pages=st.integers(50, 4000), memory=st.integers(20, 400), page_size=st.sampled_from([4096, 8192]))
def test_drawn_drives(drive: ParallelDrive, pages: int, memory: int, page_size: int) -> None:
    """Never slower than the published rule, within memory, and with room for tables."""
    asked = PartitionProblem((Input(pages, page_size, pages * 40.0), Input(4 * pages, page_size, pages * 160.0)), memory, drive)
    try:
        paper = published_division(asked)
    except InvalidParameterError:
        assume(False)
    made = division_by_rule(asked)
    assert asked.seconds(made) <= asked.seconds(paper)
    allocation = as_grace(asked, made)
    assert max(allocation.phases()) <= memory
    assert allocation.phase2_input >= 1


@settings(max_examples=examples(25))
@given(drive=drives, memory=st.sampled_from([10, 20, 50]))
def test_rule_on_drawn_drives(drive: ParallelDrive, memory: int) -> None:
    """Within 2 % of the best of many divisions."""
    asked = PartitionProblem((ORDERS,), MEMORY[memory], drive)
    lengths = [
        length for length in (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 48, 64, 96, 112) if length * 52 < asked.memory
    ]
    assert asked.seconds(division_by_rule(asked, worth=0)) <= 1.02 * asked.seconds(search(asked, lengths, (0, 1)))


@given(drive=drives, factor=st.floats(2, 20))
def test_dearer_reads_lengthen_the_input_buffer(drive: ParallelDrive, factor: float) -> None:
    """With a write's prices the same; and what is dearer is never quicker."""
    asked = PartitionProblem((ORDERS,), MEMORY[10], drive)
    dearer = replace(asked, drive=replace(drive, read=replace(drive.read, call_ms=drive.read.call_ms * factor + 1)))
    lengths, few = (1, 2, 3, 4), (0,)
    assert search(dearer, lengths, few).input >= search(asked, lengths, few).input
    assert dearer.seconds(division_by_rule(dearer, worth=0)) >= asked.seconds(division_by_rule(asked, worth=0))


def test_as_a_join_takes_it() -> None:
    made = as_grace(problem("micron-p300", 10), Division(300, 3, 348, 8192))
    assert (made.buckets, made.output, made.input, made.phase2_workspace, made.phase2_input) == (300, 3, 348, 1072, 176)

"""The detailed model is Haas's where a device is like theirs, cuts requests as the block layer does, and merges as BAST does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flashsim.core.errors import FlashsimError, InvalidParameterError, UnknownNameError
from flashsim.core.parameters import build
from flashsim.core.request import WRITE, make_requests
from flashsim.device.block_layer import command_counts
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.ssd.parameters import SsdParameters
from models.allocation.buffers import HybridAllocation, NestedLoopsAllocation, SortMergeAllocation
from models.disk import Disk
from models.haas import cost
from models.join_costs.base import Sizes, allocate
from models.ssd_drive import DriveModel, LogBlocks, PageMapped, Rounds, Timing
from models.ssd_joins import JOINS, Layout, detailed_cost


def of_disk(disk: Disk, page_size: int) -> DriveModel:
    """A disk of the model of Haas et al.: every request waits, and is never cut."""
    write = disk.page_transfer_ms if disk.page_write_ms is None else disk.page_write_ms
    read, written = (Timing(disk.latency_ms, 0, page_ms) for page_ms in (disk.page_transfer_ms, write))
    return DriveModel(page_size, read, written, command=2**62, move_ms=disk.seek_ms)


disks = st.sampled_from([Disk(12, 5.56, 0.23), Disk(0, 0.35, 0.065, 0.098), Disk(9.5, 8.3, 2.6), Disk(0, 0, 1)])


@pytest.mark.parametrize("join", JOINS)
@given(r=st.integers(1, 3000), s=st.integers(1, 9000), memory=st.integers(3, 4000), disk=disks)
def test_without_cuts_and_on_two_devices_it_is_the_model_of_haas(join: str, r: int, s: int, memory: int, disk: Disk) -> None:
    try:
        allocation = allocate(join, r, s, memory, disk.latency_ratio, disk.access_ratio)
    except InvalidParameterError:
        assume(False)
    ours = detailed_cost(join, Sizes(r, s, r, s, memory), of_disk(disk, 8192), allocation, "separate")
    theirs = cost(join, r, s, memory, disk, allocation)
    assert ours.seconds == pytest.approx(theirs.seconds)
    assert [phase.name for phase in ours.phases] == [phase.name for phase in theirs.phases]


@given(pages=st.integers(1, 10_000), page_size=st.sampled_from([2048, 4096, 8192, 32768, 262144]))
def test_requests_are_cut_as_the_block_layer_cuts_them(pages: int, page_size: int) -> None:
    drive = DriveModel(page_size, Timing(0, 1, 1), Timing(0, 1, 1))
    assert drive.commands(pages) == command_counts(np.array([pages * page_size]))[0]


@given(latency=st.floats(0, 10), page=st.floats(1e-3, 1), pages=st.integers(1, 64), depth=st.integers(1, 256))
def test_a_request_of_one_command_waits_the_whole_latency_at_any_depth(latency: float, page: float, pages: int, depth: int) -> None:
    timing = Timing.of_queue(latency, page, pages, depth)
    assert timing.start_ms + timing.command_ms == pytest.approx(latency)
    # No more than `depth` commands are in the drive at once, and its link carries one at a time.
    assert timing.command_ms + page * pages == pytest.approx(max(page * pages, (latency + page * pages) / depth))


PAGE, PER_BLOCK, PLANES, LOGS = 4096, 8, 2, 3


def bast() -> Device:
    values: dict[str, Any] = {
        "capacity": "1MiB", "page_size": "4KiB", "pages_per_block": PER_BLOCK, "blocks_per_plane": 24, "planes_per_die": 1,
        "dies_per_package": 1, "packages_per_channel": 1, "channels": PLANES, "read": "20us", "program": "200us", "erase": "1.5ms",
        "channel_rate": "40MB/s", "link_read_rate": "120MB/s", "link_write_rate": "80MB/s", "read_latency": "0.35ms",
        "write_latency": "0.35ms", "queue_depth": 1, "ftl": "bast", "log_blocks": LOGS, "gc": "none", "allocation": "static",
        "gc_reserve": 3,
    }  # fmt: skip
    device = Device(Preset("small", "ssd", "a drive of eight blocks a stream", build(SsdParameters, values), sources={}))
    device.load(0, device.capacity)
    return device


@pytest.mark.parametrize("streams", [1, 3, 4, 5])
@pytest.mark.parametrize("piece", [2, 4, 6, 8, 12, 16, 24, 32])
def test_log_blocks_are_merged_as_often_as_the_simulated_drive_merges(streams: int, piece: int) -> None:
    """Streams that take turns, each a run of blocks of its own on a drive that is full."""
    device, block, pages = bast(), PER_BLOCK * PLANES, 48  # pages of a stream: three superblocks, and a multiple of every piece
    starts = [stream * pages + at for at in range(0, pages, piece) for stream in range(streams)]
    device.serve(make_requests(WRITE, np.array(starts, np.int64) * PAGE, piece * PAGE, serial=True))
    moved = device.statistics()["programs_merge"] / (streams * pages)
    expected = LogBlocks(LOGS, block)(streams, piece)
    if expected == 1:
        assert moved == 0
    elif streams == LOGS:  # between one log a stream and two, some are kept
        assert 0 < moved <= 1.12 * (expected - 1)
    else:  # the logs that are left at the end have not been merged
        assert 1 + moved == pytest.approx(expected, rel=0.12)


def test_what_maps_pages_is_not_amplified() -> None:
    assert PageMapped()(100, 3) == 1 and PageMapped(1.7)(1, 3) == 1.7


def test_more_streams_than_logs_cost_what_the_write_rate_loses() -> None:
    sizes = Sizes(1000, 9000, 1000, 9000, 400)
    a = HybridAllocation(4, 16, 16, 300, 80, 250)
    plain, merging = (
        DriveModel(8192, Timing(0, 0.35, 0.07), Timing(0, 0.35, 0.1), amplification=amplification)
        for amplification in (PageMapped(), LogBlocks(3, 256))
    )
    packed = [detailed_cost("hybrid-hash", sizes, drive, a).seconds for drive in (plain, merging)]
    spread = [detailed_cost("hybrid-hash", sizes, drive, a, "spread") for drive in (plain, merging)]
    assert packed[0] == packed[1]  # one stream: what is written packed is written in order
    written = spread[0].phases[0].writes.pages
    # Sixteen pieces make a block of 256: one partial merge of 240 pages and fifteen full ones.
    assert spread[1].seconds - spread[0].seconds == pytest.approx(written * 0.1 / 1000 * (240 + 15 * 256) / 256)


def test_reads_of_the_first_phase_wait_a_turn_each_time_that_writing_interrupted_them() -> None:
    """Sort-merge: as often as there are writes or reads, whichever are fewer; not in the merge, and not on two devices."""
    sizes, a = Sizes(1000, 9000, 1000, 9000, 400), SortMergeAllocation(300, 40, 60)
    plain, turning = (DriveModel(8192, Timing(0, 0.35, 0.07), Timing(0, 0.35, 0.1), turn_ms=ms) for ms in (0, 0.4))
    sort, merge = (
        after.seconds(turning) - before.seconds(plain)
        for before, after in zip(*(detailed_cost("sort-merge", sizes, drive, a).phases for drive in (plain, turning)), strict=True)
    )
    assert merge == 0
    assert sort == pytest.approx(math.ceil(10_000 / 60) * 0.4 / 1000, rel=0.02)  # each relation's last buffer is not full
    apart = [detailed_cost("sort-merge", sizes, drive, a, "separate").seconds for drive in (plain, turning)]
    assert apart[0] == apart[1]


def first_phase_ms(drive: DriveModel, output: int, layout: Layout = "packed") -> float:
    """Of sort-merge, which writes one stream."""
    allocation = SortMergeAllocation(300, 40, output)
    cost = detailed_cost("sort-merge", Sizes(1000, 9000, 1000, 9000, 400), drive, allocation, layout)
    return 1000 * cost.phases[0].seconds(drive)


@pytest.mark.parametrize("layout", ["packed", "spread"])
@pytest.mark.parametrize("behind, hidden", [(0.01, 0.6), (0.05, 3.0), (0.2, 5.0)])
def test_pages_written_hide_moves_to_them_and_no_more(layout: Layout, behind: float, hidden: float) -> None:
    """Sixty pages a write, and moves of 5 ms."""
    plain, hiding = (DriveModel(8192, Timing(0, 0, 0.1), Timing(0, 0, 0.1), move_ms=5, behind_ms=ms) for ms in (0, behind))
    saved = first_phase_ms(plain, 60, layout) - first_phase_ms(hiding, 60, layout)
    assert saved == pytest.approx(math.ceil(10_000 / 60) * hidden, rel=0.02)


def test_commands_wait_for_the_platter_where_the_one_before_them_ended() -> None:
    """Reads of 400 pages, writes of 40, hence ten of these one after another: the head moves to the first of their 30 commands."""
    still, turning = (
        DriveModel(8192, Timing(0, 0, 0.1), Timing(0, 0, 0.1), move_ms=20, rounds=rounds) for rounds in (Rounds(), Rounds(15, 2, 0.9))
    )
    waits = [turning.rounds(pages) for pages in (0, 1, 8, 14, 15, 16)]
    assert waits == pytest.approx([0, 12.1, 5.8, 0.4, 14.5, 13.6])  # a page is sent in 0.9 ms, after 2; a round is 15
    told = [
        detailed_cost("sort-merge", Sizes(2000, 8000, 2000, 8000, 1000), drive, SortMergeAllocation(560, 400, 40))
        for drive in (still, turning)
    ]
    waited = 1000 * (told[1].phases[0].seconds(turning) - told[0].phases[0].seconds(still))
    assert waited == pytest.approx(250 * (13.6 + 13.6 + 5.8) - 25 * 13.6)  # of 16, 16 and 8 pages


def test_requests_of_several_commands_wait_for_dies() -> None:
    plain, waiting = (DriveModel(8192, Timing(0.1, 0, 0.01, ms), Timing(0.1, 0, 0.01)) for ms in (0, 0.03))
    sizes = Sizes(1000, 9000, 1000, 9000, 400)
    for inner, several in ((16, 0), (17, 1), (60, 1)):
        a = NestedLoopsAllocation(300, inner)
        waited = 1000 * (detailed_cost("bnl", sizes, waiting, a).seconds - detailed_cost("bnl", sizes, plain, a).seconds)
        requests = a.chunks(1000, 1.2) * (1 + several * math.ceil(9000 / inner))  # a chunk of the outer relation is long in any case
        assert waited == pytest.approx(requests * 0.03, rel=0.01)


@pytest.mark.parametrize(
    "wrong, error",
    [
        (lambda: Rounds(rotation_ms=-1), "rotation_ms: -1, but it must be at least 0"),
        (lambda: DriveModel(8192, Timing(0, 0, 1), Timing(0, 0, 1), behind_ms=-1), "behind_ms: -1, but it must be at least 0"),
        (lambda: Timing(-1, 0, 1), "start_ms: -1, but it must be at least 0"),
        (lambda: Timing(0, 0, 0), "page_ms: 0, but it must be above 0"),
        (lambda: DriveModel(0, Timing(0, 0, 1), Timing(0, 0, 1)), "page_size: 0, but it must be at least 1"),
        (lambda: DriveModel(8192, Timing(0, 0, 1), Timing(0, 0, 1), move_ms=-1), "move_ms: -1, but it must be at least 0"),
        (lambda: DriveModel(8192, Timing(0, 0, 1), Timing(0, 0, 1), turn_ms=-1), "turn_ms: -1, but it must be at least 0"),
    ],
)
def test_bad_values_are_named(wrong: Any, error: str) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        wrong()
    assert str(caught.value) == error


def test_unknown_names() -> None:
    drive, sizes = DriveModel(8192, Timing(0, 0, 1), Timing(0, 0, 1)), Sizes(10, 10, 10, 10, 10)
    a = allocate("bnl", 10, 10, 10, 1, 1)
    with pytest.raises(UnknownNameError, match="simple-hash"):
        detailed_cost("simple-hash", sizes, drive, a)
    with pytest.raises(UnknownNameError, match="layout"):
        detailed_cost("bnl", sizes, drive, a, "scattered")  # type: ignore[arg-type]
    with pytest.raises(FlashsimError, match="needs a"):
        detailed_cost("grace-hash", sizes, drive, a)

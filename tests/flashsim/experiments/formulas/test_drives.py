"""A preset's nominal figures tell what its simulated drive takes for requests in order, and the closed forms hold on all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.units import MB, MIB
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.experiments.formulas.drives import drive_of
from models.join_costs.base import Sizes
from models.ssd_buffers import closed_form
from models.ssd_drive import LogBlocks
from models.ssd_joins import JOINS, Load, Problem
from tests.cases import with_each
from tests.models.ssd_search import numeric
from tests.tiers import examples

PAGE = 8192
FLASH = [name for name in presets.names() if presets.load(name).kind == "ssd"]


def milliseconds(preset: presets.Preset, operation: int, length: int, count: int) -> float:
    """Of requests that follow one another in order, the first left out."""
    device = Device(preset)
    device.load(0, 64 * MIB)
    requests = make_requests(operation, np.arange(count, dtype=np.int64) * length, length, serial=True)
    completed = np.sort(device.serve(requests)["completed"])
    return float(completed[-1] - completed[0]) / (count - 1) / 1e6


@pytest.mark.parametrize("name", ["mtron-msd-sata3025-16gb", "intel-x25e-64gb", "nvme-tlc-1tb", "samsung-sas-400gb", "samsung-smart-400gb"])
@pytest.mark.parametrize("length", [128 * 1024, MIB, 4 * MIB])
def test_a_read_takes_as_long_as_on_the_simulated_drive(name: str, length: int) -> None:
    """Within a tenth: the figures do not tell how chips and channels come into step at the beginning of each request."""
    preset = presets.load(name)
    drive, count = drive_of(preset, PAGE), 64 * MIB // length  # pages of all levels
    told = Load.alike(1, drive.commands(length // PAGE), length // PAGE).milliseconds(drive.read)
    assert told == pytest.approx(milliseconds(preset, READ, length, count), rel=0.1)


@with_each("commands", [1, 2, 3, 6, 8, 16])
def test_where_a_command_takes_all_dies_the_next_one_waits_for_them(commands: int) -> None:
    """A twentieth of a request or less is missed, where the link's figures alone miss a tenth."""
    preset, pages = presets.load("nvme-tlc-1tb"), 16 * commands
    assert preset.flash
    alike = {"cell": "none", "read_pages": (), "slc_cache": 0, "slc_program": 0}
    changed = replace(preset, parameters=replace(preset.flash, page_size=4096, pages_per_block=3072, mapping_unit=0, **alike))
    read, taken = drive_of(changed, PAGE).read, milliseconds(changed, READ, pages * PAGE, 64)
    assert Load.alike(1, commands, pages).milliseconds(read) == pytest.approx(taken, rel=0.05)
    assert read.several_ms > 0 == drive_of(preset, PAGE).read.several_ms  # eight pages a command, for 32 dies


@pytest.mark.parametrize(
    "name", ["mtron-msd-sata3025-16gb", "memoright-gt-32gb", "intel-x25e-64gb", "toshiba-5400-320gb", "hp-97560", "hp-c2200a"]
)
@pytest.mark.parametrize("pages", [15, 16, 28, 128])
def test_a_write_takes_as_long_as_on_the_simulated_drive(name: str, pages: int) -> None:
    drive = drive_of(presets.load(name), PAGE)
    told = Load.alike(1, drive.commands(pages), pages).milliseconds(drive.write) + drive.rounds_ms(pages)
    assert told == pytest.approx(milliseconds(presets.load(name), WRITE, pages * PAGE, 24), rel=0.05)


def busy_drive() -> presets.Preset:
    """A drive none of whose 32 dies is idle while the host writes at its link's rate: two pages of a die come 0.312 ms apart."""
    preset = presets.load("ocz-vertex-3")
    assert preset.flash
    values = {"page_size": 4096, "mapping_unit": 0, "pages_per_block": 256, "packages_per_channel": 2, "blocks_per_plane": 2048}
    times = {"program": 550_000, "write_latency": 590_000, "read_submission": 0, "write_submission": 0, "link_write_rate": 420 * MB}
    return replace(preset, parameters=replace(preset.flash, **values, **times, allocation_order="CWDP", write_buffer_threshold=0.5))


def read_milliseconds(preset: presets.Preset, turn: list[tuple[int, int]]) -> float:
    """The mean of the reads that end a turn of requests, each in order; the first turns left out."""
    device, turns = Device(preset), 120
    device.load(0, 512 * MIB)
    operations = np.tile([operation for operation, _ in turn], turns)
    lengths = np.tile([pages * PAGE for _, pages in turn], turns)
    offsets = np.where(operations == READ, 0, 1024 * MIB)
    for operation in (READ, WRITE):
        mine = operations == operation
        offsets[mine] += np.cumsum(lengths[mine]) - lengths[mine]
    completed = device.serve(make_requests(operations, offsets, lengths, serial=True), settle=False)
    taken = (completed["completed"] - completed["submitted"]).reshape(turns, len(turn))
    return float(taken[20:, -1].mean()) / 1e6


@pytest.mark.parametrize("name", ["", "intel-x25e-64gb", "nvme-tlc-1tb"])
@pytest.mark.parametrize("read, written", [(96, 39), (160, 81), (333, 129)])
def test_a_turn_is_what_a_long_read_waits_at_least_for_writes(name: str, read: int, written: int) -> None:
    """And no longer than a program; where it is nothing, it takes as long as alone, within a hundredth and a step of a program."""
    preset = presets.load(name) if name else busy_drive()
    told, alone = drive_of(preset, PAGE).turn_ms, read_milliseconds(preset, [(READ, read)])
    waited = read_milliseconds(preset, [(WRITE, written), (READ, read)]) - alone
    if told:
        assert told <= waited <= preset.parameters.program / 1e6
    else:
        step = preset.parameters.short_step if preset.parameters.suspend in ("program", "both") else 0
        assert abs(waited) < 0.01 * alone + step / 1e6


def test_no_preset_makes_reads_wait_for_all_of_its_dies() -> None:
    """Each has idle dies while the host writes, or programs that reads interrupt; one was fitted to reads alone."""
    assert [name for name in presets.names() if drive_of(presets.load(name), PAGE).turn_ms] == ["samsung-980-pro-1tb"]
    assert drive_of(busy_drive(), PAGE).turn_ms == pytest.approx(0.55 - 32 * 4096 / 420e3)


def test_a_disk_moves_less_far_within_a_part_of_it() -> None:
    disk = presets.load("toshiba-5400-320gb")
    whole, part = (drive_of(disk, PAGE, span) for span in (None, 10_000 * MIB))
    half_turn = disk.parameters.rotation / 2e6
    # 12 ms on average over the whole disk; within 10 GB no more than a few.
    assert whole.move_ms - half_turn == pytest.approx(12, rel=0.02)
    assert 1.5 < part.move_ms - half_turn < 5


def test_log_blocks_are_those_of_the_preset() -> None:
    drive = drive_of(presets.load("ocz-core-60gb"), PAGE)
    assert drive.amplification == LogBlocks(16, 2 * MIB // PAGE)


@pytest.mark.parametrize("name", FLASH[::4])
def test_the_closed_form_is_within_one_percent_of_the_search(name: str) -> None:
    _check(name, 8192, examples(300))


@pytest.mark.deep
@pytest.mark.parametrize("page_size", [2048, 4096, 8192, 16384, 32768])
@pytest.mark.parametrize("name", presets.names())
def test_the_closed_form_is_within_one_percent_at_all_published_sizes(name: str, page_size: int) -> None:
    for memory in range(100, 700, 100):
        _check(name, page_size, memory)


def _check(name: str, page_size: int, memory: int) -> None:
    drive = drive_of(presets.load(name), page_size, 12_000 * MIB)
    r, s = 93_440 * 8192 // page_size, 655_360 * 8192 // page_size
    for join in JOINS:
        problem = Problem(join, Sizes(r, s, r, s, memory * MIB // page_size), drive)
        assert closed_form(problem).seconds <= 1.01 * numeric(problem).seconds, join

"""The lab's drive: its picture, its plans in words, and that its state is the engine's, with and without a clock."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, ReadOnlyDeviceError, RefusedError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import READ, TRIM, WRITE, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.lab.clock import SteppedDrive
from flashsim.ssd.lab.drive import (
    FREE_PAGE,
    INVALID_PAGE,
    LAB_VALUES,
    LEGEND,
    PAGE_ON_ITS_WAY,
    TORN_PAGE,
    VALID_PAGE,
    LabDrive,
    lab_parameters,
    logical_pages,
    page_states,
    picture,
)
from flashsim.ssd.state.drive_state import DriveState
from flashsim.testing.flash_drives import check_invariants
from tests.cases import with_each

MERGING: dict[str, Any] = {"gc": "none", "allocation": "static"}
LAYERS: dict[str, dict[str, Any]] = {
    "page": {"pages": 400},
    "block": {"pages": 320, "ftl": "block", **MERGING},
    "bast": {"pages": 320, "ftl": "bast", "log_blocks": 3, **MERGING},
    "fast": {"pages": 320, "ftl": "fast", "log_blocks": 3, **MERGING},
}


def tiny(**changes: Any) -> LabDrive:
    """One die with five blocks of four pages, of which two stay free."""
    return LabDrive(8, **{"channels": 1, "blocks_per_plane": 5, "pages_per_block": 4, **changes})


def about_to_collect() -> LabDrive:
    """The next write finds two blocks' worth of free pages, and blocks 0 and 1 half valid, block 0 for longer."""
    drive = tiny()
    drive.write_all([*range(8), 0, 4, 1, 5])
    return drive


def test_the_picture_of_a_drive() -> None:
    drive = tiny()
    drive.write_all([*range(8), 0])
    drive.trim(5)
    blocks = "0 c x### 3 0 | 1 c #x## 3 0 | 2 a #... 1 0 | 3   .... 0 0 | 4   .... 0 0"
    assert str(drive).splitlines() == ["die 0", blocks, *LEGEND]
    drive.begin("write", 1)
    on_its_way = blocks.replace("x###", "xx##").replace("c xx## 3", "c xx## 2").replace("a #... 1", "a #+.. 2")
    assert picture(drive.state, legend=False).splitlines() == ["die 0", on_its_way]
    drive.power_cut()
    assert picture(drive.state, legend=False).splitlines()[1] == blocks.replace("a #...", "a #!..")


def test_collection_in_words_and_step_by_step() -> None:
    drive = about_to_collect()
    lines = [
        "move    block 0 page 2 -> block 3 page 0: logical page 2 (gc)",
        "move    block 0 page 3 -> block 3 page 1: logical page 3 (gc)",
        "erase   block 0 (gc)",
        "program block 3 page 2: logical page 2 (host)",
    ]
    pictures = [
        "0   xxxx 0 0 | 1 c xx## 2 0 | 2 c #### 4 0 | 3 a x++. 2 0 | 4   .... 0 0",
        "0   xxxx 0 0 | 1 c xx## 2 0 | 2 c #### 4 0 | 3 a x++. 2 0 | 4   .... 0 0",
        "0   xxxx 0 0 | 1 c xx## 2 0 | 2 c #### 4 0 | 3 a x#+. 2 0 | 4   .... 0 0",
        "0   .... 0 1 | 1 c xx## 2 0 | 2 c #### 4 0 | 3 a x#+. 2 0 | 4   .... 0 0",
        "0   .... 0 1 | 1 c xx## 2 0 | 2 c #### 4 0 | 3 a x##. 2 0 | 4   .... 0 0",
    ]
    assert str(drive.begin("write", 2)).splitlines() == lines
    for number, line in enumerate(lines):
        assert drive.pending.lines() == lines[number:]
        assert picture(drive.state, legend=False).splitlines()[1] == pictures[number]
        assert drive.step() == line
    assert picture(drive.state, legend=False).splitlines()[1] == pictures[-1]
    assert drive.step() == "" and not drive.pending
    assert str(about_to_collect().write(2)).splitlines() == lines


def test_other_operations_in_words() -> None:
    drive = tiny()
    assert str(drive.read(3)) == "zeros   nothing is mapped: logical page 3 (host)"
    assert str(drive.write(3, partial=True)) == "program block 0 page 0: logical page 3 (host)"
    assert str(drive.write(3, partial=True)).splitlines() == [
        "fetch   block 0 page 0: logical page 3 (host)",
        "program block 0 page 1: logical page 3 (host)",
    ]
    assert str(drive.read(3)) == "read    block 0 page 1: logical page 3 (host)"
    assert str(drive.trim(3)) == "nothing to do on the flash"


@with_each("at", range(5))
def test_a_power_cut_at_every_step(at: int) -> None:
    """What was written before is there again; a program in the midst is torn, and whether the last write came through is known."""
    drive = about_to_collect()
    newest = [drive.state.version(page) for page in range(8)]
    drive.begin("write", 2)
    for _ in range(at):
        drive.step()
    drive.power_cut()
    check_invariants(drive)  # type: ignore[arg-type]
    found = [drive.state.version(page) for page in range(8)]
    assert [found[page] == newest[page] for page in range(8)] == [page != 2 or at < 4 for page in range(8)]
    assert (page_states(drive.state) == TORN_PAGE).sum() == (at in (0, 1, 3))
    drive.write_all([*range(8)] * 4)
    check_invariants(drive)  # type: ignore[arg-type]


@with_each("layer", LAYERS)
def test_pages_of_all_states_make_up_the_flash(layer: str) -> None:
    drive = LabDrive(**LAYERS[layer])
    random = generator(3, "lab")
    for page in random.integers(0, drive.pages, 700):
        (drive.trim if random.random() < 0.1 else drive.write)(page)
    states, held = page_states(drive.state), logical_pages(drive.state)
    assert not np.isin(states, [PAGE_ON_ITS_WAY, TORN_PAGE]).any()
    assert np.array_equal((states == VALID_PAGE).sum(axis=1), drive.state.blocks.valid)
    assert np.array_equal((states != FREE_PAGE).sum(axis=1), drive.state.blocks.written)
    assert (states == INVALID_PAGE).any()
    assert np.array_equal(np.sort(held[held >= 0]), np.flatnonzero(drive.state.mapping))
    assert np.array_equal(held >= 0, states == VALID_PAGE)


def workload(seed: int, drive: LabDrive | SteppedDrive, count: int) -> Requests:
    """Reads, writes and trims of single pages, some writes of half a page."""
    random = generator(seed, "lab")
    size = drive.parameters.page_size
    operations = random.choice([READ, WRITE, TRIM], count, p=[0.2, 0.7, 0.1])
    requests = make_requests(operations, random.integers(0, drive.parameters.logical_pages, count) * size, size)
    requests["length"] //= np.where((requests["operation"] == WRITE) & (random.random(count) < 0.2), 2, 1)
    return requests


def same(ours: DriveState, theirs: DriveState) -> None:
    for name in ("control", "pools", "blocks", "mapping", "pages", "spare", "trimmed", "own", "counters"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


@pytest.mark.parametrize("layer", LAYERS)
def test_without_a_clock_it_does_what_the_engine_does(layer: str) -> None:
    """One request after another, as a drive without a clock takes them; all that is counted agrees too."""
    drive = LabDrive(**LAYERS[layer], queue_depth=1)
    engine = SsdEngine(drive.parameters)
    drive.write_all(range(drive.pages))
    drive.count_anew()
    engine.load(0, drive.parameters.capacity)
    requests = workload(5, drive, 900)
    engine.submit(requests, one_command_each(requests), 0)
    engine.advance(every=True)
    size = drive.parameters.page_size
    for request in requests:
        page = int(request["offset"]) // size
        if request["operation"] == WRITE:
            drive.write(page, partial=bool(request["length"] < size))
        else:
            (drive.read if request["operation"] == READ else drive.trim)(page)
    same(drive.state, engine.state)
    assert drive.statistics()["programs_gc" if layer == "page" else "programs_merge"] > 0
    timed = engine.statistics()
    assert drive.statistics() == {name: timed[name] for name in drive.statistics()}
    check_invariants(drive)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"read_priority": True, "suspend": "both", "suspend_overhead": "5us"},
        {"write_buffer": "32KiB"},
        {"planes_per_die": 2, "blocks_per_plane": 16, "multi_plane": True, "pages": 350},
    ],
)
def test_stepping_ends_where_the_engine_ends(changes: dict[str, Any]) -> None:
    drive = SteppedDrive(**changes)
    engine = SsdEngine(drive.parameters)
    for model in (drive.model, engine):
        model.load(0, drive.parameters.capacity)
    requests = workload(6, drive, 300)
    at = np.arange(300) * 100_000
    for model in (drive.model, engine):
        model.submit(requests, one_command_each(requests), at)
    lines = list(drive.steps())
    assert drive.step() == ""
    assert np.array_equal(drive.completions(), engine.advance(every=True))
    assert len(drive.completions()) == 0
    same(drive.state, engine.state)
    told = "\n".join(lines)
    assert sorted(map(int, re.findall(r"request (\d+) arrives", told))) == list(range(300))
    assert sorted(map(int, re.findall(r"request (\d+) is complete", told))) == list(range(300))
    numbers = engine.statistics()
    done = re.findall(r"die \d has done: (\w+) ", told)
    assert done.count("erase") == numbers["flash_erases"] > 0
    assert done.count("program") + done.count("store") + done.count("move") == numbers["flash_programs"]
    assert done.count("read") + done.count("fetch") + done.count("move") == numbers["flash_reads"]
    assert ("is interrupted" in told) == ("suspend" in changes)


def test_what_an_event_says() -> None:
    """A write over the link, the channel and into the cells, by the times of `LAB_VALUES`: 10, 10, 10 and 200 us."""
    drive = SteppedDrive()
    drive.write(5, at=1000)
    assert list(drive.steps()) == [
        "1 us: request 0 arrives; planned: program block 0 page 0: logical page 5 (host); controller begins",
        "11 us: controller is done; link begins",
        "21 us: link is done; channel 0 begins; die 0 begins: program block 0 page 0: logical page 5 (host)",
        "31 us: channel 0 is done",
        "231 us: die 0 has done: program block 0 page 0: logical page 5 (host); request 0 is complete",
    ]
    assert "\n 0 a #......." in str(drive)
    drive.read(5)
    drive.trim(5)
    assert "request 2 is complete" in "\n".join(drive.steps())
    assert drive.completions()["completed"].max() == drive.model.now


def test_parameters_of_ones_own() -> None:
    assert lab_parameters(100, page_size="8KiB").capacity == 100 * 8192
    assert lab_parameters(100, page_size=512).logical_pages == 100
    assert lab_parameters(capacity="64KiB").logical_pages == 16
    assert "capacity" not in LAB_VALUES
    with pytest.raises(InvalidParameterError, match="capacity"):
        LabDrive(480)
    with pytest.raises(InvalidParameterError, match="zone_size: 12288, but zones must divide the capacity, 1600 KiB"):
        lab_parameters(zone_size="12KiB")
    with pytest.raises(InvalidParameterError, match=r"pages_per_block: 1"):
        LabDrive(pages_per_block=1)


def test_what_is_refused() -> None:
    with pytest.raises(RefusedError, match="write_buffer: a drive without a clock has none"):
        tiny(write_buffer="16KiB")
    drive = tiny()
    with pytest.raises(InvalidParameterError, match="page: 8, but .*logical pages 0 to 7"):
        drive.write(8)
    with pytest.raises(InvalidParameterError, match="page: -1"):
        drive.read(-1)
    with pytest.raises(InvalidParameterError, match="it must be read, write or trim"):
        drive.begin("flush", 0)
    drive.begin("write", 0)
    with pytest.raises(RefusedError, match="read: 1 flash operations of the last plan are pending"):
        drive.read(0)


def test_a_drive_wears_out() -> None:
    drive = tiny(endurance=2)
    with pytest.raises(ReadOnlyDeviceError, match="read-only"):
        drive.write_all([*range(8)] * 20)
    assert " r " in str(drive) and drive.statistics()["refused_writes"] == 1
    assert str(drive.read(0)).startswith("read ")

"""What a die does next, and what it costs to find out."""

from __future__ import annotations

import time
from itertools import takewhile
from typing import Any

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.kernel import in_python, is_compiled
from flashsim.core.parameters import build
from flashsim.core.request import READ, WRITE, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import MIB
from flashsim.ssd.engine import tables
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.flash_array import MOVE_PAGE, PROGRAM_PAGE, lookup
from flashsim.testing.flash_drives import UNINTERRUPTED, Model
from tests.cases import with_each

#: Two dies whose reads overtake.
CHIPS: dict[str, Any] = {
    "capacity": "46MiB", "page_size": "4KiB", "pages_per_block": 64, "blocks_per_plane": 106, "planes_per_die": 1, "dies_per_package": 1,
    "packages_per_channel": 1, "channels": 2, "read": "50us", "program": "500us", "erase": "3ms", "channel_rate": "800MB/s",
    "link_read_rate": "3GB/s", "link_write_rate": "3GB/s", "read_latency": "70us", "write_latency": "520us", "queue_depth": 65535,
    "gc_reserve": 2, "read_priority": True,
}  # fmt: skip


def chips(**changes: Any) -> SsdParameters:
    return build(SsdParameters, {**CHIPS, **changes})


def cost_of_a_page(requests: Requests, at: Any) -> float:
    """Processor seconds that a full drive takes for a page, the least of three."""
    costs = []
    for _ in range(3):
        engine = SsdEngine(chips())
        engine.load(0, engine.capacity)
        begin = time.process_time()
        engine.submit(requests, one_command_each(requests), at)
        engine.advance(every=True)
        costs.append((time.process_time() - begin) / (requests["length"].sum() / 4096))
    return min(costs)


@pytest.mark.deep
@pytest.mark.skipif(not is_compiled(), reason="needs compiled kernels")
def test_a_write_under_collection_costs_the_same_at_any_depth() -> None:
    """However many operations wait for a die: what waits for its programs is found without looking through them."""

    def writes(depth: int) -> float:
        offsets = generator(1, "writes").integers(0, 45, 96) * MIB
        requests = make_requests(WRITE, offsets, MIB)
        requests["dependency"] = np.maximum(np.arange(96) - depth, -1)
        return cost_of_a_page(requests, 0)

    assert writes(48) <= 4 * writes(1)


@pytest.mark.skipif(not is_compiled(), reason="needs compiled kernels")
def test_reads_of_a_page_that_is_being_programmed_cost_the_same_however_many_they_are() -> None:
    def reads(count: int) -> float:
        requests = make_requests(READ, np.zeros(count, np.int64), 4096)
        requests["operation"][0] = WRITE
        return cost_of_a_page(requests, np.arange(count) > 0)

    assert reads(32_000) <= 6 * reads(4_000)


def test_programs_are_found_when_the_table_of_operations_has_grown() -> None:
    """Each by its flash page, the one admitted last if a block is filled anew before its old pages are erased."""
    engine = SsdEngine(chips())
    engine.load(0, engine.capacity)
    requests = make_requests(WRITE, generator(1, "writes").integers(0, 45, 96) * MIB, MIB)
    engine.submit(requests, one_command_each(requests), 0)
    engine.advance(50_000_000)
    flow = engine.state_arrays[1]
    for grown in (flow, tables.with_more_rows(flow)):
        rows = grown.operations[: grown.engine.watermark]
        live = np.flatnonzero((rows.id >= 0) & np.isin(rows.kind, tables.PROGRAMS))
        newest = {int(rows.place[row]): int(row) for row in live[np.argsort(rows.id[live])]}
        assert len(live) > len(newest) > 10_000
        assert {place: in_python(tables.pending_program)(grown, place) for place in newest} == newest
        assert in_python(tables.pending_program)(grown, len(engine.state.pages)) == -1


def collecting(model: type[Model], **changes: Any) -> tuple[Model, list[int], list[int]]:
    """A drive of one die that begins to empty a block for a write; the logical pages that move, in order, and where each was before."""
    one_die = {"channels": 1, "capacity": "4MiB", "pages_per_block": 128, "blocks_per_plane": 12}
    drive = model(chips(program="1ms", write_latency="1020us", **one_die, **changes))
    drive.load(0, drive.capacity)
    drive.state.write_pages(generator(1, "writes").integers(0, 1024, 3000).astype(np.int32))
    before = drive.state.mapping.copy()
    while True:
        write = make_requests(WRITE, 0, 4096)
        drive.submit(write, one_command_each(write), drive.now)
        drive.advance(drive.now)
        plan = takewhile(lambda row: row.kind != PROGRAM_PAGE, drive.state.plan)
        moved = [int(row.logical) for row in plan if row.kind == MOVE_PAGE]
        if len(moved) > 60:
            return drive, moved, [int(before[page]) - 1 for page in moved]
        drive.advance(every=True)


@pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
def test_a_page_that_is_to_move_is_read_where_it_is(model: type[Model]) -> None:
    """However many move before it, a read waits for the one at work and for other reads; 45 and 90 ms if it waited for its page's move."""
    drive, moved, _ = collecting(model)
    pages = np.array([moved[0], moved[len(moved) // 2], moved[-1]])
    reads, begin = make_requests(READ, pages * 4096, 4096), drive.now + 20_000
    drive.submit(reads, one_command_each(reads), begin)
    done = drive.advance(every=True)
    latency = done["completed"][np.isin(done["tag"], reads["tag"]) & (done["submitted"] == begin)] - begin
    assert len(latency) == 3
    one_move = 50_000 + 2 * 5_120 + 1_000_000
    assert latency.max() < one_move + 3 * 70_000


@pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
def test_a_cut_finds_a_page_that_is_to_move_where_it_was(model: type[Model]) -> None:
    drive, moved, before = collecting(model)
    versions = drive.state.spare[before].tolist()
    places = [lookup(drive.state.mapping, page) for page in moved]
    drive.advance(drive.now + 40 * 1_100_000)
    assert drive.state.spare[before].tolist() == versions
    assert 30 < sum(drive.state.spare[place] == version for place, version in zip(places, versions, strict=True)) < 45
    drive.power_cut(drive.now)
    assert [drive.version(page) for page in moved] == versions


#: What chips take to let reads in, and their steps.
STEPS: dict[str, Any] = {
    "suspend": "both", "program": "1ms", "write_latency": "1020us", "erase": "5ms", "program_step": "100us", "program_long_step": "250us",
    "program_long_share": 0.4, "erase_step": "700us", "suspend_stop": "5us", "suspend_overhead": "17us", "suspend_progress": "120us",
}  # fmt: skip


def reads_beside_overwrites(model: type[Model], every: int, count: int, **changes: Any) -> tuple[Any, int]:
    """Latencies of reads of one page each, one every so many ns, while a die programs, moves and erases; and how often it erased."""
    drive = model(chips(channels=1, capacity="4MiB", pages_per_block=32, blocks_per_plane=38, **{**STEPS, **changes}))
    drive.load(0, drive.capacity)
    drive.state.write_pages(generator(1, "writes").integers(0, 1024, 3000).astype(np.int32))
    begin, erases, random = drive.now, drive.statistics()["flash_erases"], generator(2, "pages")
    reads = make_requests(READ, random.integers(512, 1024, count) * 4096, 4096)
    writes = make_requests(WRITE, random.integers(0, 512, 300) * 4096, 4096)  # no read waits for the host's program of its page
    requests, at = (
        np.concatenate([writes, reads]),
        np.append(np.zeros(300, np.int64), 10_000_000 + every * np.arange(count)),
    )  # behind all commands
    first = int(drive.submit(requests, one_command_each(requests), begin + at)[0])
    done = []
    while drive.now < begin + 10_000_000 + every * count:
        done.append(drive.advance(begin + 10_000_000 + every * count))
    completions = np.concatenate(done)
    completions = completions[completions["id"] >= first + 300]
    assert len(completions) > 0.9 * count
    return completions["completed"] - completions["submitted"], drive.statistics()["flash_erases"] - erases


@pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
def test_a_read_waits_no_longer_than_a_step_and_what_goes_before_it(model: type[Model]) -> None:
    """The bound: a resume, the least progress, the longest step, the stop; or the read phase and the transfer of a move, and a step."""
    latency, erases = reads_beside_overwrites(model, 2_900_000, 200)
    alone, transfer = 70_000 + 1_366, 5_120
    assert erases > 10
    assert 500_000 < latency.max() <= alone + 17_000 + 120_000 + 700_000 + 5_000
    latency, _ = reads_beside_overwrites(model, 2_900_000, 200, erase="300us", erase_step="100us")
    assert 250_000 < latency.max() <= alone + 17_000 + 120_000 + 250_000 + 5_000
    assert np.median(latency) > alone + 50_000
    whole, _ = reads_beside_overwrites(model, 2_900_000, 200, **{"erase": "300us", **UNINTERRUPTED})
    assert whole.max() > 1_000_000 + 2 * transfer


def test_an_erase_beside_reads_ends() -> None:
    """Each resume goes on for a step at least, so that reads that come often slow down what the die does, and do not stop it."""
    for progress in ("0s", "1.5ms"):
        latency, erases = reads_beside_overwrites(SsdEngine, 80_000, 4000, suspend_progress=progress)
        assert erases > 0
        assert np.median(latency) > 120_000  # most of them wait


@with_each("model", [SsdEngine, SsdSpecification])
@with_each("outstanding", [1, 2, 8])
def test_writes_end_beside_reads_without_a_gap(model: type[Model], outstanding: int) -> None:
    """Between the steps of a program, a move or an erase no more reads pass than are outstanding, and none begins later than that."""
    drive = model(chips(channels=1, capacity="4MiB", pages_per_block=32, blocks_per_plane=38, **STEPS))
    drive.load(0, drive.capacity)
    drive.state.write_pages(generator(1, "writes").integers(0, 1024, 3000).astype(np.int32))
    count, random, before = 300 * outstanding, generator(2, "pages"), drive.statistics()
    pages = np.append(random.integers(0, 512, 20), random.integers(512, 1024, count))  # no read waits for a program of its page
    requests = make_requests(np.repeat([WRITE, READ], [20, count]), pages * 4096, 4096)
    requests["dependency"] = np.append(np.arange(20) - 1, np.maximum(np.arange(20, 20 + count) - outstanding, -1))
    requests["dependency"][20 : 20 + outstanding] = -1
    begin = drive.now
    drive.submit(requests, one_command_each(requests), begin)
    done = []
    while drive.outstanding:
        done.append(drive.advance(every=True))
    completions = np.sort(np.concatenate(done), order="id")
    writes, reads = np.split(completions["completed"] - begin, [20])
    ended = int(np.sum(writes < reads.max()))
    programs, erases = (drive.statistics()[name] - before[name] for name in ("flash_programs", "flash_erases"))
    assert ended >= 3
    stop, pass_by = 17_000 + 5_000, outstanding * (70_000 + 5_120)
    most = programs * (70_000 + 1_000_000 + 10 * (stop + pass_by) + 2 * pass_by) + erases * (5_000_000 + 8 * (stop + pass_by) + pass_by)
    assert writes[ended - 1] <= most


@pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
def test_a_read_that_comes_while_a_move_reads_is_let_in_before_its_program(model: type[Model]) -> None:
    """And so is one that comes while the page passes over the channel: whenever it comes, it waits for no more than that, or a step."""
    latencies = []
    for after in range(2_000_000, 3_100_000, 25_000):
        drive, moved, _ = collecting(model, suspend="program", program_step="40us")
        read = make_requests(READ, moved[-1] * 4096, 4096)
        (number,) = drive.submit(read, one_command_each(read), drive.now + after)
        done = drive.advance(every=True)
        latencies.append(int((done["completed"] - done["submitted"])[done["id"] == number][0]))
    alone, transfer = 70_000 + 1_366, 5_120
    assert alone + 40_000 < max(latencies) <= alone + 50_000 + 2 * transfer

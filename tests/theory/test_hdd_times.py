"""The hard disk's mean times are those of the textbook: Lee's curve, half a revolution, and the rates of link and media."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from flashsim.core.request import READ, WRITE, Integers, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import KIB
from flashsim.device import presets
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.layout import SLOT_UNIT, extents_of, sectors_of, zones_of
from flashsim.hdd.state.seek import lee_curve, mean_seek, random_distances
from flashsim.testing.disks import serve, small_drive

PAGE = 8 * KIB


@pytest.fixture(scope="module")
def drive() -> HddParameters:
    """The drive of do2009."""
    parameters = presets.load("toshiba-5400-320gb").parameters
    return parameters


def curve_of(drive: HddParameters) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return lee_curve(drive.cylinders, drive.seek_single, drive.seek_average, drive.seek_full)


def sectors_by_cylinder(drive: HddParameters) -> Integers:
    count = np.zeros(drive.cylinders * drive.heads, np.int64)
    for row in extents_of(drive):
        count[row.track : row.track + (row.end - row.first) // row.per_track] += row.per_track
    assert count.sum() == sectors_of(drive)
    return count.reshape(-1, drive.heads).sum(axis=1)


@pytest.mark.parametrize("cylinders", [2_000, 20_000, 130_000])
@pytest.mark.parametrize(("single", "average", "full"), [(1500, 12_000, 22_000), (1943, 9180, 16_679), (650, 8600, 20_000)])
def test_mean_of_lees_curve_is_the_average(cylinders: int, single: int, average: int, full: int) -> None:
    curve = lee_curve(cylinders, 1000 * single, 1000 * average, 1000 * full)
    assert curve[1] == 1000 * single
    assert curve[-1] == pytest.approx(1000 * full, rel=1e-3)
    assert mean_seek(curve, np.ones(cylinders)) == pytest.approx(1000 * average, rel=2e-3)


def test_random_distances_of_equal_cylinders() -> None:
    """P(d) = 2 (C - d) / C^2, and 1 / C for d = 0."""
    count = 50
    expected = 2 * (count - np.arange(count)) / count**2
    expected[0] = 1 / count
    np.testing.assert_allclose(random_distances(np.ones(count)), expected, atol=1e-12)


def random_reads(drive: HddParameters, seed: int, count: int, share: float = 1.0) -> tuple[float, HddEngine]:
    """Mean time of synchronous random page reads over the outer share of a drive, and the drive."""
    pages = generator(seed, "random reads").integers(0, int(share * drive.capacity) // PAGE, count)
    engine = HddEngine(drive)
    completed = serve(engine, make_requests(READ, pages * PAGE, PAGE, serial=True))["completed"]
    return completed[-1] / count, engine


def test_random_reads_take_a_seek_half_a_revolution_and_the_transfer(drive: HddParameters) -> None:
    runs = [random_reads(drive, seed, 5000) for seed in range(20)]
    means = np.array([mean for mean, _ in runs])
    weights = sectors_by_cylinder(drive).astype(np.float64)
    seek = mean_seek(curve_of(drive), weights)
    sectors = np.array([count * per_track for count, per_track in drive.zones])
    first_sector = np.average([drive.rotation / per_track for _, per_track in drive.zones], weights=sectors)
    expected = drive.overhead + seek + drive.rotation / 2 + first_sector + PAGE * 1e9 / drive.link_rate
    error = means.std(ddof=1) / np.sqrt(len(means))
    assert abs(means.mean() - expected) < 4 * error
    # Addresses are denser outside, so they lie a little closer together than random cylinders: the nominal figures come within 2 %.
    nominal = drive.seek_average + drive.rotation / 2 + PAGE * 1e9 / drive.link_rate
    assert means.mean() == pytest.approx(nominal, rel=0.02)
    measured = [engine.statistics()["mean_seek"] for _, engine in runs]
    assert abs(np.mean(measured) - seek) < 4 * np.std(measured, ddof=1) / np.sqrt(len(measured))


def test_random_writes_are_destaged_at_the_rate_of_random_reads_and_settling(drive: HddParameters) -> None:
    """Each waits for the one before it to be on the media: its own link transfer, a seek, half a revolution, its sectors."""
    count = 20_000
    pages = generator(1, "random writes").integers(0, drive.capacity // PAGE, count)
    completed = serve(HddEngine(drive), make_requests(WRITE, pages * PAGE, PAGE, serial=True))["completed"]
    seek = mean_seek(curve_of(drive), sectors_by_cylinder(drive).astype(np.float64))
    nominal = drive.overhead + seek + drive.write_settle + drive.rotation / 2
    assert completed[-1] / count == pytest.approx(nominal, rel=0.02)


@pytest.mark.parametrize("operation", [READ, WRITE])
@pytest.mark.parametrize("length", [PAGE, 128 * KIB])
@pytest.mark.parametrize("where", [0.0, 0.5, 0.99])
def test_sequential_streams_run_at_the_links_rate(drive: HddParameters, operation: int, length: int, where: float) -> None:
    """Everywhere on the media: also at the inner edge they are faster than the link.  A command costs the work on a hit beside."""
    count = 2000
    start = int(where * drive.capacity) // PAGE * PAGE
    completed = serve(HddEngine(drive), make_requests(operation, start + np.arange(count) * length, length, serial=True))["completed"]
    each = (completed[-1] - completed[99]) / (count - 100)
    assert each == pytest.approx(380_000 + length * 1e9 / drive.link_rate, rel=0.001)
    if length > PAGE:
        assert length * 1e9 / each == pytest.approx(34e6, rel=0.001)


@pytest.mark.parametrize("operation", [READ, WRITE])
@pytest.mark.parametrize("think", [0, 100_000])
def test_pages_in_order_never_wait_for_the_media(drive: HddParameters, operation: int, think: int) -> None:
    """Read ahead or written behind, each costs the work on a hit and its way over the link, with time to think between them or without."""
    requests = make_requests(operation, np.arange(2000) * PAGE, PAGE, serial=True)
    requests["think"] = think
    completions = serve(HddEngine(drive), requests)
    each = (completions["completed"][-1] - completions["completed"][99]) / 1900 - think
    assert each == pytest.approx(380_000 + PAGE * 1e9 / drive.link_rate, abs=2)


@pytest.mark.parametrize("operation", [READ, WRITE])
def test_further_parts_of_a_command_cost_what_commands_of_their_own_do(drive: HddParameters, operation: int) -> None:
    """A part that the buffer serves costs the work on a hit; so how long commands are does not matter where all are whole parts."""
    part, total = drive.command_size, 64 * 1024 * KIB
    ends = [
        serve(HddEngine(drive), make_requests(operation, np.arange(total // length) * length, length, serial=True))["completed"]
        for length in (part, 8 * part)
    ]
    work = drive.overhead + drive.read_hit_after_read
    expected = total // part * work + total * 1e9 / drive.link_rate
    for end in ends:
        assert end[-1] - end[0] == pytest.approx(expected * (1 - 1 / len(end)), rel=0.001)


@pytest.mark.parametrize("operation", [READ, WRITE])
def test_sequential_pages_without_segments_cost_a_revolution(drive: HddParameters, operation: int) -> None:
    bare = dataclasses.replace(drive, read_ahead=0, write_behind=0)
    count = 200
    completed = serve(HddEngine(bare), make_requests(operation, np.arange(count) * PAGE, PAGE, serial=True))["completed"]
    assert drive.rotation < completed[-1] / count < 1.05 * drive.rotation


@pytest.mark.parametrize("operation", [READ, WRITE])
def test_a_fast_link_shows_the_medias_rate(drive: HddParameters, operation: int) -> None:
    """A cylinder of sectors passes in its slots, skews included: no revolution is lost between tracks."""
    fast = dataclasses.replace(drive, link_rate=10**9)
    count, length = 3000, 128 * KIB
    completed = serve(HddEngine(fast), make_requests(operation, np.arange(count) * length, length, serial=True))["completed"]
    zone = zones_of(fast)[0]
    skews = ((fast.heads - 1) * zone.track_skew + zone.cylinder_skew) / SLOT_UNIT
    cylinder = (fast.heads * zone.slots + skews) * fast.rotation / zone.slots
    rate = fast.heads * zone.slots * fast.sector_size * 1e9 / cylinder
    measured = (count - 1000) * length * 1e9 / (completed[-1] - completed[999])
    assert measured == pytest.approx(rate, rel=0.01)


def test_shorter_ranges_and_faster_parts_are_never_slower(drive: HddParameters) -> None:
    """With 2000 reads the mean's standard error is about 0.13 ms; each step is far larger."""
    ranges = [random_reads(drive, 3, 2000, share)[0] for share in (0.01, 0.1, 0.4, 1.0)]
    assert ranges == sorted(ranges)
    faster = dataclasses.replace(drive, rotation=drive.rotation // 2)
    assert random_reads(faster, 3, 2000)[0] < ranges[-1] - drive.rotation / 5


def test_reads_never_beat_the_link_or_the_media() -> None:
    """Whatever the segments hold, a batch takes at least its bytes over the link, and each command its overhead."""
    drive = small_drive()
    draw = generator(5, "bounds")
    for _ in range(20):
        first, length = draw.integers(0, 900, 50), draw.integers(1, 60, 50)
        completed = serve(HddEngine(drive), make_requests(READ, first * 512, length * 512))["completed"]
        assert completed[-1] >= 50 * drive.overhead + length.sum() * 200

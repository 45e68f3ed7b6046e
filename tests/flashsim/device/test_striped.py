"""Striped drives: which one holds what, and how much faster many are than one."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.host_queue import one_command_each
from flashsim.core.model import DeviceModel
from flashsim.core.parameters import build
from flashsim.core.request import FLUSH, READ, TRIM, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import NEVER, SECONDS
from flashsim.device import presets
from flashsim.device.block_layer import split as split_by_size
from flashsim.device.device import Device
from flashsim.device.presets import from_document
from flashsim.device.striped import Striping
from flashsim.device.striped.specification import StripedSpecification
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.testing.disks import SECTOR, random_workload, serve, small_drive
from tests.cases import with_each
from tests.flashsim.hdd.deep_disks import array_of, deep_drive, serve_in_pieces

#: What arrays of seeds 400 to 439 did when striping was part of a disk's kernels (completions, counters, and a power cut halfway).
RECORDED = [
    "e57c109bade1",
    "1b999c3fe9c0",
    "4ee8e83f14c4",
    "37b53244ac1a",
    "385a9b84b8c4",
    "5ba48b41d507",
    "1c2a2f54624e",
    "ed1524e9cb8e",
    "12a13bd11e3b",
    "c35e1c7e369a",
    "88ca2d5086b6",
    "d1a9b4c124b4",
    "83c7dfebbdb5",
    "944792e5f303",
    "99ef84d187c9",
    "9c5fb99d0d16",
    "d47b23810d4c",
    "6f37e75cc462",
    "4268d9e965e0",
    "e26a80f5e478",
    "b5cd28f3b203",
    "f197f3e6019b",
    "f03602ca2dee",
    "f61a445e87da",
    "07e2e474ae4f",
    "1452b61ece4e",
    "a8d420e22f71",
    "a4966310db7f",
    "049917c70d30",
    "9e68ff748d49",
    "f559c7d8c84e",
    "35a0a29cf618",
    "8c6e48414dab",
    "55e88b232fe7",
    "f299844f169c",
    "e8f72ac23c33",
    "3894c6b97345",
    "bf8a4befe53d",
    "f1431751b85b",
    "13cbb299a17c",
]


def array(drives: int, stripe: int = 8, kind: type[HddEngine] | type[HddSpecification] = HddEngine, **changes: object) -> DeviceModel:
    return array_of(kind, small_drive(**changes), Striping(drives=drives, stripe=stripe * SECTOR))


def drawn(seed: int, model: str) -> DeviceModel:
    """An array of drawn drives; the specification, too, with compiled drives in it."""
    drive, striping = deep_drive(seed), Striping(drives=2 + seed % 4, stripe=SECTOR * (1, 3, 8, 40)[seed // 4 % 4])
    if model == "mixed":
        return StripedSpecification([HddEngine(drive) for _ in range(striping.drives)], drive, striping)
    return array_of(HddEngine if model == "engine" else HddSpecification, drive, striping)


@pytest.mark.parametrize("model", ["engine", "specification", "mixed"])
def test_arrays_do_what_they_did_inside_the_disk_s_kernels(model: str) -> None:
    for seed, recorded in enumerate(RECORDED, 400):
        device = drawn(seed, model)
        requests, arrivals = random_workload(seed, device.capacity, 60)
        commands = split_by_size(requests, 64 * SECTOR)
        device.submit(requests, commands, arrivals)
        completions = device.advance(every=True)
        device.advance(device.now + SECONDS)
        statistics = sorted(device.statistics().items())
        device = drawn(seed, model)
        device.submit(requests, commands, arrivals)
        cut = device.power_cut(int(completions["completed"].max()) // 2)
        text = repr((completions.tolist(), statistics, cut.lost.tolist(), cut.vanished.tolist(), cut.extents.tolist()))
        assert hashlib.sha256(text.encode()).hexdigest()[:12] == recorded, f"seed {seed}"


@pytest.mark.parametrize("model", ["engine", "specification", "mixed"])
def test_any_split_into_calls_gives_the_same_times(model: str) -> None:
    for seed in range(440, 452):
        device = drawn(seed, model)
        requests, arrivals = random_workload(seed, device.capacity, 40)
        commands = split_by_size(requests, 16 * SECTOR)
        other = drawn(seed, "engine")
        other.submit(requests, commands, arrivals)
        whole = other.advance(every=True)
        np.testing.assert_array_equal(serve_in_pieces(device, requests, arrivals, 16 * SECTOR, seed), whole)
        assert sorted(whole["id"].tolist()) == list(range(40))
        # Work goes on after a power cut, and one completion at a time.
        ends = []
        for each in (drawn(seed, model), drawn(seed, "engine")):
            each.submit(requests, commands, arrivals)
            each.power_cut(int(whole["completed"][20]))
            each.submit(requests, commands, arrivals + each.now)
            ends.append(np.concatenate([each.advance(wait=1 + number % 3) for number in range(40)]))
        np.testing.assert_array_equal(ends[0], ends[1])


def test_an_array_grows_its_drives_queues() -> None:
    """Thousands of requests wait at once, in several calls, some of many commands."""
    device, other = array(3), array(3, kind=HddSpecification)
    for number in range(3):
        sectors = generator(number, "many").integers(0, device.capacity // SECTOR - 64, 700) * SECTOR
        requests = make_requests(READ, sectors, np.where(np.arange(700) % 50 == 0, 64, 1) * SECTOR)
        for each in (device, other):
            each.submit(requests, split_by_size(requests, 2 * SECTOR), 0)
    np.testing.assert_array_equal(device.advance(every=True), other.advance(every=True))


@with_each("kind", [HddEngine, HddSpecification])
@with_each(("offset", "length"), [(0, 0), (100, 512), (-512, 512), (2**20, 512), (2**20 - 512, 1024), (0, 2**62)])
def test_impossible_commands_are_refused(kind: type[HddEngine] | type[HddSpecification], offset: int, length: int) -> None:
    device = array(2, kind=kind)
    requests = make_requests(READ, offset, length)
    with pytest.raises(InvalidParameterError, match=f"command: {length} B at {offset}|multiple|sectors of"):
        device.submit(requests, one_command_each(requests), 0)
    assert device.outstanding == 0 and device.next_event == NEVER


@pytest.mark.parametrize(
    ("stripe", "message"), [("1MiB", "stripe: 1 MiB, but a drive holds 512 KiB"), ("100B", "stripe: 100 B, but it must be")]
)
def test_stripes_that_do_not_fit_are_refused(stripe: str, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        array_of(HddEngine, small_drive(), build(Striping, {"drives": 2, "stripe": stripe}))


def test_a_preset_may_be_an_array() -> None:
    document = tomllib.loads((Path(presets.__file__).parent / "presets" / "toshiba-5400-320gb.toml").read_text())
    document["array"] = {"drives": {"value": 4, "source": "test"}}
    preset = from_document(document, Path("four.toml"))
    single = presets.load("toshiba-5400-320gb")
    assert preset.capacity == 4 * (single.capacity // 65536) * 65536 == Device(preset).capacity
    requests = make_requests(READ, np.arange(8) * 65536, 65536)
    times = [Device(each, model).serve(requests) for each in (preset, single) for model in ("engine", "specification")]
    np.testing.assert_array_equal(times[0], times[1])
    assert times[0]["completed"].max() < times[2]["completed"].max()
    document["array"]["stripe"] = {"value": "1000B", "source": "test"}
    with pytest.raises(InvalidParameterError, match="stripe: 1000 B"):
        from_document(document, Path("four.toml"))
    document["kind"] = "ssd"
    with pytest.raises(DamagedFileError, match="only disks are striped"):
        from_document(document, Path("four.toml"))


@with_each(("drives", "stripe"), [(2, 1), (2, 8), (3, 5), (18, 3)])
def test_every_byte_goes_to_the_drive_of_its_stripe_and_back(drives: int, stripe: int) -> None:
    striping, size = Striping(drives=drives, stripe=stripe * SECTOR), small_drive().capacity // SECTOR
    draw = generator(drives, "striping")
    sectors = striping.capacity(size * SECTOR) // SECTOR
    for _ in range(200):
        first = int(draw.integers(sectors))
        count = int(draw.integers(1, min(200, sectors - first) + 1))
        requests = make_requests(READ, first * SECTOR, count * SECTOR)
        commands = striping.split(requests, one_command_each(requests), size * SECTOR)
        held = {
            (sector // stripe % drives, sector // stripe // drives * stripe + sector % stripe) for sector in range(first, first + count)
        }
        addresses = (commands["offset"] // SECTOR).tolist(), (commands["length"] // SECTOR).tolist()
        runs = [(address // size, address % size, length) for address, length in zip(*addresses, strict=True)]
        assert {(drive, start + step) for drive, start, length in runs for step in range(length)} == held
        assert len({drive for drive, _, _ in runs}) == len(runs) and sum(length for _, _, length in runs) == count
        extents = [(drive, start * SECTOR, length * SECTOR) for drive, start, length in runs]
        assert striping.merge(extents).tolist() == [[first * SECTOR, count * SECTOR]]


def test_flushes_and_trims_go_to_all_drives() -> None:
    for operation in (FLUSH, TRIM):
        requests = make_requests(operation, 0, 0 if operation == FLUSH else 4096)
        commands = Striping(drives=3).split(requests, one_command_each(requests), 2**19)
        assert commands["offset"].tolist() == [0, 2**19, 2**20] and commands["length"].tolist() == [0, 0, 0]


def test_the_host_sees_whole_stripes_of_all_drives() -> None:
    assert array(18).capacity == 18 * 2**19
    assert array(3, stripe=100, kind=HddSpecification).capacity == 3 * (2**19 // 51200) * 51200


def test_independent_drives_share_a_backlog() -> None:
    """Random reads that all wait from the start: the drive with the most work decides, and that is a little more than its share."""
    share, ends = generator(4, "backlog").random(1800), {}
    for drives in (1, 18):
        device = array(drives, stripe=1) if drives > 1 else HddEngine(small_drive())
        sectors = (share * device.capacity // SECTOR).astype(np.int64)
        requests = make_requests(READ, sectors * SECTOR, SECTOR)
        ends[drives] = int(serve(device, requests)["completed"].max())
    busiest = np.bincount(sectors % 18).max() / 1800
    assert ends[18] / ends[1] == pytest.approx(busiest, rel=0.1)


@pytest.mark.parametrize("operation", [READ, WRITE])
def test_a_stream_runs_at_the_rate_of_all_drives(operation: int) -> None:
    """Requests of a stripe on each of four drives, one after the other: a link of its own carries each stripe."""
    requests = make_requests(operation, np.arange(40) * 32 * SECTOR, 32 * SECTOR, serial=True)
    ends = [serve(device, requests)["completed"] for device in (HddEngine(small_drive(capacity=0)), array(4, capacity=0))]
    assert np.diff(ends[0]).mean() / np.diff(ends[1]).mean() > 3
    assert np.diff(ends[1])[5:].min() >= 100 + 8 * 200


@pytest.mark.parametrize("drives", [8, 18])
def test_arrays_of_the_thesis(drives: int) -> None:
    """Engine and specification agree, and every request is served once."""
    kinds = (array(drives, kind=kind, scheduler="sptf", queue_depth=4) for kind in (HddEngine, HddSpecification))
    requests, arrivals = random_workload(drives, drives * small_drive().capacity, 200)
    commands = split_by_size(requests, 64 * SECTOR)
    found = []
    for device in kinds:
        device.submit(requests, commands, arrivals)
        found.append(device.advance(every=True))
    np.testing.assert_array_equal(found[0], found[1])
    assert sorted(found[0]["id"].tolist()) == list(range(200))

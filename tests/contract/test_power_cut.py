"""Every simulated device loses power by the same law: what is durable stays, and what comes afterwards depends on nothing that is gone.

What is durable stands in `flashsim.device.survival`, which crashes of databases on drives use as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.model import PowerCut
from flashsim.core.request import COMPLETION, WRITE, Completions, Integers, Requests
from flashsim.core.rng import generator
from flashsim.core.units import SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.scaling import part_of
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.device.station.specification import StationSpecification
from flashsim.device.striped import Striping
from flashsim.device.survival import durable_writes, vanished_writes
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing import disks
from flashsim.testing import flash_drives as flash
from tests.flashsim.hdd.deep_disks import array_of, deep_drive
from tests.flashsim.ssd.drive_kinds import KINDS as DRIVE_KINDS
from tests.flashsim.ssd.drive_kinds import drive_for
from tests.tiers import seeds

REQUESTS, CUTS = 24, 4
MODELS = ("engine", "specification")


@dataclass
class Case:
    """A kind of device and what it is told; `make` gives a fresh one, as engine or specification.

    `flash_page` is the size of the flash pages whose versions can be read, 0 where there are none.  With `in_order`, what vanishes is a
    tail of the acknowledged writes.
    """

    make: Callable[[str], Any]
    requests: Requests
    arrivals: Integers
    writes_through: bool
    in_order: bool = False
    flash_page: int = 0

    @cached_property
    def whole(self) -> Completions:
        """All completions without a cut, in order."""
        device = self.make("engine")
        tell(device, self.requests, self.arrivals)
        return device.advance(every=True)

    def cuts(self, seed: int, count: int = CUTS) -> list[int]:
        return [0, *generator(seed, "cuts").integers(0, self.whole["completed"].max() + 1, count).tolist()]


def disk(seed: int) -> Case:
    drive = deep_drive(seed) if seed % 2 else disks.random_drive(seed)
    drive = replace(drive, write_behind=0) if seed % 4 == 3 else drive
    requests, arrivals = disks.random_workload(seed, drive.capacity, REQUESTS)
    kinds = dict(zip(MODELS, (HddEngine, HddSpecification), strict=True))
    return Case(lambda model: kinds[model](drive), requests, arrivals, drive.write_behind == 0, in_order=True)


def striped_array(seed: int) -> Case:
    drive = replace(deep_drive(seed), write_behind=seed % 4 * 20 * disks.SECTOR)
    striping = Striping(drives=3, stripe=8 * disks.SECTOR)
    requests, arrivals = disks.random_workload(seed, striping.capacity(drive.capacity), REQUESTS)
    kinds = dict(zip(MODELS, (HddEngine, HddSpecification), strict=True))
    return Case(lambda model: array_of(kinds[model], drive, striping), requests, arrivals, drive.write_behind == 0)


def flash_drive(seed: int) -> Case:
    """Of each kind in turn, and every other one of several submission queues."""
    drive = drive_for(DRIVE_KINDS[seed % len(DRIVE_KINDS)], replace(flash.random_drive(seed), endurance=0))
    drive = replace(drive, queues=3 * drive.placement_handles, queue_depth=2) if seed % 2 else drive
    requests, arrivals = flash.random_workload(seed, drive, REQUESTS)
    behind = (drive.buffer_pages and drive.write_buffer_mode != "write-through") or drive.continuation_latency
    kinds = dict(zip(MODELS, (SsdEngine, SsdSpecification), strict=True))
    through = drive.power_protected or not behind
    return Case(lambda model: kinds[model](drive), requests, arrivals, through, flash_page=0 if seed % 2 else drive.unit_size)


def station(seed: int) -> Case:
    """Its times are fixed, since drawn ones follow from a request's number."""
    draw = generator(seed, "station")
    read, write, servers = draw.integers(1, 5000, 3).tolist()
    parameters = StationParameters(read, write, capacity=1 << 20, servers=1 + servers % 4, rate=int(draw.choice([0, 10**9])))
    kinds = dict(zip(MODELS, (StationEngine, StationSpecification), strict=True))
    return Case(lambda model: kinds[model](parameters), *disks.random_workload(seed, 1 << 20, REQUESTS), writes_through=True)


def part_of_preset(seed: int) -> Case:
    name, parts = (("seagate-st3300655lc", 100), ("mtron-msd-sata3025-16gb", 50), ("toshiba-5400-320gb", 400))[seed % 3]
    preset = part_of(presets.load(name), parts)
    requests, arrivals = disks.random_workload(seed, preset.capacity, REQUESTS)
    through = preset.disk is not None and preset.disk.write_behind == 0
    return Case(lambda model: Device(preset, model), requests, arrivals * 1000, through, in_order=preset.disk is not None)


KINDS = [disk, striped_array, flash_drive, station, part_of_preset]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
every_model = pytest.mark.parametrize("model", MODELS)


def tell(device: Any, requests: Requests, at: Integers) -> list[int]:
    """Submit requests that are not split, also to a device that splits them by itself."""
    ids = device.submit(requests, at) if isinstance(device, Device) else device.submit(requests, one_command_each(requests), at)
    return list(ids.tolist())


def report(cut: PowerCut) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in vars(cut).items()}


def rest(device: Any, case: Case) -> list[list[int]]:
    """What the same requests take once more, by the clock of the cut; without ids."""
    begin = device.now
    tell(device, case.requests, case.arrivals + begin)
    completions = device.advance(every=True)
    times = np.stack([completions[name] - begin for name in ("submitted", "started", "completed")], axis=1)
    return np.column_stack([completions["tag"], times]).tolist()


def cut_off(case: Case, model: str, at: int) -> tuple[Any, PowerCut]:
    device = case.make(model)
    tell(device, case.requests, case.arrivals)
    return device, device.power_cut(at)


def durable(case: Case, acknowledged: Completions) -> set[int]:
    """Writes that no power cut may take."""
    return durable_writes(case.requests, acknowledged, case.writes_through)


def vanished(case: Case, device: Any, cut: PowerCut, acknowledged: Completions) -> set[int]:
    """Acknowledged writes whose data are gone, as far as the device can say."""
    return vanished_writes(device, case.requests, cut, acknowledged, case.flash_page)


@every_kind
@every_model
@pytest.mark.parametrize("seed", seeds(200, 3, deep=3))
def test_each_request_is_acknowledged_or_lost_and_the_device_is_idle(kind: Callable[[int], Case], model: str, seed: int) -> None:
    case = kind(seed)
    for at in case.cuts(seed):
        device, cut = cut_off(case, model, at)
        assert (device.now, device.outstanding, cut.at) == (at, 0, at)
        acknowledged = case.whole["id"][case.whole["completed"] <= at].tolist()
        assert cut.lost.tolist() == sorted(set(range(REQUESTS)) - set(acknowledged))
        again = report(device.power_cut(at))
        assert all(value in ([], at) for value in again.values())  # whatever could be lost is lost already
        assert tell(device, case.requests, case.arrivals + at) == list(range(REQUESTS, 2 * REQUESTS))


@every_kind
@pytest.mark.parametrize("seed", seeds(206, 5, deep=5))
def test_engine_and_specification_lose_the_same_and_go_on_alike(kind: Callable[[int], Case], seed: int) -> None:
    case = kind(seed)
    for at in case.cuts(seed)[:3]:
        (engine, ours), (specification, theirs) = (cut_off(case, model, at) for model in MODELS)
        assert report(ours) == report(theirs)
        assert rest(engine, case) == rest(specification, case)


@every_kind
@every_model
@pytest.mark.parametrize("seed", seeds(216, 3, deep=3))
def test_any_split_into_calls_comes_to_the_same(kind: Callable[[int], Case], model: str, seed: int) -> None:
    case = kind(seed)
    for at in case.cuts(seed)[1:]:
        device, cut = cut_off(case, model, at)
        stepped, draw = case.make(model), generator(seed, "steps", at)
        tell(stepped, case.requests, case.arrivals)
        parts = [np.zeros(0, COMPLETION)]
        while stepped.now < at:
            until = min(at, stepped.now + int(draw.integers(1, max(at // 5, 2))))
            parts.append(stepped.advance(until, every=bool(draw.random() < 0.5)))
        parts.append(stepped.advance(at, every=True))
        assert np.concatenate(parts).tolist() == case.whole[case.whole["completed"] <= at].tolist()
        assert report(stepped.power_cut(at)) == report(cut)
        assert rest(stepped, case) == rest(device, case)


@every_kind
@every_model
@pytest.mark.parametrize("seed", seeds(222, 3, deep=3))
def test_what_would_have_come_later_leaves_no_trace(kind: Callable[[int], Case], model: str, seed: int) -> None:
    """The state after a cut is that of a device which was told only what arrived before."""
    case = kind(seed)
    case.requests["dependency"] = -1
    case.arrivals.sort()
    for at in case.cuts(seed):
        early = int(np.searchsorted(case.arrivals, at, side="right"))
        device, cut = cut_off(case, model, at)
        other = case.make(model)
        tell(other, case.requests[:early], case.arrivals[:early])
        told, less = report(cut), report(other.power_cut(at))
        assert told.pop("lost") == [*less.pop("lost"), *range(early, REQUESTS)]
        assert told == less
        if case.flash_page:
            pages = range(device.capacity // case.flash_page)
            assert [device.version(page) for page in pages] == [other.version(page) for page in pages]
        assert rest(device, case) == rest(other, case)


@every_kind
@every_model
@pytest.mark.parametrize("seed", seeds(228, 10, deep=20))
def test_nothing_durable_is_lost(kind: Callable[[int], Case], model: str, seed: int) -> None:
    case = kind(seed)
    if case.flash_page:  # versions count in order of arrival
        case.requests["dependency"], case.requests["stream"] = -1, 0
        case.arrivals.sort()
    for at in case.cuts(seed, 8):
        device, cut = cut_off(case, model, at)
        acknowledged = case.whole[case.whole["completed"] <= at]
        gone = vanished(case, device, cut, acknowledged)
        assert not gone & durable(case, acknowledged)
        writes = acknowledged["id"][case.requests["operation"][acknowledged["id"]] == WRITE].tolist()
        assert gone <= set(writes)
        if case.in_order:
            assert gone == set(writes[len(writes) - len(gone) :])


@pytest.mark.parametrize("kind", [disk, striped_array, flash_drive, part_of_preset], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("first", "count"), [(274, 6), pytest.param(260, 24, marks=pytest.mark.deep)])
def test_devices_that_write_behind_do_lose_what_is_not_durable(first: int, count: int, kind: Callable[[int], Case]) -> None:
    """Disks no more once their background work has ended; a flash drive's buffer keeps its pages."""
    taken = 0
    for seed in range(first, first + count):
        case = kind(seed)
        case.requests["dependency"], case.requests["stream"] = -1, 0
        case.arrivals.sort()
        for at in case.cuts(seed):
            device, cut = cut_off(case, "engine", at)
            taken += len(vanished(case, device, cut, case.whole[case.whole["completed"] <= at]))
        if kind is not flash_drive:
            device, cut = cut_off(case, "engine", int(case.whole["completed"].max()) + 100 * SECONDS)
            assert vanished(case, device, cut, case.whole) == set()
    assert taken > 0

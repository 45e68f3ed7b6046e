"""Calibration finds simulated drives again: what it cannot see from outside is hidden from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.apps.calibration import hdd_fit, ssd_fit
from flashsim.apps.calibration.cells import cells, measure
from flashsim.apps.calibration.rotating import rotation_of
from flashsim.apps.calibration.session import calibrate
from flashsim.core.parameters import build
from flashsim.core.units import GIB, MB, MIB, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.experiments.bench.targets import simulated_target
from flashsim.hdd.parameters import HddParameters
from tests.cases import with_each

#: Controller and die times (ns) and link rates (bytes a second) of reads, and of writes.
READS, WRITES = np.array([12e3, 80e3, 500 * MB]), np.array([20e3, 300e3, 300 * MB])


def flash(dies: int, queue_depth: int) -> Preset:
    return Preset("known", "ssd", "", ssd_fit.drive(ssd_fit.Structure(dies, queue_depth), READS, WRITES, GIB), {})


def test_a_flash_drive_is_found_again() -> None:
    done = calibrate(simulated_target(flash(16, 256), 128 * MIB), "mine", time=SECONDS, write=True)
    assert done.preset.kind == "ssd"
    fitted = done.preset.parameters
    assert (fitted.channels, fitted.queue_depth) == (16, 256)
    names = [f"{kind} {part}" for kind in ("read", "write") for part in ("overhead", "die time")]
    names[2:2], names[5:] = ["link read rate"], ["link write rate"]
    for one, name, truth in zip(done.estimates, names, [*READS, *WRITES], strict=True):
        assert one.name == name
        assert one.value == pytest.approx(truth, rel=0.05)
        assert one.relative < 0.1
    assert np.abs(done.errors(False)).max() < 0.05
    assert np.abs(done.errors(True)).max() < 0.05


@pytest.mark.deep
@pytest.mark.parametrize(("dies", "queue_depth"), [(6, 256), (16, 4)])
def test_what_cannot_be_told_apart_is_predicted(dies: int, queue_depth: int) -> None:
    """Where dies and link limit the bandwidth alike, or a short queue hides the dies, another drive shows about the same times."""
    done = calibrate(simulated_target(flash(dies, queue_depth), 128 * MIB), "mine", time=SECONDS, write=True)
    assert np.abs(done.errors(True)).max() < 0.1


@pytest.mark.deep
@pytest.mark.parametrize("name", ["intel-x25e-64gb", "nvme-tlc-1tb", "ocz-core-60gb"])
def test_presets_of_other_structure_are_predicted(name: str) -> None:
    """Planes, shared channels and several dies on each: the fitted drive is another one, but shows the same times."""
    done = calibrate(simulated_target(presets.load(name), 256 * MIB), "mine", time=SECONDS)
    errors = np.abs(done.errors(True))
    assert np.median(errors) < 0.05
    assert errors.max() < 0.2


def disk(**changed: Any) -> Preset:
    """A disk with five zones, all of which the host can address."""
    values: dict[str, Any] = {
        "sector_size": 512,
        "rotation": 8_333_333,
        "heads": 3,
        "zones": [[9000, 1400], [9000, 1300], [12000, 1150], [9000, 1000], [9000, 880]],
        "seek_single": 1_100_000,
        "seek_average": 8_900_000,
        "seek_full": 17_500_000,
        "head_switch": 700_000,
        "write_settle": 250_000,
        "link_rate": 150 * MB,
        "overhead": 60_000,
        "read_ahead": 2 * MIB,
        "write_behind": MIB,
        "queue_depth": 1,
    }
    values |= changed
    values["capacity"] = 512 * values["heads"] * sum(cylinders * per_track for cylinders, per_track in values["zones"])
    return Preset("known", "hdd", "", build(HddParameters, values), {})


DISKS = {
    "of three heads": disk(),
    "15,000/min": disk(rotation=4_000_000, seek_single=500_000, seek_average=3_800_000, seek_full=7_500_000, head_switch=300_000, heads=5),
    "cylinders like tracks": disk(head_switch=1_100_000),
    "slow link": disk(rotation=11_111_111, link_rate=34 * MB, seek_single=1_500_000, seek_average=12_000_000, seek_full=22_000_000),
}


@with_each("name", DISKS)
def test_a_disk_is_found_again(name: str) -> None:
    known = DISKS[name]
    truth = known.parameters
    target = simulated_target(known)
    spinning = rotation_of(target, 0)
    assert spinning.period == pytest.approx(truth.rotation, rel=1e-6)
    fitted = hdd_fit.fit(target, spinning, 60 * SECONDS, 0).parameters
    assert [zone[1] for zone in fitted.zones] == [zone[1] for zone in truth.zones]
    assert ends(fitted) == pytest.approx(ends(truth), abs=0.02)
    assert fitted.overhead == pytest.approx(truth.overhead, rel=0.05)
    assert fitted.link_rate == pytest.approx(truth.link_rate, rel=0.01)
    assert fitted.read_ahead == pytest.approx(truth.read_ahead, rel=0.05)
    assert fitted.seek_average == pytest.approx(truth.seek_average, rel=0.02)
    assert fitted.seek_full == pytest.approx(truth.seek_full, rel=0.02)
    assert fitted.seek_single == pytest.approx(truth.seek_single, abs=0.25e6)  # known to some 0.1 ms, by chance of the angles
    if name != "cylinders like tracks":
        assert fitted.heads == truth.heads
        assert fitted.head_switch == pytest.approx(truth.head_switch + truth.write_settle, rel=0.02)  # the skew holds both


def ends(parameters: HddParameters) -> list[float]:
    """Where zones end, as shares of what the host can address."""
    sectors = np.cumsum([cylinders * per_track * parameters.heads for cylinders, per_track, *_ in parameters.zones])
    shares: list[float] = np.minimum(sectors / (parameters.capacity // parameters.sector_size), 1.0).tolist()
    return shares


@pytest.mark.deep
def test_a_disk_is_predicted() -> None:
    done = calibrate(simulated_target(disk()), "mine", time=120 * SECONDS)
    assert done.preset.kind == "hdd"
    for held_out in (False, True):
        errors = done.errors(held_out)
        assert np.median(np.abs(errors)) < 0.05
        assert np.abs(errors).max() < 0.2  # a few dozen seeks a cell


@pytest.mark.parametrize("name", ["intel-x25e-64gb", "samsung-mcaqe32g8"])
def test_flash_does_not_turn(name: str) -> None:
    assert rotation_of(simulated_target(presets.load(name), 64 * MIB), 0).period == 0


def test_the_cells_that_are_held_out_are_no_cells_of_the_fit() -> None:
    every = cells(512, write=True)
    seen = {(one.operation, one.sizes, one.depth) for one in every if not one.held_out}
    assert not seen & {(one.operation, one.sizes, one.depth) for one in every if one.held_out}
    assert {one.depth for one in every} >= {1, 4, 16, 64}


class Jittery:
    """A simulated drive behind a host that holds up one in three requests, by up to 2 ms."""

    def __init__(self, preset: Preset) -> None:
        self.inner = simulated_target(preset, 64 * MIB)
        self.name, self.size, self.least = "jittery", self.inner.size, self.inner.least
        self.random = np.random.default_rng(3)

    def enforce_state(self, share: float, seed: int) -> str:
        return self.inner.enforce_state(share, seed)

    def measure(self, requests, pause):  # type: ignore[no-untyped-def]
        completions = self.inner.measure(requests, pause)
        held = self.random.random(len(completions)) < 1 / 3 / (1 if requests["dependency"].max() >= 0 else len(completions))
        completions["completed"] += held * self.random.integers(1, 2_000_000, len(completions))
        return completions


def test_disturbances_hardly_move_a_cell() -> None:
    quiet, disturbed = (
        measure(target, [one for one in cells(512, write=False) if one.depth <= 4 and len(one.sizes) == 1], SECONDS // 2, 0)
        for target in (simulated_target(flash(8, 256), 64 * MIB), Jittery(flash(8, 256)))
    )
    for one, other in zip(quiet, disturbed, strict=True):
        assert other.time == pytest.approx(one.time, rel=0.15)
        low, high = other.interval(0)
        assert low <= other.time <= high


def test_the_preset_is_a_file_that_opens(tmp_path) -> None:  # type: ignore[no-untyped-def]
    done = calibrate(simulated_target(disk()), "mine", time=30 * SECONDS)
    (tmp_path / "mine.toml").write_text(done.text(), encoding="utf-8")
    again = presets.load(str(tmp_path / "mine.toml"))
    assert again.parameters == done.preset.parameters
    assert again.sources["rotation"].startswith("measured")
    assert again.sources["write_settle"].startswith("assumed")
    assert Device.open(str(tmp_path / "mine.toml")).capacity == done.size

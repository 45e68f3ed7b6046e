"""Write amplification by cause and over time: parts add up, and looking at a drive changes nothing of what it does."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from flashsim.core.request import READ, WRITE
from flashsim.core.spans import CAUSES, FOLD
from flashsim.core.units import MIB, MILLISECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.experiments.presentation.tables import as_text
from flashsim.experiments.replaying import device_report
from flashsim.experiments.replaying.device_report import DeviceReport
from flashsim.experiments.replaying.observation import (
    BELOW_ONE,
    MOST_SAMPLES,
    NOT_COLLECTED,
    CounterHistory,
    Observation,
    by_cause,
    write_amplification,
)
from flashsim.experiments.replaying.simulated import ReplaySettings, replay
from flashsim.experiments.replaying.survey import load, survey
from tests.cases import with_each
from traces.file.schema import make_batch
from traces.format.base import load_writable

COUNTS = {"programs_host": 10, "programs_gc": 6, "programs_merge": 3, "programs_map": 2, "programs_wear": 1}


def test_parts_add_up_to_the_whole() -> None:
    told = write_amplification(COUNTS | {"flash_programs": 22, "host_write_bytes": 10 * 4096}, 4096)
    assert told == {"total": 2.2, "host": 1.0, "gc": 0.6, "merge": 0.3, "map": 0.2, "wear": 0.1}
    assert sum(told[cause] for cause in CAUSES[:FOLD]) == pytest.approx(told["total"])
    assert by_cause(COUNTS, "programs") == dict(zip(CAUSES[:FOLD], (10, 6, 3, 2, 1), strict=True))


def test_a_drive_that_does_not_tell_causes_apart_has_a_total() -> None:
    assert write_amplification({"flash_programs": 15, "host_write_bytes": 40960}, 4096) == {"total": 1.5}
    assert write_amplification({"flash_programs": 0, "host_write_bytes": 0}, 4096) is None
    assert write_amplification({"reads": 5}, 4096) is None


@with_each(
    ("total", "erases", "note"), [(0.875, 5, BELOW_ONE), (1.0, 5, ""), (1.167, 0, NOT_COLLECTED), (0.5, 0, f"{BELOW_ONE}; {NOT_COLLECTED}")]
)
def test_a_write_amplification_that_may_surprise_is_explained(total: float, erases: int, note: str) -> None:
    told = {"write_amplification": {"total": total, "host": total}, "statistics": {"flash_erases": erases}}
    (table,) = device_report._flash_tables(told).values()
    assert table.attrs["note"] == note


def _counters(pages: int) -> dict[str, int]:
    return {"host_write_bytes": pages * 4096, "flash_programs": 2 * pages, "flash_erases": pages // 8} | {
        "programs_host": pages, "programs_gc": pages, "programs_merge": 0, "programs_map": 0, "programs_wear": 0,
    }  # fmt: skip


def test_samples_stay_few_and_lose_nothing() -> None:
    history = CounterHistory(4096)
    now = pages = 0
    while now < 5000 * MILLISECONDS:
        history.take(now, _counters(pages))
        assert history.next > now
        now, pages = history.next, pages + 3
    history.take(now + 7, _counters(pages))
    frame = history.as_frame()
    assert MOST_SAMPLES / 4 < len(frame) < MOST_SAMPLES
    assert frame["host_write_bytes"].sum() == pages * 4096 and frame["time"].iloc[-1] == now + 7
    assert (frame["write_amplification"] == 2).all() and (frame["write_amplification_gc"] == 1).all()
    assert (np.diff(frame["time"]) > 0).all()


def test_intervals_without_writes_have_no_write_amplification() -> None:
    history = CounterHistory(4096)
    for now, pages in ((0, 0), (5, 10), (9, 10)):
        history.take(now, _counters(pages))
    assert history.as_frame()["write_amplification"].isna().tolist() == [False, True]
    assert len(CounterHistory(4096).as_frame()) == 0


def _trace(path: Path, count: int, spacing: int | None) -> Path:
    random = np.random.default_rng(3)
    columns: dict[str, object] = {
        "operation": np.where(random.random(count) < 0.6, WRITE, READ),
        "offset": random.integers(0, 2000, count) * 4096,
        "length": random.integers(1, 9, count) * 4096,
    }
    if spacing:
        columns["arrival"] = np.cumsum(random.integers(0, 2 * spacing, count))
    load_writable("parquet").write(iter([make_batch(columns)]), path)
    return path


def _looking_changes_nothing(preset: presets.Preset, settings: ReplaySettings, path: Path) -> None:
    """The clock is never sent beyond the last completion, and samples are taken in the middle of a window."""
    found, looks = [], 0
    for watched in (False, True):
        device = Device(preset)
        what = survey(path)
        load(device, what)
        observation = Observation(device) if watched else None
        seen: list[np.ndarray] = []
        replay(path, device, settings, what, lambda _, done, seen=seen: seen.append(done.copy()), observation=observation)
        found.append((np.concatenate(seen), device.now, device.statistics()))
        if observation and observation.history:
            frame = observation.history.as_frame()
            looks = len(frame)
            assert frame["host_write_bytes"].sum() == device.statistics()["host_write_bytes"]
            assert frame["flash_programs"].sum() == device.statistics()["flash_programs"]
    assert np.array_equal(found[0][0], found[1][0]) and found[0][1:] == found[1][1:]
    expected = found[0][1] / MILLISECONDS / 2
    if preset.flash and preset.flash.unit_size > 4096:  # requests for a part of a unit that is programmed wait: nothing happens until then
        expected = found[0][1] // (2 * preset.flash.program)
    assert looks >= min(4, expected), "there are samples in the middle"


@pytest.mark.parametrize("name", [name for name in presets.names() if presets.load(name).kind == "ssd"])
@pytest.mark.parametrize(("pace", "depth", "spacing"), [("asap", 1, None), ("asap", 40, None), ("timed", 1, 300_000), ("timed", 1, 30_000)])
def test_looking_changes_nothing(name: str, pace: str, depth: int, spacing: int | None, tmp_path: Path) -> None:
    _looking_changes_nothing(presets.load(name), ReplaySettings(pace, depth), _trace(tmp_path / "t", 400, spacing))


@pytest.mark.parametrize(("pace", "depth", "spacing"), [("asap", 7, None), ("timed", 1, 30_000)])
def test_looking_changes_nothing_of_a_drive_with_much_to_decide(pace: str, depth: int, spacing: int | None, tmp_path: Path) -> None:
    preset = presets.load("intel-x25e-64gb")
    options = {"read_priority": True, "suspend": "both", "multi_plane": True, "allocation": "dynamic", "planes_per_die": 2}
    parameters = dataclasses.replace(
        preset.parameters, capacity=9 * MIB, blocks_per_plane=10, channels=2, packages_per_channel=2, **options
    )
    path = _trace(tmp_path / "t", 1500, spacing)
    _looking_changes_nothing(dataclasses.replace(preset, parameters=parameters), ReplaySettings(pace, depth), path)


def test_reports_of_a_drive_hold_energy_and_write_amplification(tmp_path: Path) -> None:
    path = _trace(tmp_path / "t", 300, None)
    for name in ("intel-x25e-64gb", "ocz-core-60gb", "toshiba-5400-320gb"):
        device = Device.open(name)
        observation = Observation(device)
        report = DeviceReport(device.preset, observation)
        replay(path, device, ReplaySettings("asap", 4), survey(path), report.add, observation=observation)
        told = report.as_dict(device.statistics())
        assert 0 < told["active"] == told["duration"], "with clients that never think the drive always serves one"
        shown = "\n".join(as_text(table) for table in report.tables(device.statistics()).values())
        if device.kind == "hdd":
            assert "energy" not in told and "write_amplification" not in told and "energy" not in shown
            continue
        assert told["write_amplification"]["total"] == pytest.approx(device.statistics()["write_amplification"])
        parts = dict(told["write_amplification"])
        assert parts.pop("total") == pytest.approx(sum(parts.values())) and list(parts) == list(CAUSES[:FOLD])
        assert sum(told["reads_by_cause"].values()) == device.statistics()["flash_reads"]
        if device.preset.energy:
            assert told["energy"]["idle"] == pytest.approx(told["duration"] * device.preset.energy.idle / 1e12)
            assert sum(told["energy"].values()) == pytest.approx(2 * told["energy"]["total"])
            assert "W on average" in shown
        else:
            assert told["energy"] is None and "no energy figures" in shown


def test_time_in_which_nothing_is_served_is_not_active(tmp_path: Path) -> None:
    path = _trace(tmp_path / "t", 100, 50 * MILLISECONDS)
    device = Device.open("intel-x25e-64gb")
    report = DeviceReport(device.preset)
    seen = []
    replay(path, device, ReplaySettings("timed"), survey(path), lambda batch, done: (report.add(batch, done), seen.append(done.copy()))[0])
    every = np.concatenate(seen)
    served = np.zeros(0, np.int64)
    for begin, end in sorted(zip(every["started"].tolist(), every["completed"].tolist(), strict=True)):
        served = np.append(served, np.arange(max(begin, served[-1] if len(served) else 0), end, 1000))
    assert report.active == pytest.approx(1000 * len(served), rel=0.01)
    assert report.active < report.duration / 10

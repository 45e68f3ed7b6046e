"""What drives tell of their parts: spans account for every busy nanosecond and every flash operation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from flashsim.core.request import READ, WRITE, Completions, make_requests
from flashsim.core.spans import CAUSES, ERASE, HOST, MOVE, PROGRAM, SPAN, Spans, holds
from flashsim.core.units import MIB
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.experiments.replaying.observation import GcPauses

PRESETS = [name for name in presets.names() if presets.load(name).kind == "ssd"]


def _worn(**options: object) -> presets.Preset:
    """A small drive that collects garbage all the time."""
    preset = presets.load("intel-x25e-64gb")
    small = {"capacity": 9 * MIB, "blocks_per_plane": 20, "channels": 2, "packages_per_channel": 2, "write_buffer": 0}
    return dataclasses.replace(preset, parameters=dataclasses.replace(preset.parameters, **(small | options)))  # type: ignore[arg-type]


def _run(preset: presets.Preset, pages: int, rounds: int = 3) -> tuple[Device, Spans, Completions]:
    """Reads and overwrites of a few pages, many at once, told in pieces."""
    device = Device(preset)
    assert device.record_spans()
    random = np.random.default_rng(4)
    pieces, completions = [], []
    for _ in range(rounds):
        operations = np.where(random.random(60) < 0.5, READ, WRITE)
        requests = make_requests(operations, random.integers(0, pages, 60) * 4096, random.integers(1, 20, 60) * 4096)
        completions.append(device.serve(requests))
        pieces.append(holds(device.spans()))
    assert len(device.spans()) == 0, "spans are told once"
    return device, np.concatenate(pieces), np.concatenate(completions)


def _accounts(device: Device, spans: Spans) -> None:
    parameters, told = device.preset.parameters, device.statistics()
    assert spans.dtype == SPAN
    assert (spans["end"] > spans["begin"]).all()
    servers = parameters.dies + parameters.channels + 2 + (parameters.bus_rate > 0)
    busy = np.bincount(spans["server"], spans["end"] - spans["begin"], minlength=servers).astype(int).tolist()
    assert busy == [
        *told["die_busy_ns"],
        *told["channel_busy_ns"],
        told["link_busy_ns"],
        told["controller_busy_ns"],
        *[told.get("bus_busy_ns", 0)][: parameters.bus_rate],
    ]
    ordered = spans[np.lexsort((spans["begin"], spans["server"]))]
    same = ordered["server"][1:] == ordered["server"][:-1]
    assert (ordered["begin"][1:][same] >= ordered["end"][:-1][same]).all(), "a part does one thing at a time"


@pytest.mark.parametrize("preset", [*map(presets.load, PRESETS), _worn(), _worn(write_buffer=MIB // 4)], ids=[*PRESETS, "worn", "buffered"])
def test_spans_account_for_busy_times_and_counters(preset: presets.Preset) -> None:
    drive = preset.parameters
    device, spans, completions = _run(
        preset, 2000 if preset.parameters.capacity < 10 * MIB else 40, 25 if preset.parameters.capacity < 10 * MIB else 3
    )
    _accounts(device, spans)
    told = device.statistics()
    on_dies = spans[spans["server"] < drive.dies]
    for cause, reason in enumerate(CAUSES):  # drives without an SLC cache count no folding
        own = on_dies[on_dies["cause"] == cause]["kind"]
        # units that are programmed at once are counted each, and are one span
        assert np.isin(own, (PROGRAM, MOVE)).sum() * drive.group == told.get(f"programs_{reason}", 0)
        assert (own == ERASE).sum() == told.get(f"erases_{reason}", 0)
    for_host = spans[(spans["request"] >= 0) & (spans["cause"] == HOST)]
    rows = np.searchsorted(completions["id"], for_host["request"])
    assert (for_host["begin"] >= completions["started"][rows]).all()
    # what a write buffer acknowledges, or a write that goes on where the last one ended, goes to channels and dies later
    acknowledges = drive.write_buffer or drive.continuation_limit
    awaited = for_host["server"] >= (drive.dies + drive.channels if acknowledges else 0)
    assert (for_host["end"] <= completions["completed"][rows])[awaited].all()
    assert set(for_host["request"].tolist()) == set(completions["id"].tolist())


@pytest.mark.parametrize(
    "options", [{"read_priority": True, "suspend": "both"}, {"planes_per_die": 2, "blocks_per_plane": 12, "multi_plane": True}]
)
def test_interruptions_and_planes_that_work_together_are_accounted_for(options: dict[str, object]) -> None:
    device, spans, _ = _run(_worn(**options), 2000, 25)
    assert device.statistics()["flash_erases"] > 0
    _accounts(device, spans)


def test_pauses_are_what_collection_holds_dies_for() -> None:
    device, spans, _ = _run(_worn(), 2000, 25)
    pauses = GcPauses(4)
    pauses.add(spans)
    told = pauses.as_dict()
    held = spans[(spans["server"] < 4) & (spans["cause"] != HOST)]
    assert told is not None and told["total"] == (held["end"] - held["begin"]).sum() > 0
    assert device.statistics()["flash_erases"] / 64 < told["pauses"] <= len(held)

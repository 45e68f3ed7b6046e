"""Advice by a part of a drive of today is that by the whole drive, under three loads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import flashsim as fs
from flashsim.apps.programs import drive_parts
from flashsim.core.rng import generator
from flashsim.core.units import GIB, KIB, MIB, SECONDS
from flashsim.device import presets

#: Figures of long runs, and the largest relative difference.
LONG_RUN = {"write_amplification": 0.05, "throughput_load": 0.05}
#: Figures of the trace as recorded, and how far the whole's may be from the range of parts in `STATES` states, which differ by a fifth.
RECORDED, STATES = {"mean_us": 0.05, "p50_us": 0.05, "p99_us": 0.15, "p99.9_us": 0.15}, 5


def transactions() -> pd.DataFrame:
    """Pages of 8 KiB of a table of 4 GiB, a tenth of which has nine tenths of references, and a log in order."""
    draw, count = generator(3, "transactions"), 60_000
    kind = draw.random(count)
    hot, pages = draw.random(count) < 0.9, 4 * GIB // (8 * KIB)
    page = np.where(hot, draw.integers(pages // 10, size=count), draw.integers(pages, size=count))
    log = np.cumsum(kind > 0.8) % (64 * MIB // (16 * KIB))
    offset = np.where(kind > 0.8, 4 * GIB + log * 16 * KIB, page * 8 * KIB)
    length = np.where(kind > 0.8, 16 * KIB, 8 * KIB)
    arrival = np.cumsum(draw.exponential(SECONDS / 4000, count)).astype(np.int64)
    return pd.DataFrame({"operation": np.where(kind > 0.6, "write", "read"), "offset": offset, "length": length, "arrival": arrival})


def overwrites() -> pd.DataFrame:
    """Three writes of 4 KiB at random in 1 GiB, and two reads of all 8 GiB."""
    draw, count = generator(4, "overwrites"), 60_000
    write = draw.random(count) < 0.6
    offset = np.where(write, draw.integers(GIB // (4 * KIB), size=count), draw.integers(8 * GIB // (4 * KIB), size=count)) * 4 * KIB
    arrival = np.cumsum(draw.exponential(SECONDS / 8000, count)).astype(np.int64)
    return pd.DataFrame({"operation": np.where(write, "write", "read"), "offset": offset, "length": 4 * KIB, "arrival": arrival})


def compactions() -> pd.DataFrame:
    """Files of 8 MiB, written in order at random places of 6 GiB, and reads of 16 KiB between."""
    draw, files, each = generator(5, "compactions"), 250, 64
    place = draw.integers(6 * GIB // (8 * MIB), size=files) * 8 * MIB
    written = (place[:, None] + np.arange(each) * 128 * KIB).ravel()
    rows = [pd.DataFrame({"operation": "write", "offset": written, "length": 128 * KIB})]
    rows.append(pd.DataFrame({"operation": "read", "offset": draw.integers(6 * GIB // (16 * KIB), size=len(written)) * 16 * KIB}))
    mixed = pd.concat(rows).assign(length=lambda frame: frame["length"].fillna(16 * KIB).astype(np.int64))
    mixed["order"] = np.concatenate([np.arange(len(written)), np.arange(len(written))])
    mixed = mixed.sort_values("order", kind="stable").drop(columns="order")
    return mixed.assign(arrival=np.cumsum(draw.exponential(SECONDS / 2500, len(mixed))).astype(np.int64))


def rows_of_advice(load: pd.DataFrame, device: str, repeats: int, whole: bool = False, states: int = 1) -> pd.DataFrame:
    """Advice on a drive or its part in states that differ; all but the first play the load once."""
    rows = [
        fs.advise(load, device=device, bound="p99=10ms", whole=whole, seed=seed, repeats=1 if seed else repeats, jobs=1).summary()
        for seed in range(states)
    ]
    return pd.concat(rows, ignore_index=True)


def differences(parts: pd.DataFrame, other: pd.Series[Any]) -> dict[str, Any]:
    """Figures of parts that are not those of another drive."""
    long_run = {name: (parts[name].iloc[0], other[name]) for name in LONG_RUN}
    differing = {name: pair for name, pair in long_run.items() if pair[0] != pytest.approx(pair[1], rel=LONG_RUN[name])}
    ranges = {name: (parts[name].min() * (1 - most), other[name], parts[name].max() * (1 + most)) for name, most in RECORDED.items()}
    return differing | {name: (low, value, high) for name, (low, value, high) in ranges.items() if not low <= value <= high}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("device", "load"),
    [
        ("samsung-980-pro-1tb", transactions),
        ("samsung-980-pro-1tb", overwrites),
        ("samsung-980-pro-1tb", compactions),
        ("micron-7450-pro-960gb", transactions),
    ],
)
def test_a_part_advises_as_the_whole_drive(device: str, load: Any) -> None:
    parts, whole = rows_of_advice(load(), device, 200, states=STATES), rows_of_advice(load(), device, 2000, whole=True).iloc[0]
    assert parts["simulated"].iloc[0] < 0.3 * whole["simulated"] and parts["settled"].iloc[0]
    assert not differences(parts, whole)
    if whole["years"] is not None and np.isfinite(whole["years"]):
        assert parts["years"].iloc[0] == pytest.approx(whole["years"], rel=0.05)


@pytest.mark.deep
@pytest.mark.parametrize("device", [name for name in presets.names() if presets.load(name).kind == "ssd"])
def test_a_part_advises_as_one_four_times_as_large(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where parts are: a small drive is simulated whole."""
    parts = rows_of_advice(overwrites(), device, 200, states=STATES)
    if isinstance(problem := parts["problem"].iloc[0] if "problem" in parts else None, str):
        pytest.skip(problem)
    for name in ("_LARGER", "_SPARE", "_MOST_UNITS"):
        monkeypatch.setattr(drive_parts, name, getattr(drive_parts, name) * 4)
    larger = rows_of_advice(overwrites(), device, 800).iloc[0]
    if parts["simulated"].iloc[0] == larger["simulated"]:
        pytest.skip("simulated whole")
    assert not differences(parts, larger)

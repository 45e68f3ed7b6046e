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

#: Figures of advice, and the largest relative difference; percentiles at length are those of few requests.
LIMITS = {"mean_us": 0.05, "p50_us": 0.05, "p99_us": 0.15, "p99.9_us": 0.15, "write_amplification": 0.05, "throughput_load": 0.05}


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
    """Writes of 4 KiB at random in 1 GiB, and as many reads of all 8 GiB."""
    draw, count = generator(4, "overwrites"), 60_000
    write = draw.random(count) < 0.5
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


def table_of_advice(load: pd.DataFrame, device: str, **options: Any) -> pd.DataFrame:
    """The part's row and the whole drive's."""
    bound = {"bound": "p99=10ms", "repeats": 800, "jobs": 1}
    return pd.concat(
        [fs.advise(load, device=device, whole=each, **bound, **options).summary() for each in (False, True)], ignore_index=True
    )


@pytest.mark.deep
@pytest.mark.parametrize("load", [transactions, overwrites, compactions])
@pytest.mark.parametrize("device", ["samsung-980-pro-1tb", "micron-7450-pro-960gb"])
def test_a_part_advises_as_the_whole_drive(device: str, load: Any) -> None:
    table = table_of_advice(load(), device)
    part, whole = table.iloc[0], table.iloc[1]
    assert part["simulated"] < 0.3 * whole["simulated"] and part["settled"]  # the whole would have to be written for hours of drive time
    differing = {name: (part[name], whole[name]) for name, most in LIMITS.items() if part[name] != pytest.approx(whole[name], rel=most)}
    assert not differing
    if whole["years"] is not None and np.isfinite(whole["years"]):
        assert part["years"] == pytest.approx(whole["years"], rel=0.05)


@pytest.mark.deep
@pytest.mark.parametrize("device", [name for name in presets.names() if presets.load(name).kind == "ssd"])
def test_a_part_advises_as_one_four_times_as_large(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where parts are: a small drive is simulated whole."""
    load, rows = overwrites(), list[Any]()
    for factor in (1, 4):
        for name in ("_LARGER", "_SPARE", "_MOST_UNITS"):
            monkeypatch.setattr(drive_parts, name, getattr(drive_parts, name) * factor)
        rows.append(fs.advise(load, device=device, bound="p99=10ms", repeats=800, jobs=1).summary().iloc[0])
    part, larger = rows
    if part["problem"] is not None and isinstance(part["problem"], str):
        pytest.skip(part["problem"])
    if part["simulated"] == larger["simulated"]:
        pytest.skip("simulated whole")
    differing = {name: (part[name], larger[name]) for name, most in LIMITS.items() if part[name] != pytest.approx(larger[name], rel=most)}
    assert not differing

"""``fs.trace`` of a part of a file or frame, which replays take for a trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.errors import InvalidParameterError


@pytest.fixture
def frame() -> pd.DataFrame:
    number = np.arange(60)
    device, arrival = number % 6, number * 10**6
    return pd.DataFrame({"operation": "read", "offset": number % 12 * 4096, "length": 4096, "device": device, "arrival": arrival})


def test_a_part_is_told_converted_and_replayed(frame: pd.DataFrame, tmp_path: Path) -> None:
    fs.trace(frame).convert(tmp_path / "all.txt", "mqsim")
    part = fs.trace(tmp_path / "all.txt", format="mqsim", device_number=4, start="6ms", window="30ms", speed=2)
    whole = fs.trace(frame, device_number=[4], start="6ms", window="30ms", speed=2)
    times = part.requests()["arrival"]
    assert times.tolist() == [5 * 10**6, 8 * 10**6, 11 * 10**6, 14 * 10**6, 17 * 10**6]
    assert whole.requests()["arrival"].tolist() == times.tolist()
    assert fs.replay(part, "intel-x25e-64gb").summary()["requests"].tolist() == [5]
    assert fs.drive("intel-x25e-64gb").replay(whole).requests()["time_s"].tolist() == pytest.approx((times - 5 * 10**6) / 1e9)
    assert part.convert(tmp_path / "part.parquet", "parquet").requests == 5


def test_reuse_is_a_row_a_cache(frame: pd.DataFrame) -> None:
    told = fs.trace(frame).reuse()
    assert told["cache"].tolist() == [4096 << power for power in range(5)]
    assert told["served"].tolist() == [0, 0, 0, 0, pytest.approx(0.8)]  # 12 pages of 6 devices, each asked for 5 times


def test_refusals_name_arguments(frame: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "whole.txt").write_text("7 0 64 8 1\n")
    with pytest.raises(Exception, match="it could be disksim-ascii or mqsim; name it with format$"):
        fs.trace(tmp_path / "whole.txt")
    with pytest.raises(InvalidParameterError, match="device number: 40000"):
        fs.trace(frame, device_number=40000)
    with pytest.raises(InvalidParameterError, match="start: '5'"):
        fs.trace(frame, start="5")

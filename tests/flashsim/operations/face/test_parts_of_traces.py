"""``fs.trace`` of a part of a file or frame, which replays take for a trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.errors import InvalidParameterError, SchemaError


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


def test_requests_go_back_in(frame: pd.DataFrame) -> None:
    """As they came out, and without some rows: what waited for one of these waits for none."""
    waiting = frame.drop(columns="arrival").assign(dependency=np.arange(60) // 2 - 1, think=1000)
    for each in (frame, waiting):
        out = fs.trace(each).requests()
        pd.testing.assert_frame_equal(fs.trace(out).requests(), out)
    odd = fs.trace(out.iloc[1::2]).requests()
    former = (np.arange(1, 60, 2) // 2 - 1).tolist()  # the places where those stood that they waited for
    assert odd["dependency"].tolist() == [number // 2 if number % 2 else -1 for number in former]
    assert odd["think"].tolist() == [1000 * (number % 2 or number < 0) for number in former]
    assert fs.replay(out, "intel-x25e-64gb").summary()["requests"].tolist() == [60]
    with pytest.raises(SchemaError, match="trace: id: 0 is there twice"):
        fs.trace(pd.concat([out, out]))


def test_reuse_is_a_row_a_cache(frame: pd.DataFrame) -> None:
    told = fs.trace(frame).reuse()
    assert told["cache"].tolist() == [4096 << power for power in range(5)]
    assert told["served"].tolist() == [0, 0, 0, 0, pytest.approx(0.8)]  # 12 pages of 6 devices, each asked for 5 times


def test_the_picture_is_over_time_or_over_requests(frame: pd.DataFrame) -> None:
    for each, axis in ((frame, "time (s)"), (frame.drop(columns="arrival"), "requests")):
        figure = fs.trace(each).plot().figure
        assert axis in {axes.get_xlabel() for axes in figure.axes}


def test_refusals_name_arguments(frame: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "whole.txt").write_text("7 0 64 8 1\n")
    with pytest.raises(Exception, match="it could be disksim-ascii or mqsim; name it with format$"):
        fs.trace(tmp_path / "whole.txt")
    with pytest.raises(InvalidParameterError, match="device number: 40000"):
        fs.trace(frame, device_number=40000)
    with pytest.raises(InvalidParameterError, match="start: '5'"):
        fs.trace(frame, start="5")


@pytest.mark.parametrize("flush", ["flush", 3])
def test_requests_of_no_byte_are_refused_and_flushes_of_some(flush: str | int) -> None:
    """By every function that takes a frame."""
    columns = {"offset": [0, 0], "length": [4096, 0]}
    reads = pd.DataFrame({"operation": ["read", "read"] if flush == "flush" else [0, 0], **columns})
    for take in (fs.trace, lambda frame: fs.replay(frame, "intel-x25e-64gb")):
        with pytest.raises(SchemaError, match="trace: row 1: length: it moves no byte"):
            take(reads)
        with pytest.raises(SchemaError, match="trace: row 0: length: a flush has no length"):
            take(reads.assign(operation=flush))
    assert len(fs.trace(reads.assign(operation=["read", flush] if flush == "flush" else [0, flush])).summary()) == 2

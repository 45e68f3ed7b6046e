"""Parts of traces: what is left out, what stays, and how time passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MILLISECONDS, SECONDS
from traces.file.excerpt import Excerpt, requests_of
from traces.file.schema import SCHEMA, make_batch
from traces.format.base import load_writable
from traces.summary.histogram import Clock


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A hundred requests of six devices, a millisecond apart from 5 s on; each waits for the one before on its device."""
    number = np.arange(100)
    arrival = 5 * SECONDS + number * MILLISECONDS
    columns: dict[str, Any] = {
        "device": number % 6,
        "offset": number * 4096,
        "length": np.full(100, 4096),
        "arrival": arrival,
        "completed": arrival + 300,
        "dependency": np.maximum(number - 6, -1),
        "think": np.where(number >= 6, 6 * MILLISECONDS - 300, 0),
    }
    whole = make_batch(columns)
    load_writable("parquet").write(iter([whole.slice(0, 37), whole.slice(37)]), tmp_path / "t")
    return tmp_path / "t"


def table(excerpt: Excerpt) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = pa.Table.from_batches(list(requests_of(excerpt)), SCHEMA).to_pydict()
    return found


def test_the_whole_is_the_whole(trace: Path) -> None:
    assert table(Excerpt(trace)) == pa.Table.from_batches(list(requests_of(trace)), SCHEMA).to_pydict()


def test_a_device_keeps_its_own_chain(trace: Path) -> None:
    found = table(Excerpt(trace, devices=[4]))
    assert found["id"] == list(range(16)) and found["dependency"] == list(range(-1, 15))
    assert found["offset"] == [4096 * number for number in range(4, 100, 6)]


def test_a_window_is_counted_from_the_first_request(trace: Path) -> None:
    found = table(Excerpt(trace, start=10 * MILLISECONDS, window=50 * MILLISECONDS))
    assert found["offset"] == [4096 * number for number in range(10, 60)]
    assert found["arrival"][0] == 5 * SECONDS + 10 * MILLISECONDS
    assert found["dependency"][:7] == [-1] * 6 + [0] and found["think"][:6] == [0] * 6
    assert len(table(Excerpt(trace, start=99 * MILLISECONDS))["id"]) == 1


@pytest.mark.parametrize("speed", [0.5, 2, 10])
def test_speed_divides_times_but_not_latencies(speed: float, trace: Path) -> None:
    found = table(Excerpt(trace, speed=speed))
    since = np.array(found["arrival"]) - 5 * SECONDS
    assert np.array_equal(since, np.arange(100) * MILLISECONDS / speed)
    assert set(np.array(found["completed"]) - found["arrival"]) == {300}
    assert found["think"][6] == round((6 * MILLISECONDS - 300) / speed) and found["dependency"][6] == 0


def test_requests_without_a_time_count_with_the_one_before(tmp_path: Path) -> None:
    arrival = pa.array([0, None, 1000, None, 2000], pa.int64())
    columns = {"offset": np.arange(5) * 512, "length": np.full(5, 512), "arrival": arrival}
    load_writable("parquet").write(iter([make_batch(columns)]), tmp_path / "t")
    assert table(Excerpt(tmp_path / "t", start=1000, window=1000))["offset"] == [1024, 1536]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"devices": [7]}, "none of 100 requests is in it; the trace is of 0, 1, 2, 3, 4, 5"),
        ({"start": SECONDS}, "none of 100 requests is in it; the last comes at 99 ms"),
        ({"start": -1}, "start"),
        ({"window": 0}, "window"),
        ({"speed": 0}, "speed: 0, but"),
        ({"speed": float("nan")}, "speed: nan, but"),
        ({"devices": [1 << 15]}, "device number: 32768, but"),
    ],
)
def test_parts_that_cannot_be_are_refused(part: dict[str, Any], message: str, trace: Path) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        table(Excerpt(trace, **part))


def test_a_part_by_time_needs_times(tmp_path: Path) -> None:
    load_writable("parquet").write(iter([make_batch({"offset": [0], "length": [512]})]), tmp_path / "t")
    with pytest.raises(InvalidParameterError, match="does not say when its first request arrived"):
        table(Excerpt(tmp_path / "t", window=10))


def test_coarse_clocks_are_told_from_rare_requests() -> None:
    rng = np.random.default_rng(1)
    fine = np.sort(rng.integers(0, 10 * SECONDS, 1000))
    for times, step, warned in (
        (fine, 1, False),
        (fine // SECONDS * SECONDS, SECONDS, True),
        (fine // MILLISECONDS * MILLISECONDS, MILLISECONDS, False),
        (np.arange(1000) * SECONDS, SECONDS, False),
    ):
        clock = Clock()
        for part in np.array_split(times, 7):
            clock.add(part)
        assert (clock.step, bool(clock.bursts)) == (step, warned)
        assert clock.together == len(times) - len(np.unique(times))

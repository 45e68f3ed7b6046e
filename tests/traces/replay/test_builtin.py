"""The engine of our own: who waits for whom, when it is due, and what happens across batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.errors import FlashsimError
from flashsim.core.units import NEVER, SECONDS
from flashsim.device.file import RealDevice
from tests.tiers import examples
from tests.yardstick import seconds
from traces.file.schema import make_batch
from traces.replay import builtin

BLOCK = 4096
SIZE = 64 * BLOCK


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of random bytes."""
    path = tmp_path_factory.mktemp("replay") / "file"
    path.write_bytes(np.random.default_rng(1).bytes(SIZE))
    return path


def run(path: Path, pace: str, cut: int, depth: int = 1, **columns: Any) -> Any:
    """Completions of reads, which come in two batches."""
    count = len(next(iter(columns.values())))
    columns |= {"offset": np.arange(count) % 64 * BLOCK, "length": np.full(count, BLOCK)}
    parts = [(slice(0, cut), 0), (slice(cut, None), cut)]
    batches = [make_batch({name: np.asarray(values)[part] for name, values in columns.items()}, first) for part, first in parts]
    seen: list[Any] = []
    with RealDevice(path, 0, read_only=True) as device:
        builtin.replay(iter(batch for batch in batches if batch.num_rows), device, pace, depth, lambda _, done: seen.append(done))
    return np.concatenate(seen)


@settings(max_examples=examples(20))
@given(st.data())
def test_each_thinks_after_the_request_that_it_waits_for(file: Path, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 40))
    dependency = np.array([data.draw(st.integers(-1, row - 1)) for row in range(count)])
    think = np.array(data.draw(st.lists(st.integers(0, 400_000), min_size=count, max_size=count)))
    cut, waits, off = data.draw(st.integers(0, count)), dependency >= 0, []
    while len(off) < 3 and min(off, default=NEVER) >= 10_000:  # two clocks are read, and others may run in between
        done = run(file, "think", cut, dependency=dependency, think=think)
        due = done["completed"][dependency] + think
        assert (done["started"][waits] >= due[waits]).all()
        assert (done["started"] >= done["submitted"]).all()
        second = np.arange(count) >= cut  # begins when all of the first batch have completed, and nothing of it is due before
        begins = done["submitted"][second].min(initial=NEVER)
        assert begins >= done["completed"][~second].max(initial=0)
        due[second & (dependency < cut)] = np.maximum(due[second & (dependency < cut)], begins)
        off.append(np.abs(done["submitted"][waits] - due[waits]).max(initial=0))
    assert min(off) < 10_000


def test_what_waits_for_the_same_request_is_submitted_at_once(file: Path) -> None:
    """As a batch of psync is recorded: all wait for the last request of the batch before."""
    done = run(file, "think", 64, dependency=np.arange(128) // 16 * 16 - 1)
    started = done["started"].reshape(8, 16)
    assert (started == started[:, :1]).all()
    assert (started[1:, 0] >= done["completed"].reshape(8, 16)[:-1, -1]).all()


def test_a_slow_stream_does_not_hold_up_another(file: Path) -> None:
    """Rows of one chain stand between those of another that thinks for longer."""
    dependency = np.maximum(np.arange(20) - 2, -1)
    think = np.where(np.arange(20) % 2 == 0, round(seconds(0.01) * SECONDS), 0)
    done = run(file, "think", 20, dependency=dependency, think=think)
    assert done["completed"][19] < done["started"][10]


def test_all_that_is_due_at_once_is_outstanding_at_once(file: Path) -> None:
    done = run(file, "timed", 100, arrival=np.full(100, 7))
    assert (done["submitted"] < 1_000_000).all() and len(np.unique(done["started"])) <= 2 + 100 // 64


def test_a_device_that_ends_early_is_one_error(file: Path) -> None:
    batch = make_batch({"offset": [0, SIZE], "length": [BLOCK, BLOCK]})
    with RealDevice(file, 0, read_only=True) as device, pytest.raises(FlashsimError, match=f"ends at {SIZE} B"):
        builtin.replay(iter([batch]), device, "asap", 2, lambda *_: None)


def test_writing_to_what_was_opened_for_reading_is_one_error(file: Path) -> None:
    batch = make_batch({"offset": [0], "length": [BLOCK], "operation": [1]})
    with RealDevice(file, 0, read_only=True) as device, pytest.raises(FlashsimError, match="Bad file descriptor: write of 4 KiB at byte 0"):
        builtin.replay(iter([batch]), device, "asap", 1, lambda *_: None)


def test_progress_is_told_and_what_is_read_next_comes_meanwhile(file: Path) -> None:
    told: list[float] = []
    batches = (make_batch({"offset": [0] * 50, "length": [BLOCK] * 50}, first) for first in range(0, 200, 50))
    with RealDevice(file, 0, read_only=True) as device:
        builtin.replay(batches, device, "asap", 1, lambda *_: None, lambda done, total, message="": told.append(done))
    assert told and 0 < told[0] <= told[-1] <= 200


def test_damage_in_the_trace_ends_the_replay(file: Path) -> None:
    def broken() -> Any:
        yield make_batch({"offset": [0], "length": [BLOCK]})
        raise FlashsimError("trace: cut short")

    with RealDevice(file, 0, read_only=True) as device, pytest.raises(FlashsimError, match="cut short"):
        builtin.replay(broken(), device, "asap", 1, lambda *_: None)

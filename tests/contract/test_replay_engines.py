"""Every replay engine moves exactly the bytes of a trace on a real file, and tells the times of every request."""

from __future__ import annotations

from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flashsim.core.errors import FlashsimError
from flashsim.core.request import FLUSH, READ, WRITE
from flashsim.device.file import RealDevice
from traces.file.schema import column, make_batch
from traces.replay import ENGINES
from traces.replay.base import Engine, load_engine

SIZE = 1 << 20
BLOCK = 4096


@pytest.fixture(params=ENGINES.names())
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine that runs here."""
    found = load_engine(request.param)
    try:
        found.check()
    except FlashsimError as problem:
        pytest.skip(str(problem))
    return found


def trace(count: int, kinds: int = 3, **more: Any) -> list[pa.RecordBatch]:
    """Reads, writes and flushes all over the file, in two batches."""
    random = np.random.default_rng(count)
    length = random.integers(1, 9, count) * BLOCK
    operation = random.choice([READ, WRITE, FLUSH][:kinds], count, p=[0.6, 0.3, 0.1][:kinds] if kinds == 3 else None)
    moves = operation != FLUSH
    columns = {"operation": operation, "offset": moves * random.integers(0, SIZE // BLOCK - 8, count) * BLOCK, "length": moves * length}
    half = count // 2
    return [
        make_batch({name: values[part] for name, values in (columns | more).items()}, first)
        for part, first in ((slice(0, half), 0), (slice(half, None), half))
    ]


def replayed(engine: Engine, path: Path, batches: list[pa.RecordBatch], pace: str, depth: int = 1) -> tuple[pa.Table, Any]:
    """What an engine's observer is told."""
    seen: list[tuple[pa.RecordBatch, Any]] = []
    with RealDevice(path, SIZE, allow_write=True, replace=True) as device:
        assert engine.replay(iter(batches), device, pace, depth, lambda batch, done: seen.append((batch, done)))
    return pa.Table.from_batches([batch for batch, _ in seen]).unify_dictionaries().combine_chunks(), np.concatenate(
        [done for _, done in seen]
    )


def moved(batches: list[pa.RecordBatch]) -> dict[tuple[int, int, int], int]:
    """How often each read or write occurs."""
    rows = [tuple(column(batch, name)) for batch in batches for name in ("operation", "offset", "length")]
    found: dict[tuple[int, int, int], int] = {}
    for operation, offset, length in zip(*[np.concatenate(rows[part::3]) for part in range(3)], strict=True):
        if operation != FLUSH:
            key = int(operation), int(offset), int(length)
            found[key] = found.get(key, 0) + 1
    return found


@pytest.mark.parametrize("depth", [1, 8])
def test_the_requests_of_the_trace_and_no_others_are_served(engine: Engine, depth: int, tmp_path: Path) -> None:
    batches = trace(200)
    table, done = replayed(engine, tmp_path / "file", batches, "asap", depth)
    assert moved(table.to_batches()) == moved(batches)
    assert (done["submitted"] <= done["started"]).all() and (done["started"] < done["completed"]).all()
    assert np.array_equal(done["completed"], table.column("completed").to_numpy())
    assert not table.column("think").to_numpy().any()
    assert done["submitted"].min() >= 0 and np.array_equal(done["id"], np.arange(len(done)))
    at_once = [int(((done["started"] <= at) & (done["completed"] > at)).sum()) for at in done["started"]]
    assert max(at_once) <= depth or engine is load_engine("fio")  # whose log holds whole ms


def test_what_is_read_is_left_alone(engine: Engine, tmp_path: Path) -> None:
    content = np.random.default_rng(5).bytes(SIZE)
    (tmp_path / "file").write_bytes(content)
    with RealDevice(tmp_path / "file", SIZE, read_only=True) as device:
        engine.replay(iter(trace(60, kinds=1)), device, "asap", 4, lambda batch, done: None)
    assert (tmp_path / "file").read_bytes() == content


def test_only_what_is_written_changes(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(SIZE))
    batches = trace(60)
    replayed(engine, tmp_path / "file", batches, "asap", 4)
    written = np.zeros(SIZE // BLOCK, bool)
    for (operation, offset, length), _ in moved(batches).items():
        if operation == WRITE:
            written[offset // BLOCK : (offset + length) // BLOCK] = True
    content = np.fromfile(tmp_path / "file", np.uint8).reshape(-1, BLOCK)
    assert np.array_equal(content.any(axis=1), written)


def test_requests_are_not_submitted_before_their_time(engine: Engine, tmp_path: Path) -> None:
    arrival = 5_000_000_000 + np.arange(40) * 2_000_000
    _, done = replayed(engine, tmp_path / "file", trace(40, kinds=2, arrival=arrival), "timed")
    due = np.arange(40) * 2_000_000
    assert done["started"].max() >= 0.9 * due[-1]  # fio makes up for what it slept too long, and its log holds whole ms
    if engine is load_engine("builtin"):
        assert (done["started"] >= due).all() and np.abs(done["submitted"] - due).max() < 10_000


def test_a_process_that_waits_for_its_turn_submits_no_request_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread may lose the processor wherever it reads a clock."""
    now = RealDevice.now

    def later(device: RealDevice) -> int:
        sleep(0.003)
        return now.__get__(device)  # type: ignore[no-any-return]

    monkeypatch.setattr(RealDevice, "now", property(later))
    arrival = np.arange(10) * 2_000_000
    _, done = replayed(load_engine("builtin"), tmp_path / "file", trace(10, kinds=2, arrival=arrival), "timed")
    assert (done["started"] >= arrival).all()


def test_a_pace_that_an_engine_keeps_is_one_that_there_is(engine: Engine) -> None:
    assert engine.TITLE and {"asap"} <= set(engine.PACES) <= {"asap", "timed", "think"}

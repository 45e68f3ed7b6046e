"""The contract of replay engines: the requests of a trace and no others move on a real file, when they are due, and each is told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flashsim.core.errors import FlashsimError
from flashsim.core.request import FLUSH, READ, WRITE, Completions
from flashsim.core.units import MIB, MILLISECONDS
from flashsim.device.file import RealDevice
from flashsim.testing.contract import Contract
from traces.file.schema import column, make_batch
from traces.replay.base import ENGINES, Engine, load_engine

__all__ = ["ReplayContract"]

SIZE, BLOCK = MIB, 4096
#: Times count from the first request, so all others seem early where a busy machine starts that one late: then look again.
_ATTEMPTS = 5


def trace(count: int, kinds: int = 3, **more: Any) -> list[pa.RecordBatch]:
    """Reads, with more `kinds` writes and flushes, all over the file, in two batches."""
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


def replay_trace(engine: Engine, path: Path, batches: list[pa.RecordBatch], pace: str, depth: int = 1) -> tuple[pa.Table, Completions]:
    """Requests and completions that an engine reports to its observer."""
    seen: list[tuple[pa.RecordBatch, Completions]] = []
    with RealDevice(path, SIZE, allow_write=True, replace=True) as device:
        assert engine.replay(iter(batches), device, pace, depth, lambda batch, done: seen.append((batch, done))), "it does not say how"
    table = pa.Table.from_batches([batch for batch, _ in seen]).unify_dictionaries().combine_chunks()
    return table, np.concatenate([done for _, done in seen])


def count_moves(batches: list[pa.RecordBatch]) -> Counter[tuple[int, int, int]]:
    """How often each read or write occurs."""
    rows = (zip(*(column(batch, name).tolist() for name in ("operation", "offset", "length")), strict=True) for batch in batches)
    return Counter(row for batch in rows for row in batch if row[0] != FLUSH)


@contextmanager
def zeros() -> Iterator[Path]:
    """A file of zeros where the system lets requests go past its page cache; the test is skipped elsewhere."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(bytes(SIZE))
        try:
            RealDevice(path, SIZE, read_only=True).close()
        except FlashsimError as problem:
            pytest.skip(str(problem))
        yield path


class ReplayContract(Contract):
    """Properties of a replay engine (`traces.replay.base`)."""

    FAMILY = ENGINES

    @property
    def engine(self) -> Engine:
        """The member, where it can run."""
        found = load_engine(self.name)
        try:
            found.check()
        except FlashsimError as problem:
            pytest.skip(str(problem))
        return found

    def test_the_requests_of_the_trace_and_no_others_are_served(self) -> None:
        for depth in (1, 8):
            batches = trace(200)
            with zeros() as path:
                table, done = replay_trace(self.engine, path, batches, "asap", depth)
            assert count_moves(table.to_batches()) == count_moves(batches), "other requests are told than the trace has"
            assert (done["submitted"] <= done["started"]).all() and (done["started"] < done["completed"]).all(), "times are out of order"
            assert np.array_equal(done["completed"], table.column("completed").to_numpy()), "requests and completions tell other times"
            assert not table.column("think").to_numpy().any(), "requests that do not wait have think times"
            assert done["submitted"].min() >= 0 and np.array_equal(done["id"], np.arange(len(done))), "a request is not told in its turn"
            outstanding = [int(((done["started"] <= at) & (done["completed"] > at)).sum()) for at in done["started"]]
            assert max(outstanding) <= depth or self.name == "fio", f"{max(outstanding)} requests are outstanding"  # its log has whole ms

    def test_what_is_read_is_left_alone(self) -> None:
        content = np.random.default_rng(5).bytes(SIZE)
        with zeros() as path:
            path.write_bytes(content)
            with RealDevice(path, SIZE, read_only=True) as device:
                self.engine.replay(iter(trace(60, kinds=1)), device, "asap", 4, lambda batch, done: None)
            assert path.read_bytes() == content

    def test_what_is_written_changes_and_nothing_else(self) -> None:
        batches = trace(60)
        with zeros() as path:
            replay_trace(self.engine, path, batches, "asap", 4)
            changed = np.fromfile(path, np.uint8).reshape(-1, BLOCK).any(axis=1)
        written = np.zeros(SIZE // BLOCK, bool)
        for operation, offset, length in count_moves(batches):
            written[offset // BLOCK : (offset + length) // BLOCK] |= operation == WRITE
        assert np.array_equal(changed, written), f"{np.count_nonzero(changed)} blocks change, and {np.count_nonzero(written)} are written"

    def test_requests_are_not_started_before_their_time(self) -> None:
        engine = self.engine
        if "timed" not in engine.PACES:
            pytest.skip("the engine does not keep times")
        few, number = 4, np.arange(40)
        due = (2 * number + 300 * (number >= few)) * MILLISECONDS  # a slow machine serves a few as well before the pause ends
        for _ in range(_ATTEMPTS):
            with zeros() as path:
                _, done = replay_trace(engine, path, trace(40, kinds=2, arrival=5000 * MILLISECONDS + due), "timed")
            early = np.flatnonzero(done["started"][few:] < 0.9 * due[few:])  # fio makes up for what it slept too long; its log has whole ms
            if not len(early):
                break
        assert not len(early), f"request {early[0] + few} starts {due[early[0] + few] - done['started'][early[0] + few]} ns early"

    def test_its_paces_are_those_that_there_are(self) -> None:
        member = ENGINES.load(self.name)
        assert member.TITLE and {"asap"} <= set(member.PACES) <= {"asap", "timed", "think"}, f"PACES is {member.PACES!r}"

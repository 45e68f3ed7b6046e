"""What a system of pools asks its devices for is recorded with what it waited for: replayed on the same devices it takes the same times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import simpy

from flashsim.core.host_specification import delay
from flashsim.core.records import RecordArray, empty_table
from flashsim.execution.pooled import run as pool_run
from flashsim.execution.pooled.run import PoolRun
from flashsim.execution.pooled.system import CPU, PURPOSES
from flashsim.execution.pooled.tables import ISSUED
from flashsim.execution.specified_devices import CausalEnvironment, SpecifiedDevices
from flashsim.experiments.replaying.device_report import demerit
from flashsim.testing.pools import Drawn, drawn_system
from traces.file.recording import CausedRequests, ParquetWriter

#: More than are handed out at a time here.
REQUESTS = 150


def recorded(seed: int, path: Path) -> tuple[RecordArray, list[int], int]:
    """Record a drawn system; all requests as it keeps them itself, its devices' purposes, and when it ended."""
    system, engines, _ = drawn_system(seed)
    stream, until = Drawn(system.pages, seed), 256
    kept = PoolRun(system, engines, stream, request_rows=1 << 16)
    while kept.tables.scalars.issued < REQUESTS and not kept.tables.scalars.ended and until < 1 << 40:
        until *= 2
        kept.run(until)
    purposes = sorted(engines)
    with ParquetWriter(path) as writer:
        record = CausedRequests(writer, ["" if each == CPU else PURPOSES[each] for each in purposes], purposes)
        run = PoolRun(system, drawn_system(seed)[1], stream, record=record.take)
        run.run(until // 2)
        run.run(until)
        run.record_rest()
    return kept.requests, purposes, until


def replayed(rows: list[dict[str, Any]], devices: list[Any], numbers: dict[int, int], until: int) -> dict[int, tuple[int, int]]:
    """Replay a trace by its dependencies: when each request arrived and, up to a time, completed, by its id."""
    env = CausalEnvironment()
    to, times = SpecifiedDevices(env, devices), dict[int, tuple[int, int]]()
    done = {row["id"]: env.event() for row in rows}

    def issue(row: dict[str, Any]) -> Any:
        if row["dependency"] >= 0:
            yield done[row["dependency"]]
            yield delay(env, row["think"], (1 << 21) + row["id"])
        else:
            yield delay(env, row["arrival"], (1 << 21) + row["id"])
        began = int(env.now)
        times[row["id"]] = began, -1
        yield to.ask(numbers[row["device"]], row["operation"], row["offset"], row["length"])
        times[row["id"]] = began, int(env.now)
        done[row["id"]].succeed()

    for row in rows:
        env.process(issue(row))
    env.run(until + 1)
    return times


@pytest.mark.parametrize("seed", range(8))
def test_a_replay_on_the_same_devices_takes_the_same_times(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_run, "_HANDED_OUT", 20)
    asked, purposes, until = recorded(seed, tmp_path / "trace")
    table = pq.read_table(tmp_path / "trace")
    rows = table.to_pylist()
    wanted = asked[asked.device_number != purposes.index(CPU)]
    told = [(row["arrival"], purposes.index(row["device"]), row["operation"], row["offset"], row["length"]) for row in rows]
    assert told == [each[:5] for each in wanted.tolist()] and [row["label"] for row in rows] == [PURPOSES[row["device"]] for row in rows]
    assert [-1 if row["completed"] is None else row["completed"] for row in rows] == wanted.completed.tolist()
    dependency, think, arrival = (table.column(name).to_numpy() for name in ("dependency", "think", "arrival"))
    waits = dependency >= 0
    assert (dependency < np.arange(len(rows))).all() and (think >= 0).all() and waits.mean() > 0.5
    completed = table.column("completed").fill_null(-1).to_numpy()
    assert (completed[dependency[waits]] + think[waits] == arrival[waits]).all() and (completed[dependency[waits]] >= 0).all()
    specified = drawn_system(seed)[2]
    numbers = {purpose: number for number, purpose in enumerate(each for each in purposes if each != CPU)}
    again = replayed(rows, [specified[each] for each in numbers], numbers, until)
    assert again == {row["id"]: (row["arrival"], -1 if row["completed"] is None else row["completed"]) for row in rows}
    for number in numbers:
        mine = [row["id"] for row in rows if row["device"] == number and row["completed"] is not None]
        if mine:
            assert demerit([again[each][1] - again[each][0] for each in mine], completed[mine] - arrival[mine]) == 0


def test_one_that_waited_for_a_request_long_before_waits_for_another(tmp_path: Path) -> None:
    count = 100_000
    rows = empty_table(count, ISSUED)
    rows.time, rows.length = np.arange(count) * 10, 512
    rows.cause, rows.completed = np.arange(count) - 1, np.arange(count) * 10 + 10
    rows.cause[99_000], rows.completed[99_001:] = 5, -1
    rows.device_number = np.arange(count) % 3 == 1  # a processor's, which nobody waits for
    rows.cause[rows.cause % 3 == 1] -= 1
    with ParquetWriter(tmp_path / "trace") as writer:
        record = CausedRequests(writer, ["disk", ""], [0, 3])
        for begin in range(0, count, 40_000):
            record.take(begin, rows[begin : begin + 40_000])
    table = pq.read_table(tmp_path / "trace")
    dependency, arrival, completed = (table.column(name).fill_null(-1).to_numpy() for name in ("dependency", "arrival", "completed"))
    (row,) = np.flatnonzero(arrival == 990_000)
    assert len(table) == (rows.device_number == 0).sum() and table.column("completed").null_count == (completed < 0).sum() > 0
    assert dependency[row] == row - 1 and completed[row - 1] <= arrival[row] == completed[row - 1] + table.column("think")[int(row)].as_py()
    assert (arrival[1:row] == completed[dependency[1:row]] + table.column("think").to_numpy()[1:row]).all()
    assert dependency[0] == -1


def test_simpy_says_what_caused_what() -> None:
    env = CausalEnvironment()
    seen: list[int] = []

    def waits(event: simpy.Event) -> Any:
        yield event
        yield env.timeout(5)
        seen.append(env.cause)

    event = env.event()
    env.process(waits(event))
    env.run(1)
    env.cause = 7
    event.succeed()
    env.run(20)
    assert seen == [7]

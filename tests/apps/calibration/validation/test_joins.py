"""``flashsim validate joins`` by hand: where phases begin, which times count, and how far repeats lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flashsim.apps.calibration.validation.joins import Tee
from flashsim.apps.calibration.validation.joins_report import Witnesses, noise_table, table
from flashsim.core.request import COMPLETION, READ, make_requests
from flashsim.core.units import SECONDS
from flashsim.execution.requests import Algorithm, Cpu, Phase
from traces.file.recording import ParquetRecorder

#: Phases as they are entered, and begin and end (s) of the requests in each: the second is empty, and the first is gone back to.
Entered = Sequence[tuple[str, Sequence[tuple[int, int]]]]
FIRST: Entered = [("partition", [(0, 1), (1, 3)]), ("empty", []), ("join", [(3, 7)]), ("partition", [(8, 16)])]
SECOND: Entered = [("partition", [(0, 2), (2, 3)]), ("empty", []), ("join", [(3, 7)]), ("partition", [(9, 19)])]
#: The same, but requests overlap: any is under way for 3 + 4 seconds, and for 4 + 4 of the second repeat.
OVERLAPPING_FIRST: Entered = [("partition", [(0, 2), (1, 3)]), ("join", [(4, 8), (5, 6)])]
OVERLAPPING_SECOND: Entered = [("partition", [(0, 1), (2, 3), (4, 6)]), ("join", [(7, 10), (10, 11)])]


def recorded(entered: Entered, path: Path) -> Tee:
    """What a sink holds after an execution in which each phase hands over its requests once it is entered."""

    def algorithm() -> Algorithm:
        for name, _ in entered:
            yield Phase(name)
            yield Cpu({})

    with ParquetRecorder(path) as recorder:
        sink = Tee(recorder)
        phases = iter(entered)
        for request in sink.watch(algorithm()):
            if isinstance(request, Cpu):
                _, times = next(phases)
                completions = np.zeros(len(times), COMPLETION)
                for name, values in zip(("submitted", "completed"), np.array(times, np.int64).reshape(-1, 2).T, strict=True):
                    completions[name] = values * SECONDS
                completions["started"] = completions["submitted"]
                sink.record(make_requests(READ, [512 * number for number in range(len(times))], 512), completions, "file")
    return sink


def witnesses(executions: Sequence[Entered], folder: Path, overlap: bool) -> Witnesses:
    """A join of these executions, which its replays repeat in the same times."""
    phases = list(dict.fromkeys(name for name, _ in executions[0]))
    join = Witnesses("bnl", phases, [2] * len(phases), [5.0] * len(phases), [10.0] * len(phases), overlap=overlap)
    for number, entered in enumerate(executions):
        sink = recorded(entered, folder / f"{number}.parquet")
        join.begins, join.bytes = sink.begins, sink.times.bytes
        join.executed.append(sink.times.seconds(sink.begins, overlap=overlap))
    join.replayed["builtin"] = [2 * join.executed[0]] * len(executions)
    return join


def test_of_each_request_the_shortest_time_counts_in_its_phase(tmp_path: Path) -> None:
    """Times of requests are 1, 2, 4, 8 s and 2, 1, 4, 10 s: what counts is 1, 1, 4, 8 s, and totals of 15 and 17 s are 2 of 14 s apart."""
    join = witnesses([FIRST, SECOND], tmp_path, overlap=False)
    assert join.begins == [("partition", 0), ("empty", 2), ("join", 2), ("partition", 3)]
    assert join.bytes == 4 * 512
    assert join.columns() == {
        "formula": [10, 10, 10, 30],
        "simulated": [5, 5, 5, 15],
        "executed": [10, 0, 4, 14],
        "replayed by builtin": [22, 0, 8, 30],
    }
    assert join.noise() == {"executed": pytest.approx(2 / 14), "replayed by builtin": 0}
    done: Any = SimpleNamespace(setting=SimpleNamespace(repeats=2), engines=["builtin"], joins=[join])
    assert table(done).to_numpy().tolist() == [
        ["bnl", "partition", 2, 10_000, 5_000, 10_000, 22_000, "+0.0 %", "-50.0 %"],
        ["bnl", "empty", 2, 10_000, 5_000, 0, 0, None, None],
        ["bnl", "join", 2, 10_000, 5_000, 4_000, 8_000, "+150.0 %", "+25.0 %"],
        ["bnl", "total", 6, 30_000, 15_000, 14_000, 30_000, "+114.3 %", "+7.1 %"],
    ]
    assert noise_table(done).to_numpy().tolist() == [["bnl", "2 KiB", "14.3%", "0.0%"], ["all", "2 KiB", "", ""]]


def test_of_requests_that_overlap_the_shortest_time_of_each_phase_counts(tmp_path: Path) -> None:
    """Any request is under way for 3 and 4 s, and for 4 and 4 s: totals of 7 and 8 s are 1 of 7 s apart."""
    join = witnesses([OVERLAPPING_FIRST, OVERLAPPING_SECOND], tmp_path, overlap=True)
    assert [times.tolist() for times in join.executed] == [[3, 4], [4, 4]]
    assert join.columns()["executed"] == [3, 4, 7]
    assert join.noise()["executed"] == pytest.approx(1 / 7)

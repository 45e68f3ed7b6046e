"""Every workload: its runs stay inside the area they are given, wait for what they should, and are the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import GIB, KIB, MIB
from traces.workload.base import FAMILY, Pattern, WorkloadRun, WorkloadSpace

SETTINGS = (
    WorkloadSpace(4 * MIB),
    WorkloadSpace(GIB, quick=True),
    WorkloadSpace(GIB, least=4096, write=False, count=100),
    WorkloadSpace(5 * GIB + 32 * KIB, count=1),
)


@pytest.mark.parametrize("name", FAMILY.names())
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_requests_stay_in_the_area_on_multiples_of_the_unit(name: str, setting: WorkloadSpace) -> None:
    runs = list(FAMILY.load(name).runs(setting))
    assert runs
    for run in runs:
        requests = run.requests(1)
        assert len(requests) == setting.count
        assert (requests["offset"] >= 0).all() and (requests["offset"] + requests["length"] <= setting.size).all(), run
        assert (requests["offset"] % setting.least == 0).all() and (requests["length"] % setting.least == 0).all()
        assert (requests["length"] > 0).all() and np.isin(requests["operation"], (READ, WRITE)).all()
        assert setting.write or not run.writes
        assert run.writes or (requests["operation"] == READ).all()


@pytest.mark.parametrize("name", FAMILY.names())
def test_a_process_has_one_request_at_a_time(name: str) -> None:
    for run in FAMILY.load(name).runs(WorkloadSpace(GIB, quick=True)):
        requests = run.requests(1)
        for stream in np.unique(requests["stream"]):
            rows = np.flatnonzero(requests["stream"] == stream)
            assert requests["dependency"][rows].tolist() == [-1, *rows[:-1]]
            assert requests["think"][rows[0]] == 0


@pytest.mark.parametrize("name", FAMILY.names())
def test_the_seed_decides_and_runs_differ_by_their_parameter(name: str) -> None:
    member = FAMILY.load(name)
    first, again = ([run.requests(1) for run in member.runs(WorkloadSpace(GIB, quick=True))] for _ in range(2))
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    runs = list(member.runs(WorkloadSpace(GIB)))
    assert len({(run.name, run.value) for run in runs}) == len(runs)
    for pattern in {run.name for run in runs}:
        values = [run.value for run in runs if run.name == pattern]
        assert values == sorted(values) and len(values) > 1


def _offsets(pattern: Pattern, count: int) -> list[int]:
    return pattern.offsets(count, np.random.default_rng(1)).tolist()


def test_patterns_are_the_papers_formulas() -> None:
    """Bouganim et al., CIDR 2009, table 1, worked by hand on an area of four places."""
    line = Pattern(READ, 1024, 4096, target_offset=8192)
    assert _offsets(line, 5) == [8192, 9216, 10240, 11264, 8192]
    assert _offsets(Pattern(READ, 1024, 4096, increment=-1), 5) == [0, 3072, 2048, 1024, 0]
    assert _offsets(Pattern(READ, 1024, 4096, increment=0), 3) == [0, 0, 0]
    assert _offsets(Pattern(READ, 1024, 4096, increment=2), 4) == [0, 2048, 0, 2048]
    assert _offsets(Pattern(READ, 1024, 4096, partitions=2), 5) == [0, 2048, 1024, 3072, 0]
    assert _offsets(Pattern(READ, 1024, 4096, shift=SECTOR), 4) == [512, 1536, 2560, 512]
    assert [line.part(number, 2).target_offset for number in range(2)] == [8192, 10240]
    random = _offsets(Pattern(READ, 1024, 4096, random=True), 1000)
    assert set(random) == {0, 1024, 2048, 3072}
    with pytest.raises(InvalidParameterError, match="partitions"):
        _offsets(Pattern(READ, 1024, 4096, partitions=5), 1)


def test_mixes_and_bursts_take_turns() -> None:
    reads, writes = Pattern(READ, 1024, 4096), Pattern(WRITE, 1024, 4096)
    mixed = WorkloadRun("SR/SW", 2, (reads, writes), 7, ratio=2).requests(0)
    assert mixed["operation"].tolist() == [WRITE, READ, READ, WRITE, READ, READ, WRITE]
    assert mixed["offset"].tolist() == [0, 0, 1024, 1024, 2048, 3072, 2048]
    bursts = WorkloadRun("SR", 3, (reads,), 7, pause=5, burst=3).requests(0)
    assert bursts["think"].tolist() == [0, 0, 0, 5, 0, 0, 5]
    parallel = WorkloadRun("SR", 2, (reads, reads), 4, pause=5).requests(0)
    assert parallel["think"].tolist() == [0, 0, 5, 5]
    assert parallel["stream"].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "values", [{"size": 4 * MIB - 1}, {"size": GIB, "block": 1000}, {"size": GIB, "count": 0}, {"size": GIB, "least": 100}]
)
def test_impossible_settings_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(InvalidParameterError):
        WorkloadSpace(**values)


def test_a_workload_may_live_in_any_file(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("PARAMETER = 'none'\nUNIT = 'count'\n")
    with pytest.raises(FlashsimError, match="runs"):
        FAMILY.load(str(mine))

"""Every workload, and what its patterns are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import GIB, MIB
from flashsim.testing.contracts.workloads import WorkloadContract
from tests.contract.members import each_of
from traces.workload.base import FAMILY, Pattern, WorkloadRun, WorkloadSpace


@each_of(FAMILY)
class TestWorkloads(WorkloadContract):
    """Every member."""


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

"""Every disk scheduler: what it may choose, that a drive works with it, and what it is for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError, MissingFileError, UnknownNameError
from flashsim.core.kernel import is_compiled
from flashsim.core.request import READ, make_requests
from flashsim.core.rng import generator
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.scheduler.base import FAMILY
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.testing.contracts.drives import SchedulerContract, candidates
from flashsim.testing.disks import SECTOR, serve, small_drive
from tests.contract.members import each_of

MINE = '''
from flashsim.core.kernel import lean_kernel


@lean_kernel
def choose(candidates, count, cylinder, direction):
    """Last come, first served."""
    return count - 1
'''


@each_of(FAMILY)
class TestSchedulers(SchedulerContract):
    """Every member."""


@pytest.mark.parametrize("name", FAMILY.names())
def test_equal_commands_are_served_in_order(name: str) -> None:
    assert FAMILY.load(name).choose(candidates([7, 7, 7]), 3, 7, 1) == 0


@pytest.mark.parametrize(
    ("name", "cylinders", "direction", "expected"),
    [
        ("fcfs", [40, 21, 19], 1, 0),
        ("sstf", [40, 21, 18], -1, 1),
        ("sstf", [22, 18, 18], 1, 0),  # of equally near ones the first
        ("look", [40, 21, 19], 1, 1),
        ("look", [40, 21, 19], -1, 2),
        ("look", [3, 18, 19], 1, 2),  # nothing ahead: back to the nearest
        ("look", [3, 20, 19], 1, 1),  # where the arm is counts as ahead
        ("c-look", [40, 21, 19], 1, 1),
        ("c-look", [40, 21, 19], -1, 1),  # always inwards
        ("c-look", [3, 18, 19], 1, 0),  # nothing inwards: on from the outermost
    ],
)
def test_it_chooses_what_it_names(name: str, cylinders: list[int], direction: int, expected: int) -> None:
    assert FAMILY.load(name).choose(candidates(cylinders), len(cylinders), 20, direction) == expected


def test_shortest_positioning_counts_the_platter() -> None:
    assert FAMILY.load("sptf").choose(candidates([20, 25, 40], [3000, 1200, 1300]), 3, 20, 1) == 1


def backlog(name: str, depth: int = 16) -> int:
    """The end of 300 random reads that all wait from the start."""
    zones, seeks = [(300, 30)], {"seek_average": 5000, "seek_full": 9000}
    drive = small_drive(zones=zones, capacity=0, rotation=12_000, scheduler=name, queue_depth=depth, read_ahead=0, **seeks)
    sectors = generator(3, "backlog").integers(0, drive.sectors, 300)
    return int(serve(HddEngine(drive), make_requests(READ, sectors * SECTOR, SECTOR))["completed"].max())


def test_elevators_beat_the_order_of_arrival_and_positioning_beats_them() -> None:
    ends = {name: backlog(name) for name in ("fcfs", "sstf", "look", "c-look", "sptf")}
    assert ends["sptf"] < min(ends["sstf"], ends["look"], ends["c-look"]) < 0.85 * ends["fcfs"]
    assert max(ends["sstf"], ends["look"], ends["c-look"]) < ends["fcfs"]
    assert backlog("sptf", depth=64) < ends["sptf"] < backlog("sptf", depth=4)
    assert backlog("sptf", depth=1) == backlog("fcfs", depth=1)


def test_a_scheduler_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    drive = small_drive(scheduler=str(tmp_path / "mine.py"), queue_depth=8)
    requests = make_requests(READ, np.array([900, 3, 700, 10, 1]) * SECTOR, SECTOR)
    assert np.array_equal(serve(HddEngine(drive), requests), serve(HddSpecification(drive), requests))
    assert serve(HddEngine(drive), requests)["id"].tolist() == [0, 4, 3, 2, 1]


@pytest.mark.parametrize("model", [HddEngine, HddSpecification])
def test_a_scheduler_that_breaks_the_contract(model: type[HddEngine] | type[HddSpecification], tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(MINE.replace("count - 1", "count"))
    drive = small_drive(scheduler=str(tmp_path / "wrong.py"), queue_depth=8)
    with pytest.raises(FlashsimError, match=r"wrong\.py' chose a command that does not wait"):
        serve(model(drive), make_requests(READ, np.arange(5) * 100 * SECTOR, SECTOR))


@pytest.mark.skipif(not is_compiled(), reason="nothing is compiled")
def test_schedulers_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(MINE.replace("@lean_kernel", ""))
    with pytest.raises(FlashsimError, match="choose of '.*' must be decorated with"):
        HddEngine(small_drive(scheduler=str(tmp_path / "plain.py")))


def test_unknown_schedulers() -> None:
    with pytest.raises(UnknownNameError, match="did you mean sstf"):
        small_drive(scheduler="sstff")
    with pytest.raises(MissingFileError):
        small_drive(scheduler="nowhere/mine.py")

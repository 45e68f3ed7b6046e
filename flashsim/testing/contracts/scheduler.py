"""The contract of disk schedulers: a command that waits is chosen and nothing changes, and a drive works with it."""

from typing import Any

import numpy as np

from flashsim.core.records import empty_table
from flashsim.core.rng import generator
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.scheduler.base import CANDIDATE, FAMILY
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.testing.contract import Contract
from flashsim.testing.disks import random_workload, serve, small_drive


def candidates(cylinders: list[int], delays: list[int] | None = None) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Commands at these cylinders, with rows to spare."""
    table = empty_table(len(cylinders) + 2, CANDIDATE)
    table[: len(cylinders)].cylinder = cylinders
    table[: len(cylinders)].delay = delays or 0
    return table


class SchedulerContract(Contract):
    """Properties of a disk scheduler (`flashsim.hdd.scheduler.base`)."""

    FAMILY = FAMILY

    def test_it_chooses_a_command_that_waits_and_changes_nothing(self) -> None:
        """Among up to 64 commands, on small disks and large ones, wherever the arm is."""
        draw, choose = generator(1, "candidates"), FAMILY.load(self.name).choose
        for _ in range(200):
            count, cylinders, longest = (int(draw.choice(each)) for each in ([2, 5, 19, 33, 64], [50, 500_000], [9000, 30_000_000]))
            table = candidates(draw.integers(0, cylinders, count).tolist(), draw.integers(0, longest, count).tolist())
            before = table.copy()
            choice: Any = choose(table, count, int(draw.integers(0, cylinders)), int(draw.choice([-1, 1])))
            assert isinstance(choice, int | np.integer) and 0 <= choice < count, f"row {choice} is chosen of {count}"
            assert np.array_equal(table, before), "the candidates are changed"

    def test_a_drive_works_with_it(self) -> None:
        """Engine and specification agree on every time, and everything is served."""
        drive = small_drive(scheduler=self.name, queue_depth=6)
        requests, arrivals = random_workload(7, drive.capacity, 150)
        engine, specification = (serve(model(drive), requests, arrivals) for model in (HddEngine, HddSpecification))
        assert np.array_equal(engine, specification), "engine and specification differ"
        assert sorted(engine["id"].tolist()) == list(range(150)), "not every request is served once"

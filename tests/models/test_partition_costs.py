"""The closed form of partition methods against the seconds of Shin et al., table 1, and against what must hold on any drive."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from flashsim.core.errors import InvalidParameterError
from models.partition_costs import Division, Input, cost
from models.psync import Direction, ParallelDrive, Processor

#: ORDERS at scale factor 10.
ORDERS = Input(268_000, 8192, 15_000_000)
#: Table 1: MB, B, pages of O and of I; sub-buffers are half of O where that is a page, and a page elsewhere.
DIVISIONS = {
    5: Division(517, 1, 107, 4096),
    10: Division(259, 4, 212, 8192),
    20: Division(130, 19, 26, 8192),
    30: Division(87, 42, 90, 8192),
    50: Division(53, 115, 145, 8192),
    100: Division(27, 445, 465, 8192),
    200: Division(14, 1664, 1664, 8192),
}
#: Table 1: seconds of reading and writing, N-Hash and then the original, a row each of the above.
SECONDS = {
    "iodrive": "3.05 3.51 3.16 21.85|2.95 3.21 3.05 8.38|3.72 3.21 4.94 4.56|3.3 3.24 3.65 3.91|3.3 3.26 3.55 3.89|3.16 3.41 3.04 3.59"
    "|2.8 3.54 2.82 3.48",
    "p300": "5.99 15.43 6.09 21.75|5.87 9.8 5.84 12.32|6.8 8.43 7.22 8.97|5.89 7.97 6.24 8.46|5.82 8.03 5.96 7.97|5.8 7.66 5.83 7.62"
    "|5.72 8.04 5.68 7.95",
    "vertex3": "5.59 8.25 5.52 15.05|5.02 4.98 5.29 7.56|6.18 4.62 8.3 4.89|5.39 4.67 6.15 4.57|4.98 4.87 5.21 5.05|4.53 4.81 4.59 5.38"
    "|4.35 5.06 4.25 5.42",
}
#: Whether a command's own time passes beside its transfer: from the paper's figure 2.
OVERLAPPED = {"iodrive": False, "p300": False, "vertex3": True}


def told(call: float, command: float, write: float, fixed: float, read: float, division: Division, overlapped: bool) -> list[float]:
    """Seconds of a row; us and us a KiB."""
    whole = {"depth": 10**6, "command": 2**40}
    reading = Direction(fixed / 1000, read / 1000 / 1024, **whole)
    own = (call + command, command, 0.0) if overlapped else (call, 0.0, command)
    writing = Direction(own[0] / 1000, write / 1000 / 1024, own[1] / 1000, own[2] / 1000, **whole)
    costs = [cost(method, ORDERS, division, ParallelDrive(reading, writing)) for method in ("n-hash", "traditional")]
    return [seconds for made in costs for seconds in (made.read, made.write)]


def errors(drive: str) -> tuple[np.ndarray, np.ndarray]:
    """Five numbers found from the rows at 5 and 200 MB; relative errors of the other rows, shape (5, 4), and the numbers."""
    published = np.array([[float(cell) for cell in row.split()] for row in SECONDS[drive].split("|")])
    divisions = list(DIVISIONS.values())

    def rows(numbers: np.ndarray, which: slice) -> np.ndarray:
        return np.array([told(*np.exp(numbers), division, OVERLAPPED[drive]) for division in divisions[which]]) / published[which]

    first = np.log([50, 10, 3, 100, 2])
    found = least_squares(lambda numbers: np.log(rows(numbers, slice(0, 7, 6))).ravel(), first).x
    return rows(found, slice(1, 6)) - 1, np.exp(found)


@pytest.mark.timeout(60)
def test_held_out_seconds_of_the_paper() -> None:
    """Median 4.2 % over sixty held-out cells; one cell, reads of the Vertex 3 at 20 MB, is missed by more than half, as no line fits."""
    made = {drive: np.abs(errors(drive)[0]) for drive in SECONDS}
    together = np.concatenate([each.ravel() for each in made.values()])
    assert np.median(together) < 0.045
    assert made["iodrive"].max() < 0.18
    assert made["p300"].max() < 0.08
    assert sorted(together)[-2] < 0.21


def test_what_the_calibration_finds() -> None:
    """A write call takes 68, 37 and 21 us, a command nothing, 13.7 and 15.3 us, as an event model of these drives also has it."""
    for drive, call, command in (("iodrive", 68, 0), ("p300", 37, 13.7), ("vertex3", 21, 15.3)):
        _, numbers = errors(drive)
        assert numbers[0] == pytest.approx(call, rel=0.02)
        assert numbers[1] == pytest.approx(command, rel=0.02, abs=1e-3)


def test_an_assumed_nvme_drive() -> None:
    """With 10 us a call, 0.7 us a command and 5 and 7 GB/s an event model had writes 7.6, 2.7 and 1.4 times as fast at 5, 10 and 20 MB."""
    rates = {"depth": 128, "call_ms": 0.010}
    drive = ParallelDrive(Direction(0.05, 1000 / 7e9, **rates), Direction(0.0007, 1000 / 5e9, 0.0007, **rates))
    for megabytes, times in ((5, 7.6), (10, 2.7), (20, 1.4), (100, 1.0)):
        original, ours = (cost(method, ORDERS, DIVISIONS[megabytes], drive) for method in ("traditional", "n-hash"))
        assert original.write / ours.write == pytest.approx(times, rel=0.06)


def test_strands_are_bounded_by_the_drive_and_by_cores() -> None:
    """One strand of ParaHash is the traditional method; more are never slower, and no faster than what drive and cores have to do."""
    drive = ParallelDrive(Direction(0.1, 3e-6, 0.01, depth=32), Direction(0.05, 4e-6, 0.01, depth=32))
    processor = Processor(tuple_ms=1e-4, call_ms=0.003)
    division = DIVISIONS[10]
    alone = cost("traditional", ORDERS, division, drive, processor).total
    made = [cost("para-hash", ORDERS, division, drive, processor, strands, cores=2).total for strands in (1, 2, 4, 8, 32)]
    assert made[0] == alone
    assert made == sorted(made, reverse=True)
    assert made[-1] >= ORDERS.pages * 8192 * 7e-6 / 1000
    for wrong in ({"strands": 0}, {"cores": 0}):
        with pytest.raises(InvalidParameterError, match="it must be at least 1"):
            cost("para-hash", ORDERS, division, drive, **wrong)


def test_a_sub_buffer_holds_a_tuple_however_few_a_file_has() -> None:
    drive = ParallelDrive(Direction(0.1, 3e-6, 0.01, depth=32), Direction(0.05, 4e-6, 0.01, depth=32))
    for file in (Input(1, 8192, 1), Input(60, 8192, 60)):
        assert 0 < cost("n-hash", file, Division(3, 1, 4, 4096), drive).total < 1

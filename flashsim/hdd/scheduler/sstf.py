"""Shortest seek time first; of equally near commands the one that came first."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.records import RecordArray


@lean_kernel
def choose(candidates: RecordArray, count: int, cylinder: int, direction: int) -> int:
    best = 0
    for row in range(1, count):
        if abs(candidates[row].cylinder - cylinder) < abs(candidates[best].cylinder - cylinder):
            best = row
    return best

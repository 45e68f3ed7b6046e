"""Shortest seek time first; of equally near commands the one that came first."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.hdd.scheduler.base import CYLINDER


@lean_kernel
def choose(candidates: Integers, count: int, cylinder: int, direction: int) -> int:
    best = 0
    for row in range(1, count):
        if abs(candidates[row, CYLINDER] - cylinder) < abs(candidates[best, CYLINDER] - cylinder):
            best = row
    return best

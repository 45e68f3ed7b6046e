"""Shortest positioning time first: seek and rotational wait together decide."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.hdd.scheduler.base import DELAY


@lean_kernel
def choose(candidates: Integers, count: int, cylinder: int, direction: int) -> int:
    """The command that the mechanism can begin with first; of equals the one that came first."""
    best = 0
    for row in range(1, count):
        if candidates[row, DELAY] < candidates[best, DELAY]:
            best = row
    return best

"""Shortest positioning time first: seek and rotational wait together decide."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.records import RecordArray


@lean_kernel
def choose(candidates: RecordArray, count: int, cylinder: int, direction: int) -> int:
    """The command that the mechanism can begin with first; of equals the one that came first."""
    best = 0
    for row in range(1, count):
        if candidates[row].delay < candidates[best].delay:
            best = row
    return best

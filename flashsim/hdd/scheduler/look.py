"""LOOK, the elevator: on in the direction of the last move as long as commands lie there, then back."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.records import RecordArray


@lean_kernel
def choose(candidates: RecordArray, count: int, cylinder: int, direction: int) -> int:
    """The nearest command ahead, or if there is none the nearest one behind; of equals the one that came first."""
    best = 0
    for row in range(1, count):
        ahead, best_ahead = (candidates[row].cylinder - cylinder) * direction, (candidates[best].cylinder - cylinder) * direction
        if (ahead >= 0) != (best_ahead >= 0):
            if ahead >= 0:
                best = row
        elif abs(ahead) < abs(best_ahead):
            best = row
    return best

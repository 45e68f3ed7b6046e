"""C-LOOK, the one-way elevator: inwards as long as commands lie there, then on from the outermost one."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.records import RecordArray


@lean_kernel
def choose(candidates: RecordArray, count: int, cylinder: int, direction: int) -> int:
    """The nearest command inwards, or if there is none the outermost one; of equals the one that came first."""
    best = 0
    for row in range(1, count):
        place, best_place = candidates[row].cylinder, candidates[best].cylinder
        if (place >= cylinder) != (best_place >= cylinder):
            if place >= cylinder:
                best = row
        elif place < best_place:
            best = row
    return best

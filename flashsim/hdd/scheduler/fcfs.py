"""First come, first served."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.records import RecordArray


@lean_kernel
def choose(candidates: RecordArray, count: int, cylinder: int, direction: int) -> int:
    """The command that came first."""
    return 0

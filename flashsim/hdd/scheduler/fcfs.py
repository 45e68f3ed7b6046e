"""First come, first served."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers


@lean_kernel
def choose(candidates: Integers, count: int, cylinder: int, direction: int) -> int:
    """The command that came first."""
    return 0

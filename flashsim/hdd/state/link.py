"""How long data take over the link."""

from flashsim.core.kernel import inlined_kernel
from flashsim.core.units import SECONDS


@inlined_kernel
def crossing_time(sectors: int, size: int, rate: int, bus: int) -> int:
    """Nanoseconds for sectors of `size` bytes to cross a link of `rate` bytes a second and a bus of `bus` ns a sector, at least 1."""
    total = sectors * size
    return max(1, total // rate * SECONDS + (total % rate * SECONDS + rate // 2) // rate, sectors * bus)

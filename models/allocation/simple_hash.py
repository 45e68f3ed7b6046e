"""Division of simple hash's buffers."""

import math

from models.allocation.bounds import bounded, checked_ratio, checked_sizes, too_small
from models.allocation.buffers import FUDGE, SimpleHashAllocation, exact


def simple_hash(r_pages: int, s_pages: int, memory: int, latency_ratio: float, fudge: float = FUDGE) -> SimpleHashAllocation:
    """Buffers of simple hash: I = O = sqrt(y^2 + y M / 2) - y, rounded up (TR section 5)."""
    checked_sizes(r_pages, s_pages, memory)
    y = checked_ratio("latency_ratio", latency_ratio, 0)
    least = math.ceil(exact(fudge))
    if memory < least + 2:
        raise too_small(memory, f"simple-hash needs at least {least + 2}")
    closed = memory / 4 if math.isinf(y) else math.sqrt(y * y + y * memory / 2) - y
    buffer = bounded(closed, (memory - least) // 2)
    return SimpleHashAllocation(memory - 2 * buffer, buffer, buffer)

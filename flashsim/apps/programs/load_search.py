"""The search for the greatest load at which a bound holds."""

import math
from collections.abc import Callable

#: A greatest load is within the first factor of one that breaks the bound, and so does the load of the second: a tail is uneven.
PRECISION, BEYOND = 1.02, 1.05
#: Speeds of a trace that are tried at most and at least, and the step to the next while no bound is passed.
FASTEST, SLOWEST, _STEP = 1e6, 1 / 1024, 4.0


def greatest_load(holds: Callable[[float], bool], limit: float = math.inf, tell: Callable[[], None] = lambda: None) -> float | None:
    """The greatest speed up to a limit at which a bound holds, within `PRECISION`; 0 if it does at none, None if it holds at any.

    Where it breaks and holds again, the search goes on until it breaks at `BEYOND` times the speed, too.

    Examples
    --------
    >>> abs(greatest_load(lambda speed: speed < 37) / 37 - 1) < 0.02, greatest_load(lambda speed: True)
    (True, None)
    >>> greatest_load(lambda speed: speed < 37 or 38 < speed < 48) > 45, greatest_load(lambda speed: speed < 37, limit=8.5)
    (True, 8.5)
    """
    low, high, first = 0.0, math.inf, min(1.0, limit)
    if holds(first):
        low = first
        if limit == math.inf and holds(FASTEST):
            return None
        while high == math.inf:
            if low == limit:
                return limit
            tell()
            faster = min(low * _STEP, limit)
            low, high = (faster, high) if holds(faster) else (low, faster)
    else:
        high = first
        while not low:
            tell()
            if high <= SLOWEST:
                return 0.0
            low, high = (high / _STEP, high) if holds(high / _STEP) else (0.0, high / _STEP)
    while high / low > PRECISION:
        tell()
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    while BEYOND * low < limit and holds(BEYOND * low):
        tell()
        low *= BEYOND
    return low

"""Bounds and rounding that all divisions of memory share."""

import math
from fractions import Fraction

from flashsim.core.errors import InvalidParameterError


def checked_sizes(r_pages: int, s_pages: int, memory: int) -> tuple[int, int]:
    """The relations' pages, at least one each; a negative size is refused."""
    for name, value in (("r_pages", r_pages), ("s_pages", s_pages), ("memory", memory)):
        if value < 0:
            raise InvalidParameterError(name, value, "it must be at least 0")
    return max(1, r_pages), max(1, s_pages)


def checked_ratio(name: str, value: float, least: float) -> float:
    """A figure of the device, which is refused below its least value."""
    if math.isnan(value) or value < least:
        raise InvalidParameterError(name, value, f"it must be at least {least:g}")
    return value


def too_small(memory: int, needs: str) -> InvalidParameterError:
    return InvalidParameterError("memory", f"{memory} pages", needs)


def ceil_sqrt(value: Fraction) -> int:
    """The smallest whole number whose square is at least `value`."""
    whole = math.ceil(value)
    return math.isqrt(whole - 1) + 1 if whole > 0 else 0


def bounded(value: float, most: int) -> int:
    """`value` rounded up, at least 1 and at most `most`."""
    return max(1, min(most, math.ceil(value))) if math.isfinite(value) else most

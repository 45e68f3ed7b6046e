"""Smooth costs, without rounding, that closed forms of hash joins' buffers were derived from; others are in `models.optimum`."""

import math

from flashsim.core.errors import InvalidParameterError
from models.allocation.buffers import FUDGE


def simple_hash_cost(buffer: float, r_pages: float, s_pages: float, memory: float, latency_ratio: float, fudge: float = FUDGE) -> float:
    """Continuous cost of simple hash with many iterations, without its seeks, in page transfers (TR 1148 section 5).

    NI = |R| F / (M - 2 I) iterations read and write half of both relations on average: NI (|R| + |S|) (1 + y / I).
    """
    return (r_pages + s_pages) * r_pages * fudge / (memory - 2 * buffer) * (1 + latency_ratio / buffer)


def hybrid_cost(
    buffer: float,
    r_pages: float,
    s_pages: float,
    memory: float,
    latency_ratio: float,
    access_ratio: float = 1.0,
    fudge: float = FUDGE,
) -> float:
    """Continuous cost of hybrid hash with I = O = I2, in page transfers (TR 1148 section 7).

    With `access_ratio` 1 seeks are left out, as in TR's quadratic; otherwise every write of a buffer also seeks.
    """
    table = r_pages * fudge
    buckets = max(0.0, (table - memory + buffer) / (memory - 2 * buffer))
    spilled = 1 - min(1.0, (memory - buffer - buckets * buffer) / table)
    pages = r_pages + s_pages
    requests = (pages + spilled * s_pages + access_ratio * spilled * pages) / buffer
    return pages * (1 + 2 * spilled) + latency_ratio * requests


def hybrid_quadratic(r_pages: float, memory: float, latency_ratio: float, fudge: float = FUDGE) -> float:
    """Input buffer of hybrid hash by TR's quadratic, of which 1.1 sqrt(M) is the printed simplification (TR 1148 section 7).

    For a large R and M much above y it tends to (sqrt(5) / 2) sqrt(M y): the printed form holds only where y is near 1.
    """
    table, y = r_pages * fudge, latency_ratio
    if memory >= table:
        raise InvalidParameterError("memory", memory, f"the quadratic holds below F |R| = {table:g}")
    share = memory / table
    under = 7.5 - 4.5 * share + 5 * memory / y - 3 * memory * share / y
    below = 6 / table + 2 / y - 7 / memory
    above = math.sqrt(under) - (5 - 3 * share)
    if below <= 0 or above <= 0:
        raise InvalidParameterError("memory", memory, f"the quadratic needs much more than y = {y:g}")
    return above / below

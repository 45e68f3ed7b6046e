"""Division of hybrid hash's buffers."""

import math
from typing import Literal

from flashsim.core.errors import UnknownNameError
from models.allocation.bounds import bounded, ceil_sqrt, checked_ratio, checked_sizes, too_small
from models.allocation.buffers import FUDGE, HybridAllocation, exact
from models.allocation.grace_hash import grace_as_hybrid, grace_hash

HybridRule = Literal["haas", "sqrt-y"]


SecondPhase = Literal["do2009", "haas"]


def hybrid_input(memory: int, latency_ratio: float, rule: HybridRule = "haas") -> float:
    """Unrounded input buffer (= output buffer) of hybrid hash.

    The rule ``"haas"`` is 1.1 sqrt(M), as printed (TR table 2; do2009 table 1); ``"sqrt-y"`` is (sqrt(5) / 2) sqrt(M y), what TR's own
    quadratic tends to for a large R and M much above y; see `models.optimum.hybrid_quadratic`.
    """
    if rule == "haas":
        return 1.1 * math.sqrt(memory)
    if rule == "sqrt-y":
        return math.sqrt(5) / 2 * math.sqrt(memory * latency_ratio)
    raise UnknownNameError("rule", rule, ("haas", "sqrt-y"))


def hybrid_division(
    r_pages: int,
    memory: int,
    buffer: int,
    fudge: float = FUDGE,
    second: SecondPhase = "do2009",
    *,
    output: int | None = None,
    least: int | None = None,
) -> HybridAllocation | None:
    """Buffers of hybrid hash for a given input buffer, or None where that leaves no workspace.

    Source: TR section 7: K is the smallest number of buckets with K (M - I2) + WS >= F |R|, WS = M - I - K O.

    `output` is O and `least` is I2, the pages that the second phase has for input at least; both are as large as the input buffer unless
    they are given.
    """
    output, least = output or buffer, least or buffer
    table = max(1, r_pages) * exact(fudge)
    if table <= memory - buffer:
        # No bucket goes to disk; what the table leaves free serves the input.
        workspace = math.ceil(table)
        return HybridAllocation(0, 0, memory - workspace, workspace, 0, 0)
    if memory - least - output < 1:
        return None
    buckets = math.ceil((table - (memory - buffer)) / (memory - least - output))
    workspace = memory - buffer - buckets * output
    if workspace < 1:
        return None
    if second == "haas":
        return HybridAllocation(buckets, output, buffer, workspace, least, memory - least)
    phase2 = math.ceil((table - workspace) / buckets)
    return HybridAllocation(buckets, output, buffer, workspace, memory - phase2, phase2)


def hybrid_hash(
    r_pages: int,
    s_pages: int,
    memory: int,
    latency_ratio: float,
    fudge: float = FUDGE,
    rule: HybridRule = "haas",
    second: SecondPhase = "do2009",
) -> HybridAllocation:
    """Buffers of hybrid hash.  At little memory the rule leaves no workspace: Grace hash's buffers are returned with workspace 0.

    The rule is how the input buffer is found: see `hybrid_input`.  In the second phase, ``"do2009"`` gives the input what a bucket's table
    leaves free, ``"haas"`` as much as in the first.

    Raises InvalidParameterError: memory not above sqrt(F |R|).
    """
    r, _ = checked_sizes(r_pages, s_pages, memory)
    y = checked_ratio("latency_ratio", latency_ratio, 0)
    if second not in ("do2009", "haas"):
        raise UnknownNameError("second phase", second, ("do2009", "haas"))
    root = ceil_sqrt(r * exact(fudge))
    if memory <= root:
        raise too_small(memory, f"hybrid-hash needs more than sqrt(F |R|) = {root}")
    buffer = bounded(hybrid_input(memory, y, rule), memory - 1)
    return hybrid_division(r, memory, buffer, fudge, second) or grace_as_hybrid(grace_hash(r_pages, s_pages, memory, fudge))

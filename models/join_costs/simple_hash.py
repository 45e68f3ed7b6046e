"""Simple hash."""

import math
from dataclasses import replace

from models.allocation.buffers import SimpleHashAllocation, exact
from models.allocation.divisions import simple_hash
from models.join_costs.base import PhaseCounts, Sizes, Traffic, ceil_div, temporary_pages

ALLOCATION = SimpleHashAllocation


def allocate(sizes: Sizes, latency_ratio: float, access_ratio: float) -> SimpleHashAllocation:
    """The buffers by Haas et al."""
    return simple_hash(sizes.r, sizes.s, sizes.memory, latency_ratio, sizes.fudge)


def counts(sizes: Sizes, a: SimpleHashAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 5: each of NI iterations reads what is left and writes all but K_R + K_S pages of it; the last writes nothing.

    The second and later iterations read temporaries.  Requests are rounded up once an iteration and relation, where TR divides.
    """
    table = sizes.r * exact(sizes.fudge)
    iterations = max(1, math.ceil(table / a.workspace))
    kept_r = min(sizes.r, math.floor(a.workspace / exact(sizes.fudge)))
    kept_s = sizes.s * kept_r // max(1, sizes.r)
    shares = [(sizes.r - i * kept_r, sizes.s - i * kept_s) for i in range(iterations)]
    first, further = (PhaseCounts(name) for name in ("first", "further"))
    for i, (r, s) in enumerate(shares):
        remainders = [r, s] if i == 0 else [temporary_pages(r, sizes.r, sizes.r_temporary), temporary_pages(s, sizes.s, sizes.s_temporary)]
        reads, writes = Traffic(2, sum(ceil_div(pages, a.input) for pages in remainders), sum(remainders)), Traffic()
        if i + 1 < iterations:
            r, s = shares[i + 1]
            passed = [temporary_pages(r, sizes.r, sizes.r_temporary), temporary_pages(s, sizes.s, sizes.s_temporary)]
            writes = Traffic(2, sum(ceil_div(pages, a.output) for pages in passed), sum(passed))
        if i == 0:
            first = replace(first, reads=reads, writes=writes)
        else:
            further = replace(further, reads=further.reads + reads, writes=further.writes + writes)
    return (first, further) if iterations > 1 else (first,)

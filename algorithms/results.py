"""How result rows leave an algorithm: in batches of bounded size."""

import numpy as np

from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Cpu, Emit, Work

#: Most result rows that are emitted at once, and most tuples that go from one kernel to the next.
BATCH = 1 << 16


def pairs(r_rows: Integers, s_rows: Integers) -> Algorithm:
    """Emit rows that meet, shape (n,) each."""
    for begin in range(0, len(r_rows), BATCH):
        yield Emit(r_rows[begin : begin + BATCH], s_rows[begin : begin + BATCH])
    yield Cpu({Work.EMIT: len(r_rows)})


def cross(r_rows: Integers, s_rows: Integers) -> Algorithm:
    total = len(r_rows) * len(s_rows)
    for begin in range(0, total, BATCH):
        pairs = np.arange(begin, min(begin + BATCH, total))
        yield Emit(r_rows[pairs // len(s_rows)], s_rows[pairs % len(s_rows)])
    yield Cpu({Work.EMIT: total})

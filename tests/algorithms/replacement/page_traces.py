"""Page traces for tests of replacement policies: the LIRS authors', whose `*` lines are ignored, and generated ones; next uses."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import numpy as np

from flashsim.core.page_numbers import PageNumbers
from flashsim.core.replacement import NEVER_AGAIN, WRITES, Numbers
from flashsim.storage.pool.simulation import Writes


@cache
def page_trace(folder: Path, name: str) -> Numbers:
    """Numbers of the pages of a trace of third-party data, one a reference."""
    with gzip.open(folder / "lirs" / f"{name}.trace.gz", "rt") as file:
        return PageNumbers().number(np.array([int(word) for word in file.read().split() if word != "*"], np.int64))


def zipf_stream(pages: int, count: int, exponent: float, seed: int) -> Numbers:
    """References to so many pages, drawn by Zipf's law; a tenth of them go through the pages in order."""
    draw = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, pages + 1) ** exponent
    ranks = draw.choice(pages, count, p=weights / weights.sum())
    for begin in range(0, count - count // 10, count // 5):
        ranks[begin : begin + count // 50] = np.arange(count // 50) % pages
    return PageNumbers().number(draw.permutation(pages)[ranks].astype(np.int64))


def next_uses(pages: Numbers, writes: Writes) -> Numbers:
    """Which reference asks for each page next, plus `WRITES` where that or a later one writes it."""
    coming: dict[int, int] = {}
    into = np.empty(len(pages), np.int32)
    for row in range(len(pages) - 1, -1, -1):
        page = int(pages[row])
        into[row] = later = coming.get(page, NEVER_AGAIN)
        coming[page] = row + 1 + (WRITES if writes[row] or later < 0 else 0)
    return into

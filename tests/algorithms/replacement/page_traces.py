"""Page traces for tests of replacement policies: the LIRS authors', whose `*` lines are ignored, and generated ones."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import numpy as np

from flashsim.core.page_numbers import PageNumbers
from flashsim.core.replacement import Numbers


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

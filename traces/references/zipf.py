"""Zipf's law: the k-th most popular page is referenced in proportion to k**-skew, independently of all before."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flashsim.core.parameters import count, number, switch
from flashsim.core.request import Integers
from traces.references.base import MOST_PAGES, Independent, Zipf, scatter

TITLE = "pages drawn by Zipf's law"


@dataclass(frozen=True, kw_only=True)
class Stream(Independent):
    """See `TITLE`."""

    pages: int = count("pages", most=MOST_PAGES)
    skew: float = number("exponent of the law, 0 for none", 0, 10, default=0.99)
    scrambled: bool = switch("whether popular pages lie scattered among the others, and not first", default=True)

    @cached_property
    def _ranks(self) -> Zipf:
        return Zipf(self.pages, self.skew)

    def pages_from(self, first: int, size: int, random: np.random.Generator) -> Integers:
        ranks = self._ranks.draw(size, random) - 1
        return scatter(ranks, self.pages) if self.scrambled else ranks

"""References by Zipf's law with scans of other pages in between, which a policy should not let push out the popular ones.

The scans go on from one to the next through the scanned pages, whose ids follow those of the others, and begin anew at their end.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flashsim.core.parameters import count, number
from flashsim.core.request import Integers
from traces.references.base import MOST_PAGES, Independent, Zipf, scatter

TITLE = "scans in between of references by Zipf's law"


@dataclass(frozen=True, kw_only=True)
class Stream(Independent):
    """See `TITLE`."""

    pages: int = count("pages that are drawn by Zipf's law", most=MOST_PAGES // 2)
    skew: float = number("exponent of the law, 0 for none", 0, 10, default=0.99)
    scanned: int = count("pages that are scanned", most=MOST_PAGES // 2)
    every: int = count("draws before each scan")
    length: int = count("pages of a scan")

    @property
    def most_pages(self) -> int:
        return self.pages + self.scanned

    @cached_property
    def _ranks(self) -> Zipf:
        return Zipf(self.pages, self.skew)

    def pages_from(self, first: int, size: int, random: np.random.Generator) -> Integers:
        pages = scatter(self._ranks.draw(size, random) - 1, self.pages)
        scan, place = np.divmod(np.arange(first, first + size), self.every + self.length)
        scanning = place >= self.every
        at = scan[scanning] * self.length + place[scanning] - self.every
        pages[scanning] = self.pages + at % self.scanned
        return pages

"""Pages in one order, again and again: what a pool of fewer frames that replaces the least recently used never hits."""

from dataclasses import dataclass

import numpy as np

from flashsim.core.parameters import count
from flashsim.core.request import Integers
from traces.references.base import MOST_PAGES, Independent

TITLE = "pages one after the other, again and again"


@dataclass(frozen=True, kw_only=True)
class Stream(Independent):
    """See `TITLE`."""

    pages: int = count("pages", most=MOST_PAGES)

    def pages_from(self, first: int, size: int, random: np.random.Generator) -> Integers:
        return np.arange(first, first + size) % self.pages

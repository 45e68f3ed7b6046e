"""Every page is as likely as any other, at every reference."""

from dataclasses import dataclass

import numpy as np

from flashsim.core.parameters import count
from flashsim.core.request import Integers
from traces.references.base import MOST_PAGES, Independent

TITLE = "pages drawn evenly"


@dataclass(frozen=True, kw_only=True)
class Stream(Independent):
    """See `TITLE`."""

    pages: int = count("pages", most=MOST_PAGES)

    def pages_from(self, first: int, size: int, random: np.random.Generator) -> Integers:
        return random.integers(0, self.pages, size)

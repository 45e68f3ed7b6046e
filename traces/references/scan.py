"""Scans of so many pages one after the other, each of which begins anywhere; by default one scan of all pages."""

from dataclasses import dataclass

import numpy as np

from flashsim.core import errors, parameters, rng
from flashsim.core.request import Integers
from traces.references.base import MOST_PAGES, Independent

TITLE = "scans of neighbouring pages"
#: Scans whose begins are drawn together.
_TOGETHER = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Stream(Independent):
    """See `TITLE`."""

    pages: int = parameters.count("pages", most=MOST_PAGES)
    length: int = parameters.count("pages of a scan; 0: all", least=0, default=0)

    def __post_init__(self) -> None:
        if self.length > self.pages:
            raise errors.InvalidParameterError("length", self.length, f"it must be at most the {self.pages} pages")

    def pages_from(self, first: int, size: int, random: np.random.Generator) -> Integers:
        length = self.length or self.pages
        scan, place = np.divmod(np.arange(first, first + size), length)
        parts, places = range(scan[0] // _TOGETHER, scan[-1] // _TOGETHER + 1), self.pages - length + 1
        begins = np.concatenate([rng.generator(self.seed, "scans", part).integers(0, places, _TOGETHER) for part in parts])
        return place + begins[scan - parts[0] * _TOGETHER]

"""How soon a trace comes back to the pages that it touched: reuse distances, and so what caches of any size would serve.

Pages are of 4 KiB.  Distances are exact (`flashsim.core.reuse`) while there are at most 4 million pages (16 GiB); then the pages whose hash
is in the lower half go on as a sample, and so on as more come: their references and distances count twice, four times, ...
(`flashsim.core.sampling`).
"""

from typing import Any

import numpy as np

from flashsim.core.request import Integers
from flashsim.core.reuse import FIRST
from flashsim.core.sampling import SampledDistances
from flashsim.core.units import MIB
from traces.file.page_trace import pages_touched
from traces.references.base import expanded
from traces.summary.distinct import PAGE
from traces.summary.histogram import Histogram

#: Of a longer request so much counts: what reads more at once does not come back to it in a cache.
_LONGEST = 16 * MIB
_MOST_PAGES = 1 << 22


class Locality:
    """Reuse distances of the pages that requests touch.

    Examples
    --------
    >>> locality = Locality()
    >>> locality.add(np.zeros(3, np.int64), np.array([0, 4096, 0]), np.array([8192, 4096, 4096]))
    >>> told = locality.as_dict()
    >>> told["references"], told["first"], told["cache"], told["served"]
    (4, 2, [4096, 8192], [0.25, 0.5])
    """

    def __init__(self, most_pages: int = _MOST_PAGES) -> None:
        self.references = self._first = 0
        self._distances, self._known = Histogram(), SampledDistances(most_pages=most_pages, even=False)

    def add(self, device: Integers, offset: Integers, length: Integers) -> None:
        """Take requests, in their order, shape (n,); what has no length touches nothing."""
        for pages, _ in expanded(*pages_touched(device, offset, np.minimum(length, _LONGEST), PAGE)):
            self._refer(pages)

    def _refer(self, pages: Integers) -> None:
        self.references += len(pages)
        for found in self._known.add(pages):
            distances, weight = found.distances, round(found.scale)
            again = distances[distances != FIRST]
            self._distances.add(again * weight, weight)
            self._first += weight * (len(distances) - len(again))

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, empty of a trace that touches nothing.

        ``page`` (bytes); ``references``; ``first``, those to pages not touched before; ``rate`` (the share of pages in the sample: 1 where
        distances are exact); ``distance`` (distinct bytes touched since: percentiles of references to pages touched before);
        ``distances`` (bytes) with ``shares``, their distribution; ``cache`` (bytes, powers of two) with ``served``, the share of all
        references that a cache of that size serves if it replaces the least recently used page.
        """
        if not self.references:
            return {}
        again = self._distances.count
        values, shares = self._distances.distribution()
        largest = round(self._known.distinct / self._known.rate)
        pages = [1 << power for power in range(max(1, largest - 1).bit_length() + 1)]
        served = [again * self._share(values, shares, size) / (again + self._first) for size in pages]
        return {
            "page": PAGE,
            "references": self.references,
            "first": self._first,
            "rate": self._known.rate,
            "distance": {f"p{share}": self._distances.percentile(share) * PAGE for share in (50, 90, 99)} if again else None,
            "distances": (values * PAGE).tolist(),
            "shares": shares.tolist(),
            "cache": [size * PAGE for size in pages],
            "served": served,
        }

    @staticmethod
    def _share(values: Integers, shares: Any, pages: int) -> float:
        """The share of distances below a power of two, at which a bucket of the histogram begins: exact."""
        place = int(np.searchsorted(values, pages))
        return float(shares[place - 1]) if place else 0.0

"""What joins that fetch rows late have in common: pages with rows that join, scans of keys, and fetches by a join index.

Formulas of RARE-join and FlashJoin count bytes of minipages, passes over keys that do not fit in memory, the join index, and each page that
is needed once; by page, the expected number that random rows lie on (Yao).
"""

from __future__ import annotations

from flashsim.core.errors import InvalidParameterError
from models.join_costs.base import Late, LateSide, Parts, Sizes, Traffic
from models.page_fetching import yao

#: Bytes of an entry of a join index.
ENTRY = 8


def late_of(sizes: Sizes) -> Late:
    """What a formula is told of late fetching.

    Raises
    ------
    InvalidParameterError
        Nothing.
    """
    if sizes.late is None:
        raise InvalidParameterError("sizes", "no rows", "this formula needs rows, digests and results of the join beside pages")
    return sizes.late


def pages_with_joined(pages: int, side: LateSide) -> float:
    """Of a relation's pages, the expected number that have a row which joins, if these lie anywhere."""
    return yao(side.rows, side.rows / pages, side.joined) if pages and side.rows else 0.0


def reads(pages: int, parts: Parts, seeks: int) -> Traffic:
    """Parts of so many pages."""
    return Traffic(seeks, pages * parts.requests, pages, pages * (1 - parts.share))

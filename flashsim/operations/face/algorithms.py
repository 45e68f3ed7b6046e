"""``fs.algorithms``: the joins there are, the ways to make their buckets, replacement policies, and designs for an SSD."""

from __future__ import annotations

from typing import Any

import pandas as pd

from algorithms.extensions.base import DESIGNS
from algorithms.joins.base import JOINS
from algorithms.partitioning.base import PARTITIONING
from algorithms.replacement.base import REPLACEMENT
from flashsim.core.errors import UnknownNameError
from flashsim.core.members import Family

#: What is listed.
_FAMILIES: dict[str, Family[Any]] = {"joins": JOINS, "partitioning": PARTITIONING, "replacement": REPLACEMENT, "extensions": DESIGNS}


def algorithms(family: str = "joins") -> pd.DataFrame:
    """The joins that `fs.join` runs, a row each: name, what it is in a line, and the formula that it is held against (empty: none).

    One of one's own is given by the path of its Python file instead.

    Parameters
    ----------
    family
        ``"joins"``; ``"partitioning"``, the ways in which hash joins make buckets; ``"replacement"``, the policies of `fs.cache`; or
        ``"extensions"``, the designs of `fs.pool`. The last three have no formulas.

    Examples
    --------
    >>> import flashsim as fs
    >>> "hybrid-hash" in fs.algorithms()["algorithm"].tolist()
    True
    >>> "n-hash" in fs.algorithms("partitioning")["algorithm"].tolist(), "lc" in fs.algorithms("extensions")["algorithm"].tolist()
    (True, True)
    """
    if family not in _FAMILIES:
        raise UnknownNameError("family", family, _FAMILIES)
    rows = []
    for name in _FAMILIES[family].names():
        member = _FAMILIES[family].load(name)
        title = (member.__doc__ or "").strip().splitlines()
        rows.append((name, title[0] if title else "", getattr(member, "FORMULA", "")))
    return pd.DataFrame(rows, columns=["algorithm", "title", "formula"])

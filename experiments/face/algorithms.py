"""``fs.algorithms``: the joins there are."""

from __future__ import annotations

import pandas as pd

from algorithms.joins.base import JOINS


def algorithms() -> pd.DataFrame:
    """The joins that `fs.join` runs, a row each: name, what it is in a line, and the formula that it is held against (empty: none).

    A join of one's own is given by the path of its Python file instead.

    Examples
    --------
    >>> import flashsim as fs
    >>> "hybrid-hash" in fs.algorithms()["algorithm"].tolist()
    True
    """
    rows = []
    for name in JOINS.names():
        join = JOINS.load(name)
        title = (join.__doc__ or "").strip().splitlines()
        rows.append((name, title[0] if title else "", join.FORMULA))
    return pd.DataFrame(rows, columns=["algorithm", "title", "formula"])

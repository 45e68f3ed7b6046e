"""``fs.papers``: the papers that can be reproduced, and what they claim."""

from __future__ import annotations

import pandas as pd

from flashsim.apps.papers.base import select_papers
from flashsim.operations.operation import check_arguments


@check_arguments
def papers() -> pd.DataFrame:
    """The claims of all papers, a row each: the name that `fs.reproduce` takes, what it says, its source, and the tolerance.

    Examples
    --------
    >>> import flashsim as fs
    >>> "do2009/table3-io" in fs.papers()["claim"].tolist()
    True
    """
    rows = [
        (claim.name, claim.title, claim.source, claim.tolerance, paper.title)
        for paper, claims, _ in select_papers(None)
        for claim in claims
    ]
    return pd.DataFrame(rows, columns=["claim", "title", "source", "tolerance", "paper"])

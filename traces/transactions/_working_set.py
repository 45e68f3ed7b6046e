"""How much of a database transactions reference, and how unevenly."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flashsim.core.transactions import COUNT, FIRST, MARKS, WRITES, TransactionStream


class WorkingSet(NamedTuple):
    """What so many transactions reference.

    Parameters
    ----------
    transactions, references
        How many; a page of an extent counts as one.
    written
        Share of the references that write.
    pages
        Of the database that are referenced at all.
    hottest
        The fewest pages that get each share of the references.
    """

    transactions: int
    references: int
    written: float
    pages: int
    hottest: dict[float, int]


def working_set(stream: TransactionStream, transactions: int = 100_000, shares: Sequence[float] = (0.5, 0.75, 0.9, 0.99)) -> WorkingSet:
    """The working set of a workload's first transactions; takes 8 bytes a page of the database.

    Examples
    --------
    >>> from traces.transactions import workload
    >>> working_set(workload("loop:pages=10,each=5"), 20, [0.5])
    WorkingSet(transactions=20, references=100, written=0.0, pages=10, hottest={0.5: 5})
    """
    changes, written, left = np.zeros(stream.pages + 1, np.int64), 0, transactions
    for batch in stream.batches():
        taken = min(left, len(batch.ends))
        references = batch.references[: batch.ends[taken - 1]]
        np.add.at(changes, references[:, FIRST], 1)
        np.subtract.at(changes, references[:, FIRST] + references[:, COUNT], 1)
        written += int(references[references[:, MARKS] & WRITES > 0, COUNT].sum())
        left -= taken
        if not left:
            break
    counts = np.cumsum(changes[:-1])
    counts = np.sort(counts[counts > 0])[::-1]
    until = np.cumsum(counts)
    total = int(until[-1]) if len(until) else 0
    hottest = {share: int(np.searchsorted(until, share * total)) + 1 for share in shares}
    return WorkingSet(transactions - left, total, written / max(1, total), len(counts), hottest)

"""Transactions as workloads make them and systems run them: batches of references to extents of pages."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from flashsim.core.request import Integers

BATCH = 1 << 19  #: References of a batch, about.


class References(NamedTuple):
    """A batch of references."""

    pages: Integers  #: The id of the page that each asks for, any number of 64 bits, int64, shape (n,).
    writes: npt.NDArray[np.bool_] | None = None  #: Whether each changes the page, shape (n,); None: none of them does, or nobody knows.


ReferenceBatches = Iterator[References]  #: All references of a trace, in constant memory.


# Columns of a reference: the first page of the database (the first of all is 0), how many from there on, and its marks.
FIRST, COUNT, MARKS = range(3)
#: Marks: the page is written, it is read by a scan, it did not exist and is made in memory.
WRITES, SCANS, CREATES = 1, 2, 4


class Transactions(NamedTuple):
    """Transactions one after the other."""

    references: Integers  #: Shape (n, 3); only extents that scans read are longer than a page.
    ends: Integers  #: Behind the last reference of each transaction, shape (transactions,).
    kinds: Integers  #: What kind of transaction each is, a number from 0 that the workload names, shape (transactions,).


class TransactionStream(Protocol):
    """A workload."""

    @property
    def pages(self) -> int:
        """Pages of the database, with those that are still to be created."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds of transactions."""

    def batches(self) -> Iterator[Transactions]:
        """Batches, without end or until nothing is left; the same ones every time."""


def one_by_one(stream: TransactionStream) -> Iterator[tuple[list[list[int]], int]]:
    """The references of one transaction after the other, and of what kind it is."""
    for batch in stream.batches():
        begin = 0
        for end, kind in zip(batch.ends.tolist(), batch.kinds.tolist(), strict=True):
            yield batch.references[begin:end].tolist(), kind
            begin = end

"""Any references cut into transactions of so many each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from flashsim.core.page_numbers import PageNumbers
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import Integers
from flashsim.core.transactions import COUNT, FIRST, MARKS, WRITES, ReferenceBatches, References, Transactions


def cut(references: Integers, each: int, kind: int) -> Transactions:
    """Transactions of so many references each, all of one kind; the last may be shorter."""
    ends = np.minimum(np.arange(each, len(references) + each, each), len(references))
    return Transactions(references, ends, np.full(len(ends), kind))


class ReferenceSource(Protocol):
    """Where references come from."""

    def batches(self) -> ReferenceBatches:
        """All of them, from the first; each call begins anew."""


@dataclass(frozen=True)
class CutReferences:
    """A `flashsim.core.transactions.TransactionStream` of one kind; the last transaction may be shorter.

    Parameters
    ----------
    source
        The references, whose pages are numbered from 0 on.
    pages
        How many pages there are.
    each
        References of a transaction.
    batch
        Transactions of a batch, at most.
    """

    source: ReferenceSource
    pages: int
    each: int
    batch: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """See `flashsim.core.transactions.TransactionStream`."""
        return ("transaction",)

    def batches(self) -> Iterator[Transactions]:
        """See `flashsim.core.transactions.TransactionStream`."""
        left, most = np.empty((0, 3), np.int64), self.each * self.batch
        for batch in self.source.batches():
            whole = len(left) + len(batch.pages)
            references = np.empty((whole, 3), np.int64)
            references[: len(left)], new = left, references[len(left) :]
            new[:, FIRST], new[:, COUNT] = batch.pages, 1
            new[:, MARKS] = 0 if batch.writes is None else batch.writes * WRITES
            until = whole - whole % self.each
            for begin in range(0, until, most):
                yield cut(references[begin : min(begin + most, until)], self.each, 0)
            left = references[until:]
        if len(left):
            yield cut(left, self.each, 0)


def pages_of(source: object) -> int | None:
    """Pages of generated references, if that is known."""
    return getattr(source, "most_pages", getattr(source, "pages", None))


@dataclass(frozen=True)
class _Numbered:
    """References to any ids, as those to pages that are numbered from 0 on in the order of their ids."""

    source: ReferenceSource
    seen: PageNumbers
    ranks: Integers

    def batches(self) -> ReferenceBatches:
        """See `ReferenceSource`."""
        for batch in self.source.batches():
            yield References(self.ranks[self.seen.number(batch.pages) - FIRST_PAGE], batch.writes)


def numbered(source: ReferenceSource) -> tuple[ReferenceSource, int]:
    """References to pages of any ids, numbered in one pass, and how many pages that are; those never referenced are left out."""
    seen = PageNumbers()
    for batch in source.batches():
        seen.number(batch.pages)
    ranks = np.empty(len(seen), np.int64)
    ranks[np.argsort(seen.ids())] = np.arange(len(seen))
    return _Numbered(source, seen, ranks), len(seen)

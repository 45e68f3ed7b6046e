"""The join index: which row of R joins which row of S, in the order in which a join finds them.

Source: Valduriez, "Join indices", ACM TODS 12(2), 1987; Li et al., "DigestJoin" (MDM 2009), section II: the digest join results.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from algorithms.results import BATCH
from flashsim.core.request import Integers
from flashsim.execution.requests import Answer, Request
from flashsim.storage.rows import FixedRows


@dataclass(frozen=True)
class Entries:
    """Some entries of a join index: row ids of R and of S that join, shape (n,) each."""

    r_rows: Integers
    s_rows: Integers

    def __len__(self) -> int:
        return len(self.r_rows)


#: What gives the next entries, or None at the end, and asks for what that takes.
EntryStream = Generator[Request, Answer, Entries | None]


class JoinIndex(Protocol):
    """A join index as a stream; it may be larger than memory."""

    def next(self) -> EntryStream:
        """``entries = yield from index.next()``: the next entries, or None at the end.

        What that takes is asked for meanwhile: pages of a stored index, or the join that makes the entries.
        """


class GivenIndex:
    """A join index that is in memory.

    Parameters
    ----------
    r_rows, s_rows
        Row ids, shape (n,) each.
    batch
        Entries given at a time.
    """

    def __init__(self, r_rows: Integers, s_rows: Integers, batch: int = BATCH) -> None:
        self._entries, self._batch, self._begin = Entries(r_rows, s_rows), batch, 0

    def next(self) -> EntryStream:
        """The next entries, or None at the end; nothing is asked for."""
        yield from ()
        begin, self._begin = self._begin, self._begin + self._batch
        if begin >= len(self._entries):
            return None
        return Entries(self._entries.r_rows[begin : self._begin], self._entries.s_rows[begin : self._begin])


def join_index_rows(r_tuples: int, s_tuples: int) -> FixedRows:
    """The row format of a stored join index of two relations of so many tuples.

    Examples
    --------
    >>> join_index_rows(150_000, 1_500_000).widths
    {'r': 4, 's': 4}
    """
    widths = [4 if tuples <= 1 << 31 else 8 for tuples in (r_tuples, s_tuples)]
    return FixedRows("join index", {"r": widths[0], "s": widths[1]})

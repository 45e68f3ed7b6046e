"""Joining two relations that arrive merged by key: each group of equal keys of R meets the tuples of S behind it.

A group of R stays in memory as far as its space allows.  One that outgrows that, such as a key that most of R carries, is written to a
temporary file and joined by nested loops: it is read again for each batch of S's group, as long as that group goes on.
"""

import numpy as np
import numpy.typing as npt

from algorithms.blocks import read_block, spans
from algorithms.results import BATCH, cross
from algorithms.temporaries import Output, drop
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Cpu, Emit, Work
from flashsim.storage.heap_file import File
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples, keyed

Flags = npt.NDArray[np.bool_]

_DONE, _PAIRS_FULL, _GROUP_FULL = range(3)

#: State of the matching.
_NEXT, _KEY, _COUNT, _SKIP = range(4)


class Matching:
    """Consumes merged tuples of both relations and emits pairs.

    Parameters
    ----------
    layout
        R's.
    first_of_s
        Runs from this number on are of S.
    pages
        Space for a group of R.
    folder
        Where a group goes that does not fit.
    """

    def __init__(self, layout: Layout, first_of_s: int, pages: int, folder: str, *, page_io: bool) -> None:
        self._layout = layout
        self._first_of_s = first_of_s
        self._pages = pages
        self._folder = folder
        self._page_io = page_io
        self._group = np.empty(1, np.int64)  # row ids
        self._state = np.array([0, NULL_KEY, 0, 0], np.int64)
        self._spilled: File | None = None
        self._output: Output | None = None
        self._spills = 0

    def consume(self, tuples: Tuples, sources: Integers) -> Algorithm:
        """Take tuples in order of keys, R's before S's where equal, with the number of the run of each."""
        of_s = sources >= self._first_of_s
        state, emitted = self._state, 0
        state[_NEXT] = 0
        if self._spilled is not None:
            yield from self._go_on_spilled(tuples, of_s)
        while state[_NEXT] < len(tuples):
            pairs = np.empty((2, BATCH), np.int64)
            why, found = _match(tuples.keys, tuples.rows, of_s, self._group, state, pairs)
            if found:
                yield Emit(pairs[0, :found], pairs[1, :found])
                emitted += found
            if why == _GROUP_FULL and not self._grow(tuples.rows[state[_NEXT]]):
                yield from self._spill(tuples, of_s)
        yield Cpu({Work.COMPARE: len(tuples), Work.EMIT: emitted})

    def finish(self) -> Algorithm:
        if self._spilled is not None:
            yield from self._end_spilled()

    def _grow(self, row: int) -> bool:
        """Make room for one more tuple of the group, if its space allows."""
        group = self._group[: self._state[_COUNT]]
        if self._layout.cell_sizes(self._of_group(np.append(group, row))).sum() > self._pages * self._layout.room:
            return False
        self._group = np.concatenate([self._group, np.empty_like(self._group)])
        return True

    def _of_group(self, rows: Integers) -> Tuples:
        return keyed(np.full(len(rows), self._state[_KEY]), rows)

    def _spill(self, tuples: Tuples, of_s: Flags) -> Algorithm:
        self._spilled = File(f"{self._folder}/group-{self._spills:03d}", self._layout)
        self._spills += 1
        self._output = Output([self._spilled], self._pages, page_io=self._page_io)
        group = self._group[: self._state[_COUNT]].copy()
        self._state[_COUNT] = 0
        yield from self._output.append(self._of_group(group), np.zeros(len(group), np.int64))
        yield from self._go_on_spilled(tuples, of_s)

    def _go_on_spilled(self, tuples: Tuples, of_s: Flags) -> Algorithm:
        assert self._spilled is not None
        begin = int(self._state[_NEXT])
        end = int(np.searchsorted(tuples.keys, self._state[_KEY], side="right"))
        middle = begin + int(np.searchsorted(of_s[begin:end], True))
        if middle > begin:
            assert self._output is not None
            yield from self._output.append(tuples.chosen(slice(begin, middle)), np.zeros(middle - begin, np.int64))
        if end > middle:
            if self._output is not None:
                yield from self._output.finish()
                self._output = None
            for first, pages in spans(self._spilled.pages, self._pages):
                group = yield from read_block(self._spilled, first, pages, self._page_io)
                yield from cross(group.rows, tuples.rows[middle:end])
        self._state[_NEXT] = end
        if end < len(tuples):
            yield from self._end_spilled()

    def _end_spilled(self) -> Algorithm:
        assert self._spilled is not None
        yield from drop(self._spilled)
        self._spilled = self._output = None


@kernel
def _match(keys: Integers, rows: Integers, of_s: Flags, group: Integers, state: Integers, pairs: Integers) -> tuple[int, int]:
    """Go through merged tuples from ``state[_NEXT]`` on; returns why it stopped, and how many pairs were found."""
    found, room = 0, pairs.shape[1]
    for index in range(state[_NEXT], keys.shape[0]):
        state[_NEXT] = index
        if keys[index] != state[_KEY]:
            state[_KEY], state[_COUNT] = keys[index], 0
        if not of_s[index]:
            if state[_COUNT] == group.shape[0]:
                return _GROUP_FULL, found
            group[state[_COUNT]] = rows[index]
            state[_COUNT] += 1
            continue
        for member in range(state[_SKIP], state[_COUNT]):
            if found == room:
                state[_SKIP] = member
                return _PAIRS_FULL, found
            pairs[0, found], pairs[1, found] = group[member], rows[index]
            found += 1
        state[_SKIP] = 0
    state[_NEXT] = keys.shape[0]
    return _DONE, found

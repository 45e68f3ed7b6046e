"""Sorted runs on temporary files: made by replacement selection, merged, and, of two relations, joined as they are merged.

Each group of equal keys of R meets the tuples of S behind it.  A group stays in memory as far as its space allows.  One that outgrows that,
such as a key that most of R carries, is written to a temporary file and joined by nested loops: it is read again for each batch of S's
group, as long as that group goes on.
"""

from collections.abc import Callable, Generator, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from algorithms.files import BATCH, Output, cross, drop, gather, read_block, spans
from algorithms.sorting import tournament as tree
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Answer, Cpu, Emit, Request, Work
from flashsim.storage.heap_file import File
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples, key_tuples

#: Takes merged tuples, in order of their keys, and the number of the run that each comes from.
Consumer = Callable[[Tuples, Integers], Algorithm]

Flags = npt.NDArray[np.bool_]

#: Reasons why the matching stops, and its state.
_DONE, _PAIRS_FULL, _GROUP_FULL = range(3)
_NEXT, _KEY, _COUNT, _SKIP = range(4)


class ReplacementSelection:
    """The memory of a replacement selection; its tree grows to as many leaves as tuples of this size need.

    `capacity` is bytes of tuples that it holds, as they would take on pages; `most` is how many tuples there are at most.
    """

    def __init__(self, capacity: int, most: int) -> None:
        self._capacity, self._most = capacity, most
        self._nodes = tree.empty_tree(1)
        self._tuples = np.empty((1, 2), np.int64)
        self._idle = np.zeros(1, np.int64)
        self._state = np.zeros(tree.SELECTION_STATE, np.int64)
        self._state[[tree.LAST, tree.FREE, tree.HOT, tree.IDLE]] = NULL_KEY, capacity, -1, 1
        self._batch = np.empty((3, BATCH), np.int64)

    def feed(self, tuples: Tuples, sizes: Integers, *, last: bool) -> Iterator[tuple[Tuples, bool]]:
        """Take tuples in; gives out sorted ones, and whether a run ends behind them.

        After the last input, everything is given out.
        """
        if len(tuples) and len(self._tuples) == 1:
            self._grow(min(self._most, int(self._capacity // sizes.mean()) + 1))
        self._state[tree.NEXT] = 0
        while True:
            why = tree.select(tuples.keys, tuples.rows, sizes, last, self._nodes, self._tuples, self._idle, self._state, self._batch)
            if why == tree.NEEDS_LEAVES:
                self._grow(len(self._tuples) // 2 + 1)
                continue
            yield self._take(), why == tree.RUN_ENDS
            if why in (tree.NEEDS_INPUT, tree.ENDS):
                return

    def take_comparisons(self) -> int:
        """Comparisons since the last call."""
        compared, self._state[tree.COMPARED] = int(self._state[tree.COMPARED]), 0
        return compared

    def _take(self) -> Tuples:
        keys, rows, _ = self._batch[:, : self._state[tree.MADE]].copy()
        self._state[tree.MADE] = 0
        return key_tuples(keys, rows)

    def _grow(self, more: int) -> None:
        leaves = len(self._tuples)
        nodes = tree.empty_tree(leaves + more)
        tree.regrow(self._nodes, leaves, nodes, leaves + more)
        self._nodes = nodes
        self._tuples = np.concatenate([self._tuples, np.empty((more, 2), np.int64)])
        idle = self._idle[: self._state[tree.IDLE]]
        self._idle = np.concatenate([np.arange(leaves + more - 1, leaves - 1, -1), idle, np.empty(leaves, np.int64)])[: leaves + more]
        self._state[tree.IDLE] += more


def make_runs(file: File, folder: str, capacity: int, input_pages: int, output_pages: int, runs: list[File], *, page_io: bool) -> Algorithm:
    """Sort a file into runs of so many bytes of tuples in memory (`capacity`); they are added to `runs` as they are begun."""
    selection = ReplacementSelection(capacity, file.tuples)
    run_pages = min(file.pages, 2 * capacity // file.page_size + 1)
    output: Output | None = None
    for first, pages in spans(file.pages, input_pages):
        tuples = yield from read_block(file, first, pages, page_io)
        sizes = file.layout.cell_sizes(tuples)
        for part, run_ends in selection.feed(tuples, sizes, last=first + pages == file.pages):
            if len(part):
                if output is None:
                    runs.append(File(f"{folder}/run-{len(runs):03d}", file.layout, expected_pages=run_pages))
                    output = Output(runs[-1:], output_pages, page_io=page_io)
                yield from output.append(part)
            if run_ends and output is not None:
                yield from output.finish()
                output = None
        yield Cpu({Work.COMPARE: selection.take_comparisons()})
    if output is not None:
        yield from output.finish()


def merge(runs: Sequence[File], block: int, consume: Consumer, *, page_io: bool, first: Sequence[Tuples] = ()) -> Algorithm:
    """Merge runs, of one relation or of several, reading each in blocks.

    Every batch of merged tuples is consumed before the next block is read, so its tuples still lie in the runs' buffers.

    `first` has tuples in memory that precede those of each run; none without it.
    """
    readers = [spans(run.pages, block) for run in runs]
    buffers = np.empty((2, len(runs), 256), np.int64)
    heads = np.zeros((len(runs), 2), np.int64)
    nodes = tree.empty_tree(len(runs))
    merged, counts = np.empty((3, BATCH), np.int64), np.zeros(2, np.int64)
    waiting, in_memory = list(range(len(runs))), dict(enumerate(first))
    while True:
        for run in waiting:
            tuples = in_memory.pop(run, gather([]))
            for begin, pages in readers[run] if not len(tuples) else ():
                tuples = yield from read_block(runs[run], begin, pages, page_io)
                break
            while buffers.shape[2] < len(tuples):
                buffers = np.concatenate([buffers, np.empty_like(buffers)], axis=2)
            buffers[0, run, : len(tuples)], buffers[1, run, : len(tuples)] = tuples.keys, tuples.rows
            heads[run] = 0, len(tuples)
            at_end = len(tuples) == 0
            counts[1] += tree.enter(nodes, len(runs), run, 0 if at_end else int(tuples.keys[0]), at_end)
        why = tree.merge(buffers[0], buffers[1], heads, nodes, merged, counts)
        count = int(counts[0])
        if count:
            keys, rows, sources = merged[:, :count].copy()
            yield Cpu({Work.COMPARE: int(counts[1])})
            yield from consume(key_tuples(keys, rows), sources)
            counts[:] = 0
        if why == tree.MERGED_ALL:
            return
        waiting = [why] if why >= 0 else []


def merge_some(runs: list[File], excess: int, folder: str, memory: int, *, page_io: bool) -> Algorithm:
    """Merge the shortest runs of one relation into one, so that there are `excess` fewer, or as many fewer as memory allows."""
    inputs = sorted(runs, key=lambda run: run.pages)[: min(excess + 1, memory - 1)]
    longer = yield from merge_into(f"{folder}/merged-{inputs[0].name.rsplit('/', 1)[1]}", inputs, memory, page_io=page_io)
    for run in inputs:
        runs.remove(run)
    runs.append(longer)


def merge_into(name: str, runs: Sequence[File], memory: int, *, page_io: bool) -> Generator[Request, Answer, File]:
    """Merge runs of one relation into one of that name, and drop them; memory is shared equally by them and the output buffer."""
    longer = File(name, runs[0].layout, expected_pages=sum(run.pages for run in runs))
    share = memory // (len(runs) + 1)
    output = Output([longer], share, page_io=page_io)
    yield from merge(runs, share, lambda tuples, _: output.append(tuples), page_io=page_io)
    yield from output.finish()
    for run in runs:
        yield from drop(run)
    return longer


class Matching:
    """Consumes merged tuples of both relations and emits pairs.

    The layout is R's, and runs from number `first_of_s` on are of S.  A group of R that takes more than `pages` goes to the folder.
    """

    def __init__(self, layout: Layout, first_of_s: int, pages: int, folder: str, *, page_io: bool) -> None:
        self._layout, self._first_of_s, self._pages, self._folder, self._page_io = layout, first_of_s, pages, folder, page_io
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
            yield from self._continue_with_spilled_rows(tuples, of_s)
        while state[_NEXT] < len(tuples):
            pairs = np.empty((2, BATCH), np.int64)
            why, count = _match(tuples.keys, tuples.rows, of_s, self._group, state, pairs)
            if count:
                yield Emit(pairs[0, :count], pairs[1, :count])
                emitted += count
            if why == _GROUP_FULL and not self._grow(tuples.rows[state[_NEXT]]):
                yield from self._spill(tuples, of_s)
        yield Cpu({Work.COMPARE: len(tuples), Work.EMIT: emitted})

    def finish(self) -> Algorithm:
        if self._spilled is not None:
            yield from drop(self._spilled)
            self._spilled = self._output = None

    def _grow(self, row: int) -> bool:
        """Make room for one more tuple of the group, if its space allows."""
        group = self._group[: self._state[_COUNT]]
        if self._layout.cell_sizes(self._of_group(np.append(group, row))).sum() > self._pages * self._layout.room:
            return False
        self._group = np.concatenate([self._group, np.empty_like(self._group)])
        return True

    def _of_group(self, rows: Integers) -> Tuples:
        return key_tuples(np.full(len(rows), self._state[_KEY]), rows)

    def _spill(self, tuples: Tuples, of_s: Flags) -> Algorithm:
        self._spilled = File(f"{self._folder}/group-{self._spills:03d}", self._layout)
        self._spills += 1
        self._output = Output([self._spilled], self._pages, page_io=self._page_io)
        group = self._group[: self._state[_COUNT]].copy()
        self._state[_COUNT] = 0
        yield from self._output.append(self._of_group(group))
        yield from self._continue_with_spilled_rows(tuples, of_s)

    def _continue_with_spilled_rows(self, tuples: Tuples, of_s: Flags) -> Algorithm:
        assert self._spilled is not None
        begin = int(self._state[_NEXT])
        end = int(np.searchsorted(tuples.keys, self._state[_KEY], side="right"))
        middle = begin + int(np.searchsorted(of_s[begin:end], True))
        if middle > begin:
            assert self._output is not None
            yield from self._output.append(tuples.select(slice(begin, middle)))
        if end > middle:
            if self._output is not None:
                yield from self._output.finish()
                self._output = None
            for first, pages in spans(self._spilled.pages, self._pages):
                group = yield from read_block(self._spilled, first, pages, self._page_io)
                yield from cross(group.rows, tuples.rows[middle:end])
        self._state[_NEXT] = end
        if end < len(tuples):
            yield from self.finish()


@kernel
def _match(keys: Integers, rows: Integers, of_s: Flags, group: Integers, state: Integers, pairs: Integers) -> tuple[int, int]:
    """Go through merged tuples from ``state[_NEXT]`` on; returns why it stopped, and how many pairs were found."""
    count, room = 0, pairs.shape[1]
    for index in range(state[_NEXT], keys.shape[0]):
        state[_NEXT] = index
        if keys[index] != state[_KEY]:
            state[_KEY], state[_COUNT] = keys[index], 0
        if not of_s[index]:
            if state[_COUNT] == group.shape[0]:
                return _GROUP_FULL, count
            group[state[_COUNT]] = rows[index]
            state[_COUNT] += 1
            continue
        for member in range(state[_SKIP], state[_COUNT]):
            if count == room:
                state[_SKIP] = member
                return _PAIRS_FULL, count
            pairs[0, count], pairs[1, count] = group[member], rows[index]
            count += 1
        state[_SKIP] = 0
    state[_NEXT] = keys.shape[0]
    return _DONE, count

"""Sorted runs of one relation on temporary files: making them by replacement selection, and merging them."""

from collections.abc import Callable, Generator, Iterator, Sequence

import numpy as np

from algorithms import selection_tree as tree
from algorithms.blocks import read_block, spans
from algorithms.results import BATCH
from algorithms.temporaries import Output, drop
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Answer, Cpu, Request, Work
from flashsim.storage.heap_file import File
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.rows import Tuples, keyed

#: Takes merged tuples, in order of their keys, and the number of the run that each comes from.
Consumer = Callable[[Tuples, Integers], Algorithm]

_NO_TUPLES = keyed(np.zeros(0, np.int64), np.zeros(0, np.int64))


class Selection:
    """The memory of a replacement selection; its tree grows to as many leaves as tuples of this size need.

    Parameters
    ----------
    capacity
        Bytes of tuples that it holds, as they would take on pages.
    most
        How many tuples there are at most.
    """

    def __init__(self, capacity: int, most: int) -> None:
        self._capacity = capacity
        self._most = most
        self._nodes = tree.empty_tree(1)
        self._held = np.empty((1, 2), np.int64)
        self._idle = np.zeros(1, np.int64)
        self._state = np.zeros(tree.SELECTION_STATE, np.int64)
        self._state[[tree.LAST, tree.FREE, tree.HOT, tree.IDLE]] = NULL_KEY, capacity, -1, 1
        self._made = np.empty((3, BATCH), np.int64)

    def feed(self, tuples: Tuples, sizes: Integers, *, last: bool) -> Iterator[tuple[Tuples, bool]]:
        """Take tuples in; gives out sorted ones, and whether a run ends behind them.

        After the last input, everything is given out.
        """
        if len(tuples) and len(self._held) == 1:
            self._grow(min(self._most, int(self._capacity // sizes.mean()) + 1))
        self._state[tree.NEXT] = 0
        while True:
            why = tree.select(tuples.keys, tuples.rows, sizes, last, self._nodes, self._held, self._idle, self._state, self._made)
            if why == tree.NEEDS_LEAVES:
                self._grow(len(self._held) // 2 + 1)
                continue
            yield self._take(), why == tree.RUN_ENDS
            if why in (tree.NEEDS_INPUT, tree.ENDS):
                return

    def compared(self) -> int:
        """Comparisons since the last call."""
        compared, self._state[tree.COMPARED] = int(self._state[tree.COMPARED]), 0
        return compared

    def _take(self) -> Tuples:
        keys, rows, _ = self._made[:, : self._state[tree.MADE]].copy()
        self._state[tree.MADE] = 0
        return keyed(keys, rows)

    def _grow(self, more: int) -> None:
        leaves = len(self._held)
        nodes = tree.empty_tree(leaves + more)
        tree.regrow(self._nodes, leaves, nodes, leaves + more)
        self._nodes = nodes
        self._held = np.concatenate([self._held, np.empty((more, 2), np.int64)])
        idle = self._idle[: self._state[tree.IDLE]]
        self._idle = np.concatenate([np.arange(leaves + more - 1, leaves - 1, -1), idle, np.empty(leaves, np.int64)])[: leaves + more]
        self._state[tree.IDLE] += more


def make_runs(file: File, folder: str, capacity: int, input_pages: int, output_pages: int, runs: list[File], *, page_io: bool) -> Algorithm:
    """Sort a file into runs; they are added to `runs` as they are begun.

    Parameters
    ----------
    capacity
        Bytes of tuples in memory.
    """
    selection = Selection(capacity, file.tuples)
    expected = min(file.pages, 2 * capacity // file.page_size + 1)
    output: Output | None = None
    for first, pages in spans(file.pages, input_pages):
        tuples = yield from read_block(file, first, pages, page_io)
        sizes = file.layout.cell_sizes(tuples)
        for chosen, run_ends in selection.feed(tuples, sizes, last=first + pages == file.pages):
            if len(chosen):
                if output is None:
                    runs.append(File(f"{folder}/run-{len(runs):03d}", file.layout, expected_pages=expected))
                    output = Output(runs[-1:], output_pages, page_io=page_io)
                yield from output.append(chosen, np.zeros(len(chosen), np.int64))
            if run_ends and output is not None:
                yield from output.finish()
                output = None
        yield Cpu({Work.COMPARE: selection.compared()})
    if output is not None:
        yield from output.finish()


def merge(runs: Sequence[File], block: int, consume: Consumer, *, page_io: bool) -> Algorithm:
    """Merge runs, of one relation or of several, reading each in blocks.

    Every batch of merged tuples is consumed before the next block is read, so its tuples still lie in the runs' buffers.
    """
    readers = [spans(run.pages, block) for run in runs]
    loaded = np.empty((2, len(runs), 256), np.int64)
    heads = np.zeros((len(runs), 2), np.int64)
    nodes = tree.empty_tree(len(runs))
    merged, made = np.empty((3, BATCH), np.int64), np.zeros(2, np.int64)
    waiting = list(range(len(runs)))
    while True:
        for run in waiting:
            tuples = _NO_TUPLES
            for first, pages in readers[run]:
                tuples = yield from read_block(runs[run], first, pages, page_io)
                break
            while loaded.shape[2] < len(tuples):
                loaded = np.concatenate([loaded, np.empty_like(loaded)], axis=2)
            loaded[0, run, : len(tuples)], loaded[1, run, : len(tuples)] = tuples.keys, tuples.rows
            heads[run] = 0, len(tuples)
            ended = len(tuples) == 0
            made[1] += tree.enter(nodes, len(runs), run, 0 if ended else int(tuples.keys[0]), ended)
        why = tree.merge(loaded[0], loaded[1], heads, nodes, merged, made)
        count = int(made[0])
        if count:
            keys, rows, sources = merged[:, :count].copy()
            yield Cpu({Work.COMPARE: int(made[1])})
            yield from consume(keyed(keys, rows), sources)
            made[:] = 0
        if why == tree.MERGED_ALL:
            return
        waiting = [why] if why >= 0 else []


def merge_some(runs: list[File], excess: int, folder: str, memory: int, *, page_io: bool) -> Algorithm:
    """Merge the shortest runs of one relation into one, so that there are `excess` fewer, or as many fewer as memory allows."""
    chosen = sorted(runs, key=lambda run: run.pages)[: min(excess + 1, memory - 1)]
    longer = yield from merge_into(f"{folder}/merged-{chosen[0].name.rsplit('/', 1)[1]}", chosen, memory, page_io=page_io)
    for run in chosen:
        runs.remove(run)
    runs.append(longer)


def merge_into(name: str, runs: Sequence[File], memory: int, *, page_io: bool) -> Generator[Request, Answer, File]:
    """Merge runs of one relation into one of that name, and drop them; memory is shared equally by them and the output buffer."""
    longer = File(name, runs[0].layout, expected_pages=sum(run.pages for run in runs))
    share = memory // (len(runs) + 1)
    output = Output([longer], share, page_io=page_io)
    yield from merge(runs, share, lambda tuples, _: output.append(tuples, np.zeros(len(tuples), np.int64)), page_io=page_io)
    yield from output.finish()
    for run in runs:
        yield from drop(run)
    return longer

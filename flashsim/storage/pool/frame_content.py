"""What the pages in a pool's frames hold: the columns of their tuples."""

import numpy as np

from flashsim.core.request import Integers
from flashsim.storage.heap_file import ranges
from flashsim.storage.rows import Tuples


class FrameContent:
    """Tuples by frame, whatever file a page is of: number after number, tuple after tuple, in a row a frame.

    Parameters
    ----------
    frames
        How many there are.
    """

    def __init__(self, frames: int) -> None:
        self._numbers = np.empty((frames, 0), np.int64)
        self._counts = np.zeros(frames, np.int64)

    def put(self, frames: Integers, tuples: Tuples, columns: tuple[str, ...]) -> None:
        """Let pages lie in frames, each in another, shape (n,)."""
        counts = np.diff(tuples.pages)
        wider = int(counts.max(initial=0)) * len(columns) - self._numbers.shape[1]
        if wider > 0:
            self._numbers = np.pad(self._numbers, ((0, 0), (0, wider)))
        self._counts[frames] = counts
        at, places = np.repeat(frames, counts), ranges(np.zeros_like(counts), counts) * len(columns)
        for place, name in enumerate(columns):
            self._numbers[at, places + place] = tuples.columns[name]

    def get(self, frames: Integers, columns: tuple[str, ...]) -> Tuples:
        """The tuples of the pages in some frames, shape (n,)."""
        counts = self._counts[frames]
        at, places = np.repeat(frames, counts), ranges(np.zeros_like(counts), counts) * len(columns)
        found = {name: self._numbers[at, places + place] for place, name in enumerate(columns)}
        return Tuples(found, np.concatenate([[0], np.cumsum(counts)]))

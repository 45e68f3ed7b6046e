"""The state of an SSD that extends a memory pool, for kernels.

Pages have the numbers that they have in the memory pool (`flashsim.core.replacement`), in the order in which they lie on disk: a page's
place there is its number less `FIRST_PAGE`.  Frames are divided among partitions; each keeps its free frames in a chain and the others in
two heaps, which grow towards each other from the two ends of its part of one array (Do, 2012, figure 3.5): that of frames whose page is the
same on disk, and that of frames whose page is newer than on disk.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from flashsim.core.errors import InvalidParameterError
from flashsim.core.groups import group_type
from flashsim.core.records import MATRIX, VECTOR
from flashsim.core.replacement import FIRST_PAGE, Numbers, rows_of
from flashsim.core.request import Integers

# Columns of a page: one more than its frame (0: none), its status, the times of its last two misses in memory (in misses of all pages), and
# what the system that drives both pools keeps of it.
FRAME, STATUS, LAST, BEFORE, FLIGHT, FIRST_WAITING, LAST_WAITING, MARKS = range(8)
PAGE_COLUMNS = 8
#: Bits of a page's status: its frame holds its newest version but for memory's; that is newer than the disk's; the frame is freed as soon
#: as nobody reads or writes it.  Above stands how many do.
VALID, NEWER, DOOMED = 1, 2, 4
HOLD_SHIFT = 8
#: A mark of a page: it was read from the SSD since the turn of its frame (that below is the system's).
READ_AGAIN = 2
ONE_HOLD = 1 << HOLD_SHIFT

# Columns of a frame: the page in it (0: none), and its place in a heap, or the next free frame of its partition.
PAGE, PLACE = range(2)
# Columns of a heap's entry.
KEY, ENTRY = range(2)
# Columns of a partition: its first frame and that behind its last, its first free frame (-1: none), and how many entries its heaps have:
# that of clean pages, whose root stands first, and that of pages newer than on disk, whose root stands last; where frames are taken in
# rotation, that whose turn is next, and how often all had theirs.
BEGIN, END, FREE, CLEAN, DIRTY, NEXT, LAPS = range(7)

#: Numbers: frames, those in use, those whose page is newer than on disk, those whose page is not valid, misses in memory so far, whether
#: pages are taken whatever they are (aggressive filling) and up to how many frames, whether a sharp checkpoint is taken; whether frames are
#: taken in rotation, and how many of those whose turn is next are kept free of pages newer than on disk.
FRAMES, USED, NEWER_FRAMES, INVALID, MISSES, FILL, CHECKPOINT, ROTATES, AHEAD = range(9)
#: The design's parameters, in the order in which it declares them, and what it counts.
FIRST_PARAMETER, OWN_NUMBER, NUMBERS = 16, 24, 64


class Extension(NamedTuple):
    """The SSD's frames and what is known of pages."""

    #: A row a page; those of others may stand behind each.
    pages: Numbers
    #: Shape (frames, 2).
    frames: Numbers
    #: Shape (frames, 2).
    heaps: Integers
    #: Shape (partitions, 7).
    partitions: Integers
    numbers: Integers
    #: The design's own.
    words: Integers


_NUMBERS = types.Array(types.int32, 2, "C")
EXTENSION = group_type((_NUMBERS, _NUMBERS, MATRIX, MATRIX, VECTOR, VECTOR), Extension)


def empty_extension(pages: int, frames: int, partitions: int = 1, words: int = 0, table: Numbers | None = None) -> Extension:
    """Frames that hold nothing, perhaps with a table of pages in which others have columns too.

    Raises
    ------
    InvalidParameterError
        Fewer frames than partitions, or no partition.
    """
    if partitions < 1 or (frames and frames < partitions):
        raise InvalidParameterError(
            "partitions", partitions, f"there must be at least one, and a frame for each of them (there are {frames})"
        )
    places = np.zeros((frames, 2), np.int32)
    parts = np.zeros((partitions, 7), np.int64)
    for number in range(partitions):
        begin, end = number * frames // partitions, (number + 1) * frames // partitions
        parts[number] = begin, end, begin if end > begin else -1, 0, 0, begin, 0
        places[begin:end, PLACE] = np.arange(begin + 1, end + 1)
        places[end - 1 : end, PLACE] = -1
    numbers = np.zeros(NUMBERS, np.int64)
    numbers[FRAMES] = frames
    table = rows_of(FIRST_PAGE + pages, PAGE_COLUMNS) if table is None else table
    return Extension(table, places, np.zeros((frames, 2), np.int64), parts, numbers, np.zeros(words, np.int64))

"""Work of parts of a drive over time: a record a hold of a die, a channel, the host link or the controller by one operation.

A model that can tell has `record_spans` and `spans` (`SpanSource`).  An operation that is interrupted and resumed leaves several spans.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

# Kinds.  A move is a copy of a page within a die, a fetch reads the page that a partial write completes, a transfer is of a channel, of
# the host link or of the memory's bus, a command is the controller's share of a host command, and a step is a core's of a program inside.
# Cells is the part of a read or a fetch until the page is out of them: it says what a hold of a die was for, and is none itself.
# A command on a disk consists of the controller's work, the wait for the mechanism (destage), a seek, the wait for the first sector
# (rotation), and the transfer, or hit if the buffer holds all of it: one after the other, and only as far as the command waits for them.
READ, PROGRAM, ERASE, MOVE, FETCH, TRANSFER, COMMAND, STEP, CELLS, DESTAGE, SEEK, ROTATION, HIT = range(13)
KINDS = ("read", "program", "erase", "move", "fetch", "transfer", "command", "step", "cells", "destage", "seek", "rotation", "hit")

# Causes: the host, garbage collection, merges of blocks and their logs, translation pages, wear levelling, and folding of an SLC cache.
HOST, GC, MERGE, MAP, WEAR, FOLD = range(6)
CAUSES = ("host", "gc", "merge", "map", "wear", "fold")

# Levels: the page of a word line, all of them at once, or cells that keep one bit in an SLC cache; -1 where cells are all alike.
ALL_BITS, SLC = 4, 5
LEVELS = ("first bit", "second bit", "third bit", "fourth bit", "all bits", "SLC")
MOST_UNITS = 255

SPAN = np.dtype(
    [
        ("server", np.int32),  # the dies, the channels, the link, the controller; then the memory's bus and the cores; of a disk 0
        ("kind", np.int8),
        ("cause", np.int8),
        ("request", np.int64),  # id of the host request, -1 for none
        ("page", np.int64),  # logical flash page, -1 for none
        ("begin", np.int64),  # ns
        ("end", np.int64),  # ns
        ("level", np.int8),  # of the cells that a die works on, of a move those that it writes
        ("units", np.uint8),  # mapping units that a die takes together, up to MOST_UNITS; elsewhere 1
        ("die", np.int32),  # that holds, or that a channel serves; -1 elsewhere
    ]
)

Spans = npt.NDArray[Any]


def holds(spans: Spans) -> Spans:
    """The holds among spans."""
    return spans[spans["kind"] != CELLS]


class SpanSource(Protocol):
    """A model that tells what its parts did."""

    def record_spans(self, on: bool) -> None:
        """Begin or stop to record; nothing is recorded unless asked, since it takes time and memory."""

    def spans(self) -> Spans:
        """Holds that ended since the last call, and reads of cells, dtype SPAN; they are forgotten with this call."""


def server_names(dies: int, channels: int, cores: int | None = None) -> list[str]:
    """Names of the servers, by number; `cores` are those of a drive whose memory has a bus.

    >>> server_names(2, 1)
    ['die 0', 'die 1', 'channel 0', 'link', 'controller']
    >>> server_names(1, 1, 2)[3:]
    ['controller', 'memory bus', 'core 0', 'core 1']
    """
    inside = [] if cores is None else ["memory bus", *(f"core {core}" for core in range(cores))]
    names = [*(f"die {die}" for die in range(dies)), *(f"channel {channel}" for channel in range(channels))]
    return [*names, "link", "controller", *inside]

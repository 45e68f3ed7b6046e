"""The tables of a disk as kernels take them, its constants, state and buffer, and what it reports: counters, and what a power cut took."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from flashsim.core.groups import group_type
from flashsim.core.model import PowerCut
from flashsim.core.records import VECTOR, RecordArray, record_dtype, record_of_type, table_type
from flashsim.core.request import Integers
from flashsim.core.spans import SPAN
from flashsim.hdd.scheduler.base import CANDIDATE
from flashsim.hdd.state.layout import EXTENT

SHARE_UNIT = 1_000_000  #: Shares are kept in millionths.

#: Parameters that kernels know.
FIELDS = (
    "rotation", "heads", "head_order", "head_switch", "write_settle", "write_move", "sector_size", "sectors",
    "link_rate", "bus_read", "bus_write", "hold_reads", "read_start", "read_start_least", "write_start", "write_start_most",
    "overhead", "command_size", "read_hit_after_read", "read_hit_after_write", "read_miss_after_read", "read_miss_after_write",
    "write_hit_after_read", "write_hit_after_write", "write_miss_after_read", "write_miss_after_write",
    "data_preparation", "reselect_first", "reselect_other", "disconnect_read_after_read", "disconnect_read_after_write",
    "disconnect_write", "complete_read", "complete_write", "extra_disconnect", "extra_command", "extra_disconnect_first", "extra_pause",
    "extra_disconnect_second", "extra_seek_delay",
    "read_ahead", "read_ahead_least", "read_ahead_bound", "read_ahead_on_hit", "read_ahead_again", "segment_size", "keep_read",
    "next_hits", "partial_hits", "hits_while_writing", "read_preceding", "own_write_segment", "read_written", "write_behind",
)  # fmt: skip
#: Of these pairs, ``..._after_read`` and ``..._after_write``, kernels have two numbers each, by whether the last command was a write.
PAIRS = ("read_hit", "read_miss", "write_hit", "write_miss", "disconnect_read")
CONTROL = np.dtype([*((name, np.int64) for name in FIELDS if "_after_" not in name), *((name, np.int64, 2) for name in PAIRS)], align=True)

IDLE, READING, WRITING = range(3)  #: Streams of the mechanism.

# The stream: what it does; where the arm is while there is none, as track and extent; the piece of a track being transferred, as first
# sector, the one after the last, extent, track, angle of the first sector in parts of a slot, and revolution; the sector after the stream's
# last, when that is reached, and the sector before which nothing else interrupts it.
_STREAM = "stream arm arm_extent pivot piece_end extent piece_track angle revolution limit rest least "
# The segment that the stream fills (-1: none) and the clock of their uses; 0 if the last command that moved data was a read, 1 if a write,
# and the sector after it; the ring of acknowledged writes.
_BUFFER = "current uses after last_end ring_head ring_count "
# The command being served (-1: none), when it completes, how many wait, and which way the arm moves.
_COMMAND = "active busy_until waiting_count direction "
# Of the command served last: until when it waited for the mechanism, whether for its stream too, whether the buffer held all of it; of the
# stream begun last when the arm set out, arrived, and could write or read, and when the first sector passed.
_MARKS = "freed waits hit set_out arrived able passed"
STATE = record_dtype(int64=_STREAM + _BUFFER + _COMMAND + _MARKS)
#: Counters; times in ns, distances in cylinders.  Seeks are those to the start of a stream (a read miss, a destage), settling included; the
#: waits are for the first sector of such a stream.
COUNTERS = record_dtype(
    int64="reads writes flushes read_bytes written_bytes read_hits seeks seek_time seek_cylinders waits wait_time link_time destages"
)
COUNTER_NAMES = COUNTERS.names or ()
#: A segment of the buffer: the sectors in it, and when it was last used.
SEGMENT = record_dtype(int64="first end used")
WRITE_BEHIND = record_dtype(int64="first end request tag")  #: An acknowledged write that is not on the media.


class DiskState(NamedTuple):
    """The state of a drive."""

    control: RecordArray  #: CONTROL.
    state: RecordArray  #: STATE, as it is once the active command is served.
    before: RecordArray  #: A table of one row: STATE before the active command.
    counters: RecordArray  #: COUNTERS.
    extents: RecordArray  #: EXTENT: where sectors lie.
    seeks: Integers  #: The seek curve.
    segments: RecordArray  #: SEGMENT.
    ring: RecordArray  #: WRITE_BEHIND, a ring.
    waiting: Integers  #: Commands that wait, in the order in which they came.
    candidates: RecordArray  #: CANDIDATE: room for what a scheduler looks at.
    log: RecordArray  #: `flashsim.core.spans.SPAN`, of commands; of no rows where nothing is recorded.
    logged: Integers  #: How many rows of the log are taken, shape (1,).


DISK = group_type(
    (
        *map(record_of_type, (CONTROL, STATE)), table_type(STATE), record_of_type(COUNTERS), table_type(EXTENT), VECTOR,
        *map(table_type, (SEGMENT, WRITE_BEHIND)), VECTOR, *map(table_type, (CANDIDATE, SPAN)), VECTOR,
    ),
    DiskState,
)  # fmt: skip


Unsettled = tuple[int, int, int, int]  #: A received write: its request, that one's tag, its address and length.


@dataclass(frozen=True)
class HddPowerCut(PowerCut):
    """Result of a power cut.

    A command never tears: one that is not wholly on the media is lost wholly.
    """

    #: Ids of requests that had been acknowledged and of which a command was still only in the write-behind segment, ascending.
    vanished: Integers
    #: Bytes (offset, length) of those commands, in the order written, shape (n, 2); of an array ascending, joined where they touch.
    extents: Integers
    #: Of the requests whose these commands are, shape (n,); of an array nothing.
    tags: Integers = field(default_factory=lambda: np.zeros(0, np.int64))


def power_cut(at: int, lost: Iterable[int], unsettled: Iterable[Unsettled]) -> HddPowerCut:
    """A `HddPowerCut`; `unsettled` are received writes that are not wholly on the media."""
    unfinished = set(lost)
    lost_entries = [entry for entry in unsettled if entry[0] not in unfinished]
    return HddPowerCut(
        int(at),
        np.array(sorted(unfinished), np.int64),
        np.array(sorted({entry[0] for entry in lost_entries}), np.int64),
        np.array([entry[2:] for entry in lost_entries], np.int64).reshape(-1, 2),
        np.array([entry[1] for entry in lost_entries], np.int64),
    )


def statistics(counters: Mapping[str, int]) -> dict[str, Any]:
    seeks, waits = counters["seeks"], counters["waits"]
    return {
        **counters,
        "mean_seek": counters["seek_time"] / seeks if seeks else 0.0,
        "mean_seek_cylinders": counters["seek_cylinders"] / seeks if seeks else 0.0,
        "mean_wait": counters["wait_time"] / waits if waits else 0.0,
    }

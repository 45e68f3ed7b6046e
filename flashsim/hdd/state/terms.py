"""What the columns of the engine's arrays mean: a drive's constants, its state, its segments and its ring of acknowledged writes."""

#: Shares are kept in millionths.
SHARE_UNIT = 1_000_000

#: Parameters that kernels know, in the order of their columns.
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
# Of a pair `..._after_read`, `..._after_write` only the first has a name; the second is in the next column.
(
    ROTATION, HEADS, HEAD_ORDER, HEAD_SWITCH, WRITE_SETTLE, WRITE_MOVE, SECTOR_SIZE, SECTORS,
    LINK_RATE, BUS_READ, BUS_WRITE, HOLD_READS, READ_START, READ_START_LEAST, WRITE_START, WRITE_START_MOST,
    OVERHEAD, COMMAND_SIZE, READ_HIT, _, READ_MISS, _,
    WRITE_HIT, _, WRITE_MISS, _,
    DATA_PREPARATION, RESELECT_FIRST, RESELECT_OTHER, DISCONNECT_READ, _,
    DISCONNECT_WRITE, COMPLETE_READ, COMPLETE_WRITE, EXTRA_DISCONNECT, EXTRA_COMMAND, EXTRA_DISCONNECT_FIRST, EXTRA_PAUSE,
    EXTRA_DISCONNECT_SECOND, EXTRA_SEEK_DELAY,
    READ_AHEAD, READ_AHEAD_LEAST, READ_AHEAD_BOUND, READ_AHEAD_ON_HIT, READ_AHEAD_AGAIN, SEGMENT_SIZE, KEEP_READ,
    NEXT_HITS, PARTIAL_HITS, HITS_WHILE_WRITING, READ_PRECEDING, OWN_WRITE_SEGMENT, READ_WRITTEN, WRITE_BEHIND,
) = range(54)  # fmt: skip
CONTROL_COLUMNS = 54

#: What the mechanism streams.
IDLE, READING, WRITING = range(3)

# Columns of a drive's state.  The stream: what it does; where the arm is while there is none, as track and extent; the piece of a track
# being transferred, as first sector, the one after the last, extent, track, angle of the first sector in parts of a slot, and revolution;
# the sector after the stream's last, when that is reached, and the sector before which nothing else interrupts it.
(STREAM, ARM, ARM_EXTENT, PIVOT, PIECE_END, EXTENT, PIECE_TRACK, ANGLE, BASE, LIMIT, REST, LEAST) = range(12)
# The segment that the stream fills (-1: none) and the clock of their uses; 0 if the last command that moved data was a read, 1 if a write,
# and the sector after it; the ring of acknowledged writes.
(CURRENT, USES, AFTER, LAST_END, RING_HEAD, RING_COUNT) = range(12, 18)
# The command being served (-1: none), when it completes, how many wait, and which way the arm moves.
(ACTIVE, BUSY_UNTIL, WAITING_COUNT, DIRECTION) = range(18, 22)
# Counters; their order is that of report.COUNTERS.
(READS, WRITES, FLUSHES, READ_BYTES, WRITTEN_BYTES, READ_HITS, SEEKS, SEEK_TIME, SEEK_CYLINDERS, WAITS, WAIT_TIME, LINK_TIME, DESTAGES) = (
    range(22, 35)
)
DRIVE_COLUMNS = 35

# Columns of a segment: the sectors in it, and when it was last used.
SEGMENT_FIRST, SEGMENT_END, SEGMENT_USED = range(3)
SEGMENT_COLUMNS = 3

# Columns of the ring of acknowledged writes.
RING_FIRST, RING_END, RING_REQUEST, RING_TAG = range(4)
RING_COLUMNS = 4

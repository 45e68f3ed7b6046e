"""Description of a hard disk drive: the declared parameters of a drive, and the names that they choose among.

Every field beyond the first group has a default that switches its part off, so that a simple drive stays a simple table.  What follows from
the fields (`hdd.state`) and what they must fulfil together (`hdd.parameters`) stand above.
"""

from dataclasses import dataclass

from flashsim.core.parameters import count, duration, number, rate, size, switch, table, text
from flashsim.core.request import READ, SECTOR, WRITE

UNLIMITED = 10**12  #: A link that holds nothing up.

#: Schemes of sparing, in the order of DiskSim's numbers for them; see `hdd.state.layout`.
SPARING = (
    "none", "tracks", "cylinder", "track", "cylinder-slip-on", "cylinder-front", "cylinder-front-slip-on", "end", "range", "zone",
    "zone-slip-on",
)  # fmt: skip
#: Head after a seek to the next cylinder: it is the first again; the heads take turns up and down, counted from the start
#: of the zone; or counted from the outermost cylinder.
HEAD_ORDERS = ("first", "turning-in-zone", "turning")
#: Where read-ahead ends before its size: nowhere, at the end of the track or cylinder of the request, or at the end of the track of the
#: sector behind it, one track later if the segment begins before that track.
BOUNDS = ("none", "track", "cylinder", "next-track")


@dataclass(frozen=True, kw_only=True)
class DriveDescription:
    """The fields of a drive as declared and not yet checked."""

    # Media and arm.
    capacity: int = size("what the host can address on each drive; 0: all that the zones hold", least=0)
    sector_size: int = size("the logical sector", least=SECTOR)
    rotation: int = duration("one revolution", least=1)
    heads: int = count("recording surfaces")
    zones: tuple[tuple[float, ...], ...] = table(
        "rows (cylinders, sectors a track), from the outer edge inwards, or (cylinders, sectors a track, track skew, cylinder skew, "
        "offset of the first sector, empty sectors at the front, spares, cylinders left out before); skews and offset in sectors"
    )
    sparing: str = text("what spares of a zone row count (hdd.description.SPARING)", default="none")
    sparing_range: int = count("cylinders that share their spares, with sparing `range`", default=1)
    slips: tuple[tuple[float, ...], ...] = table("rows (zone, bad sector or track of it), skipped in the numbering", default=())
    defects: tuple[tuple[float, ...], ...] = table("rows (zone, bad sector or track of it, its replacement)", default=())
    head_order: str = text("which head follows a seek to the next cylinder (hdd.description.HEAD_ORDERS)", default="first")
    seek_single: int = duration("a seek to the next cylinder (Lee's curve)", default=0)
    seek_average: int = duration("the mean seek between two random cylinders (Lee's curve)", default=0)
    seek_full: int = duration("a seek across all cylinders (Lee's curve)", default=0)
    seek_formula: tuple[tuple[float, ...], ...] = table(
        "one row (boundary, a, b, c, d) after Ruemmler and Wilkes: a + b sqrt(x) ms below a distance of `boundary` cylinders, c + d x from "
        "there on; in place of Lee's curve",
        default=(),
    )
    seek_table: tuple[tuple[float, ...], ...] = table("rows (cylinders, ms), measured, in place of Lee's curve", default=())
    seek_first: tuple[tuple[float, ...], ...] = table("rows (ms,) of the shortest seeks: 1, 2, ... cylinders", default=())
    head_switch: int = duration("changing the head; of a seek that changes it too, the longer counts")
    write_settle: int = duration("added to a seek or head switch before a write; may be negative", least=-(10**9))
    write_move: int = duration("the shortest move of the arm to a write that does not follow the one before", default=0)

    # Link.
    link_rate: int = rate("the host interface", default=UNLIMITED)
    bus_read: int = duration("a sector over the bus to the host, if that is slower than the link", default=0)
    bus_write: int = duration("a sector over the bus from the host, if that is slower than the link", default=0)
    bulk_transfer: int = duration("a sector between bus and buffer, if that is slower than bus and link", default=0)
    hold_reads: bool = switch("keep the link while a read waits for the media", default=True)
    read_start: float = number("share of a read that is there before its transfer starts; at least a sector", least=0, most=1, default=0.0)
    read_start_least: int = count("sectors of a read that are there before its transfer starts, if it has so many", default=1)
    write_start: float = number("share of a write that is there before its first sector goes to the media", least=0, most=1, default=1.0)
    write_start_most: int = count("more sectors than these are not waited for, but for an underrun; 0: no bound", least=0, default=0)

    # Controller.
    overhead: int = duration("the controller's work on each command", least=1)
    command_size: int = size(
        "what one command of the interface moves; of a longer one each further part has the overhead and the work of a hit; 0: any length",
        least=0,
        default=0,
    )
    read_hit_after_read: int = duration("work on a read that the buffer serves, after a read", default=0)
    read_hit_after_write: int = duration("work on a read that the buffer serves, after a write", default=0)
    read_miss_after_read: int = duration("work on any other read, after a read", default=0)
    read_miss_after_write: int = duration("work on any other read, after a write", default=0)
    write_hit_after_read: int = duration("work on a write that the buffer acknowledges, after a read", default=0)
    write_hit_after_write: int = duration("work on a write that the buffer acknowledges, after a write", default=0)
    write_miss_after_read: int = duration("work on any other write, after a read", default=0)
    write_miss_after_write: int = duration("work on any other write, after a write", default=0)
    data_preparation: int = duration("before a transfer", default=0)
    reselect_first: int = duration("taking the link again", default=0)
    reselect_other: int = duration("taking the link again, for the second time", default=0)
    disconnect_read_after_read: int = duration("leaving the link to a read that waits for the media, after a read", default=0)
    disconnect_read_after_write: int = duration("leaving the link to a read that waits for the media, after a write", default=0)
    disconnect_write: int = duration("leaving the link to a write that waits for the media", default=0)
    complete_read: int = duration("the end of a read", default=0)
    complete_write: int = duration("the end of a write", default=0)
    extra_disconnect: bool = switch(
        "a write that follows another but does not continue it gives the link away before its data", default=False
    )
    extra_command: int = duration("work on such a write", default=0)
    extra_disconnect_first: int = duration("its first leaving of the link", default=0)
    extra_pause: int = duration("from there until it takes the link again", default=0)
    extra_disconnect_second: int = duration("its second leaving of the link", default=0)
    extra_seek_delay: int = duration("the arm starts so much later for it", default=0)

    # Buffer.
    read_ahead: int = size("the most that is read beyond a request; 0: no read-ahead", least=0)
    read_ahead_least: int = size("read beyond a request before anything else may interrupt it", least=0, default=0)
    read_ahead_bound: str = text("where read-ahead ends before that (hdd.description.BOUNDS)", default="none")
    read_ahead_on_hit: bool = switch("a hit on the segment that was read last makes read-ahead go on from its rest", default=True)
    read_ahead_again: bool = switch("a hit on another segment makes read-ahead go on behind that", default=False)
    segments: int = count("read segments", default=1)
    segment_size: int = size("what one holds; 0: a request and its read-ahead", least=0, default=0)
    keep_read: bool = switch("sectors that the host has read stay in their segment", default=False)
    next_hits: bool = switch("a read of the sector that is being read ahead just now is a hit", default=True)
    partial_hits: bool = switch("a read that begins in a segment at rest is a hit", default=False)
    hits_while_writing: bool = switch("hits are served while the write segment is destaged", default=True)
    read_preceding: bool = switch(
        "sectors that pass while a read waits for its first are read too; they stay with keep_read", default=False
    )
    own_write_segment: bool = switch("writes have a segment of their own; otherwise they take one of the read segments", default=True)
    read_written: bool = switch("reads may find written data in such a segment", default=False)
    write_behind: int = size("what is acknowledged before it is on the media; 0: no write is", least=0)

    # Queue.
    queue_depth: int = count("commands that a drive holds at once")
    scheduler: str = text("which of them is next (`flashsim.hdd.scheduler`, or a Python file)", default="fcfs")

    def overhead_of(self, operation: int, length: int) -> int:
        """The controller's work, ns, on a command before anything else; of a read or write in parts, on all but the first besides."""
        further = -(-length // self.command_size) - 1 if self.command_size and operation in (READ, WRITE) else 0
        hit = self.read_hit_after_read if operation == READ else self.write_hit_after_write
        return self.overhead + further * (self.overhead + hit)

    @property
    def cylinders(self) -> int:
        """Cylinders of all zones together, those left out between them included."""
        return sum(int(row[0]) + (int(row[7]) if len(row) > 2 else 0) for row in self.zones)

    @property
    def sectors(self) -> int:
        """Sectors that the host can address on each drive."""
        return self.capacity // self.sector_size

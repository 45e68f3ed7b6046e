"""How data cross the link: in time of link, bus and buffer, and not before they have come off the media."""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import READ, WRITE, Integers
from flashsim.hdd.engine.stream import position, sector_end
from flashsim.hdd.state.disk import Disk
from flashsim.hdd.state.geometry import extent_of, piece_first
from flashsim.hdd.state.layout import HELD
from flashsim.hdd.state.link import crossing_time
from flashsim.hdd.state.terms import (
    AFTER,
    BUS_READ,
    COMMAND_SIZE,
    DATA_PREPARATION,
    DISCONNECT_READ,
    HOLD_READS,
    LINK_RATE,
    LINK_TIME,
    OVERHEAD,
    READ_HIT,
    READ_START,
    READ_START_LEAST,
    READING,
    RESELECT_FIRST,
    SECTOR_SIZE,
    SHARE_UNIT,
    STREAM,
    WRITE_HIT,
)


@inlined_kernel
def overhead_of(control: Integers, operation: int, sectors: int) -> int:
    """The controller's work on a command before anything else; of a read or write in parts, on all but the first besides."""
    if control[COMMAND_SIZE] == 0 or operation not in (READ, WRITE):
        return control[OVERHEAD]
    hit = control[READ_HIT] if operation == READ else control[WRITE_HIT + 1]
    further = (sectors + control[COMMAND_SIZE] - 1) // control[COMMAND_SIZE] - 1
    return control[OVERHEAD] + further * (control[OVERHEAD] + hit)


@inlined_kernel
def count_crossing(disk: Disk, commands: int, moved: int, sectors: int, bus: int) -> int:
    """Count a transfer over the link, and return how long it takes."""
    crossing = crossing_time(sectors, disk.control[SECTOR_SIZE], disk.control[LINK_RATE], bus)
    disk.state[commands] += 1
    disk.state[moved] += sectors * disk.control[SECTOR_SIZE]
    disk.state[LINK_TIME] += crossing
    return crossing


@inlined_kernel
def sectors_to_start(control: Integers, sectors: int) -> int:
    """How many sectors of a read must be there before its transfer starts."""
    share = sectors * control[READ_START] // SHARE_UNIT
    return min(sectors, max(share, control[READ_START_LEAST]))


@lean_kernel
def read_out(disk: Disk, first: int, end: int, arrived: int, link: int) -> int:
    """When sectors have crossed to the host: the link is theirs at `link`, and from `arrived` on they come with the stream."""
    size, rate, bus = disk.control[SECTOR_SIZE], disk.control[LINK_RATE], disk.control[BUS_READ]
    if disk.control[HOLD_READS] == 0 and arrived < end:
        return _read_out_in_parts(disk, first, end, arrived, link)
    done = link + crossing_time(end - first, size, rate, bus)
    sector = max(first, arrived)
    while sector < end:
        extent = extent_of(disk.extents, sector)
        last = min(end, piece_first(disk.extents, extent, sector) + disk.extents[extent, HELD]) - 1
        done = max(done, sector_end(disk, sector) + crossing_time(end - sector, size, rate, bus))
        done = max(done, sector_end(disk, last) + crossing_time(end - last, size, rate, bus))
        sector = last + 1
    return done


@lean_kernel
def _read_out_in_parts(disk: Disk, first: int, end: int, arrived: int, link: int) -> int:
    """As `read_out`, but whenever all that is there has crossed, the link is given away until enough has come again."""
    size, rate, bus = disk.control[SECTOR_SIZE], disk.control[LINK_RATE], disk.control[BUS_READ]
    time = link
    out = first
    while out < end:
        there = arrived
        if disk.state[STREAM] == READING:
            there = max(arrived, position(disk, time, False))
        there = min(there, end)
        if there > out:
            time += crossing_time(there - out, size, rate, bus)
            out = there
        else:
            last = out + min(end - out, sectors_to_start(disk.control, end - first)) - 1
            time = max(time + disk.control[DISCONNECT_READ + disk.state[AFTER]], sector_end(disk, last))
            time += disk.control[RESELECT_FIRST] + disk.control[DATA_PREPARATION]
    return time

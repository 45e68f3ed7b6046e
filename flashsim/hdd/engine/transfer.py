"""How data cross the link: in time of link, bus and buffer, and not before they have come off the media."""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.records import RecordArray
from flashsim.core.request import READ, WRITE
from flashsim.hdd.engine.stream import position, sector_end
from flashsim.hdd.state.disk import READING, SHARE_UNIT, Disk
from flashsim.hdd.state.geometry import extent_of, piece_first
from flashsim.hdd.state.link import crossing_time


@inlined_kernel
def overhead_of(control: RecordArray, operation: int, sectors: int) -> int:
    """The controller's work on a command before anything else; of a read or write in parts, on all but the first besides."""
    if control.command_size == 0 or operation not in (READ, WRITE):
        return control.overhead
    hit = control.read_hit[0] if operation == READ else control.write_hit[1]
    further = (sectors + control.command_size - 1) // control.command_size - 1
    return control.overhead + further * (control.overhead + hit)


@inlined_kernel
def count_crossing(disk: Disk, sectors: int, bus: int) -> int:
    """Count the time of a transfer over the link, and return it."""
    crossing = crossing_time(sectors, disk.control.sector_size, disk.control.link_rate, bus)
    disk.counters.link_time += crossing
    return crossing


@inlined_kernel
def sectors_to_start(control: RecordArray, sectors: int) -> int:
    """How many sectors of a read must be there before its transfer starts."""
    share = sectors * control.read_start // SHARE_UNIT
    return min(sectors, max(share, control.read_start_least))


@lean_kernel
def read_out(disk: Disk, first: int, end: int, arrived: int, link: int) -> int:
    """When sectors have crossed to the host: the link is theirs at `link`, and from `arrived` on they come with the stream."""
    size, rate, bus = disk.control.sector_size, disk.control.link_rate, disk.control.bus_read
    if disk.control.hold_reads == 0 and arrived < end:
        return _read_out_in_parts(disk, first, end, arrived, link)
    done = link + crossing_time(end - first, size, rate, bus)
    sector = max(first, arrived)
    while sector < end:
        extent = extent_of(disk.extents, sector)
        last = min(end, piece_first(disk.extents, extent, sector) + disk.extents[extent].held) - 1
        done = max(done, sector_end(disk, sector) + crossing_time(end - sector, size, rate, bus))
        done = max(done, sector_end(disk, last) + crossing_time(end - last, size, rate, bus))
        sector = last + 1
    return done


@lean_kernel
def _read_out_in_parts(disk: Disk, first: int, end: int, arrived: int, link: int) -> int:
    """As `read_out`, but whenever all that is there has crossed, the link is given away until enough has come again."""
    size, rate, bus = disk.control.sector_size, disk.control.link_rate, disk.control.bus_read
    time = link
    out = first
    while out < end:
        there = arrived
        if disk.state.stream == READING:
            there = max(arrived, position(disk, time, False))
        there = min(there, end)
        if there > out:
            time += crossing_time(there - out, size, rate, bus)
            out = there
        else:
            last = out + min(end - out, sectors_to_start(disk.control, end - first)) - 1
            time = max(time + disk.control.disconnect_read[disk.state.after], sector_end(disk, last))
            time += disk.control.reselect_first + disk.control.data_preparation
    return time

"""The pace at which a drive acknowledges writes while it collects: work that is owed, and phases in which it is done.

All is counted in time, ns, of the one rate at which the firmware programs units while it collects, the host's and moved ones together.  A
write owes the moves that it will cause, by what victims of late had to move; they are put off until they come to a limit.  Then a phase
begins: what is owed passes as time does, a write adds its own work besides that of its moves, and writes are acknowledged at a floor and a
share of the rate that the host had since the last phase, those left aside that waited for its end, or at the rate at which the firmware
keeps up with them if that is lower.  The phase ends when nothing is owed.  A host that wants more than the firmware can keep up with is so
held in one phase for good, at a constant pace.  In a pause of the host that is longer than the limit what is owed is done outside phases.

The clock is the caller's: both event models ask when they acknowledge a write (`docs/decisions/0069`).
"""

from flashsim.core.kernel import lean_kernel
from flashsim.core.records import RecordArray
from flashsim.core.units import transfer_time
from flashsim.ssd.parameters import SsdParameters

#: Shares of a victim that were moved are in 2^-24; of these a block may have all but so many, which bounds the work of a unit.
WHOLE, _LEAST_GAIN = 1 << 24, 1 << 14
#: A unit takes no longer by the host's share of its rate: that is slower than any phase lasts.
_LONGEST = 1 << 40
_SHARES = 1000  #: The host's share of its rate is counted in thousandths.
_WEIGHT = 6  #: A victim changes the mean of victims by 2^-6 of what it differs by; a mean below that is none.


def set_pace(buffer: RecordArray, parameters: SsdParameters) -> None:
    if parameters.collection_rate:
        buffer.unit_time = transfer_time(parameters.unit_size, parameters.collection_rate)
        buffer.debt_limit = parameters.collection_debt // parameters.unit_size * int(buffer.unit_time)
        buffer.share = round(_SHARES * parameters.collection_share)
        floor = parameters.collection_floor
        buffer.floor_time = transfer_time(parameters.unit_size, floor) if floor else 0


def forget_debt(buffer: RecordArray) -> None:
    """Nothing is owed, and the host has written nothing."""
    buffer.debt = buffer.pace = buffer.units = buffer.since = buffer.last = buffer.opens = 0


@lean_kernel
def note_victim(control: RecordArray, valid: int, average: int) -> None:
    """Let a victim with so many valid units count in the mean, no more than what blocks hold on average: nothing trimmed is moved."""
    control.moved_share += ((valid << 24) // control.pages_per_block - control.moved_share) >> _WEIGHT
    control.moved_share = min(control.moved_share, (average << 24) // control.pages_per_block)


@lean_kernel
def work_of(buffer: RecordArray, moved_share: int) -> int:
    """Work, ns, of a unit that the host writes, with the moves that it will cause."""
    return (buffer.unit_time << 24) // max(WHOLE - moved_share, _LEAST_GAIN)


@lean_kernel
def pace_of(buffer: RecordArray, host_time: int) -> int:
    """The time of a unit at the host's share of its rate, of which a unit takes `host_time`, and the floor together; 1 ns at least."""
    time = min(host_time * _SHARES // buffer.share, _LONGEST)
    return max(1, time * buffer.floor_time // (time + buffer.floor_time) if buffer.floor_time > 0 else time)


@lean_kernel
def acknowledge(buffer: RecordArray, moved_share: int, units: int, now: int) -> None:
    """A write of so many units is acknowledged now: `buffer.opens` is when the next may be."""
    if moved_share < WHOLE >> _WEIGHT:  # there is nothing to collect
        buffer.debt = buffer.pace = buffer.units = 0
        buffer.since = buffer.last = buffer.opens = now
        return
    if buffer.pace > 0:
        end = buffer.last + buffer.debt
        buffer.debt = end - now
        if end <= now:
            buffer.debt = buffer.pace = buffer.units = 0
            buffer.since = end
    if buffer.pace == 0 and now - buffer.last > buffer.debt_limit:
        buffer.debt = buffer.units = 0
        buffer.since = now
    work = work_of(buffer, moved_share)
    buffer.last = buffer.opens = now
    buffer.units += units if now > buffer.since else 0
    buffer.debt += units * (work if buffer.pace > 0 else work - buffer.unit_time)
    if buffer.pace == 0 and buffer.debt >= buffer.debt_limit:
        buffer.pace = pace_of(buffer, (now - buffer.since) // max(1, buffer.units))
    if buffer.pace > 0:
        gap = max(buffer.pace, work)
        buffer.opens += buffer.debt if gap > buffer.debt // units else gap * units

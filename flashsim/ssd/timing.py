"""Durations that follow from a drive's parameters."""

from typing import NamedTuple

from flashsim.core.draws import mix_bits
from flashsim.core.errors import InvalidParameterError
from flashsim.core.host import Slots
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import SECTOR
from flashsim.core.units import format_duration, transfer_time
from flashsim.ssd.ideals import CAUSES, SERVERS, ideals_in
from flashsim.ssd.parameters import SsdParameters


class SsdTiming(NamedTuple):
    """Durations in ns that follow from a drive's parameters, and what a read may interrupt.

    `transfer` is that of a mapping unit over the channel, and `channel` has that of 1, 2, ... sectors that are read, in whole code words.
    `link_read` and `link_write` hold the time of 1, 2, ... sectors of a unit over the host link, behind what the first unit of a command
    holds it for besides; `bus` the same of the memory's bus, 0 without one.
    """

    transfer: int
    read_overhead: int
    write_overhead: int
    suspend_program: bool
    suspend_erase: bool
    link_read: tuple[int, ...]
    link_write: tuple[int, ...]
    bus: tuple[int, ...]
    channel: tuple[int, ...]
    #: Probability of a read once more and its growth, in 2^-32, and the time that it takes.
    retry: int
    retry_growth: int
    retry_time: int
    #: Times of a page of the SLC cache.
    slc_read: int
    slc_program: int
    #: Steps of programs and erases; the chance, in 2^-32, that one of a program is a longer one; the least work after a resume.
    program_step: int
    erase_step: int
    long_chance: int
    suspend_progress: int
    #: A bit for each cause whose work takes no time; whether dies, channels and controller serve any number of operations at once.
    free_causes: int
    boundless_dies: bool
    boundless_channels: bool
    boundless_controller: bool


def timing_of(parameters: SsdParameters) -> SsdTiming:
    """Derive the durations; the controller's overhead is what a data sheet's latency leaves after the flash chip's share."""
    transfer = transfer_time(parameters.unit_size, parameters.channel_rate)
    ideals = ideals_in(parameters.ideal)
    boundless = tuple(name in ideals for name in SERVERS)
    lengths, word = range(SECTOR, parameters.unit_size + 1, SECTOR), parameters.code_word or parameters.unit_size
    return SsdTiming(
        transfer,
        _overhead("read_latency", parameters.read_latency, parameters.read + transfer),
        _overhead("write_latency", parameters.write_latency, parameters.program + transfer),
        parameters.suspend in ("program", "both") and not boundless[0],
        parameters.suspend in ("erase", "both") and not boundless[0],
        (parameters.link_read_command, *(transfer_time(length, parameters.link_read_rate) for length in lengths)),
        (parameters.link_write_command, *(transfer_time(length, parameters.link_write_rate) for length in lengths)),
        (0, *(transfer_time(length, parameters.bus_rate) if parameters.bus_rate else 0 for length in lengths)),
        (0, *(transfer_time(-(-length // word) * word, parameters.channel_rate) for length in lengths)),
        round(parameters.read_retry * 2**32),
        round(parameters.read_retry_growth * 2**32),
        parameters.read_retry_time or parameters.read,
        parameters.slc_read or parameters.read,
        parameters.slc_program or parameters.program,
        parameters.short_step,
        parameters.erase_step or -(-parameters.erase // 10),
        round(_long_chance(parameters) * 2**32),
        max(1, parameters.suspend_progress),
        sum(1 << CAUSES[name] for name in ideals if name in CAUSES),
        *boundless,
    )


def slots_of(parameters: SsdParameters) -> Slots:
    return Slots(parameters.command_slots, parameters.command_slot, parameters.slot_order == "arrival")


def _long_chance(parameters: SsdParameters) -> float:
    """Share of a program's steps, in number, that are longer ones."""
    long = parameters.program_long_share * parameters.short_step
    return long / (long + (1 - parameters.program_long_share) * parameters.program_long_step) if long else 0.0


def _overhead(name: str, latency: int, chip: int) -> int:
    if latency <= chip:
        raise InvalidParameterError(name, format_duration(latency), f"the chip and its channel already take {format_duration(chip)} a page")
    return latency - chip


@lean_kernel
def work_left_at_stop(number: int, most: int, step: int, long_step: int, long_chance: int) -> int:
    """What is left of an operation at the first end of a step at which that is `most` or less; 0 at its end.

    Counted from the end, each step is a long one with the chance given, in 2^-32, as a hash of the operation's number says; the first is
    what they leave.
    """
    if long_chance == 0:
        return max(0, most // step * step)
    left = place = 0
    while True:
        length = long_step if mix_bits(mix_bits(number) + place) < long_chance else step
        if left + length > most:
            return left
        left += length
        place += 1

"""How long each step of a flash operation takes, in integer nanoseconds, derived from a drive's parameters."""

from dataclasses import dataclass

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.records import RecordArray, empty_record, record_dtype
from flashsim.core.request import SECTOR, Integers
from flashsim.core.units import format_duration, transfer_time
from flashsim.ssd.parameters import SsdParameters

#: What the engine knows of `SsdTiming`: durations, and how dies order their work.
TIMING = record_dtype(
    int64="read program erase transfer read_overhead write_overhead resume read_priority suspend_program suspend_erase suspend_limit "
    "multi_plane power_protected cache_read cache_program continuation continuation_limit continuation_pages"
)


@dataclass(frozen=True)
class SsdTiming:
    """Durations in ns, and the rules of the dies as in `SsdParameters`.

    `continuation_limit` is in bytes, and `continuation_pages` the same in flash pages.  `link_read` and `link_write` hold the time of 1,
    2, ... sectors of a page over the host link, behind what the first page of a command holds it for besides.
    """

    read: int
    program: int
    erase: int
    transfer: int
    read_overhead: int
    write_overhead: int
    resume: int
    read_priority: bool
    suspend_program: bool
    suspend_erase: bool
    suspend_limit: int
    multi_plane: bool
    power_protected: bool
    cache_read: bool
    cache_program: bool
    continuation: int
    continuation_limit: int
    continuation_pages: int
    link_read: tuple[int, ...]
    link_write: tuple[int, ...]

    def record(self) -> RecordArray:
        timing = empty_record(TIMING)
        for name in TIMING.names or ():
            timing[name] = getattr(self, name)
        return timing

    def links(self) -> Integers:
        """Link times, shape (2, sectors of a page + 1): reads, then writes; column 0 has a command's own."""
        return np.array([self.link_read, self.link_write], np.int64)


def timing_of(parameters: SsdParameters) -> SsdTiming:
    """Derive the durations; the controller's overhead is what a data sheet's latency leaves after the flash chip's share."""
    transfer = transfer_time(parameters.page_size, parameters.channel_rate)
    sectors = range(1, parameters.page_size // SECTOR + 1)
    return SsdTiming(
        read=parameters.read,
        program=parameters.program,
        erase=parameters.erase,
        transfer=transfer,
        read_overhead=_overhead("read_latency", parameters.read_latency, parameters.read + transfer),
        write_overhead=_overhead("write_latency", parameters.write_latency, parameters.program + transfer),
        resume=parameters.suspend_overhead,
        read_priority=parameters.read_priority,
        suspend_program=parameters.suspend in ("program", "both"),
        suspend_erase=parameters.suspend in ("erase", "both"),
        suspend_limit=parameters.suspend_limit,
        multi_plane=parameters.multi_plane,
        power_protected=parameters.power_protected,
        cache_read=parameters.cache_read,
        cache_program=parameters.cache_program,
        continuation=parameters.continuation_latency,
        continuation_limit=parameters.continuation_limit,
        continuation_pages=parameters.continuation_pages,
        link_read=(parameters.link_read_command, *(transfer_time(count * SECTOR, parameters.link_read_rate) for count in sectors)),
        link_write=(parameters.link_write_command, *(transfer_time(count * SECTOR, parameters.link_write_rate) for count in sectors)),
    )


def _overhead(name: str, latency: int, chip: int) -> int:
    if latency <= chip:
        raise InvalidParameterError(name, format_duration(latency), f"the chip and its channel already take {format_duration(chip)} a page")
    return latency - chip

"""Times of a scan on the host and inside a drive, by what limits each, and the selectivity where they are equal.

On the host, pages pass the link and the host's cores work on them; inside, extents pass the drive's bus and its cores work on them, and
results pass the link.  Both are pipelines, so the slowest part is the time, and the first extent's way through comes before.  What joins
hold in memory comes before all: the host reads it, or each drive its own part.
"""

import math
from typing import NamedTuple

from flashsim.core.units import SECONDS


class ScanRates(NamedTuple):
    """A drive and its host."""

    #: Bytes a second of one drive to the host, and from its channels into its memory.
    link: float
    bus: float = 0.0
    #: Cores of one drive, and of the host.
    cores: int = 1
    host_cores: int = 1
    drives: float = 1  #: How many drives share the work: all of it over that of the one with most.
    #: Time before the first byte, and between two questions of the host for results, ns.
    start: float = 0.0
    pause: float = 0.0
    slots: float = math.inf  #: Extents that the memory of one drive holds at once, on their way or at work.


class ScanWork(NamedTuple):
    """Work of a query, over all drives: bytes of pages, time of a drive's core and a host's core (ns), bytes of results.

    `extents` are the bytes over those of a whole extent, of which the last one may be a part.
    `first` and `last` are the time of one core of each drive (on the host, of the host) before the first extent and after the last, ns;
    `sent` are bytes that each drive is sent before.
    """

    size: float
    extents: float
    drive: float
    host: float
    results: float
    last: float = 0.0
    first: float = 0.0
    sent: float = 0.0


def host_time(rates: ScanRates, work: ScanWork) -> float:
    """Time of a query whose pages go to the host, ns.

    >>> round(host_time(ScanRates(link=550e6), ScanWork(95e9, 1 << 16, 0, 0, 0)) / SECONDS, 1)
    172.7
    """
    pages = work.size * SECONDS / rates.link / rates.drives
    return rates.start + work.first + work.last + _pipeline(work.extents, rates.drives, pages, (work.host, rates.host_cores), (), math.inf)


def drive_time(rates: ScanRates, work: ScanWork) -> float:
    """Time of a query whose pages stay inside, ns.

    >>> round(drive_time(ScanRates(link=550e6, bus=1560e6, cores=2), ScanWork(95e9, 1 << 16, 170e9, 0, 2.4e6)) / SECONDS, 1)
    85.0
    """
    # The host asks a drive again when it has merged what came, and merges for one drive after another.
    results = max((work.results * SECONDS / rates.link + work.host) / rates.drives, work.host)
    session = work.first + work.last + _inside(rates, work, results)
    asked = max(rates.pause, session + rates.pause / 2)  # the host asks at once, and after each pause, whether it is over
    return 2 * rates.start + work.sent * SECONDS / rates.link + asked


def build_time(rates: ScanRates, work: ScanWork) -> float:
    """Time in which drives scan what their programs then hold in memory, ns.

    >>> round(build_time(ScanRates(link=550e6, bus=1560e6, cores=2, drives=4), ScanWork(95e9, 1 << 16, 0, 0, 0)) / SECONDS, 1)
    15.2
    """
    return _inside(rates, work)


def _inside(rates: ScanRates, work: ScanWork, *after: float) -> float:
    bus, cores = work.size * SECONDS / rates.bus / rates.drives, (work.drive, rates.cores * rates.drives)
    return _pipeline(work.extents, rates.drives, bus, cores, after, rates.slots)


def _pipeline(extents: float, drives: float, reads: float, work: tuple[float, float], after: tuple[float, ...], slots: float) -> float:
    """Time of a pipeline: whatever limits it, an extent's way through the other parts comes on top.

    Extents come one by one and go to the cores in rounds.  Where memory has no more slots than there are cores, a core waits while its
    next extent comes.
    """
    extents, (time, cores) = max(1.0, extents), work
    first, one, last = reads / max(1.0, extents / drives), time / extents, math.ceil(extents) - 1
    busy = one + first * (slots * drives <= cores)
    rounds = math.floor(last / cores)
    part = one * (extents - last)  # of the last extent
    ends = max(reads + part, min(reads, reads / extents * (last - rounds * cores + 1)) + rounds * busy + part)
    if last:
        before = math.floor((last - 1) / cores)
        ends = max(ends, reads / extents * last + one, reads / extents * (last - before * cores) + (before + 1) * busy)
    parts = [(ends - first, one), *((flow, flow / extents) for flow in after)]
    return max(flow - single for flow, single in parts) + first + sum(single for _, single in parts)


def break_even(rates: ScanRates, scan: ScanWork, match: float, host_match: float, result: float, rows: int) -> float | None:
    """The share of rows that qualify at which both places take as long; None if one is faster at any.

    `scan` is the work where no row qualifies; on one that does a core takes `match` or `host_match` ns, and `result` are its bytes.

    >>> thesis = ScanRates(link=550e6, bus=1560e6, cores=2)
    >>> round(break_even(thesis, ScanWork(95e9, 1 << 16, 170e9, 0, 0), 566, 0, 8, 600_037_902), 3)
    0.517
    """

    def advantage(share: float) -> float:
        matches = share * rows
        host = scan._replace(host=scan.host + matches * host_match)
        drive = ScanWork(scan.size, scan.extents, scan.drive + matches * match, matches * host_match, matches * result)
        return host_time(rates, host) - drive_time(rates, drive)

    low, high = 0.0, 1.0
    if advantage(low) <= 0 or advantage(high) >= 0:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if advantage(middle) > 0 else (low, middle)
    return low

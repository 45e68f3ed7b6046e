"""Times of a scan on the host and inside a drive, by what limits each, and the selectivity where they are equal.

On the host, pages pass the link and the host's cores work on them; inside, extents pass the drive's bus and its cores work on them, and
results pass the link.  Both are pipelines, so the slowest part is the time, and the first extent's way through comes before.
"""

from typing import NamedTuple

from flashsim.core.units import SECONDS


class Rates(NamedTuple):
    """A drive and its host.

    Attributes
    ----------
    link, bus
        Bytes a second of one drive to the host, and from its channels into its memory.
    cores, host_cores
        Cores of one drive, and of the host.
    drives
        How many drives share the work.
    start
        Time before the first byte, ns.
    """

    link: float
    bus: float = 0.0
    cores: int = 1
    host_cores: int = 1
    drives: int = 1
    start: float = 0.0


class Work(NamedTuple):
    """Work of a query, over all drives: bytes of pages, extents, time of a drive's core and a host's core (ns), bytes of results."""

    size: float
    extents: int
    drive: float
    host: float
    results: float


def host_time(rates: Rates, work: Work) -> float:
    """Time of a query whose pages go to the host, ns.

    Examples
    --------
    >>> round(host_time(Rates(link=550e6), Work(95e9, 1, 0, 0, 0)) / SECONDS, 1)
    172.7
    """
    parts = (work.size * SECONDS / rates.link / rates.drives, work.host / rates.host_cores)
    return rates.start + _piped(parts, work.extents, rates.drives)


def drive_time(rates: Rates, work: Work) -> float:
    """Time of a query whose pages stay inside, ns.

    Examples
    --------
    >>> round(drive_time(Rates(link=550e6, bus=1560e6, cores=2), Work(95e9, 1 << 16, 170e9, 0, 2.4e6)) / SECONDS, 1)
    85.0
    """
    inside = (work.size * SECONDS / rates.bus / rates.drives, work.drive / rates.cores / rates.drives)
    outside = (work.results * SECONDS / rates.link / rates.drives, work.host / rates.host_cores)
    return 2 * rates.start + _piped((*inside, *outside), work.extents, rates.drives)


def _piped(parts: tuple[float, ...], extents: int, drives: int) -> float:
    """The slowest part, and one extent's way through the others."""
    each = max(1, extents // drives)
    return max(parts) + (sum(parts) - max(parts)) / each


def break_even(rates: Rates, scan: Work, match: float, host_match: float, result: float, rows: int) -> float | None:
    """The share of rows that qualify at which both places take as long; None if one is faster at any.

    Parameters
    ----------
    scan
        Work where no row qualifies.
    match, host_match
        Time of a core on a row that qualifies, ns, in the drive and on the host.
    result
        Bytes of a row of the result.

    Examples
    --------
    >>> thesis = Rates(link=550e6, bus=1560e6, cores=2)
    >>> round(break_even(thesis, Work(95e9, 1 << 16, 170e9, 0, 0), 566, 0, 8, 600_037_902), 3)
    0.517
    """

    def advantage(share: float) -> float:
        matches = share * rows
        host = scan._replace(host=scan.host + matches * host_match)
        drive = Work(scan.size, scan.extents, scan.drive + matches * match, matches * host_match, matches * result)
        return host_time(rates, host) - drive_time(rates, drive)

    low, high = 0.0, 1.0
    if advantage(low) <= 0 or advantage(high) >= 0:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if advantage(middle) > 0 else (low, middle)
    return low

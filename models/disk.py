"""A device as the cost models see it: a seek, the latency of a request, and the transfer of a page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from flashsim.core.errors import InvalidParameterError, check_least
from flashsim.core.units import MILLISECONDS_A_SECOND


@dataclass(frozen=True)
class Disk:
    """A device as the model sees it, in milliseconds."""

    seek_ms: float  #: Ts, the mean seek: nominal, or as measured for the layout at hand.
    #: Tl, what every request waits: the mean rotational latency of a disk, the command overhead of an SSD.
    latency_ms: float
    page_transfer_ms: float  #: Tx, the transfer of one page.
    page_write_ms: float | None = None  #: The transfer of one page when writing, where that differs.
    #: What a request takes, besides its transfer, that is handed over together with one that waits the latency; as much as that if None.
    together_ms: float | None = None

    def __post_init__(self) -> None:
        check_least(0, seek_ms=self.seek_ms, latency_ms=self.latency_ms, together_ms=self.together_ms or 0)
        for name in ("page_transfer_ms", "page_write_ms"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InvalidParameterError(name, value, "it must be above 0")

    @classmethod
    def from_rates(cls, seek_ms: float, latency_ms: float, page_size: int, read_rate: float, write_rate: float | None = None) -> Disk:
        """A device given by its rates in bytes a second.

        >>> round(Disk.from_rates(12, 5.56, 8192, 34 * 2**20).latency_ratio, 3)
        24.197
        """
        for name, rate in (("read_rate", read_rate), ("write_rate", write_rate)):
            if rate is not None and not 0 < rate < math.inf:
                raise InvalidParameterError(name, rate, "it must be above 0")
        write = None if write_rate is None else page_size * MILLISECONDS_A_SECOND / write_rate
        return cls(seek_ms, latency_ms, page_size * MILLISECONDS_A_SECOND / read_rate, write)

    @property
    def latency_ratio(self) -> float:
        return self.latency_ms / self.page_transfer_ms

    @property
    def access_ratio(self) -> float:
        """A random access in latencies, x = (Tl + Ts) / Tl; infinite where only seeks cost."""
        if self.latency_ms == 0:
            return math.inf if self.seek_ms > 0 else 1.0
        return (self.latency_ms + self.seek_ms) / self.latency_ms

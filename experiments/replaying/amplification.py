"""Write amplification: by cause, and over time."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from flashsim.core.spans import CAUSES
from flashsim.core.units import MILLISECONDS

#: Samples are thinned to half when there are so many.
MOST_SAMPLES = 256
#: Why less may have been programmed than was written.
BELOW_ONE = "write amplification below 1: pages are still in the write buffer, or were rewritten there"
#: Why a drive may have moved no page yet.
NOT_COLLECTED = "nothing was collected: no block was erased; a full drive writes more, as in its steady state (--precondition steady)"


def by_cause(statistics: Mapping[str, Any], what: str) -> dict[str, int]:
    """Counters ``<what>_<cause>`` of a drive that tells causes apart; of another, nothing.

    Examples
    --------
    >>> by_cause({"programs_host": 5, "programs_gc": 2, "reads_host": 1}, "programs")
    {'host': 5, 'gc': 2}
    """
    return {cause: statistics[f"{what}_{cause}"] for cause in CAUSES if f"{what}_{cause}" in statistics}


def write_amplification(statistics: Mapping[str, Any], page_size: int) -> dict[str, float] | None:
    """Flash bytes programmed over host bytes written: ``total``, and its parts where causes are told apart; None before the first write.

    The part of the host is more than 1 where it writes parts of flash pages.
    """
    written = statistics.get("host_write_bytes", 0)
    if not written or "flash_programs" not in statistics:
        return None
    programs = {"total": statistics["flash_programs"], **by_cause(statistics, "programs")}
    return {cause: count * page_size / written for cause, count in programs.items()}


class History:
    """Counters of a drive as a run goes on, at times that lie ever further apart, so that there are never many.

    Parameters
    ----------
    page_size
        Bytes of a flash page.
    """

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self._interval = MILLISECONDS
        self._samples: list[dict[str, int]] = []

    @property
    def next(self) -> int:
        """When the next sample is due, ns."""
        return self._samples[-1]["time"] + self._interval if self._samples else 0

    def take(self, now: int, statistics: Mapping[str, Any]) -> None:
        """Note the counters at a time, ns, not before the last one."""
        if self._samples and self._samples[-1]["time"] == now:
            self._samples.pop()
        programs = {f"programs_{cause}": count for cause, count in by_cause(statistics, "programs").items()}
        counted = {name: statistics[name] for name in ("host_write_bytes", "flash_programs", "flash_erases")}
        self._samples.append({"time": now, **counted, **programs})
        if len(self._samples) >= MOST_SAMPLES:
            self._samples = self._samples[::2]
            self._interval *= 2

    def as_frame(self) -> pd.DataFrame:
        """A row an interval: its `begin` and its end (`time`), ns, the counters' growth, and what it makes, `write_amplification`.

        Columns ``write_amplification_<cause>`` are there if the drive tells causes apart; the values are NaN where nothing was written.
        """
        frame = pd.DataFrame(self._samples)
        if len(frame) < 2:
            return frame.iloc[0:0]
        grown = frame.diff().iloc[1:].astype("int64").assign(time=frame["time"].iloc[1:])
        grown.insert(0, "begin", frame["time"].to_numpy()[:-1])
        pages = grown["host_write_bytes"].where(grown["host_write_bytes"] > 0, math.nan) / self.page_size
        grown["write_amplification"] = grown["flash_programs"] / pages
        for cause in CAUSES:
            if f"programs_{cause}" in grown:
                grown[f"write_amplification_{cause}"] = grown[f"programs_{cause}"] / pages
        return grown.reset_index(drop=True)

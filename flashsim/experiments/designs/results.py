"""The result of a design over virtual time: rates, hit ratios, shares of the SSD, and traffic by device and cause."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from flashsim.core.units import HOURS, MB, SECONDS, format_duration
from flashsim.execution.pooled.system import PoolSystem
from flashsim.pools.devices import WORN, wear
from flashsim.pools.setup import PoolResult
from traces.transactions.base import Metric

#: Intervals of a run, each with counts of its own.
INTERVALS = 100
#: Rows of traffic: device, cause, direction, counter, and a counter of another row's share of it.
_TRAFFIC = (
    ("disk", "misses", "read", "disk_pages_read", None),
    ("disk", "leaving memory", "written", "disk_pages_written", "pages_cleaned"),
    ("disk", "cleaner", "written", "pages_cleaned", None),
    ("SSD", "misses", "read", "ssd_reads", None),
    ("SSD", "cleaner", "read", "cleaner_reads", None),
    ("SSD", "admissions", "written", "ssd_writes", None),
)


def variant_name(design: str, without: str | None) -> str:
    return design if without is None else f"{design} without {without}"


@dataclass(frozen=True, kw_only=True)
class DesignResult(PoolResult):
    """The result of a design."""

    #: The design, and the part of the SSD manager that it was without, None for none.
    design: str
    without: str | None
    system: PoolSystem
    #: The benchmark's metric, if the workload has one.
    metric: Metric | None = None
    #: The share of the time, at its end, over which rates are means.
    last: float = 1.0
    #: Erases that the SSD's blocks last together, 0 where that is not known.
    lifetime_erases: int = 0
    #: Scale of the run: times are reported as at scale 1.
    scale: float = 1.0

    @property
    def name(self) -> str:
        return variant_name(self.design, self.without)

    @property
    def is_worn(self) -> bool:
        return WORN[0] in self.counts

    @property
    def part(self) -> slice:
        """The last intervals; of a recorded trace that has ended, of those in which anything was asked."""
        references = self.counts["references"]
        busy = int(np.flatnonzero(references).max(initial=0)) + 1 if self.ended else len(references)
        return slice(busy - max(1, round(self.last * busy)), busy)

    def _ratios(self, part: slice, each: bool = False) -> dict[str, Any]:
        sums = {name: values[part] if each else values[part].sum() for name, values in self.counts.items()}
        length = self.seconds * (1 if each else part.stop - part.start)
        misses = sums["references"] - sums["hits"] - sums["created"]
        frames = max(1, self.ssd)
        ends = {
            name: self.counts[name][part] if each else self.counts[name][part].mean() for name in ("ssd_used", "ssd_newer", "ssd_invalid")
        }
        rates = {
            "transactions_s": sums["transactions"] / length,
            "memory_hit_ratio": sums["hits"] / np.maximum(1, sums["references"]),
            "ssd_hit_ratio": sums["ssd_reads"] / np.maximum(1, misses),
            "newer_share_of_ssd_reads": sums["ssd_reads_newer"] / np.maximum(1, sums["ssd_reads"]),
            "used_share": ends["ssd_used"] / frames,
            "dirty_share": ends["ssd_newer"] / frames,
            "invalid_share": ends["ssd_invalid"] / frames,
        }
        page = self.system.page_size / MB / length
        rates["disk_read_mb_s"], rates["disk_written_mb_s"] = page * sums["disk_pages_read"], page * sums["disk_pages_written"]
        rates["ssd_read_mb_s"] = page * (sums["ssd_reads"] + sums["cleaner_reads"])
        rates["ssd_written_mb_s"] = page * sums["ssd_writes"]
        if self.is_worn:
            rates["ssd_programmed_mb_s"] = sums["flash_programmed"] / MB / length
        return rates

    def row(self) -> dict[str, Any]:
        """Rates and shares over the last part of the time, and counts over all of it; JSON-ready."""
        part = self.part
        rates: dict[str, Any] = {name: float(value) for name, value in self._ratios(part).items()}
        design: dict[str, Any] = {"design": self.design, "without": self.without, "transactions_s": rates.pop("transactions_s")}
        if self.metric is not None:
            transactions, length = int(self.by_kind[self.metric.kind][part].sum()), (part.stop - part.start) * self.interval
            design |= {"metric": self.metric.name, "metric_value": self.metric.of(transactions, length)}
        design |= self.figures
        if self.is_worn:
            worn = {name: float(self.counts[name][part].sum()) for name in (*WORN, "transactions")}
            rates |= wear(worn, (part.stop - part.start) * self.seconds, self.lifetime_erases)
        sums = {name: int(values.sum()) for name, values in self.counts.items() if name not in ("ssd_used", "ssd_newer", "ssd_invalid")}
        return design | rates | sums | {"told_over_s": (part.stop - part.start) * self.seconds / self.scale, "cpu_s": self.cpu_s}

    def series(self) -> dict[str, list[float]]:
        """Rates and shares in each interval, and the hours and seconds at which it ends."""
        count = len(self.counts["transactions"])
        rates = self._ratios(slice(0, count), each=True)
        seconds = self.seconds / self.scale * np.arange(1, count + 1)
        rates = {"hours": seconds * SECONDS / HOURS, "seconds": seconds} | rates
        return {name: np.asarray(values, np.float64).tolist() for name, values in rates.items()}

    def kinds(self) -> list[dict[str, Any]]:
        """Transactions a second over the last part of the time and their share, by kind, and transactions in all."""
        part = self.part
        length = self.seconds * (part.stop - part.start)
        rows = []
        for kind, transactions in self.by_kind.items():
            recent = int(transactions[part].sum())
            rates = {"transactions_s": recent / length, "share": recent / max(1, int(self.counts["transactions"][part].sum()))}
            rows.append({"design": self.design, "without": self.without, "kind": kind} | rates | {"transactions": int(transactions.sum())})
        return rows

    def traffic(self) -> list[dict[str, Any]]:
        """Pages a second and megabytes a second over the last part of the time, by device and cause, and pages in all."""
        part = self.part
        length = self.seconds * (part.stop - part.start)
        rows = []
        for device, cause, how, counter, but in _TRAFFIC:
            if device == "SSD" and not self.ssd:
                continue
            pages = self.counts[counter] - (self.counts[but] if but else 0)
            rate = int(pages[part].sum()) / length
            row = {"design": self.design, "without": self.without, "device": device, "cause": cause, "how": how}
            rows.append(row | {"pages_s": rate, "mb_s": rate * self.system.page_size / MB, "pages": int(pages.sum())})
        return rows

    def lately(self) -> str:
        """The last interval in words, for those who wait."""
        count = len(self.counts["transactions"])
        rates = self._ratios(slice(count - 1, count))
        shares = f"memory {rates['memory_hit_ratio']:.0%}, SSD {rates['ssd_hit_ratio']:.0%}, dirty {rates['dirty_share']:.0%}"
        now = format_duration(round(count * self.interval / self.scale))
        return f"{now}: {rates['transactions_s']:,.0f} tx/s, hits: {shares}"

"""The report of a device under a workload: rates, latencies with their tails, waiting and service, write amplification, pauses, energy."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from flashsim.core.outstanding import OutstandingLevel
from flashsim.core.request import OPERATIONS, Completions
from flashsim.core.units import JOULES, MB, MICROJOULES, SECONDS, format_duration, format_size
from flashsim.device.presets import Preset
from flashsim.ssd.energy import energy_of, in_joules
from flashsim.studies.presentation.tables import SPREAD_HEADS, Table, durations, outstanding, same, spread
from flashsim.studies.replaying.observation import BELOW_ONE, NOT_COLLECTED, Observation, by_cause, write_amplification
from traces.summary.histogram import Histogram

#: The parts of a request's time: from arrival to dispatch, from there to the end, and both.
PARTS = ("queueing", "service", "latency")


class DeviceReport:
    """Collects completions in constant memory; percentiles are within 0.2 %.

    Parameters
    ----------
    preset
        The drive, where it is simulated: a flash drive's figures need it.
    observation
        Observation of the drive during the run.

    Attributes
    ----------
    active
        Nanoseconds in which at least one request was being served, provided that requests are dispatched in the order in which they came.
    """

    def __init__(self, preset: Preset | None = None, observation: Observation | None = None) -> None:
        self._preset, self.observation = preset, observation
        self.times = [{part: Histogram() for part in PARTS} for _ in OPERATIONS]
        self._bytes = [0] * len(OPERATIONS)
        self._begin: int | None = None
        self._end = 0
        self.active = 0
        self.outstanding = OutstandingLevel()

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        """Take requests (columns `operation` and `length` of the trace schema) and their completions, in the same order."""
        if not len(completions):
            return
        operation, length = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("operation", "length"))
        arrival, start, end = (completions[name] for name in ("submitted", "started", "completed"))
        for kind in np.unique(operation).tolist():
            rows = operation == kind
            self._bytes[kind] += int(length[rows].sum())
            for part, since, until in zip(PARTS, (arrival, start, arrival), (start, end, end), strict=True):
                self.times[kind][part].add((until - since)[rows])
        self.outstanding.add(arrival, end)
        first = int(arrival.min())
        self._begin = first if self._begin is None else min(self._begin, first)
        order = np.argsort(start, kind="stable")
        until = np.maximum.accumulate(np.append(self._end, end[order]))
        self.active += int(np.maximum(until[1:] - np.maximum(start[order], until[:-1]), 0).sum())
        self._end = int(until[-1])

    @property
    def duration(self) -> int:
        """Time from the first arrival to the last completion, ns."""
        return 0 if self._begin is None else self._end - self._begin

    def as_frame(self) -> pd.DataFrame:
        """A row an operation that occurred: requests, bytes, rates a second, and for each part of the time (ns) mean, percentiles, max."""
        rows = []
        duration = self.duration / SECONDS or math.nan
        for kind, parts in enumerate(self.times):
            count = parts["latency"].count
            if count:
                row: dict[str, Any] = {"operation": OPERATIONS[kind], "requests": count, "bytes": self._bytes[kind]}
                row |= {"iops": count / duration, "bytes_per_second": self._bytes[kind] / duration}
                for part, times in parts.items():
                    row |= {f"{part}_{name}": value for name, value in spread(times).items()}
                rows.append(row)
        return pd.DataFrame(rows)

    def busy_frame(self, statistics: dict[str, Any]) -> pd.DataFrame:
        """A row a part of the device (each die, each channel): its name, and the share of the time in which it was busy."""
        rows: list[tuple[str, float]] = []
        for part, share in busy_shares(statistics, self.duration).items():
            rows += [(f"{part} {number}", one) for number, one in enumerate(share)] if isinstance(share, list) else [(part, share)]
        return pd.DataFrame(rows, columns=["part", "busy"])

    def as_dict(self, statistics: dict[str, Any]) -> dict[str, Any]:
        """The whole report, JSON-ready.

        ``duration`` and ``active`` (ns), rates, ``operations``, ``outstanding``
        (`flashsim.core.outstanding.OutstandingLevel.as_dict`), ``busy_shares``, of a flash drive ``write_amplification``,
        ``reads_by_cause``, ``erases_by_cause``, ``gc_pauses`` (ns) and ``energy`` (J), and the device's ``statistics``; None stands for
        what is not known.
        """
        frame = self.as_frame()
        operations = {row.pop("operation"): row for row in frame.to_dict("records")}
        seconds = self.duration / SECONDS
        requests, size = (int(frame[name].sum()) if len(frame) else 0 for name in ("requests", "bytes"))
        result = {
            "duration": self.duration,
            "active": self.active,
            "requests": requests,
            "bytes": size,
            "iops": requests / seconds if seconds else None,
            "bytes_per_second": size / seconds if seconds else None,
            "operations": operations,
            "outstanding": self.outstanding.as_dict(),
            "busy_shares": busy_shares(statistics, self.duration),
        }
        if self._preset and (flash := self._preset.flash):
            figures, pauses = self._preset.energy, self.observation.pauses if self.observation else None
            energy = energy_of(figures, flash, statistics, self.duration, self.active) if figures else None
            result |= {
                "write_amplification": write_amplification(statistics, flash.unit_size),
                "reads_by_cause": by_cause(statistics, "reads") or None,
                "erases_by_cause": by_cause(statistics, "erases") or None,
                "gc_pauses": pauses.as_dict() if pauses else None,
                "energy": in_joules(energy._asdict()) if energy else None,
            }
        plain: dict[str, Any] = _plain(result | {"statistics": statistics})
        return plain

    def tables(self, statistics: dict[str, Any]) -> dict[str, Table]:
        """Tables for a terminal, by the title of the section; the last one has the device's counters."""
        figures = self.as_dict(statistics)
        operations = [{"operation": name} | row for name, row in figures["operations"].items()]
        times = [{"operation": row["operation"], "time": part} | durations(row, f"{part}_") for row in operations for part in PARTS]
        rates = {"requests/s": "iops", "MB/s": ("bytes_per_second", MB)}
        tables = {
            "Rates": Table.of(operations, {**same("operation", "requests"), "bytes": ("bytes", format_size)} | rates),
            "Latencies": Table.of(times, same("operation", "time", *SPREAD_HEADS)),
        }
        if figures["outstanding"]:
            tables["Outstanding level"] = outstanding(figures["outstanding"])
        shares: dict[str, float] = {}
        for part, busy in figures["busy_shares"].items():
            if isinstance(busy, list):
                shares |= {f"{part}s, mean of {len(busy)}": float(np.mean(busy)), f"{part}s, busiest": max(busy)}
            else:
                shares[part] = busy
        if shares:
            tables["Busy parts"] = Table(["part", "busy"], [[part, f"{100 * share:.1f} %"] for part, share in shares.items()])
        counters = [[key, value] for key, value in figures["statistics"].items() if isinstance(value, int | float)]
        return tables | _flash_tables(figures) | {"Counters of the device": Table(["device", "value"], counters)}


def busy_shares(statistics: dict[str, Any], duration: int) -> dict[str, Any]:
    """The share of a duration (ns) that each part of a device was busy, from its counters ``..._busy_ns`` (numbers or lists).

    Examples
    --------
    >>> busy_shares({"die_busy_ns": [5, 10], "link_busy_ns": 2}, 10)
    {'die': [0.5, 1.0], 'link': 0.2}
    """
    shares: dict[str, Any] = {}
    for name, value in statistics.items():
        if name.endswith("_busy_ns") and duration > 0:
            part = name.removesuffix("_busy_ns")
            shares[part] = [entry / duration for entry in value] if isinstance(value, list) else value / duration
    return shares


def _flash_tables(figures: dict[str, Any]) -> dict[str, Table]:
    """Tables of what only flash drives have: write amplification, pauses and energy."""
    tables = {}
    if figures.get("write_amplification"):
        notes = [BELOW_ONE] if figures["write_amplification"]["total"] < 1 else []
        notes += [NOT_COLLECTED] if figures["statistics"]["flash_erases"] == 0 else []
        amplification = [[cause, value] for cause, value in figures["write_amplification"].items() if value]
        tables["Write amplification"] = Table(["programs for", "write amplification"], amplification, digits=3, note="; ".join(notes))
    if figures.get("gc_pauses"):
        pauses = figures["gc_pauses"]
        row = {"GC pauses of dies": pauses["pauses"], "total": format_duration(pauses["total"])} | durations(pauses)
        tables["Pauses"] = Table.of([row], same(*row))
    if figures.get("energy") and figures["energy"]["total"]:
        joules = figures["energy"]
        rows = [[part, energy, f"{100 * energy / joules['total']:.1f} %"] for part, energy in joules.items()]
        mean, each = joules["total"] / (figures["duration"] / SECONDS), joules["total"] / figures["requests"] * (JOULES // MICROJOULES)
        note = f"{mean:.3f} W on average, {each:,.1f} uJ a request"
        tables["Energy"] = Table(["energy", "J", "share"], rows, digits=6, note=note)
    elif "energy" in figures:
        tables["Energy"] = Table(["energy"], [["no energy figures"]])
    return tables


def _plain(value: Any) -> Any:
    """Numbers of Python, with None for what is no number."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value

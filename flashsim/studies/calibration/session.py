"""One calibration: the device is measured, its kind decided, a preset fitted, and the simulator asked for what it shows."""

import dataclasses
import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flashsim.core.protocols import Progress
from flashsim.core.request import OPERATIONS, READ, WRITE
from flashsim.core.units import MB, format_duration
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.studies.bench.targets import Target
from flashsim.studies.calibration import hdd_fit, ssd_fit
from flashsim.studies.calibration.cells import cells
from flashsim.studies.calibration.fitting import UNTOLD, Estimate, Floats
from flashsim.studies.calibration.measure import Measured, measure
from flashsim.studies.calibration.rotating import Spinning, rotation_of
from flashsim.studies.calibration.ssd_fit import simulated, workload

#: Pages of a cell when the fitted preset is asked for what it shows.
_SHOWN = 4096
#: The share of the time that looks inside a rotating device take.
_INSIDE = 0.6


@dataclass(frozen=True)
class Calibration:
    """A device's cells, measured and as the fitted preset shows them.

    Parameters
    ----------
    measured, shown
        The cells, and their simulated times, ns.
    estimates
        What was fitted, with 95 % intervals.
    findings
        What the measurements say besides, a sentence each.
    """

    device: str
    size: int
    preset: Preset
    measured: list[Measured]
    shown: Floats
    estimates: list[Estimate]
    findings: list[str]
    seed: int

    def errors(self, held_out: bool) -> Floats:
        """Simulated over measured, less 1, of the cells that were held out, or of those fitted."""
        chosen = [one.cell.held_out == held_out for one in self.measured]
        return np.array([shown / one.time - 1 for one, shown in zip(self.measured, self.shown, strict=True)])[chosen]

    @property
    def noise(self) -> float:
        """The median, over the cells, of the spread between visits."""
        return float(np.median([one.noise for one in self.measured]))

    def text(self) -> str:
        fitted, held_out = (np.abs(self.errors(choice)) for choice in (False, True))
        comment = (
            f"Fitted to micro-benchmarks; the simulator differs from them by {np.median(fitted):.1%} (median of {len(fitted)} cells),\n"
            f"and by {np.median(held_out):.1%} (median of {len(held_out)}) where the fit did not see them. "
            f"Noise between visits: {self.noise:.1%}."
        )
        return preset_text(self.preset.name, self.preset.kind, self.preset.title, self.preset.parameters, self.preset.sources, comment)

    def as_dict(self) -> dict[str, Any]:
        rows = []
        for one, shown in zip(self.measured, self.shown.tolist(), strict=True):
            low, high = one.interval(self.seed)
            rows.append(
                {
                    "cell": one.cell.name,
                    "operation": OPERATIONS[one.cell.operation],
                    "sizes": list(one.cell.sizes),
                    "depth": one.cell.depth,
                    "sequential": one.cell.sequential,
                    "held_out": one.cell.held_out,
                    "time_ns": one.time,
                    "low_ns": low,
                    "high_ns": high,
                    "latency_ns": one.latency,
                    "bandwidth": one.bandwidth,
                    "noise": one.noise,
                    "simulated_ns": shown,
                    "error": shown / one.time - 1,
                }
            )
        errors = {
            name: {"median": float(np.median(np.abs(found))), "worst": float(np.max(np.abs(found)))}
            for name, found in (("fitted", self.errors(False)), ("held_out", self.errors(True)))
        }
        estimates = [vars(one) | {"relative": one.relative} for one in self.estimates]
        return {
            "device": self.device,
            "size": self.size,
            "kind": self.preset.kind,
            "cells": rows,
            "errors": errors,
            "noise": self.noise,
            "estimates": estimates,
            "findings": self.findings,
        }


def calibrate(target: Target, name: str, *, time: int, write: bool = False, seed: int = 0, progress: Progress | None = None) -> Calibration:
    """Measure a device for about `time` ns of its own time, and fit a preset that is called `name`.

    Parameters
    ----------
    write
        Whether writes are measured too (not of a disk that turns); what the device holds is lost.
    """
    spinning = rotation_of(target, seed)
    all_cells = cells(target.least, write)
    share = time * (1 - _INSIDE) if spinning.period else time
    reads = [cell for cell in all_cells if cell.operation == READ]
    writes = [cell for cell in all_cells if cell.operation == WRITE]
    # reads first: where random writes have put pages is not what a simulated drive that was loaded in order has
    measured = measure(target, reads, int(share / (1 + write)), seed, progress)
    if spinning.period:
        return _hdd(target, name, spinning, measured, int(time * _INSIDE), seed, progress)
    if writes:
        measured += measure(target, writes, int(share / 2), seed, progress)
    return _ssd(target, name, spinning, measured, seed, progress)


def _ssd(target: Target, name: str, spinning: Spinning, measured: list[Measured], seed: int, progress: Progress | None) -> Calibration:
    capacity = target.size // ssd_fit.PAGE * ssd_fit.PAGE
    fitted = ssd_fit.fit(measured, capacity, seed, progress)
    sources = _ssd_sources(fitted, target.name, any(one.cell.operation == WRITE for one in measured))
    preset = Preset(name, "ssd", f"{target.name}, calibrated", fitted.parameters, sources)
    findings = [spinning.finding]
    structure = fitted.structure
    findings.append(f"{structure.dies} dies side by side, {structure.queue_depth} commands at once")
    if fitted.alternatives:
        dies = [one.dies for one in (structure, *fitted.alternatives)]
        depths = [one.queue_depth for one in (structure, *fitted.alternatives)]
        findings.append(f"reads alone fit about as well with {min(dies)} to {max(dies)} dies and {min(depths)} to {max(depths)} commands")
    findings += _untold(fitted.estimates)
    return Calibration(target.name, target.size, preset, measured, _shown(preset, measured, seed), fitted.estimates, findings, seed)


def _hdd(
    target: Target, name: str, spinning: Spinning, measured: list[Measured], time: int, seed: int, progress: Progress | None
) -> Calibration:
    fitted = hdd_fit.fit(target, spinning, time, seed, progress)
    sources = {key: _dated(text, target.name) for key, text in fitted.sources.items()}
    preset = Preset(name, "hdd", f"{target.name}, calibrated", fitted.parameters, sources)
    findings = [spinning.finding, *fitted.findings, *_untold(fitted.estimates)]
    return Calibration(target.name, target.size, preset, measured, _shown(preset, measured, seed), fitted.estimates, findings, seed)


def _shown(preset: Preset, measured: Sequence[Measured], seed: int) -> Floats:
    device = Device(preset)
    device.load(0, device.capacity)
    area = device.capacity
    times = np.zeros(len(measured))
    for operation in (READ, WRITE):
        rows = [row for row, one in enumerate(measured) if one.cell.operation == operation]
        if rows:
            times[rows] = simulated(device, workload([measured[row] for row in rows], area, seed, _SHOWN))
    return times


def _untold(estimates: Sequence[Estimate]) -> list[str]:
    names = [one.name for one in estimates if one.high >= one.value * UNTOLD * 0.99]
    return [f"the measurements do not tell: {', '.join(names)}"] if names else []


def _dated(text: str, device: str) -> str:
    return f"{text} on {device}, {datetime.datetime.now(datetime.UTC).date().isoformat()}" if text.startswith("measured") else text


def _ssd_sources(fitted: ssd_fit.SsdFit, device: str, written: bool) -> dict[str, str]:
    measured = {one.name: _dated(f"measured ({shown_interval(one)})", device) for one in fitted.estimates}
    assumed = "assumed: cannot be told from outside in a few minutes"
    reads = {"read": "read die time", "link_read_rate": "link read rate", "read_latency": "read overhead"}
    writes = {"program": "write die time", "link_write_rate": "link write rate", "write_latency": "write overhead"}
    sources = dict.fromkeys(
        ("page_size", "pages_per_block", "blocks_per_plane", "planes_per_die", "dies_per_package", "packages_per_channel", "erase",
         "channel_rate", "gc_reserve"), assumed
    )  # fmt: skip
    sources["capacity"] = _dated("measured: what was used", device)
    sources["channels"] = sources["queue_depth"] = _dated("measured: best fit of bandwidth over depth", device)
    sources |= {key: measured[value] for key, value in reads.items()}
    sources |= {key: measured[value] if written else "assumed: as for reads; writes were not measured" for key, value in writes.items()}
    return sources


def shown_interval(one: Estimate) -> str:
    """An estimate with its 95 % interval, for people."""
    if "rate" in one.name:
        shown = [f"{value / MB:.4g} MB/s" for value in (one.value, one.low, one.high)]
    else:
        shown = [format_duration(round(value)) for value in (one.value, one.low, one.high)]
    return f"{one.name} {shown[0]}, 95 % interval {shown[1]} to {shown[2]}"


def preset_text(name: str, kind: str, title: str, parameters: Any, sources: Mapping[str, str], comments: str = "") -> str:
    """The file's text.

    Parameters
    ----------
    parameters
        A declared dataclass; every value with a source is written, the others keep their defaults.
    comments
        Lines that stand on top.

    Examples
    --------
    >>> from flashsim.device import presets
    >>> known = presets.load("toshiba-5400-320gb")
    >>> print(preset_text("mine", "hdd", "My disk", known.parameters, {"rotation": "measured"}).splitlines()[-1])
    rotation = { value = "11111111ns", source = "measured" }
    """
    lines = [f"# {line}" for line in comments.splitlines()]
    lines += [f"name = {_quoted(name)}", f"kind = {_quoted(kind)}", f"title = {_quoted(title)}", "", "[parameters]"]
    for field in dataclasses.fields(parameters):
        if field.name in sources:
            value = _written(getattr(parameters, field.name), field.metadata)
            lines.append(f"{field.name} = {{ value = {value}, source = {_quoted(sources[field.name])} }}")
    return "\n".join(lines) + "\n"


def _written(value: Any, declared: Mapping[str, Any]) -> str:
    if isinstance(value, tuple):
        return json.dumps([list(row) for row in value])
    if isinstance(value, bool):
        return "true" if value else "false"
    parse = declared["parse"]
    if parse is None:
        return _quoted(value) if isinstance(value, str) else str(value)
    unit = {"parse_duration": "ns", "parse_size": "B"}.get(parse.__name__, "B/s")
    return _quoted(f"{value}{unit}")


def _quoted(text: str) -> str:
    return json.dumps("".join(character if character.isprintable() else " " for character in text), ensure_ascii=False)

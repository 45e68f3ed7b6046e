"""What a benchmark says: tables, JSON, and one picture a micro-benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Picture

from experiments.bench.figures import Figure
from experiments.bench.uflip import Measured, shown_value
from experiments.presentation.plots import LINES, style, svg
from experiments.presentation.tables import Entry, Table
from flashsim.core.units import MB, MICROSECONDS, MILLISECONDS
from flashsim.device.cited import show


def figures_table(found: Sequence[Figure]) -> Table:
    """Nominal figures beside the cited ones."""
    rows: list[list[Entry]] = []
    for one in found:
        difference = None if one.difference is None else f"{100 * one.difference:+.1f} %"
        rows.append([one.name, show(one.name, one.measured), show(one.name, one.cited) if one.cited else None, difference])
    return Table(["figure", "measured", "cited", "difference"], rows, "Below the block layer, on a fresh drive")


def benchmark_tables(found: Sequence[Measured]) -> dict[str, Table]:
    """A table a micro-benchmark, by its name; times in ms."""
    tables = {}
    for name in dict.fromkeys(one.benchmark for one in found):
        own = [one for one in found if one.benchmark == name]
        header = ["pattern", own[0].parameter, "min ms", "mean ms", "max ms", "stddev ms", "p99 ms", "MB/s", "ignored"]
        rows: list[list[Entry]] = []
        for one in own:
            times = (one.minimum, one.mean, one.maximum, one.deviation, one.p99)
            numbers = [time / MILLISECONDS for time in times]
            rows.append([one.pattern, shown_value(one.unit, one.value), *numbers, one.bandwidth / MB, one.ignored])
        tables[name] = Table(header, rows, name, digits=3)
    return tables


def picture(found: Sequence[Measured]) -> str:
    """Mean response times of one micro-benchmark over its parameter, a line a pattern, as SVG."""
    with style():
        figure = Picture(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        for number, pattern in enumerate(dict.fromkeys(one.pattern for one in found)):
            own = [one for one in found if one.pattern == pattern]
            colour, marker = LINES[number % len(LINES)]
            means = [one.mean / MICROSECONDS for one in own]
            axes.plot([one.value for one in own], means, color=colour, marker=marker, markersize=4, label=pattern)
        values = sorted({one.value for one in found})
        if values[0] <= 0:
            axes.set_xscale("symlog", base=2, linthresh=max(1, min((value for value in values if value > 0), default=1)))
        elif len(values) > 1:
            axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(values[:: max(1, len(values) // 8)])
        axes.set_xticklabels([shown_value(found[0].unit, value) for value in values[:: max(1, len(values) // 8)]], fontsize=7)
        axes.minorticks_off()
        axes.set_xlabel(found[0].parameter)
        axes.set_ylabel("mean response time, us")
        axes.set_title(found[0].benchmark, fontsize=10)
        axes.legend(frameon=False, fontsize=8, loc="upper left")
        return svg(figure)


def write_folder(folder: Path, found: Sequence[Measured]) -> None:
    """Write a table (CSV) and a picture (SVG) a micro-benchmark."""
    for name, table in benchmark_tables(found).items():
        table.write_csv(folder / f"{name}.csv")
        (folder / f"{name}.svg").write_text(picture([one for one in found if one.benchmark == name]), encoding="utf-8")


def as_dict(device: str, state: str, nominal: Sequence[Figure], found: Sequence[Measured]) -> dict[str, Any]:
    """Everything, JSON-ready; times are ns and rates bytes a second."""
    keys = ("name", "measured", "cited", "source", "difference")
    return {
        "device": device,
        "state": state,
        "figures": [{key: getattr(one, key) for key in keys} for one in nominal],
        "runs": [one.as_dict() for one in found],
    }

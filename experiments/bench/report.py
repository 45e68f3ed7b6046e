"""What a benchmark says: tables, JSON, and a report with one picture a micro-benchmark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Drawing

from experiments.bench import aio_report
from experiments.bench.figures import Figure
from experiments.bench.uflip import Measured, shown_value
from experiments.presentation.plots import LINES, WIDTH, legend, style, svg
from experiments.presentation.report import Report
from experiments.presentation.section import Section
from experiments.presentation.tables import Entry, Table, captioned
from flashsim.core.units import MB, MICROSECONDS, MILLISECONDS
from flashsim.device.cited import show

#: More names below an axis would run into each other.
_MOST_TICKS = 8


def figures_table(found: Sequence[Figure]) -> Table:
    rows: list[list[Entry]] = []
    for one in found:
        difference = None if one.difference is None else f"{100 * one.difference:+.1f} %"
        rows.append([one.name, show(one.name, one.measured), show(one.name, one.cited) if one.cited else None, difference])
    return Table(["figure", "measured", "cited", "difference"], rows, "Below the block layer, on a fresh drive")


def benchmark_tables(found: Sequence[Measured], style: str = "uflip") -> dict[str, list[Table]]:
    return {name: STYLES[style].tables(own) for name, own in _by_benchmark(found).items()}


def _uflip_tables(own: Sequence[Measured]) -> list[Table]:
    header = ["pattern", own[0].parameter, "min ms", "mean ms", "max ms", "stddev ms", "p99 ms", "MB/s", "ignored"]
    rows: list[list[Entry]] = []
    for one in own:
        times = (one.minimum, one.mean, one.maximum, one.deviation, one.p99)
        numbers = [time / MILLISECONDS for time in times]
        rows.append([one.pattern, shown_value(one.unit, one.value), *numbers, one.bandwidth / MB, one.ignored])
    return [Table(header, rows, own[0].benchmark, digits=3)]


def picture(found: Sequence[Measured], style: str = "uflip") -> Drawing:
    return STYLES[style].picture(found)


def _uflip_picture(found: Sequence[Measured]) -> Drawing:
    with style():
        figure = Drawing(figsize=(WIDTH, 3.2), layout="constrained")
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
        places = values[:: -(-len(values) // _MOST_TICKS)]
        axes.set_xticks(places, [shown_value(found[0].unit, value) for value in places], fontsize=7)
        axes.tick_params(axis="x", which="minor", length=0)
        axes.set_xlabel(found[0].parameter)
        axes.set_ylabel("mean response time, us")
        legend(figure, axes, 6)
    return figure


def overview(found: Sequence[Measured]) -> Table:
    """For each micro-benchmark, how far mean times lie apart over its parameter: of the pattern that it matters most to."""
    rows: list[list[Entry]] = []
    for name, own in _by_benchmark(found).items():
        spreads = []
        for pattern in dict.fromkeys(one.pattern for one in own):
            ordered = sorted((one for one in own if one.pattern == pattern), key=lambda one: one.mean)
            spreads.append((ordered[-1].mean / ordered[0].mean, pattern, ordered[0], ordered[-1]))
        ratio, pattern, least, most = max(spreads, key=lambda spread: spread[0])
        ends = [part for one in (least, most) for part in (one.mean / MILLISECONDS, shown_value(one.unit, one.value))]
        rows.append([name, pattern, own[0].parameter, *ends, ratio])
    rows.sort(key=lambda row: -float(row[-1] or 0))
    header = ["micro-benchmark", "pattern", "parameter", "least mean ms", "at", "most mean ms", "at", "most / least"]
    return Table(header, rows, "overview", note="of each micro-benchmark the pattern whose mean times lie furthest apart")


@dataclass(frozen=True)
class Style:
    """How a set of micro-benchmarks is shown: its title, and what makes tables, a picture, and the table of what matters."""

    title: str
    tables: Callable[[Sequence[Measured]], list[Table]]
    picture: Callable[[Sequence[Measured]], Drawing]
    overview: Callable[[Sequence[Measured]], Table]


#: By the set's name.
STYLES = {
    "uflip": Style("uFLIP", _uflip_tables, _uflip_picture, overview),
    "aio": Style("AIOMicrobench", aio_report.tables, aio_report.picture, aio_report.overview),
}


def write_report(
    folder: Path,
    lead: str,
    device: str,
    nominal: Sequence[Figure],
    found: Sequence[Measured],
    origin: dict[str, Any],
    style: str = "uflip",
) -> None:
    """Fill a folder with ``report.html``, and a table (CSV) and a picture (SVG) a micro-benchmark, unless it has a single value."""
    figures = figures_table(nominal)
    tiles = []
    for one in nominal:
        beside = "" if one.difference is None else f" ({100 * one.difference:+.1f} %)"
        tiles.append((one.name.replace("_", " "), show(one.name, one.measured) + beside))
    sections = [Section("What matters", tables=[STYLES[style].overview(found)])] if found else []
    sections += [Section(figures.attrs["title"], tables=[captioned(figures, title="figures")])] if nominal else []
    tables = benchmark_tables(found, style)
    for name, own in _by_benchmark(found).items():
        drawn = {name: svg(picture(own, style))} if len({one.value for one in own}) > 1 else {}
        sections.append(Section(name.capitalize(), tables=tables[name], pictures=drawn))
    Report(f"{STYLES[style].title} on {device}", lead, tiles, sections, origin).write(folder)


def _by_benchmark(found: Sequence[Measured]) -> dict[str, list[Measured]]:
    return {name: [one for one in found if one.benchmark == name] for name in dict.fromkeys(one.benchmark for one in found)}


def as_dict(device: str, state: str, nominal: Sequence[Figure], found: Sequence[Measured]) -> dict[str, Any]:
    """Everything, JSON-ready; times are ns and rates bytes a second."""
    keys = ("name", "measured", "cited", "source", "difference")
    return {
        "device": device,
        "state": state,
        "figures": [{key: getattr(one, key) for key in keys} for one in nominal],
        "runs": [one.as_dict() for one in found],
    }

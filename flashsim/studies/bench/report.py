"""What a benchmark says: tables, and a report with one picture a micro-benchmark.

Of uFLIP response times over a parameter, a line a pattern; of AIOMicrobench bandwidth and latency over I/O size, a column or a line an
outstanding level (Shin et al., figure 2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Drawing
from matplotlib.scale import SymmetricalLogScale

from flashsim.core.units import MB, MICROSECONDS, MILLISECONDS, format_size
from flashsim.device.figures import show
from flashsim.studies.bench.figures import Figure
from flashsim.studies.bench.uflip import Measured, shown_value
from flashsim.studies.presentation.plots import BINARY, lines
from flashsim.studies.presentation.report import Report
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table, captioned, difference, same

#: More names below an axis would run into each other.
_MOST_TICKS = 8
#: A size is said to reach the maximum from so much of it on.
REACHED = 0.95


def figures_table(found: Sequence[Figure]) -> Table:
    """Nominal figures beside the cited ones."""
    rows = [
        [
            one.name,
            show(one.name, one.measured),
            show(one.name, one.cited) if one.cited else None,
            None if one.difference is None else difference(one.difference),
        ]
        for one in found
    ]
    return Table(["figure", "measured", "cited", "difference"], rows, "Below the block layer, on a fresh drive")


def benchmark_tables(found: Sequence[Measured], style: str = "uflip") -> dict[str, list[Table]]:
    """Tables of each micro-benchmark, by its name."""
    return {name: STYLES[style].tables(own) for name, own in _by_benchmark(found).items()}


def picture(found: Sequence[Measured], style: str = "uflip") -> Drawing:
    """One micro-benchmark."""
    return STYLES[style].picture(found)


def _uflip_tables(own: Sequence[Measured]) -> list[Table]:
    """One of a micro-benchmark; times in ms."""
    rows = [one.as_dict() | {"shown": shown_value(one.unit, one.value)} for one in own]
    times = {"min": "minimum", "mean": "mean", "max": "maximum", "stddev": "deviation", "p99": "p99"}
    columns = same("pattern") | {own[0].parameter: "shown"} | {f"{head} ms": (name, MILLISECONDS) for head, name in times.items()}
    return [Table.of(rows, columns | {"MB/s": ("bandwidth", MB)} | same("ignored"), title=own[0].benchmark, digits=3)]


def _uflip_picture(found: Sequence[Measured]) -> Drawing:
    """Mean response times over the parameter, a line a pattern."""
    series = {}
    for pattern in dict.fromkeys(one.pattern for one in found):
        own = [one for one in found if one.pattern == pattern]
        series[pattern] = [one.value for one in own], [one.mean / MICROSECONDS for one in own]
    values = sorted({one.value for one in found})
    scale: Any = BINARY if len(values) > 1 else "linear"
    if values[0] <= 0:
        least = min((value for value in values if value > 0), default=1)
        scale = SymmetricalLogScale(None, base=2, linthresh=max(1, least))
    drawn = lines(series, names=6, xscale=scale, yscale="log", xlabel=found[0].parameter, ylabel="mean response time, us")
    (axes,) = drawn.axes
    places = values[:: -(-len(values) // _MOST_TICKS)]
    axes.set_xticks(places, [shown_value(found[0].unit, value) for value in places], fontsize=7)
    axes.tick_params(axis="x", which="minor", length=0)
    return drawn


def _uflip_overview(found: Sequence[Measured]) -> Table:
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


def level(one: Measured) -> int:
    """The outstanding level of a run of AIOMicrobench."""
    return int(one.pattern)


def _levels(found: Sequence[Measured]) -> list[int]:
    return sorted({level(one) for one in found})


def _aio_tables(found: Sequence[Measured]) -> list[Table]:
    """Of reads or writes: MB/s and the mean latency of a request, a row an I/O size and a column an outstanding level."""
    levels, sizes = _levels(found), sorted({one.value for one in found})

    def matrix(title: str, unit: str, value: Callable[[Measured], float]) -> Table:
        values = {(one.value, level(one)): value(one) for one in found}
        rows = [[format_size(size), *(values[size, each] for each in levels)] for size in sizes]
        return Table(["I/O size", *map(str, levels)], rows, title, digits=1, note=f"{unit}; a column: so many requests at once")

    name = found[0].benchmark
    return [
        matrix(name, "MB/s", lambda one: one.bandwidth / MB),
        matrix(f"{name}-latency", "mean us of a request", lambda one: one.mean / MICROSECONDS),
    ]


def aio_picture(found: Sequence[Measured]) -> Drawing:
    """Bandwidth of reads or writes over I/O size, a line an outstanding level."""
    series = {}
    for each in _levels(found):
        own = [one for one in found if level(one) == each]
        series[str(each)] = [one.value for one in own], [one.bandwidth / MB for one in own]
    x = "I/O size; a line: so many requests at once"
    drawn = lines(series, names=7, xscale=BINARY, ylim=(0, None), xlabel=x, ylabel=f"{found[0].benchmark}, MB/s")
    (axes,), sizes = drawn.axes, sorted({one.value for one in found})
    axes.set_xticks(sizes, [format_size(size).replace(" ", "\n") for size in sizes], fontsize=7)
    axes.tick_params(axis="x", which="minor", length=0)
    return drawn


def _aio_overview(found: Sequence[Measured]) -> Table:
    """Of reads and writes: the most MB/s, what reaches it, and how many times the least it is."""
    ends = [_levels(found)[place] for place in (0, -1)]
    rows: list[list[Entry]] = []
    for name, own in _by_benchmark(found).items():
        most, least = (choose(own, key=lambda one: one.bandwidth) for choose in (max, min))
        sizes = [reaching(own, each) for each in ends]
        shown = [None if size is None else format_size(size) for size in sizes]
        place = f"{format_size(least.value)}, {least.pattern}"
        rows.append([name, most.bandwidth / MB, *shown, least.bandwidth / MB, place, most.bandwidth / least.bandwidth])
    heads = [f"{REACHED:.0%} of it from, {each} at once" for each in ends]
    return Table(["", "most MB/s", *heads, "least MB/s", "at size, level", "most / least"], rows, "overview")


def reaching(found: Sequence[Measured], outstanding: int, share: float = REACHED) -> int | None:
    """The least size that has a share of the highest bandwidth with so many requests at once, bytes; None if none has."""
    most = max(one.bandwidth for one in found)
    return min((one.value for one in found if level(one) == outstanding and one.bandwidth >= share * most), default=None)


@dataclass(frozen=True)
class Style:
    """How a set of micro-benchmarks is shown: its title, and what makes tables, a picture, and the table of what matters."""

    title: str
    tables: Callable[[Sequence[Measured]], list[Table]]
    picture: Callable[[Sequence[Measured]], Drawing]
    overview: Callable[[Sequence[Measured]], Table]


#: By the set's name.
STYLES = {
    "uflip": Style("uFLIP", _uflip_tables, _uflip_picture, _uflip_overview),
    "aio": Style("AIOMicrobench", _aio_tables, aio_picture, _aio_overview),
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
        beside = "" if one.difference is None else f" ({difference(one.difference)})"
        tiles.append((one.name.replace("_", " "), show(one.name, one.measured) + beside))
    sections = [Section("What matters", tables=[STYLES[style].overview(found)])] if found else []
    sections += [Section(figures.attrs["title"], tables=[captioned(figures, title="figures")])] if nominal else []
    for name, own in _by_benchmark(found).items():
        drawn = {name: picture(own, style)} if len({one.value for one in own}) > 1 else {}
        sections.append(Section(name.capitalize(), tables=STYLES[style].tables(own), pictures=drawn))
    Report(f"{STYLES[style].title} on {device}", lead, tiles, sections, origin).write(folder)


def _by_benchmark(found: Sequence[Measured]) -> dict[str, list[Measured]]:
    return {name: [one for one in found if one.benchmark == name] for name in dict.fromkeys(one.benchmark for one in found)}

"""What AIOMicrobench shows: bandwidth and latency over I/O size, a column or a line an outstanding level (Shin et al., figure 2)."""

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure as Drawing

from experiments.bench.uflip import Measured
from experiments.presentation.plots import LINES, WIDTH, legend, style
from experiments.presentation.tables import Entry, Table
from flashsim.core.units import MB, MICROSECONDS, format_size

#: A size is said to reach the maximum from so much of it on.
REACHED = 0.95


def tables(found: Sequence[Measured]) -> list[Table]:
    """Of reads or writes: MB/s and the mean latency of a request, a row an I/O size and a column an outstanding level."""
    name = found[0].benchmark
    return [
        _matrix(found, name, "MB/s", lambda one: one.bandwidth / MB),
        _matrix(found, f"{name}-latency", "mean us of a request", lambda one: one.mean / MICROSECONDS),
    ]


def _matrix(found: Sequence[Measured], title: str, unit: str, value: Callable[[Measured], float]) -> Table:
    levels = sorted({level(one) for one in found})
    told = {(one.value, level(one)): value(one) for one in found}
    rows: list[list[Entry]] = [[format_size(size), *(told[size, each] for each in levels)] for size in sorted({one.value for one in found})]
    return Table(["I/O size", *map(str, levels)], rows, title, digits=1, note=f"{unit}; a column: so many requests at once")


def level(one: Measured) -> int:
    return int(one.pattern)


def picture(found: Sequence[Measured]) -> Drawing:
    """Bandwidth of reads or writes over I/O size, a line an outstanding level."""
    with style():
        figure = Drawing(figsize=(WIDTH, 3.2), layout="constrained")
        axes = figure.subplots()
        for number, each in enumerate(sorted({level(one) for one in found})):
            own = [one for one in found if level(one) == each]
            colour, marker = LINES[number % len(LINES)]
            line = "-" if number < len(LINES) else "--"
            bandwidth = [one.bandwidth / MB for one in own]
            axes.plot([one.value for one in own], bandwidth, line, color=colour, marker=marker, markersize=4, label=str(each))
        sizes = sorted({one.value for one in found})
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [format_size(size).replace(" ", "\n") for size in sizes], fontsize=7)
        axes.tick_params(axis="x", which="minor", length=0)
        axes.set_ylim(0)
        axes.set_xlabel("I/O size; a line: so many requests at once")
        axes.set_ylabel(f"{found[0].benchmark}, MB/s")
        legend(figure, axes, 7)
    return figure


def overview(found: Sequence[Measured]) -> Table:
    """Of reads and writes: the most MB/s, what reaches it, and how many times the least it is."""
    levels = sorted({level(one) for one in found})
    rows: list[list[Entry]] = []
    for name in dict.fromkeys(one.benchmark for one in found):
        own = [one for one in found if one.benchmark == name]
        most, least = (choose(own, key=lambda one: one.bandwidth) for choose in (max, min))
        reached = [reaching(own, each) for each in (levels[0], levels[-1])]
        told = [None if size is None else format_size(size) for size in reached]
        place = f"{format_size(least.value)}, {least.pattern}"
        rows.append([name, most.bandwidth / MB, *told, least.bandwidth / MB, place, most.bandwidth / least.bandwidth])
    ends = [f"{REACHED:.0%} of it from, {each} at once" for each in (levels[0], levels[-1])]
    return Table(["", "most MB/s", *ends, "least MB/s", "at size, level", "most / least"], rows, "overview")


def reaching(found: Sequence[Measured], outstanding: int, share: float = REACHED) -> int | None:
    """The least size that has a share of the highest bandwidth with so many requests at once, bytes; None if none has."""
    most = max(one.bandwidth for one in found)
    return min((one.value for one in found if level(one) == outstanding and one.bandwidth >= share * most), default=None)

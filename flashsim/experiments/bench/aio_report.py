"""Tables and pictures of AIOMicrobench: bandwidth and latency over I/O size, a column or a line an outstanding level.

The picture is that of figure 2 of Shin et al.
"""

import pandas as pd
from matplotlib.figure import Figure as Drawing

from flashsim.core.units import MB, MICROSECONDS, format_size
from flashsim.experiments.presentation import plots
from flashsim.experiments.presentation.tables import Entry, Table

#: A size is said to reach the maximum from so much of it on.
REACHED = 0.95


def at_levels(runs: pd.DataFrame, column: str = "bandwidth") -> pd.DataFrame:
    """A column of runs of AIOMicrobench, a row an I/O size (bytes) and a column an outstanding level."""
    return runs.assign(level=runs["pattern"].astype(int)).pivot(index="value", columns="level", values=column)


def tables_of(runs: pd.DataFrame) -> list[Table]:
    """Tables of reads or writes: MB/s and the mean latency of a request, a row an I/O size and a column an outstanding level."""
    name, tables = str(runs["benchmark"].iloc[0]), []
    for title, column, unit, scale in ((name, "bandwidth", "MB/s", MB), (f"{name}-latency", "mean", "mean us of a request", MICROSECONDS)):
        values = at_levels(runs, column) / scale
        rows = [[format_size(size), *row] for size, *row in values.itertuples(name=None)]
        tables.append(Table(["I/O size", *map(str, values)], rows, title, digits=1, note=f"{unit}; a column: so many requests at once"))
    return tables


def picture_of(runs: pd.DataFrame) -> Drawing:
    """Bandwidth of reads or writes over I/O size, one line per queue depth."""
    rates = at_levels(runs) / MB
    series = {f"queue depth {level}": (rates[level].dropna().index, rates[level].dropna()) for level in rates}
    figure = plots.lines(
        series, xscale=plots.BINARY, ylim=(0, None), xlabel="I/O size", ylabel=f"bandwidth of {runs['benchmark'].iloc[0]}s (MB/s)"
    )
    plots.name_ticks(figure, {size: format_size(size).replace(" ", "\n") for size in rates.index})
    return figure


def overview(runs: pd.DataFrame) -> Table:
    """Overview of reads and writes: the most MB/s, what reaches it, and its ratio to the least."""
    levels = runs["pattern"].astype(int)
    ends = [levels.min(), levels.max()]
    rows: list[list[Entry]] = []
    for name, own in runs.groupby("benchmark", sort=False):
        most, least = own["bandwidth"].max(), own["bandwidth"].min()
        sizes = [reaching(own, each) for each in ends]
        texts = [None if size is None else format_size(size) for size in sizes]
        size, level = own[["value", "pattern"]].iloc[int(own["bandwidth"].argmin())]
        rows.append([str(name), most / MB, *texts, least / MB, f"{format_size(size)}, {level}", most / least])
    heads = [f"{REACHED:.0%} of it from, {each} at once" for each in ends]
    return Table(["", "most MB/s", *heads, "least MB/s", "at size, level", "most / least"], rows, "overview")


def reaching(runs: pd.DataFrame, outstanding: int) -> int | None:
    """The least size that has nearly (`REACHED`) the highest bandwidth with `outstanding` requests at once, bytes; None if none has."""
    fast = runs[(runs["pattern"] == str(outstanding)) & (runs["bandwidth"] >= REACHED * runs["bandwidth"].max())]
    return int(fast["value"].min()) if len(fast) else None

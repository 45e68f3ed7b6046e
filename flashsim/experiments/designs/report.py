"""Results of designs as tables, pictures over virtual time and a page."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.units import SECONDS
from flashsim.experiments.designs.results import DesignResult
from flashsim.experiments.designs.session import DesignRuns
from flashsim.experiments.presentation.plots import LINES, MARKED, STROKES, WIDTH, legend, panels, stroke
from flashsim.experiments.presentation.tables import Entry, Table, difference, percent, same

EXPLAINED = (
    "Rates and shares are those of the last part of the time, from an empty memory and an empty SSD on. SSD %: of what memory missed. "
    "Dirty: frames whose page is newer than on disk. MB/s: read from and written to the disk and the SSD, with what the cleaner moves."
)
WORN = (
    "Bytes of flash pages that the SSD programmed, those that its garbage collection moved among them, over the last part of the time. "
    "Years: until all blocks have been erased as often as they last, at that pace day and night, with the blocks of the whole drive."
)
BY_FORMULA = (
    "By formula: transactions a second over the last fifth of the time, from the ages of pages and mean value analysis, and the share of "
    "their time that devices are busy. It rests on no run, and knows no read expansion. Error: of the formula."
)
#: Markers of a line, which distinguish it without its colour.
_MARKS = 8
#: Lines of a picture, of which no two look alike.
_MOST_LINES = 12
_UNITS = ((3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"))


def best_in_words(results: DesignRuns) -> str:
    """The design with the most transactions a second, beside the first without an SSD; empty where there is one run."""
    whole = [(row, run) for row, run in zip(results.rows(), results.runs, strict=True) if run.without is None]
    base = next((row for row, run in whole if not run.system.ssd), None)
    best = max((row for row, _ in whole), key=lambda row: row["transactions_s"], default=None)
    if best is None or base is None or best is base or not base["transactions_s"]:
        return ""
    times = best["transactions_s"] / base["transactions_s"]
    rate = f"{best['transactions_s']:,.0f} transactions per second"
    return f"{best['design']} is fastest with {rate}, {times:.2f} times as many as without an SSD."


def runs_table(results: DesignRuns) -> Table:
    rows = results.rows()
    base = next((number for number, each in enumerate(results.runs) if each.without is None and not each.system.ssd), 0)
    metric, first = next((row["metric"] for row in rows if "metric" in row), "metric"), rows[base]["transactions_s"]
    columns = same("design", "without") | {"transactions/s": "transactions_s", metric: "metric_value"}
    columns |= ({f"over {results.runs[base].name}": ("transactions_s", first)} if first else {}) | {"over whole": "over_whole"}
    shares = {
        "memory": "memory_hit_ratio",
        "SSD": "ssd_hit_ratio",
        "used": "used_share",
        "dirty": "dirty_share",
        "invalid": "invalid_share",
    }
    columns |= {f"{head} %": (name, percent) for head, name in shares.items()}
    columns |= {"disk read MB/s": "disk_read_mb_s", "disk written": "disk_written_mb_s"}
    return Table.of(rows, columns | {"SSD read": "ssd_read_mb_s", "SSD written": "ssd_written_mb_s"})


def figures_table(results: DesignRuns) -> Table | None:
    """The benchmark's figures, a row a run that came to its end; None where none did, or the benchmark has no figures."""
    runs = [each for each in results.runs if each.figures]
    rows = [{"design": each.name} | dict(each.figures) for each in runs]
    return Table.of(rows, same(*rows[0]), title="figures", digits=1) if rows else None


def kinds_table(results: DesignRuns) -> Table | None:
    """A row a run, a column a kind of transactions; None where there is one kind."""
    kinds = list(results.runs[0].by_kind)
    rows: list[list[Entry]] = [[each.name, *(row["transactions_s"] for row in each.kinds())] for each in results.runs]
    return Table(["transactions/s", *kinds], rows, "kinds") if kinds else None


def traffic_table(results: DesignRuns) -> Table:
    """A row a run, device and cause, of those for which pages moved."""
    rows = [row | {"design": each.name} for each in results.runs for row in each.traffic() if row["pages"]]
    rates = {"is": "how", "pages/s": "pages_s", "MB/s": "mb_s", "pages in all": "pages"}
    return Table.of(rows, same("design", "device", "cause") | rates, title="traffic")


def wear_table(results: DesignRuns) -> Table | None:
    """A row a run whose SSD is a simulated flash drive; None if none is."""
    rows = [row | {"design": each.name} for each, row in zip(results.runs, results.rows(), strict=True) if each.is_worn]
    columns = {"design": "design", "written MB/s": "ssd_written_mb_s", "programmed MB/s": "ssd_programmed_mb_s"}
    columns |= {"B a transaction": "ssd_programmed_per_transaction", "write amplification": "ssd_write_amplification"}
    return Table.of(rows, columns | {"erases/s": "ssd_erases_s", "years": "ssd_years"}, title="wear") if rows else None


def formula_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = same("design", "without") | {"transactions/s": "transactions_s", "formula": "formula_throughput"}
    columns |= {"error": ("error", difference), "disk busy %": ("formula_disk_busy", percent)}
    return Table.of(rows, columns | {"SSD busy %": ("formula_ssd_busy", percent)}, title="by formula")


def ramp_up(results: DesignRuns) -> Figure:
    """Transactions a second over time, a line a run; below, the SSD's hit ratio and its dirty share (Do, 2012, figures 3.6 and 3.8).

    Values are means of three intervals, as in the thesis (3.4.2.1).
    """
    curves = [("transactions_s", "transactions/s", 1)]
    if any(each.system.ssd for each in results.runs):
        curves += [("ssd_hit_ratio", "SSD hits (% of misses)", 100), ("dirty_share", "dirty (% of SSD)", 100)]
    unit, axis = _time_axis(results)
    runs = _lines(results)
    columns = max(1, min(4, int(WIDTH / (0.5 + 0.065 * max(len(each.name) for each in runs)))))
    height = 0.5 + 0.17 * -(-len(runs) // columns) + 1.9 * len(curves)
    with panels(height, len(curves), sharex=True, squeeze=False) as (figure, grid):
        every = grid[:, 0]
        for number, each in enumerate(runs):
            series = pd.DataFrame(each.series())
            smooth = series.rolling(3, center=True, min_periods=1).mean()
            first = len(series) * (number % len(LINES)) // (len(LINES) * _MARKS)
            look = stroke(number) | MARKED | {"linewidth": 1.2, "label": each.name}
            for axes, (name, _, factor) in zip(every, curves, strict=True):
                if each.system.ssd or name == "transactions_s":
                    axes.plot(series["seconds"] / unit, factor * smooth[name], markevery=(first, -(-len(series) // _MARKS)), **look)
        for axes, (_, label, _) in zip(every, curves, strict=True):
            axes.set(ylabel=label, ylim=(0, None))
        every[-1].set_xlabel(axis)
        legend(figure, every[0], columns)
    return figure


def traffic(results: DesignRuns) -> Figure:
    """Megabytes a second to and from the disk and the SSD over time, a row a run, on one scale a device (Do, 2012, figure 3.9)."""
    unit, axis = _time_axis(results)
    runs, devices = _lines(results), ("disk", "ssd") if any(each.system.ssd for each in results.runs) else ("disk",)
    with panels(0.8 + 1.6 * len(runs), len(runs), len(devices), squeeze=False, sharex=True, sharey="col") as (figure, rows):
        for row, each in zip(rows, runs, strict=True):
            series = each.series()
            for axes, device in zip(row, devices, strict=True):
                axes.set_title(f"{each.name}: {device if device == 'disk' else 'SSD' if each.system.ssd else 'no SSD'}", fontsize=9)
                for (colour, _), how, dashes in zip(LINES, ("read", "written"), STROKES, strict=False):
                    if device == "disk" or each.system.ssd:
                        seconds = [second / unit for second in series["seconds"]]
                        axes.plot(seconds, series[f"{device}_{how}_mb_s"], color=colour, linestyle=dashes, linewidth=1.2, label=how)
        for axes in rows[-1]:  # once all are drawn: there is one scale for all of a device
            axes.set(ylim=(0, None), xlabel=axis)
        figure.supylabel("bandwidth (MB/s)", fontsize=9)
        legend(figure, rows[0, 0])
    return figure


def parts(results: DesignRuns) -> Figure | None:
    """Throughput of designs without a part of the SSD manager, over that with all parts; None if none was left out."""
    rows = zip(results.runs, results.rows(), strict=True)
    shares = [(each.name, row["over_whole"]) for each, row in rows if row["over_whole"] is not None]
    if not shares:
        return None
    with panels(0.8 + 0.2 * len(shares)) as (figure, axes):
        axes.barh([name.replace("$", r"\$") for name, _ in shares], [over for _, over in shares], color=LINES[0][0])
        axes.axvline(1, color="#555555", linewidth=0.8)
        axes.margins(y=0.01)
        axes.invert_yaxis()
        axes.set_xlabel("transactions/s, relative to the complete design")
    return figure


def _lines(results: DesignRuns) -> Sequence[DesignResult]:
    return results.runs if len(results.runs) <= _MOST_LINES else [each for each in results.runs if each.without is None]


def _time_axis(results: DesignRuns) -> tuple[float, str]:
    seconds = results.study.time / SECONDS
    unit, name = next(((unit, name) for unit, name in _UNITS if seconds >= 2 * unit), _UNITS[-1])
    return unit, f"virtual time ({name})"

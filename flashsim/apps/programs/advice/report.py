"""Drives under a load as a table, pictures and a page: latency over load, wear over years, and hits over memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.programs.advice.session import Advice
from flashsim.core.units import MICROSECONDS, MILLISECONDS, format_duration, format_size
from flashsim.studies.presentation.plots import MARKED, legend, lines, panels, stroke
from flashsim.studies.presentation.report import Report, Section
from flashsim.studies.presentation.tables import Table, same
from flashsim.studies.presentation.trace_report import served_share
from traces.file.page_trace import PAGE_SIZE
from traces.summary.miss_curve import MissCurve

EXPLAINED = (
    "Latencies are of all requests as recorded. Load: the greatest multiple of the recorded one at which the bound holds and the drive "
    "keeps up, however long. Write amplification and years: as the trace is repeated, day and night. 'not yet': not settled after all "
    "repetitions; in the long run a load may be less. W: mean power."
)
_TIMES = ("p50", "p99", "p99.9", "max")
#: Drives of a picture; no more lines can be told apart.
_MOST_LINES = 12
#: Share of all hits that a memory worth its price serves.
_WORTH = 0.9


def memory_frame(curve: MissCurve) -> pd.DataFrame:
    """A row a size, which doubles from row to row: bytes of memory, and the share of references that it serves."""
    return pd.DataFrame({"memory": curve.doubling() * PAGE_SIZE, "served": 1 - curve.ratio(curve.doubling())})


def memory_sentence(curve: MissCurve) -> str:
    """Memory that is worth its price."""
    if not (frames := curve.quantile(_WORTH)):
        return "No page is referenced twice by the trace's requests: more memory saves nothing."
    served, most = (1 - float(each) for each in curve.ratio([frames, curve.sizes[-1]]))
    memory = f"{format_size(frames * PAGE_SIZE)} of memory in front of the drive would serve {served:.0%}"
    references = f"what the trace's requests refer to on pages of {format_size(PAGE_SIZE)}"
    return f"{memory} of {references}, and any amount {most:.0%} (LRU)."


def advice_table(advice: Advice) -> Table:
    """A row a drive."""
    rows = []
    for row in advice.rows():
        load = "any" if row.get("holds") and row["greatest_load"] is None else f"{row['greatest_load']:.3g}" if "holds" in row else None
        load = f"{load} not yet" if load and row["greatest_load"] != 0 and not row["load_settled"] else load
        amplification = row.get("write_amplification")
        settled = None if amplification is None else f"{amplification:.2f}" + ("" if row["settled"] else " not yet")
        times = {name: format_duration(round(MICROSECONDS * row[f"{name}_us"])) for name in _TIMES if "holds" in row}
        rows.append(row | times | {"load": load, "amplification": settled})
    columns: dict[str, Any] = {"device": "device", "50 %": "p50", "99 %": "p99", "99.9 %": "p99.9", "worst": "max", "load": "load"}
    columns |= {"write amplification": "amplification", **same("years"), "W": "watts", "decides": "decides", "problem": "problem"}
    return Table.of(rows, columns, title="drives")


def loads_frame(advice: Advice) -> pd.DataFrame:
    """A row a drive and load that was tried: latencies (ns), and the run's time (ns)."""
    return pd.DataFrame([{"device": each.name} | tried for each in advice.drives if each.load for tried in each.load["tried"]])


def latency_over_load(advice: Advice) -> Figure:
    """The bounded latency over the load, a line a drive, and the bound."""
    bound = advice.study.bound
    with panels(3.6) as (figure, axes):
        for number, each in enumerate([each for each in advice.drives if each.load][:_MOST_LINES]):
            tried = [point for point in (each.load or {})["tried"] if math.isfinite(point["speed"])]
            speeds, times = [point["speed"] for point in tried], [point[bound.latency] / MILLISECONDS for point in tried]
            axes.plot(speeds, np.maximum(times, 1e-6), label=each.name, linewidth=1.2, **stroke(number) | MARKED)
        axes.axhline(bound.most / MILLISECONDS, color="#999999", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="load, multiples of the recorded one", ylabel=f"{bound.latency}, ms")
        legend(figure, axes, 3)
    return figure


def wear_over_years(advice: Advice) -> Figure | None:
    """The share of rated erases that is used up over the years, a line a drive whose life is known; None if none is."""
    known = [each for each in advice.drives if each.years]
    if not known:
        return None
    horizon = np.linspace(0, 2 * advice.study.years, 50)
    series = {each.name: (horizon, np.minimum(100 * horizon / (each.years or 1), 100)) for each in known[:_MOST_LINES]}
    return lines(series, names=3, line={"marker": ""}, xlabel="years at the recorded load", ylabel="rated erases used, %", ylim=(0, 102))


def write_report(folder: Path, advice: Advice, memory: MissCurve, origin: Mapping[str, Any]) -> None:
    """Fill a folder with ``report.html``, tables (CSV) and pictures (SVG)."""
    loads_frame(advice).to_csv(folder / "loads.csv", index=False)
    hits = memory_frame(memory)
    hits.to_csv(folder / "memory.csv", index=False)
    wear = wear_over_years(advice)
    sections = [
        Section("Drives", EXPLAINED, [advice_table(advice)]),
        Section("Latency over load", f"Bound: {advice.study.bound}.", pictures={"latency_over_load": latency_over_load(advice)}),
        Section("Wear over years", "", pictures={"wear_over_years": wear} if wear else {}),
        Section("Hits over memory", memory_sentence(memory), pictures={"hits_over_memory": served_share(hits)}),
    ]
    best = advice.drives[0]
    figures = [("requests", f"{advice.what.requests:,}"), ("drives", f"{len(advice.drives)}"), ("bound", str(advice.study.bound))]
    if not best.problem and best.carries:
        figures += [("carries most", best.name), ("load", "any" if math.isinf(best.carries) else f"{best.carries:.3g}")]
    Report(f"Drives for {advice.study.name}", advice.verdict(), figures, sections, origin).write(folder)

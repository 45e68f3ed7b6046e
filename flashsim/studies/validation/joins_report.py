"""The table, the picture and the page of a joins' result: formula, simulation and real device side by side, phase by phase."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from flashsim.core.units import MILLISECONDS_A_SECOND, format_size
from flashsim.studies.presentation.plots import LINES, legend, panels
from flashsim.studies.presentation.report import Report, Section
from flashsim.studies.presentation.tables import Entry, Table, captioned, difference, same
from flashsim.studies.validation.joins import AGREE, JoinsValidation, Witnesses, engines_differ, seconds

MEANING = (
    (
        "formula",
        "Haas, Carey and Livny: seeks, requests and pages, as the formula counts them, times the seek, latency and transfer of the device. "
        "Of requests that N-Hash hands over together one waits the latency.",
    ),
    ("simulated", "the virtual time in which the simulated device serves the very requests of the join; CPU work takes no time."),
    (
        "executed",
        "the join on the real file, past the page cache: the sum of the times of its requests, each from submission to completion. Tuples "
        "are copied and joined in between, which is not counted, but leaves caches cold and lets the device rest. Where requests overlap, "
        "as those of N-Hash and ParaHash do, the time in which any of them is under way.",
    ),
    (
        "replayed",
        "the same requests again, one right after another, by an engine: builtin, of our own, or fio, a program by others. Requests that "
        "overlap come when those that they waited for have completed, after the same pauses, by builtin alone.",
    ),
)
WHY = (
    "All times are of I/O alone. The formula prices a request with one latency and one rate whatever its size, and a "
    "seek by its mean; the simulation has no operating system, whose share of a small request is part of the calibrated latency, and no "
    "other users of the disk; a join's requests come after pauses, as a calibration's may, a replay's do not; writes of a real file may "
    "meet the file system's journal and first-time allocation."
)
_HATCHES = ("", "//", "..", "xx", "\\\\")


def table(result: JoinsValidation) -> Table:
    """A row a phase, and one for the whole of a join of several; ms, and relative differences."""
    frame = seconds(result.joins)
    names = list(frame.columns[3:])
    phases = frame[(frame["phase"] != "total") | (frame.groupby("algorithm")["phase"].transform("size") > 2)]
    columns = same("phase", "requests") | {f"{name} ms": (name, lambda time: MILLISECONDS_A_SECOND * time) for name in names}
    columns = {"join": "algorithm"} | columns | {f"{name} / executed": f"{name} / executed" for name in ("formula", "simulated")}
    records = phases.to_dict("records")
    remarks = {
        one.algorithm: dict(zip(one.phases, one.remarks, strict=False)) | {"total": ", ".join(dict.fromkeys(filter(None, one.remarks)))}
        for one in result.joins
    }
    for row in records:
        row |= {f"{name} / executed": _differs(row[name], row["executed"]) for name in ("formula", "simulated")}
        row["remark"] = remarks[row["algorithm"]].get(row["phase"]) or None
        row["formula / executed"] = None if row["remark"] else row["formula / executed"]
    return Table.of(records, columns | (same("remark") if any(row["remark"] for row in records) else {}), digits=1)


def noise_table(result: JoinsValidation) -> Table:
    """The spread of repeats, if there are several, and the difference of engines, if there are two."""
    noisy, two = result.setting.repeats > 1, len(result.engines) > 1
    columns = [f"{name}: noise" for name in result.joins[0].noise()] if noisy else []
    rows: list[list[Entry]] = []
    for name, joins in ({one.algorithm: [one] for one in result.joins} | {"all": result.joins}).items():
        noise = [f"{value:.1%}" for value in joins[0].noise().values()] if name != "all" else [""] * len(columns)
        differs = engines_differ(joins)
        agreement = None if differs is None else f"{differs:.1%}{'' if differs <= AGREE else ' (more than 15 %)'}"
        rows.append([name, format_size(sum(one.bytes for one in joins)), *(noise if noisy else []), *([agreement] if two else [])])
    note = f"noise: how far the totals of {result.setting.repeats} repeats lie apart; of each request the shortest time counts"
    return Table(["join", "bytes moved", *columns, *(["engines differ by"] if two else [])], rows, note=note if noisy else "")


def conditions(result: JoinsValidation) -> str:
    sides = ", ".join(f"{file.name} {len(file.relation):,} rows on {file.pages:,} pages" for file in result.files)
    disk = result.disk
    write = disk.page_write_ms or disk.page_transfer_ms
    return (
        f"{result.device} beside {result.preset.name} ({result.preset.title}): {sides} of {result.files[0].layout.page_title}; memory "
        f"{result.setting.memory:,} pages. The formula takes a seek of {disk.seek_ms:.4g} ms, a latency of {disk.latency_ms:.4g} ms and "
        f"{disk.page_transfer_ms:.4g} ms a page read, {write:.4g} ms written."
    )


def picture(result: JoinsValidation) -> Figure:
    """Bars of every witness, a group a join; the phases stand on top of each other."""
    names = list(result.joins[0].columns())
    with panels(3.6) as (figure, axes):
        width = 0.8 / len(names)
        for number, name in enumerate(names):
            colour = LINES[number % len(LINES)][0]
            for group, one in enumerate(result.joins):
                _stack(axes, group + (number - (len(names) - 1) / 2) * width, 0.9 * width, colour, one, name)
            axes.bar([0], [0], color=colour, label=name)
        axes.set_xticks(np.arange(len(result.joins)), [f"{one.algorithm}\n({', '.join(one.phases)})" for one in result.joins])
        axes.set_ylabel("I/O, ms")
        legend(figure, axes, 3)
    return figure


def _stack(axes: Any, place: float, width: float, colour: str, one: Witnesses, name: str) -> None:
    times, bottom = one.columns()[name], 0.0
    for phase, time in enumerate(times[:-1] if times else []):
        look = {"color": colour, "hatch": _HATCHES[phase % len(_HATCHES)], "edgecolor": "white", "linewidth": 0.5}
        axes.bar(place, MILLISECONDS_A_SECOND * time, width, bottom=bottom, **look)
        bottom += MILLISECONDS_A_SECOND * time


def write_report(folder: Path, result: JoinsValidation, origin: dict[str, Any]) -> None:
    """Fill a folder with ``report.html``, the tables (CSV) and the picture (SVG)."""
    pictures = {"joins": picture(result)}
    phases, trust = captioned(table(result), title="joins"), captioned(noise_table(result), title="noise")
    sections = [
        Section("I/O of each join", "Phases are stacked from the bottom, hatched from the second on.", pictures=pictures),
        Section("Phase by phase", tables=[phases]),
        Section("How far to trust the real times", tables=[trust]),
        Section("What the numbers mean", WHY, terms=MEANING),
    ]
    title = "Four joins by formula, simulation and real device"
    Report(title, conditions(result), _figures(result), sections, origin).write(folder)


def _figures(result: JoinsValidation) -> list[tuple[str, str]]:
    totals = seconds(result.joins)
    totals = totals[totals["phase"] == "total"]
    figures = []
    remarked = {one.algorithm for one in result.joins if any(one.remarks)}  # of a bound, or a part, there is no ratio
    for name in ("simulated", "formula"):
        every = zip(totals["algorithm"], totals[name], totals["executed"], strict=True)
        rows = [row for row in every if name == "simulated" or row[0] not in remarked]
        figures += [(f"{join}: {name} / executed", f"{100 * (time / real - 1):+.0f} %") for join, time, real in rows if time is not None]
    return figures


def _differs(value: float | None, reference: float | None) -> str | None:
    return None if value is None or not reference else difference(value / reference - 1)

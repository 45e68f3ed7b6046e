"""The table, the picture and the page of a joins' validation: formula, simulation and real device side by side, phase by phase."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from flashsim.core.units import MILLISECONDS_A_SECOND, format_size
from flashsim.studies.presentation.plots import LINES, legend, panels
from flashsim.studies.presentation.report import Report
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table, captioned, difference
from flashsim.studies.validation.joins import AGREE, JoinsValidated, Witnesses, engines_differ

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
    "All times are of I/O alone. Where they differ: the formula prices a request with one latency and one rate whatever its size, and a "
    "seek by its mean; the simulation has no operating system, whose share of a small request is part of the calibrated latency, and no "
    "other users of the disk; a join's requests come after pauses, as a calibration's may, a replay's do not; writes of a real file may "
    "meet the file system's journal and first-time allocation."
)
_HATCHES = ("", "//", "..", "xx", "\\\\")


def table(done: JoinsValidated) -> Table:
    """A row a phase, and one for the whole join; ms, and relative differences."""
    names = list(done.joins[0].columns())
    rows: list[list[Entry]] = []
    for one in done.joins:
        columns = one.columns()
        phases = [*zip(one.phases, one.requests, strict=True)]
        phases.append(("total", sum(one.requests)))
        for number, (phase, requests) in enumerate(phases):
            if phase == "total" and len(one.phases) == 1:
                break
            times = {name: column[number] if column else None for name, column in columns.items()}
            shown: list[Entry] = [None if time is None else MILLISECONDS_A_SECOND * time for time in times.values()]
            real = times["executed"]
            rows.append([one.algorithm, phase, requests, *shown, _differs(times["formula"], real), _differs(times["simulated"], real)])
    header = ["join", "phase", "requests", *(f"{name} ms" for name in names), "formula / executed", "simulated / executed"]
    return Table(header, rows, digits=1)


def noise_table(done: JoinsValidated) -> Table:
    """How far repeats lie apart, if there are several, and the engines, if there are two."""
    columns = [f"{name}: noise" for name in done.joins[0].noise()] if done.setting.repeats > 1 else []
    engines = ["engines differ by"] if len(done.engines) > 1 else []
    rows: list[list[Entry]] = []
    for one in done.joins:
        noise = [f"{value:.1%}" for value in one.noise().values()] if columns else []
        rows.append([one.algorithm, format_size(one.bytes), *noise, *(_agreement([one]) for _ in engines)])
    rows.append(
        ["all", format_size(sum(one.bytes for one in done.joins)), *("" for _ in columns), *(_agreement(done.joins) for _ in engines)]
    )
    note = f"noise: how far the totals of {done.setting.repeats} repeats lie apart; of each request the shortest time counts"
    return Table(["join", "bytes moved", *columns, *engines], rows, note=note if columns else "")


def _agreement(joins: Sequence[Witnesses]) -> str | None:
    differs = engines_differ(joins)
    return None if differs is None else f"{differs:.1%}{'' if differs <= AGREE else ' (more than 15 %)'}"


def conditions(done: JoinsValidated) -> str:
    sides = ", ".join(f"{file.name} {len(file.relation):,} rows on {file.pages:,} pages" for file in done.files)
    disk = done.disk
    write = disk.page_write_ms or disk.page_transfer_ms
    return (
        f"{done.device} beside {done.preset.name} ({done.preset.title}): {sides} of {done.files[0].layout.page_title}; memory "
        f"{done.setting.memory:,} pages. The formula takes a seek of {disk.seek_ms:.4g} ms, a latency of {disk.latency_ms:.4g} ms and "
        f"{disk.page_transfer_ms:.4g} ms a page read, {write:.4g} ms written."
    )


def picture(done: JoinsValidated) -> Figure:
    """Bars of every witness, a group a join; the phases stand on top of each other."""
    names = list(done.joins[0].columns())
    with panels(3.6) as (figure, axes):
        width = 0.8 / len(names)
        for number, name in enumerate(names):
            colour = LINES[number % len(LINES)][0]
            for group, one in enumerate(done.joins):
                _stack(axes, group + (number - (len(names) - 1) / 2) * width, 0.9 * width, colour, one, name)
            axes.bar([0], [0], color=colour, label=name)
        axes.set_xticks(np.arange(len(done.joins)), [f"{one.algorithm}\n({', '.join(one.phases)})" for one in done.joins])
        axes.set_ylabel("I/O, ms")
        legend(figure, axes, 3)
    return figure


def _stack(axes: Any, place: float, width: float, colour: str, one: Witnesses, name: str) -> None:
    times, bottom = one.columns()[name], 0.0
    for phase, time in enumerate(times[:-1] if times else []):
        look = {"color": colour, "hatch": _HATCHES[phase % len(_HATCHES)], "edgecolor": "white", "linewidth": 0.5}
        axes.bar(place, MILLISECONDS_A_SECOND * time, width, bottom=bottom, **look)
        bottom += MILLISECONDS_A_SECOND * time


def write_report(folder: Path, done: JoinsValidated, origin: dict[str, Any]) -> None:
    """Fill a folder with ``report.html``, the tables (CSV) and the picture (SVG)."""
    drawn = {"joins": picture(done)}
    shown, trust = captioned(table(done), title="joins"), captioned(noise_table(done), title="noise")
    sections = [
        Section("I/O of each join", "Phases are stacked from the bottom, hatched from the second on.", pictures=drawn),
        Section("Phase by phase", tables=[shown]),
        Section("How far to trust the real times", tables=[trust]),
        Section("What the numbers mean", WHY, terms=MEANING),
    ]
    title = "Four joins by formula, simulation and real device"
    Report(title, conditions(done), _figures(done), sections, origin).write(folder)


def _figures(done: JoinsValidated) -> list[tuple[str, str]]:
    figures = []
    for name in ("simulated", "formula"):
        totals = [(columns[name], columns["executed"]) for columns in (one.columns() for one in done.joins)]
        errors = [(one.algorithm, told[-1] / real[-1] - 1) for one, (told, real) in zip(done.joins, totals, strict=True) if told and real]
        figures += [(f"{algorithm}: {name} / executed", f"{100 * error:+.0f} %") for algorithm, error in errors]
    return figures


def _differs(value: float | None, reference: float | None) -> str | None:
    return None if value is None or not reference else difference(value / reference - 1)

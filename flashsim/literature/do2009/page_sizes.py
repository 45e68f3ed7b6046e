"""Content of figures 2 and 3: the four joins' times over the page size."""

from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import DEVICES, LABELS, page_size_grid
from flashsim.studies.presentation.plots import Bar, stacked_bars
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table


def page_size_section(runs: Runs, page_io: bool) -> Section:
    """Bars and seconds of both machines."""
    number, kind = (3, "page-sized") if page_io else (2, "blocked")
    panels: dict[str, list[Bar]] = {}
    rows: list[list[Entry]] = []
    run_names: list[str] = []
    for machine, device in DEVICES.items():
        bars = panels.setdefault(f"{machine} ({device}), {kind} I/O, scale {runs.settings.scale:g}", [])
        for setup in page_size_grid(page_io):
            if result := runs.get(setup, machine):
                total, kib = result.total, setup.page_size // 1024
                bars.append(Bar(f"{kib} KB", LABELS[setup.join], total.io, total.cpu, total.formula_io))
                rows.append([machine, setup.join, kib, total.formula_io, total.io, result.user[0], result.kernel[0], total.total])
                run_names.append(runs.run(setup))
    header = ["machine", "join", "page, KB", "formula I/O", "I/O", "user", "kernel", "total"]
    text = f"A buffer pool of 500 MB and {kind} I/O: I/O time (dark) and CPU time (light), in seconds; the dot is the formula's I/O time."
    table = Table(header, rows, f"figure{number}", runs=run_names)
    pictures = {f"figure{number}": stacked_bars(panels)}
    return Section(f"Join times over the page size, {kind} I/O (figure {number})", text, [table], pictures)

"""Miss-ratio curves, working sets and reuse distances as tables, pictures and a page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.caching.curves import LRU, Curves
from experiments.presentation.plots import LINES, legend, panels, stroke
from experiments.presentation.report import Report
from experiments.presentation.section import Section
from experiments.presentation.tables import Entry, Table
from flashsim.core.miss_curves import CONFIDENCE, MissCurve
from flashsim.core.units import format_size
from flashsim.core.working_sets import WorkingSetCurve

#: Points of a line that is known at all sizes.
_POINTS = 1000


def title(told: Curves) -> str:
    return f"{told.trace}: {told.references:,} references to {told.pages:,} pages of {format_size(told.page_size)}"


def explained(told: Curves) -> str:
    passed, others = ", ".join(told.one_pass), ", ".join(name for name in told.curves if name not in told.one_pass)
    how = f"In one pass, of all sizes: {passed or 'none'}." + (f" Simulated at each size: {others}." if others else "")
    if told.rate == 1:
        return f"{how} All pages were looked at: exact."
    return f"{how} Estimated from {told.rate:.3g} of the pages, ± half the width of {CONFIDENCE:.0%} intervals."


def curves_table(told: Curves) -> Table:
    """A row a size, a column a policy: its miss ratio, with what it may be off."""
    columns: list[list[Entry]] = [[size.label for size in told.sizes], [size.frames for size in told.sizes]]
    for curve in told.curves.values():
        ratios, errors = (100 * values for values in (curve.ratio(_frames(told)), curve.error(_frames(told))))
        shown = (f"{ratio:.3f} ± {error:.3f}" for ratio, error in zip(ratios, errors, strict=True))
        columns.append(ratios.tolist() if told.rate == 1 else [*shown])
    return Table(["size", "pages", *(f"{name} miss %" for name in told.curves)], zip(*columns, strict=True), digits=3)


def _frames(told: Curves) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([size.frames for size in told.sizes])


def locality_table(told: Curves, sets: WorkingSetCurve) -> Table:
    """Working sets by window, and percentiles of reuse distances where LRU's curve tells them."""
    last = int(sets.windows[-1])
    windows = [10**power for power in range(1, len(str(last))) if 10**power < last] + [last]
    rows: list[list[Entry]] = [
        [f"working set of {window:,} references", min(window, float(np.interp(window, sets.windows, sets.pages)))] for window in windows
    ]
    rows += [
        [f"reuse distance, {share[1:]} % of those referenced again", float(pages)]
        for share, pages in told.as_dict().get("reuse", {}).items()
    ]
    return Table(["on average", "pages"], rows, digits=1)


def sets_frame(sets: WorkingSetCurve) -> pd.DataFrame:
    """A row a window of references: pages in it on average, and the share of references to pages that are not in the one before them."""
    return pd.DataFrame({"window": sets.windows, "pages": sets.pages, "miss_ratio": sets.miss_ratio})


def steps_frame(curve: MissCurve) -> pd.DataFrame:
    """A row a size at which there are fewer misses: its miss ratio and what that may be off."""
    return pd.DataFrame({"pages": curve.sizes, "miss_ratio": curve.ratio(curve.sizes), "error": curve.error(curve.sizes)})


def picture(told: Curves, sets: WorkingSetCurve) -> Figure:
    """Miss ratios over the size, and working sets over the window."""
    with panels(5.6, 2) as (figure, (above, below)):
        for number, (name, curve) in enumerate(told.curves.items()):
            look, passed = stroke(number), name in told.one_pass
            frames = np.unique(np.geomspace(1, max(2, told.pages), _POINTS).astype(np.int64)) if passed else _frames(told)
            ratios, errors = curve.ratio(frames), curve.error(frames)
            above.plot(frames, ratios, markersize=4, label=name, **look | ({"marker": ""} if passed else {}))
            above.fill_between(frames, ratios - errors, ratios + errors, color=look["color"], alpha=0.2, linewidth=0)
        above.set(xscale="log", xlabel="pool, pages", ylabel="miss ratio", ylim=(0, 1.02))
        below.plot(sets.windows, sets.pages, color=LINES[0][0])
        below.set(xscale="log", yscale="log", xlabel="window, references", ylabel="working set, pages")
        legend(figure, above)
    return figure


def as_dict(told: Curves, sets: WorkingSetCurve) -> dict[str, Any]:
    """JSON-ready: the curves at the sizes that were asked for, the one of LRU at all sizes, and working sets."""
    lru = {"lru": steps_frame(told.curves[LRU]).to_dict("list")} if LRU in told.one_pass else {}
    return told.as_dict() | {"all_sizes": lru, "working_sets": sets_frame(sets).to_dict("list")}


def write_report(folder: Path, *, told: Curves, sets: WorkingSetCurve, origin: Mapping[str, Any]) -> None:
    """Fill a folder with ``report.html``, tables (CSV) and the picture (SVG)."""
    pd.DataFrame(told.rows()).to_csv(folder / "curves.csv", index=False)
    sets_frame(sets).to_csv(folder / "working_sets.csv", index=False)
    sections = [
        Section("Pictures", pictures={"curves": picture(told, sets)}),
        Section("Miss ratios", explained(told), [curves_table(told)]),
        Section("Locality", tables=[locality_table(told, sets)]),
    ]
    figures = [("references", f"{told.references:,}"), ("pages", f"{told.pages:,}")]
    Report(told.trace, title(told), figures, sections, origin).write(folder)

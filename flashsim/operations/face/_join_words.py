"""A join's cost in words and in one table, a row per device: the first screen of ``flashsim join``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flashsim.experiments.formulas.comparison import PhaseComparison
from flashsim.experiments.presentation.tables import Entry, Table

Totals = Sequence[tuple[str, PhaseComparison]]


def in_words(totals: Totals) -> Iterator[str]:
    """The fastest device and by how much, and the shares of I/O; of one device also the formula's I/O time."""
    best, least = min(totals, key=lambda each: each[1].total)
    if len(totals) == 1:
        io = least.io / least.total if least.total else 0.0
        text = f"{best} takes {_seconds(least.total)}: {_seconds(least.io)} of I/O ({io:.0%}) and {_seconds(least.cpu)} of CPU time."
        if least.formula_io is not None:
            text += f" The formula of Haas et al. predicts {_seconds(least.formula_io)} of I/O."
        yield text
        return
    if not least.total:
        yield f"{best} takes no time."
        return
    longest = max((row for _, row in totals), key=lambda row: row.total)
    shares = f"I/O takes {least.io / least.total:.0%} of it, and {longest.io / longest.total:.0%} of the longest time"
    yield f"{best} is fastest with {_seconds(least.total)}: {shares}."
    yield f"{' and '.join(f'{name} takes {row.total / least.total:.2g} times as long' for name, row in totals if row is not least)}."


def devices_table(totals: Totals) -> Table:
    """A row per device: seconds of I/O and CPU work, the share of I/O, and the formula's I/O time beside the simulated one."""
    rows: list[list[Entry]] = []
    for name, row in totals:
        share = f"{row.io / row.total:.0%}" if row.total else None
        ratio = f"{row.formula_io / row.io:.2f}" if row.formula_io is not None and row.io else None
        rows.append([name, row.io, row.cpu, row.total, share, row.formula_io, ratio])
    return Table(["device", "I/O s", "CPU s", "total s", "I/O share", "formula I/O s", "formula / simulated"], rows, digits=3)


def _seconds(value: float) -> str:
    return f"{value:.3g} s"

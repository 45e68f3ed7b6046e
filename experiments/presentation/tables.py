"""Tables as plain text, Markdown-free, so that they read well in a terminal, a file and a pipe."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

Entry = str | int | float | None


@dataclass(frozen=True)
class Table:
    """A table to be shown as text, as HTML or as CSV.

    Parameters
    ----------
    header
        Column names.
    rows
        Each with an entry a column; None where there is nothing to say.
    digits
        Decimals that numbers which are not whole are shown with.
    runs
        The id of the run that each row comes from, for CSV and HTML; empty if rows have none.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    title: str = ""
    digits: int = 2
    note: str = field(default="")
    runs: Sequence[str] = ()

    def shown(self) -> list[list[str]]:
        """The rows as text."""
        return [[show(entry, self.digits) for entry in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Which columns hold numbers and are set flush right."""
        columns = range(len(self.header))
        return [any(isinstance(row[index], (int, float)) for row in self.rows) for index in columns]

    def as_text(self) -> str:
        """The table for a terminal.

        Examples
        --------
        >>> print(Table(["join", "s"], [["bnl", 1.5], ["sort-merge", 12.25]]).as_text())
        join            s
        ----------  -----
        bnl          1.50
        sort-merge  12.25
        """
        lines = [list(self.header), *self.shown()]
        widths = [max(len(line[index]) for line in lines) for index in range(len(self.header))]
        right = self.numeric()
        lines.insert(1, ["-" * width for width in widths])
        body = [
            "  ".join(entry.rjust(width) if flush else entry.ljust(width) for entry, width, flush in zip(line, widths, right, strict=True))
            for line in lines
        ]
        parts = [self.title] if self.title else []
        return "\n".join(line.rstrip() for line in [*parts, *body, *([self.note] if self.note else [])])

    def write_csv(self, path: Path) -> None:
        """The table as CSV, with numbers in full."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*self.header, *(["run"] if self.runs else [])])
            for row, run in zip_longest(self.rows, self.runs):
                writer.writerow(["" if entry is None else entry for entry in row] + ([run] if run else []))


def show(entry: Entry, digits: int = 2) -> str:
    """One entry for people.

    Examples
    --------
    >>> show(1234567), show(3.14159), show(None)
    ('1,234,567', '3.14', '-')
    """
    if entry is None:
        return "-"
    if isinstance(entry, str):
        return entry
    return f"{entry:,}" if isinstance(entry, int) else f"{entry:,.{digits}f}"

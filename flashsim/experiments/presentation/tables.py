"""Results as frames with a caption, and as plain text, Markdown-free, so that they read well in a terminal, a file and a pipe."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from flashsim.core.errors import printable
from flashsim.core.units import format_duration

if TYPE_CHECKING:
    from traces.summary.histogram import Histogram

Entry = str | int | float | None

_PERCENTILES = (50, 90, 99, 99.9, 99.99)
#: The names of a `spread`, and of the columns that show it.
SPREAD = ("mean", *(f"p{share:g}" for share in _PERCENTILES), "max")
SPREAD_HEADS = ("mean", *(f"{share:g} %" for share in _PERCENTILES), "max")

#: Entries that say nothing.
_NOTHING = (None, "", "-")
#: A number, with its unit if it has one.
_QUANTITY = re.compile(r"[-+±<>]?\d[\d,.]*( ?[^\d\s]+)?")
#: Between a number and what it counts, which is no number; they are not parted.
_COUNTS = re.compile(r"(?<=\d) (?=\S)(?![-+±<>]?\d)")
_GAP = "  "
#: A column of texts is made no narrower, as long as another way is left.
_READABLE = 24


class Table(pd.DataFrame):
    """A frame with a caption; its `attrs` say how it is shown, and any frame that has them, or none, is shown alike.

    Rows have an entry a column, None where there is nothing to say; numbers that are not whole are shown with `digits` decimals; `runs`
    are the ids of the runs that rows come from, for CSV and HTML, if they come from runs.
    """

    def __init__(
        self, header: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "", digits: int = 2, note: str = "",
        runs: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__([list(row) for row in rows], columns=list(header), dtype=object)  # type: ignore[call-arg]
        self.attrs = {"title": title, "digits": digits, "note": note, "runs": runs}

    @classmethod
    def of(cls, records: Iterable[Mapping[Any, Any]], columns: Mapping[str, Any], **caption: Any) -> Self:
        """A row a record; see `Table` for its caption.

        Columns have the name of the record's entry; with its unit, or a function from the entry to the value shown.

        Examples
        --------
        >>> Table.of([{"join": "bnl", "share": 0.25}, {"join": "smj"}], {"join": "join", "%": ("share", percent)}).values.tolist()
        [['bnl', 25.0], ['smj', None]]
        """

        def entry(record: Mapping[Any, Any], column: Any) -> Entry:
            name, how = (column, None) if isinstance(column, str) else column
            value: Any = record.get(name)
            if value is None or how is None:
                return value
            return how(value) if callable(how) else value / how

        return cls([*columns], ([entry(record, column) for column in columns.values()] for record in records), **caption)


def same(*names: str) -> dict[str, Any]:
    """Columns of `Table.of` that are called as the entries are."""
    return dict(zip(names, names, strict=True))


def spread(times: Histogram) -> dict[str, float]:
    """Mean, percentiles up to the tail, and maximum of times.

    Examples
    --------
    >>> import numpy as np
    >>> from traces.summary.histogram import Histogram
    >>> times = Histogram()
    >>> times.add(np.array([1, 2, 6]))
    >>> spread(times)["mean"], spread(times)["p50"], spread(times)["max"]
    (3.0, 2, 6)
    """
    values = (times.mean, *(times.percentile(share) for share in _PERCENTILES), times.maximum)
    return dict(zip(SPREAD, values, strict=True))


def durations(spread: Mapping[str, float], part: str = "") -> dict[str, str]:
    """The entries below `SPREAD_HEADS` of a `spread` of ns whose names begin with `part`."""
    return {head: format_duration(round(spread[part + name])) for head, name in zip(SPREAD_HEADS, SPREAD, strict=True)}


def outstanding(level: Mapping[str, Any] | None) -> Table:
    """Queue depth over time (`flashsim.core.outstanding.OutstandingLevel.as_dict`); empty where nothing is timed."""
    if level is None:
        return Table([], [])
    row: list[Entry] = ["over time", *(level[name] for name in ("mean", "p50", "p90", "p99", "max")), f"{100 * level['idle']:.1f} %"]
    return Table(["queue depth", "mean", "50 %", "90 %", "99 %", "max", "time with none"], [row])


def percent(share: float) -> float:
    """A share as a column in percent shows it."""
    return 100 * share


def difference(share: float) -> str:
    """A relative difference in percent, with its sign.

    Examples
    --------
    >>> difference(0.5)
    '+50.0 %'
    """
    return f"{100 * share:+.1f} %"


def with_caption(frame: pd.DataFrame, **caption: Any) -> pd.DataFrame:
    """A frame with another caption; see `Table` for what it may hold."""
    other = frame.copy()
    other.attrs = frame.attrs | caption
    return other


_UNIT = re.compile(r"_(s|ns|us|ms|gib|mb_s)$")
_UNITS = {"us": "µs", "gib": "GiB", "mb_s": "MB/s"}


def with_headings(frame: pd.DataFrame, headings: Mapping[str, str] | None = None) -> pd.DataFrame:
    """A frame for the screen: column names in words, units in parentheses; `headings` has those that do not follow from the name.

    Examples
    --------
    >>> with_headings(pd.DataFrame(columns=["ramp_up_s", "log_gib", "rows_to_host"])).columns.tolist()
    ['ramp up (s)', 'log (GiB)', 'rows to host']
    """

    def heading(name: str) -> str:
        return _UNIT.sub(lambda unit: f" ({_UNITS.get(unit[1], unit[1])})", name).replace("_", " ")

    shown = frame.rename(columns={name: (headings or {}).get(name) or heading(str(name)) for name in frame.columns})
    shown.attrs = frame.attrs
    return shown


def texts(frame: pd.DataFrame) -> list[list[str]]:
    return [[show(entry, frame.attrs.get("digits", 2)) for entry in row] for row in frame.itertuples(index=False, name=None)]


def numeric(frame: pd.DataFrame) -> list[bool]:
    """The columns of numbers or quantities, such as ``75 us``, which are set flush right."""
    columns = (list(filter(_says, frame.iloc[:, index])) for index in range(frame.shape[1]))
    return [
        any(isinstance(each, int | float) for each in column) or all(_QUANTITY.fullmatch(str(each)) for each in column)
        for column in columns
    ]


def filled_columns(frame: pd.DataFrame) -> list[int]:
    """The columns that have an entry; of a frame without rows, all."""
    return [index for index in range(frame.shape[1]) if not len(frame) or any(map(_says, frame.iloc[:, index]))]


def _says(entry: Any) -> bool:
    return entry not in _NOTHING and entry == entry  # no number is not equal to itself


def as_text(frame: pd.DataFrame, width: int | None = None) -> str:
    """A frame for a terminal with lines of `width` characters, or of any length.

    Columns without an entry are left out. Where the width is too small, heads and texts are wrapped at words, numbers never, and what
    is still too wide is stacked: its columns stand in groups, one below the other, each beside the columns that name the rows.

    Examples
    --------
    >>> print(as_text(Table(["join", "I/O s", "why"], [["bnl", 1.5, None], ["sort-merge", 12.25, None]])))
    join        I/O s
    ----------  -----
    bnl          1.50
    sort-merge  12.25
    """
    rows, numbers = texts(frame), numeric(frame)
    columns = [
        _TableColumn(printable(str(frame.columns[index])), [row[index] for row in rows], numbers[index]) for index in filled_columns(frame)
    ]
    stacks = [columns] if width is None else stack_columns(columns, width)
    body = "\n\n".join(_lines(stack, width) for stack in stacks)
    title, note = (wrap_text(printable(frame.attrs.get(name, "")), width) for name in ("title", "note"))
    return "\n".join(part for part in (title, body, note) if part)


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """A frame as CSV, with numbers in full."""
    runs = frame.attrs.get("runs")
    (frame.assign(run=list(runs)) if runs else frame).to_csv(path, index=False)


@dataclass(frozen=True)
class _TableColumn:
    """A column as text; one that holds numbers is set flush right."""

    head: str
    entries: Sequence[str]
    numbers: bool

    @property
    def natural(self) -> int:
        return max(map(len, (self.head, *self.entries)))

    @property
    def least(self) -> int:
        return max(len(word) for entry in (self.head, *self.entries, "-") for word in _COUNTS.sub("_", entry).split())

    @property
    def readable(self) -> int:
        """The width that it should have: a column of texts with one word a line is hard to read."""
        return max(self.least, min(max(map(len, self.entries), default=0), _READABLE))

    def lines(self, entry: str, width: int) -> list[str]:
        return [line.rjust(width) if self.numbers else line.ljust(width) for line in wrap_text(entry, width).split("\n")]


def wrap_text(text: str, width: int | None, indent: str = "") -> str:
    """A text in lines of at most `width` characters, as far as its words allow; a number stays beside its unit.

    Examples
    --------
    >>> print(wrap_text("it takes 12.5 ms", 13))
    it takes
    12.5 ms
    """
    if width is None or len(text) <= width:
        return text
    joined = _COUNTS.sub("\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(joined, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def stack_columns(columns: Sequence[_TableColumn], width: int) -> list[list[_TableColumn]]:
    """Groups of columns that each fit the width, about equally wide; those that name the rows begin every group."""
    if _needs(columns) <= width:
        return [list(columns)]
    names = next((index for index, column in enumerate(columns) if column.numbers), 1) or 1
    names = names if _needs(columns[:names]) <= width // 2 else 1
    keys, rest = columns[:names], columns[names:]
    groups = _groups(keys, rest, width)
    while width > 0 and len(fewer := _groups(keys, rest, width - 1)) == len(groups):
        groups, width = fewer, width - 1
    return groups


def _groups(keys: Sequence[_TableColumn], rest: Sequence[_TableColumn], width: int) -> list[list[_TableColumn]]:
    groups = [list(keys)]
    for column in rest:
        if len(groups[-1]) > len(keys) and _needs([*groups[-1], column]) > width:
            groups.append(list(keys))
        groups[-1].append(column)
    return groups


def _needs(columns: Sequence[_TableColumn]) -> int:
    return sum(column.readable for column in columns) + len(_GAP) * (len(columns) - 1)


def _lines(columns: Sequence[_TableColumn], width: int | None) -> str:
    widths = [column.natural for column in columns]
    spare = 0 if width is None else width - len(_GAP) * (len(columns) - 1)
    if width is not None and sum(widths) > spare:
        widths = [column.readable if _needs(columns) <= width else column.least for column in columns]
        lack = [column.natural / wide for column, wide in zip(columns, widths, strict=True)]
        while sum(widths) < spare and max(lack) > 1:
            most = lack.index(max(lack))
            widths[most] += 1
            lack[most] = columns[most].natural / widths[most]
    rows = zip(*([column.head, *column.entries] for column in columns), strict=True)
    lines = []
    for number, row in enumerate(rows):
        cells = [column.lines(entry, wide) for column, entry, wide in zip(columns, row, widths, strict=True)]
        deep = max(map(len, cells))
        pad = [[" " * wide] * (deep - len(cell)) for cell, wide in zip(cells, widths, strict=True)]
        padded = [(more + cell) if number == 0 else (cell + more) for cell, more in zip(cells, pad, strict=True)]
        lines += [_GAP.join(line).rstrip() for line in zip(*padded, strict=True)]
        lines += [_GAP.join("-" * wide for wide in widths)] if number == 0 else []
    return "\n".join(lines)


def show(entry: Entry, digits: int = 2) -> str:
    """An entry as text.

    Examples
    --------
    >>> show(1234567), show(3.14159), show(None)
    ('1,234,567', '3.14', '-')
    """
    if entry is None or entry != entry:
        return "-"
    if isinstance(entry, str):
        return printable(entry)
    return f"{entry:,}" if isinstance(entry, int) else f"{entry:,.{digits}f}"

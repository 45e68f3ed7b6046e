"""Tables of requests with a header: which column is what is told by its name, or by the user, and so are the units.

A name may end in its unit: ``time_us``, ``offset (bytes)``, ``size_kib``.  What a name does not tell is given as options of the format,
``csv:time=Stamp:ms,offset=Block:4KiB,length=Count:sectors,operation=Kind:0/1,device=Disk``: a role, the column, and after a colon its
unit, or, of the operation, the words for reads and writes.  In a file without a header columns are called by their numbers, from 1.

Commas, semicolons, tabs, bars or any number of blanks divide fields, which may stand in quotes.  Times may be dates of ISO 8601.  A column
``op_count`` or ``repeat`` says how often its line counts.  A line with neither offset, length nor operation is no request.
"""

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError, FlashsimWarning, InvalidParameterError, option
from flashsim.core.request import FLUSH, READ, SECTOR, TRIM, WRITE, Integers
from flashsim.core.units import parse_size
from traces.file.schema import Batches
from traces.format import _text
from traces.format._columns import NAMES, SIZES, TIMES, Reader, TraceColumn, guess
from traces.format.base import Example, Format
from traces.references.base import expand

TITLE = "CSV with a header of names"
LEAVES_OUT = "columns that are not part of a request"
GENERIC = True
EXAMPLE = Example(
    b"time_us,disk,op,lba,size_kib,latency_ms,note\n12,1,Read,8,4,0.5,a\n15.5,0,W,16,0.5,,b\n",
    [(READ, 4096, 4096, 12000), (WRITE, 8192, 512, 15500)],
)

_WORDS = dict.fromkeys(("r", "read", "rs", "ra", "rd"), READ) | dict.fromkeys(("w", "write", "ws", "wr"), WRITE)
_WORDS |= dict.fromkeys(("d", "discard", "trim", "unmap"), TRIM) | dict.fromkeys(("f", "flush", "sync", "fsync"), FLUSH)
_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"-?[\d.]+")
_DATE = re.compile(r"\s*\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
#: Columns, by their plain names, whose writers leave zeros out (Open CAS's iotrace).
_ZERO_WHERE_EMPTY = frozenset(["io_lba"])
_MOST_REPEATS = 1 << 31


def _with_unit(role: str, name: str, unit: str) -> TraceColumn:
    if role == "operation":
        operations = dict(zip(unit.split("/") if unit else (), (READ, WRITE, TRIM, FLUSH), strict=False))
        wrong = (
            f"is not an operation ({'/'.join(operations or ('R', 'W'))}); name others with "
            + option("columns")
            + f" operation={name}:READ/WRITE"
        )
        by_word = (lambda word: operations.get(word.strip(), -1)) if operations else (lambda word: _WORDS.get(word.strip().lower(), -1))
        return TraceColumn(name, role, operation=by_word, wrong=wrong)
    if role in ("device", "label", "repeat"):
        return TraceColumn(name, role)
    if role in ("time", "completed") and unit == "iso":
        return TraceColumn(name, role, iso=True)
    known = TIMES if role in ("time", "completed", "latency") else SIZES
    scale = known.get(unit.lower(), 0)
    if not scale and known is SIZES and re.fullmatch(r"\d+\s*[A-Za-z]+", unit):
        scale = parse_size(unit, "columns")
    if not scale:
        more = ", 4KiB" if known is SIZES else "" if role == "latency" else ", iso"
        raise InvalidParameterError("columns", repr(f"{role}={name}:{unit}"), f"a unit is needed, of {', '.join(known)}{more}")
    return TraceColumn(
        name, role, scale, decimals=known is TIMES or scale > SECTOR
    )  # sizes in larger units than a sector may have fractions


@dataclass(frozen=True)
class LineLayout:
    """How the lines of a table are divided: by a separator, where a blank stands for any blanks, into columns of these names."""

    delimiter: str
    names: list[str]
    #: Whether the first line holds the names; otherwise they are numbers, from 1.
    has_header: bool

    @classmethod
    def of(cls, line: str) -> "LineLayout":
        line = line.removeprefix("\ufeff").strip()
        delimiter = max(_DELIMITERS, key=lambda one: len(_text.fields(line, one)))
        delimiter = delimiter if delimiter in line or not re.search(r"\s", line) else " "
        names = [word.strip().strip("\"'").strip() for word in _fields(line, delimiter)]
        has_header = not any(_NUMBER.fullmatch(name) for name in names)
        return cls(delimiter, names if has_header else [str(place) for place in range(1, len(names) + 1)], has_header)


def _fields(line: str, delimiter: str) -> list[str]:
    return _text.fields(re.sub(r"\s+", " ", line.strip()) if delimiter == " " else line, delimiter)


def bodies(path: Path) -> Iterator[tuple[LineLayout, int, bytes]]:
    """The lines of a table after its header, some megabytes at a time, with the number of the first of them."""
    layout = LineLayout(",", [], False)
    for number, _, data in _text.chunks(path):
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
            title, _, rest = data.partition(b"\n")
            layout = LineLayout.of(title.decode(errors="replace"))
            if len(set(layout.names)) < len(layout.names):
                raise DamagedFileError(f"trace: {path}, line 1: two columns have the same name")
            data, number = (rest, 2) if layout.has_header else (data, 1)
        yield layout, number, _text.single_blanks(data) if layout.delimiter == " " else data


def repeats(lines: _text.Lines, column: str) -> Iterator[Integers]:
    """The lines of a table, each as often as a column says, by their rows, some at a time."""
    counts = lines.numbers(column)
    lines.refuse(~((counts >= 1) & (counts <= _MOST_REPEATS)), f"{column} must be in [1, {_MOST_REPEATS}]")
    yield from (rows for _, rows in expand(np.zeros(len(counts), np.int64), counts))


class _NamedColumns(Format):
    """Files whose columns are what their names and the user say."""

    TITLE, LEAVES_OUT, GENERIC = TITLE, LEAVES_OUT, True

    def __init__(self, columns: Mapping[str, TraceColumn] | None = None) -> None:
        self._roles_by_option = dict(columns or {})

    def recognise(self, path: Path) -> bool:
        """The first line has names of an offset and a length, and a line with as many fields follows."""
        lines = [line.decode(errors="replace") for line in _text.head(path)]
        if len(lines) < 2:
            return False
        layout = LineLayout.of(lines[0])
        fits = {"offset", "length"} <= {guess(name)[0] for name in layout.names}
        return fits and len(_fields(lines[1], layout.delimiter)) == len(layout.names)

    def with_options(self, options: str) -> Format:
        columns = dict[str, TraceColumn]()
        for each in options.split(","):
            role, equals, column = each.strip().partition("=")
            name, colon, unit = column.rpartition(":")
            if not equals or role not in NAMES or not column:
                raise InvalidParameterError("columns", repr(each[:60]), f"it must be ROLE=NAME:UNIT with a role of {', '.join(NAMES)}")
            if role in columns:
                raise InvalidParameterError("columns", repr(options[:60]), f"{role} is named twice")
            columns[role] = _with_unit(role, name if colon else column, unit if colon else "")
        names = [column.name for column in columns.values()]
        if len(set(names)) < len(names):
            raise InvalidParameterError("columns", repr(options[:60]), "no two roles may be of one column")
        return _NamedColumns(columns)

    def basis(self, path: Path) -> str:
        for layout, _, body in bodies(path):
            columns = sorted(self._roles(path, layout, body).values(), key=lambda column: layout.names.index(column.name))
            return f"its columns, {', '.join(f'{column.name} ({column})' for column in columns)}"
        return ""

    def read(self, path: Path) -> Batches:
        columns, reader, left_out = dict[str, TraceColumn](), Reader([]), 0
        for layout, number, body in bodies(path):
            if not columns:
                columns = self._roles(path, layout, body)
                reader = Reader(columns.values())
            if body:
                types = dict.fromkeys(layout.names, pa.string()) | {column.name: column.type for column in columns.values()}
                lines = _of_requests(_text.parse(path, number, body, types, layout.delimiter, [""], quotes=True), columns)
                left_out += body.count(b"\n") + (not body.endswith(b"\n")) - lines.table.num_rows
                parts = repeats(lines, columns["repeat"].name) if "repeat" in columns else [None]
                yield from (reader.batch(lines if rows is None else lines.take(rows)) for rows in parts)
        if left_out:
            what = "lines with neither offset, length nor operation are left out"
            warnings.warn(f"trace: {path}: {what}: {left_out:,}", FlashsimWarning, stacklevel=2)

    def _roles(self, path: Path, layout: LineLayout, body: bytes) -> dict[str, TraceColumn]:
        """The column of each role: as it was given, or as the only one whose name says so."""
        names, line = layout.names, body.partition(b"\n")[0].decode(errors="replace")
        first = dict(zip(names, _fields(line, layout.delimiter), strict=False))
        for role, column in self._roles_by_option.items():
            if column.name not in names:
                raise InvalidParameterError("columns", f"{role}={column.name[:60]}", f"{path} has {', '.join(names)[:200]}")
        columns, columns_in_use = dict(self._roles_by_option), {column.name for column in self._roles_by_option.values()}
        for role in NAMES.keys() - columns.keys():
            guesses = [(name, unit) for name in names if name not in columns_in_use for of, unit in [guess(name)] if of == role]
            if len(guesses) > 1:
                choice = " or ".join(name for name, _ in guesses)
                raise DamagedFileError(
                    f"trace: {path}, line 1: {choice} could be the {role}; name one with " + option("columns") + f" {role}=NAME:UNIT"
                )
            for name, unit in guesses:
                if not unit and role in ("time", "completed") and _DATE.match(first.get(name, "")):
                    unit = "iso"
                if not unit and role in ("time", "completed", "latency"):
                    raise DamagedFileError(
                        f"trace: {path}, line 1: {name} has no unit; name one with " + option("columns") + f" {role}={name}:ms"
                    )
                columns[role] = _with_unit(role, name, unit or "bytes" * (role in ("offset", "length")))
        for role in ("offset", "length"):
            if role not in columns:
                raise DamagedFileError(
                    f"trace: {path}, line 1: no column is the {role}; name one with " + option("columns") + f" {role}=NAME:UNIT"
                )
        return columns


def _of_requests(lines: _text.Lines, columns: Mapping[str, TraceColumn]) -> _text.Lines:
    """Lines that are of requests; zeros that are left out are put in."""
    needed = [lines.table.column(columns[role].name) for role in ("offset", "length", "operation") if role in columns]
    blank = [pc.equal(values, "") if pa.types.is_string(values.type) else values.is_null() for values in needed]
    rows = np.flatnonzero(~np.logical_and.reduce([each.to_numpy() for each in blank]))
    lines = lines if len(rows) == lines.table.num_rows else lines.take(rows)
    offset = columns["offset"].name
    if re.sub(r"[^a-z0-9]+", "_", offset.lower()) in _ZERO_WHERE_EMPTY:
        place, values = lines.table.column_names.index(offset), pc.fill_null(lines.table.column(offset), 0)
        lines = replace(lines, table=lines.table.set_column(place, offset, values))
    return lines


_named = _NamedColumns()
recognise, with_options, read, basis = _named.recognise, _named.with_options, _named.read, _named.basis

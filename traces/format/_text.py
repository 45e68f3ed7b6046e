"""The common parts of formats with a request a line: chunks of whole lines, columns by Arrow's CSV reader, errors that name the line."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.request import FLUSH, OPERATIONS, Integers
from flashsim.core.units import NEVER
from flashsim.storage.packed_files import open_bytes
from traces.file.schema import Batches, column
from traces.format import _records

_CHUNK = 8 << 20
_HEAD = 1 << 16
_HEAD_LINES = 16

#: Times with decimals, of which more than are kept.
DECIMAL = pa.decimal128(38, 15)
_LONG_DECIMALS = re.compile(rb"(\.\d{15})\d+")

#: Types of columns, by name.
Types = Mapping[str, pa.DataType]
Bools = _records.Bools
Bytes = _records.Bytes


def head(path: Path, most: int = _HEAD_LINES) -> list[bytes]:
    """The first lines of a file, without what ends them, as far as they are in its first 64 KiB; none of a file that is no text."""
    with open_bytes(path) as file:
        begin = file.read(_HEAD)
    lines = begin.splitlines()
    if len(lines) > 1 and len(begin) == _HEAD:
        lines.pop()
    return [] if b"\0" in begin else [line.strip() for line in lines[:most]]


def looks_like(path: Path, pattern: bytes) -> bool:
    """True if a pattern fits at least half of a file's first lines."""
    lines = [line for line in head(path) if line]
    return bool(lines) and 2 * sum(re.fullmatch(pattern, line) is not None for line in lines) >= len(lines)


def chunks(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Whole lines of a file, some megabytes at a time, each with the number of its first line and the byte where that begins.

    What comes after the last line end, if anything, comes alone.
    """
    line, at, rest = 1, 0, b""
    with open_bytes(path) as file:
        while block := file.read(_CHUNK):
            cut = block.rfind(b"\n") + 1
            if not cut and len(rest) > _CHUNK:
                raise DamagedFileError(f"trace: {path}, line {line}: it has more than {_CHUNK} bytes")
            if cut:
                whole, rest = rest + block[:cut], block[cut:]
                yield line, at, whole.replace(b"\r\n", b"\n") if b"\r" in whole else whole
                line, at = line + whole.count(b"\n"), at + len(whole)
            else:
                rest += block
    if rest:
        yield line, at, rest.replace(b"\r", b"")


@dataclass(frozen=True)
class Lines:
    """Parsed lines of a file: columns by name, and where they stand."""

    path: Path
    first: int
    table: pa.Table
    #: Which lines these are, counted from the first; all if None.
    rows: Integers | None = None

    def take(self, rows: Integers) -> Lines:
        return replace(self, table=self.table.take(pa.array(rows)), rows=rows if self.rows is None else self.rows[rows])

    def numbers(self, name: str) -> npt.NDArray[Any]:
        return self.table.column(name).to_numpy()

    def refuse(self, bad: Bools, why: str) -> None:
        """Raise a `DamagedFileError` that names the first bad line, if there is any."""
        if bad.any():
            row = int(np.argmax(bad))
            raise DamagedFileError(f"trace: {self.path}, line {self.first + int(row if self.rows is None else self.rows[row])}: " + why)

    def choice(self, name: str, values: list[str]) -> Integers:
        """A column of words as their places in `values`, shape (n,)."""
        places = pc.index_in(self.table.column(name), pa.array(values)).combine_chunks()
        self.refuse(places.is_null().to_numpy(zero_copy_only=False), f"{name} must be one of {', '.join(values)}")
        return places.cast(pa.int64()).to_numpy()

    def scaled_column(self, name: str, unit: int) -> Integers:
        """A column of whole numbers, not negative, times `unit`."""
        values = self.numbers(name)
        self.refuse((values < 0) | (values >= NEVER // unit), f"{name} must be in [0, {NEVER // unit})")
        return values * unit

    def times(self, name: str, unit: int) -> Integers:
        """A column of type `DECIMAL`, in units of `unit` ns, rounded to ns."""
        digits, values = len(str(unit)) - 1, self.table.column(name).combine_chunks()
        least, most = (pa.scalar(Decimal(bound), DECIMAL) for bound in (0, NEVER // unit))
        beyond = pc.or_(pc.less(values, least), pc.greater_equal(values, most)).to_numpy(zero_copy_only=False)
        self.refuse(beyond, f"{name} must be in [0, {NEVER / unit:g})")
        rounded = pc.round(values, ndigits=digits).cast(pa.decimal128(DECIMAL.precision, digits))
        # A decimal is a whole number of 128 bits, here of nanoseconds, of which the upper half is 0.
        halves = np.frombuffer(rounded.buffers()[1], np.int64).reshape(-1, 2)[rounded.offset :][: len(rounded)]
        return halves[:, 0 if sys.byteorder == "little" else 1].copy()

    def extents(self, offset: str, length: str, offset_unit: int = 1, length_unit: int = 1) -> dict[str, Integers]:
        """Offset and length in bytes; their sum must be a place on a device."""
        begin, size = self.scaled_column(offset, offset_unit), self.scaled_column(length, length_unit)
        self.refuse(begin + size >= NEVER, "the request ends beyond any device")
        return {"offset": begin, "length": size}


def parse(path: Path, first: int, data: bytes, columns: Types, delimiter: str, nulls: Sequence[str] = (), quotes: bool = False) -> Lines:
    """Lines as columns; fields of `nulls` are null, and with `quotes` fields may stand in them."""
    if DECIMAL in columns.values() and _LONG_DECIMALS.search(data):
        data = _LONG_DECIMALS.sub(rb"\1", data)
    try:
        return Lines(path, first, table(data, columns, delimiter, nulls, quotes))
    except pa.ArrowInvalid:
        lines = data.splitlines(keepends=True) or [data]  # of blanks nothing may be left
        good, bad = 0, len(lines)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                table(b"".join(lines[good:middle]), columns, delimiter, nulls, quotes)
                good = middle
            except pa.ArrowInvalid:
                bad = middle
        why = _fault(lines[good].decode(errors="replace").strip("\r\n"), columns, delimiter, nulls, quotes)
        raise DamagedFileError(f"trace: {path}, line {first + good}: {why}") from None


def _fault(line: str, columns: Types, delimiter: str, nulls: Sequence[str], quotes: bool) -> str:
    """What is wrong with a line: the first field that is not of its column's type, or their number."""
    words = fields(line, delimiter) if quotes else line.split(delimiter)
    for word, (name, kind) in zip(words, columns.items(), strict=True) if len(words) == len(columns) else ():
        try:
            if not pa.types.is_string(kind):
                table(word.encode() + b"\n", {name: kind}, delimiter, nulls)
        except pa.ArrowInvalid:
            return f"column {name}: {word[:60]!r} is not a {'whole number of 64 bits' if pa.types.is_integer(kind) else 'number'}"
    return f"{line[:60].strip()!r} is not {delimiter.join(columns)}"


def fields(line: str, delimiter: str) -> list[str]:
    """The fields of a line, of which some may stand in quotes."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [""])
    except csv.Error:
        return line.split(delimiter)


def table(data: bytes, columns: Types, delimiter: str, nulls: Sequence[str], quotes: bool = False) -> pa.Table:
    """Lines as Arrow's columns; a field in quotes ends in its line."""
    rows = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        pyarrow.csv.ReadOptions(column_names=list(columns), block_size=len(data) + 1, use_threads=False),
        pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char='"' if quotes else False, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(column_types=columns, null_values=list(nulls), strings_can_be_null=False),
    )
    if quotes and rows.num_rows < data.count(b"\n"):
        raise pa.ArrowInvalid("a field in quotes does not end in its line")
    return rows


def read_csv(path: Path, columns: Types, edit: Callable[[bytes], bytes] | None = None, nulls: Sequence[str] = ()) -> Iterator[Lines]:
    """Lines with commas; a first line that begins with a letter and no digit holds names, and is skipped."""
    names = re.compile(rb"[A-Za-z_]+\s*,[^0-9\n]*\n")
    for first, _, data in chunks(path):
        match = names.match(data) if first == 1 else None
        body = data[match.end() :] if match else data
        if body:
            yield parse(path, first + bool(match), edit(body) if edit else body, columns, ",", nulls)


def single_blanks(data: bytes) -> bytes:
    """Lines whose fields one blank divides, of lines with any blanks and tabs."""
    plain = data.replace(b"\t", b" ")
    if b"  " in plain or b" \n" in plain or b"\n " in plain or plain[:1] == b" ":
        return re.sub(rb" +", b" ", plain).replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
    return plain


def read_words(path: Path, columns: Types) -> Iterator[Lines]:
    for first, _, data in chunks(path):
        yield parse(path, first, single_blanks(data), columns, " ")


def refuse_lengths(operation: Integers, length: Integers, refuse: Callable[[Bools, str], None], name: str = "") -> None:
    """The one rule of lengths: requests move bytes, and flushes have none; an operation below 0 is no request."""
    refuse((length == 0) & (operation != FLUSH) & (operation >= 0), f"{name}it moves no byte")
    refuse((length != 0) & (operation == FLUSH), f"{name}a flush has no length")


def write_lines(path: Path, batches: Batches, columns: Callable[[pa.RecordBatch], list[Any]], delimiter: str) -> None:
    """Write a line a request, from the columns that `columns` makes of each batch."""
    with path.open("wb") as file:
        for batch in batches:
            write_table(file, columns(batch), delimiter)


def write_table(file: BinaryIO, columns: list[Any], delimiter: str = ",") -> None:
    """Append lines of the given columns, each of shape (n,)."""
    if len(columns[0]):
        options = pyarrow.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
        pyarrow.csv.write_csv(pa.table(columns, names=[str(number) for number in range(len(columns))]), file, options)


def arrivals(batch: pa.RecordBatch, name: str) -> Integers:
    """Arrival times of the requests of a batch, ns."""
    if batch.column("arrival").null_count:
        raise InvalidParameterError("arrival", "not recorded", f"{name} needs the time of every request")
    return column(batch, "arrival")


def operations(batch: pa.RecordBatch, names: Mapping[int, Any], name: str) -> pa.Array:
    """The words of a format for the operations of a batch, shape (n,)."""
    values = column(batch, "operation")
    unknown = np.setdiff1d(values, list(names))
    if len(unknown):
        raise InvalidParameterError("operation", OPERATIONS[unknown[0]], f"{name} holds only {', '.join(OPERATIONS[key] for key in names)}")
    return pa.array(list(names.values())).take(pc.index_in(pa.array(values.astype(np.int64)), pa.array(list(names), pa.int64())))


def whole(batch: pa.RecordBatch, names: str, unit: int, name: str) -> Integers:
    """A column of bytes in units."""
    values = column(batch, names)
    refuse(values % unit != 0, names, lambda row: f"{values[row]} B", f"{name} counts in {unit} B")
    return values // unit


def refuse(bad: Bools, name: str, text_of: Callable[[int], Any], why: str) -> None:
    """Raise an `InvalidParameterError` that shows the first bad value of a request to be written, if there is any."""
    if bad.any():
        raise InvalidParameterError(name, text_of(int(np.argmax(bad))), why)


class DeviceNumbers:
    """Numbers of devices or files: its own for one whose name has a number that is free; others are numbered as they appear."""

    def __init__(self) -> None:
        self._numbers, self._taken = dict[Any, int](), set[int]()

    def of(self, name: Any, own: int | None = None) -> int:
        """The number of a device, the same whenever its name is asked for."""
        if name not in self._numbers:
            number = len(self._taken) if own is None or own in self._taken else own
            while number in self._taken:
                number += 1
            self._numbers[name] = number
            self._taken.add(number)
        return self._numbers[name]


def decimals(values: Integers, unit: int) -> pa.Array:
    """Times in ns as text in units of `unit` ns, exact to the nanosecond, shape (n,)."""
    digits = len(str(unit)) - 1
    parts = [pa.array(part).cast(pa.string()) for part in np.divmod(values, unit)]
    return pc.binary_join_element_wise(parts[0], pc.utf8_lpad(parts[1], digits, "0"), ".")

"""Requests from columns of text: what each column holds and in which unit, and formats that a table of their columns describes.

Such a format is a ``NAME.toml`` in this folder:

=================  =================================================================================================================
``title``          a line that says what it is
``leaves_out``     what its files hold that the schema does not; nothing if it is missing
``separator``      of fields; a blank stands for any number of blanks and tabs
``pattern``        a regular expression that lines fit
``unknown``        what stands for a latency that was not recorded
``labels``         a regular expression that labels fit which are written
``reader``         what reads its lines, if it is not this module: ``fio`` (`traces.format._fio`), which takes a ``version`` and no columns
``label``          what is written for a request without a label; its device's number if it is missing
``loose``          whether blanks around fields, and fields after those named, are skipped
``longest_pause``  mean time between requests, in the file's unit, beyond which whole numbers are not taken for its times
``earliest``       time, in the file's unit since 1970, before which numbers are not taken for its dates
``columns``        in order: ``name``; what it ``holds`` (see `TraceColumn`); its ``unit``, ns or bytes; ``decimals``, whether it may have
                   fractions; ``from_first``, whether times count from that of the first line; a ``pattern`` that labels which are
                   read fit; an operation's ``words``, the first of each operation being the one that is written; ``bit``, whether
                   words are of the lowest bit of a hexadecimal number
``example``        the lines of a small file, and ``requests``, what they say: operation, offset, length and arrival (ns)
=================  =================================================================================================================
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core import errors, units
from flashsim.core.request import OPERATIONS, READ, SECTOR, Integers
from traces.file.schema import Batches, make_batch
from traces.format import _text
from traces.format.base import WritableFormat, table_example

TIMES = dict.fromkeys(("s", "sec", "seconds"), units.SECONDS) | {"ms": units.MILLISECONDS, "us": units.MICROSECONDS, "100ns": 100, "ns": 1}
SIZES = {"b": 1, "bytes": 1, "byte": 1, "sectors": SECTOR, "sector": SECTOR, "kib": 1 << 10, "mib": 1 << 20, "kb": 1000, "mb": 10**6}
#: Names of columns, plain ones, by what they hold.
NAMES = {
    "time": "time timestamp ts arrival arrival_time issue_time submit_time",
    "completed": "completed completion completion_time complete_time end_time",
    "latency": "latency response response_time responsetime service_time rt lat",
    "offset": "offset off address addr pos position byte_offset lba lbn sector start_sector sector_number",
    "length": "length len size bytes nbytes request_size io_size sectors nsectors sector_count",
    "operation": "operation op opcode type rw io_type iotype action request_type",
    "device": "device dev disk disk_number disknumber device_id volume volume_id volumeid lun asu",
    "label": "label host hostname file filename path",
    "repeat": "op_count repeat repeats repeat_count",
}
_UNITS = TIMES | SIZES
_ROLES = {name: role for role, names in NAMES.items() for name in names.split()}
#: Plain names that say their unit.
_IN_SECTORS = frozenset(["lba", "lbn", "sector", "start_sector", "sector_number", "sectors", "nsectors", "sector_count"])
_DEVICES = 1 << 15
#: The end of a time that says its zone; times without one are taken for UTC.
_ZONE = r":\d\d(\.\d*)?(Z|[+-]\d\d(:?\d\d)?)$"
#: Columns of the schema, by what a column of text holds.
_SCHEMA = {"time": "arrival", "latency": "completed"}
#: Lines that are judged for the time between requests.
_JUDGED = 1000


@dataclass(frozen=True)
class TraceColumn:
    """A column of text (see this module)."""

    name: str
    #: time, completed, latency, offset, length, operation, device or label.
    holds: str
    unit: int = 1
    decimals: bool = False
    #: Whether its values are dates and times of ISO 8601.
    iso: bool = False
    from_first: bool = False
    pattern: str = ".*"
    #: The operation of a word; -1 if it is none.
    operation: Callable[[str], int] = lambda word: -1
    #: What is wrong with a word that is no operation.
    wrong: str = ""

    @property
    def type(self) -> pa.DataType:
        """The type that the column is parsed as."""
        return pa.string() if self.holds in ("operation", "label") or self.iso else _text.DECIMAL if self.decimals else pa.int64()

    def __str__(self) -> str:
        numbers = self.holds in ("time", "completed", "latency", "offset", "length")
        scale = units.format_size if self.holds in ("offset", "length") else units.format_duration
        return f"{self.holds} in {'dates of ISO 8601' if self.iso else scale(self.unit).removeprefix('1 ')}" if numbers else self.holds


def guess(name: str) -> tuple[str, str]:
    """The role of a column of that name, and its unit; empty where the name does not say."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if plain in _ROLES:
        return _ROLES[plain], "sectors" if plain in _IN_SECTORS else "bytes" if "byte" in plain else ""
    begin, _, unit = plain.rpartition("_")
    role = _ROLES.get(begin, "")
    return (role, unit) if unit in (SIZES if role in ("offset", "length") else TIMES) else ("", "")


class Reader:
    """Makes requests of a file's lines, one chunk after the other.

    Columns are offset and length at least; without times nothing is timed, and without an operation it is not known.  `unknown` stands for
    a field that is empty.
    """

    def __init__(self, columns: Iterable[TraceColumn], unknown: str = "") -> None:
        self._columns = {column.holds: column for column in columns}
        self._unknown = unknown
        self._places: dict[str, int] = {}
        self._numbers = _text.DeviceNumbers()
        self._first = 0
        self._begin: int | None = None

    def batch(self, lines: _text.Lines) -> pa.RecordBatch:
        columns = self._columns
        for holds, column in columns.items():
            if holds not in ("completed", "latency", "label"):
                lines.refuse(lines.table.column(column.name).is_null().to_numpy(), f"{column.name} is {self._unknown or 'empty'}")
        values: dict[str, Any] = {holds: _whole(lines, columns[holds]) for holds in ("offset", "length")}
        values |= {"operation": _operations(lines, columns["operation"])} if "operation" in columns else {}
        _text.refuse_lengths(values.get("operation", np.array(READ)), values["length"], lines.refuse, f"{columns['length'].name}: ")
        lines.refuse(values["offset"] + values["length"] >= units.NEVER, "the request ends beyond any device")
        if "time" in columns:
            values["arrival"] = self._arrivals(lines, columns["time"])
        for holds, begin in (("completed", 0), ("latency", values.get("arrival"))):
            if holds in columns and begin is not None and "completed" not in values:
                times, known = _times(lines, columns[holds])
                lines.refuse(known & (times >= units.NEVER - begin), f"{columns[holds].name} is too large")
                values["completed"] = pa.array(times + begin, pa.int64(), mask=~known)
        label: Any = ""
        if "label" in columns:
            label, values["device"] = self._labels_and_places(lines, columns["label"])
        if "device" in columns:
            values["device"] = lines.numbers(columns["device"].name)
            lines.refuse(values["device"] < 0, f"{columns['device'].name} must not be below 0")
            names, values["device"] = self._names_and_numbers(values["device"])
            label = label if "label" in columns else names
        if "device" in values:
            lines.refuse(values["device"] >= _DEVICES, f"it is of more than {_DEVICES} devices")
        self._first += len(values["offset"])
        return make_batch(values, self._first - len(values["offset"]), label, () if "operation" in columns else ("operation",))

    def _arrivals(self, lines: _text.Lines, column: TraceColumn) -> Integers:
        if not column.from_first:
            return _times(lines, column)[0]
        times = lines.numbers(column.name)
        self._begin = int(times[0]) if self._begin is None else self._begin
        far = (times < self._begin) | (times - self._begin >= units.NEVER // column.unit)
        lines.refuse(far, f"{column.name} is before that of the first line, or far after it")
        return (times - self._begin) * column.unit

    def _names_and_numbers(self, device: Integers) -> tuple[Any, Integers]:
        """Labels and numbers of devices: numbers beyond those of a trace become labels."""
        numbers, each = np.unique(device, return_inverse=True)
        places = [self._numbers.of(number, number if number < _DEVICES else None) for number in numbers.tolist()]
        labels = ["" if place == number else str(number) for place, number in zip(places, numbers.tolist(), strict=True)]
        label = pa.DictionaryArray.from_arrays(pa.array(each.astype(np.int32)), pa.array(labels)) if any(labels) else ""
        return label, np.array(places, np.int64)[each]

    def _labels_and_places(self, lines: _text.Lines, column: TraceColumn) -> tuple[pa.Array, Integers]:
        """The labels of lines, and the place of each in order of appearance."""
        label = pc.fill_null(lines.table.column(column.name), "").combine_chunks().dictionary_encode()
        texts, each = label.dictionary.to_pylist(), label.indices.to_numpy()
        unfit = np.array([not re.fullmatch(column.pattern, text) for text in texts], np.bool_)
        lines.refuse(unfit[each], f"{column.name} must be of the form {column.pattern}")
        return label, np.array([self._places.setdefault(text, len(self._places)) for text in texts], np.int64)[each]


def _whole(lines: _text.Lines, column: TraceColumn) -> Integers:
    if not column.decimals:
        return lines.scaled_column(column.name, column.unit)
    exact = pc.multiply(lines.table.column(column.name).cast(pa.decimal256(53, 15)), pa.scalar(Decimal(column.unit), pa.decimal256(20)))
    lines.refuse(pc.not_equal(pc.floor(exact), exact).to_numpy(), f"{column.name} must be whole bytes")
    least, most = (pa.scalar(Decimal(bound), exact.type) for bound in (0, units.NEVER))
    beyond = pc.or_(pc.less(exact, least), pc.greater_equal(exact, most)).to_numpy()
    lines.refuse(beyond, f"{column.name} must be in [0, {units.NEVER} B)")
    return exact.cast(pa.int64()).to_numpy()


def _times(lines: _text.Lines, column: TraceColumn) -> tuple[Integers, _text.Bools]:
    """A column of times in ns, and which of them are known."""
    values = lines.table.column(column.name)
    if column.iso:
        return _instants(lines, column)
    rows = replace(lines, table=pa.table({column.name: pc.fill_null(values, 0)}))
    scale = rows.times if column.decimals else rows.scaled_column
    return scale(column.name, column.unit), values.is_valid().to_numpy()


def _instants(lines: _text.Lines, column: TraceColumn) -> tuple[Integers, _text.Bools]:
    """Dates and times in ns since 1970, and which of them are known."""
    texts = pc.utf8_trim_whitespace(pc.fill_null(lines.table.column(column.name).combine_chunks(), ""))
    known = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
    zoned = pc.if_else(pc.match_substring_regex(texts, _ZONE), texts, pc.binary_join_element_wise(texts, "Z", ""))
    times = np.zeros(len(texts), np.int64)
    try:
        times[known] = _nanoseconds(zoned.filter(pa.array(known)))
    except pa.ArrowInvalid:
        for row in np.flatnonzero(known):
            times[row] = -1
            with suppress(pa.ArrowInvalid):
                times[row : row + 1] = _nanoseconds(zoned[row : row + 1])
    lines.refuse((times < 0) | (times >= units.NEVER), f"{column.name} is not a date and time of ISO 8601 from 1970 to 2115")
    return times, known


def _nanoseconds(texts: pa.Array) -> Integers:
    return texts.cast(pa.timestamp("ns", "UTC")).cast(pa.int64()).to_numpy(zero_copy_only=False)


def _operations(lines: _text.Lines, column: TraceColumn) -> Integers:
    texts = lines.table.column(column.name).combine_chunks().dictionary_encode()
    operations = np.array([column.operation(text) for text in texts.dictionary.to_pylist()], np.int64)[texts.indices.to_numpy()]
    lines.refuse(operations < 0, f"{column.name} " + column.wrong)
    return operations


class ColumnsOfText(WritableFormat):
    """A format whose lines a table describes (see this module)."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        self.TITLE, self.LEAVES_OUT, self.LABELS = table["title"], table.get("leaves_out", ""), table.get("labels", ".*")
        self._name, self._table, self.EXAMPLE = name, table, table_example(table)
        self._separator, self._unknown = table["separator"], table.get("unknown", "")
        self._columns, self._words = list[TraceColumn](), dict[int, str]()
        for row in table["columns"]:
            means = {word: OPERATIONS.index(operation) for word, operation in row.get("words", {}).items()}
            self._words = self._words | {operation: word for word, operation in reversed(means.items())}
            self._columns.append(_column(row, means))
        held = frozenset(_SCHEMA.get(column.holds, column.holds) for column in self._columns)
        self.CARRIES = held | {"device"} if "label" in held and "label" not in table else held  # its number may stand for a label
        (self._time,) = (column for column in self._columns if column.holds == "time")
        self.RESOLUTION = 1 if self._time.decimals else self._time.unit
        if self._unknown:
            self.FILLS = {"completed": f"a {next(column.name for column in self._columns if column.holds == 'latency')} of {self._unknown}"}

    def recognise(self, path: Path) -> bool:
        """Judge whether lines fit the pattern, and times the unit.

        Times that are no whole numbers fit.  A trace with few requests a second shows that whole numbers are of another unit.
        """
        if not _text.looks_like(path, self._table["pattern"].encode()):
            return False
        if "longest_pause" not in self._table:
            return True
        words = [line.split()[self._columns.index(self._time)] for line in _text.head(path, _JUDGED) if line]
        times = [float(word) for word in words if re.fullmatch(rb"\d+(\.\d*)?", word)]
        has_fractions = any(b"." in word for word in words)
        return has_fractions or len(times) < 2 or max(times) - min(times) < self._table["longest_pause"] * (len(times) - 1)

    def basis(self, path: Path) -> str:
        return f"its first lines, {self._separator.join(column.name for column in self._columns)}: {', '.join(map(str, self._columns))}"

    def doubt(self, path: Path) -> str:
        """What of its header, or of its numbers, is as of a table of other columns or units."""
        lines = [line.split(None if self._separator == " " else b",") for line in _text.head(path, _JUDGED) if line]
        whole: dict[int, list[bool]] = {1: [], SECTOR: []}
        for at, column in enumerate(self._columns):
            fields = [line[at].strip().decode(errors="replace") for line in lines if len(line) > at]
            role, unit = guess(fields[0])
            if role and ({role, column.holds} not in ({role}, {"device", "label"}) or _UNITS.get(unit, column.unit) != column.unit):
                return f"its header has {fields[0]}, and not {column}"
            numbers = [int(field) for field in fields if field.isdecimal()]
            if column.holds in ("offset", "length"):
                whole[column.unit].append(all(number % SECTOR == 0 for number in numbers))
            elif column.holds == "time" and min(numbers, default=0) < self._table.get("earliest", 0):
                return f"its times are no dates in {units.format_duration(column.unit).removeprefix('1 ')} since 1970"
        if not all(whole[1]):
            return "its offsets or lengths are not all multiples of 512, as of a table in sectors"
        return "all its offsets and lengths are multiples of 512, as of a table in bytes" if all(whole[SECTOR]) and not whole[1] else ""

    def read(self, path: Path) -> Batches:
        reader, types = Reader(self._columns, self._unknown), {column.name: column.type for column in self._columns}
        edit, nulls = (self._without_blanks if self._table.get("loose") else None), [self._unknown] if self._unknown else []
        chunks = _text.read_words(path, types) if self._separator == " " else _text.read_csv(path, types, edit, nulls)
        yield from map(reader.batch, chunks)

    def _without_blanks(self, data: bytes) -> bytes:
        """Lines without blanks, and without fields after those that are named."""
        plain = data.replace(b" ", b"").replace(b"\t", b"")
        rest = re.compile(rb"^((?:[^,\n]*,){%d}[^,\n]*),.*$" % (len(self._columns) - 1), re.MULTILINE)
        return rest.sub(rb"\1", plain) if rest.search(plain) else plain

    def write(self, batches: Batches, path: Path) -> None:
        batches = self._none_before_the_first(batches) if self._time.from_first else batches
        _text.write_lines(path, batches, lambda batch: [self._values_of(batch, column) for column in self._columns], self._separator)

    def _none_before_the_first(self, batches: Batches) -> Batches:
        """Refuse requests that arrive before the first one, which would not be read again."""
        begin = None
        for batch in batches:
            times = _text.arrivals(batch, self._name)
            begin = int(times[0]) if begin is None and len(times) else begin
            if len(early := times[times < (begin or 0)]):
                bound = f"{self._name} holds no request that arrives before the first one, at {begin} ns"
                raise errors.InvalidParameterError("arrival", f"{early[0]} ns", bound)
            yield batch

    def _values_of(self, batch: pa.RecordBatch, column: TraceColumn) -> Any:
        match column.holds:
            case "operation":
                return _text.operations(batch, self._words, self._name)
            case "offset" | "length":
                return _text.whole(batch, column.holds, column.unit, self._name)
            case "time":
                arrival = _text.arrivals(batch, self._name)
                return _text.decimals(arrival, column.unit) if column.decimals else arrival // column.unit
            case "latency":
                latency = pc.fill_null(batch.column("completed"), 0).to_numpy() - _text.arrivals(batch, self._name)
                known = batch.column("completed").is_valid().to_numpy(zero_copy_only=False)
                return np.where(known, np.rint(latency / column.unit).astype(np.int64), int(self._unknown))
            case "label":
                return self._labels(batch)
            case _:
                return batch.column("device")

    def _labels(self, batch: pa.RecordBatch) -> pa.Array:
        label = pc.fill_null(batch.column("label").cast(pa.string()), "")
        has_label = pc.not_equal(label, "")
        for text in pc.unique(label.filter(has_label)).to_pylist():
            if not re.fullmatch(self.LABELS, text):
                raise errors.InvalidParameterError("label", repr(text), f"{self._name} holds only labels that fit {self.LABELS!r}")
        return pc.if_else(has_label, label, self._table.get("label", batch.column("device").cast(pa.string())))


def _column(row: Mapping[str, Any], means: Mapping[str, int]) -> TraceColumn:
    def operation(word: str) -> int:
        if not row.get("bit"):
            return means.get(word, -1)
        return means[str(int(word, 16) & 1)] if re.fullmatch("[0-9a-fA-F]{1,15}", word) else -1

    wrong = "must be hexadecimal" if row.get("bit") else f"must be one of {', '.join(means)}"
    return TraceColumn(**{key: value for key, value in row.items() if key not in ("words", "bit")}, operation=operation, wrong=wrong)

"""Tables of requests with a header: which column is what is told by its name, or by the user, and so are the units.

A name may end in its unit: ``time_us``, ``offset (bytes)``, ``size_kib``.  What a name does not tell is given as options of the format,
``csv:time=Stamp:ms,offset=Block:4KiB,length=Count:sectors,operation=Kind:0/1,device=Disk``: a role, the column, and after a colon its
unit, or, of the operation, the words for reads and writes.  In a file without a header columns are called by their numbers, from 1.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.request import FLUSH, READ, SECTOR, TRIM, WRITE, Integers
from flashsim.core.units import MICROSECONDS, MILLISECONDS, NEVER, SECONDS, parse_size
from traces.format import _text
from traces.format.base import Example, Format
from traces.schema import Batches, make_batch

TITLE = "CSV with a header of names"
LEAVES_OUT = "columns that are no part of a request"
GENERIC = True
EXAMPLE = Example(
    b"time_us,disk,op,lba,size_kib,latency_ms,note\n12,1,Read,8,4,0.5,a\n15.5,0,W,16,0.5,,b\n",
    [(READ, 4096, 4096, 12000), (WRITE, 8192, 512, 15500)],
)

_TIMES = {"s": SECONDS, "sec": SECONDS, "seconds": SECONDS, "ms": MILLISECONDS, "us": MICROSECONDS, "100ns": 100, "ns": 1}
_SIZES = {"b": 1, "bytes": 1, "byte": 1, "sectors": SECTOR, "sector": SECTOR, "kib": 1 << 10, "mib": 1 << 20, "kb": 1000, "mb": 10**6}
#: Names of columns, plain ones, by what they hold.
_NAMES = {
    "time": "time timestamp ts arrival arrival_time issue_time submit_time",
    "completed": "completed completion completion_time complete_time end_time",
    "latency": "latency response response_time responsetime service_time rt lat",
    "offset": "offset off address addr pos position byte_offset lba lbn sector start_sector sector_number",
    "length": "length len size bytes nbytes request_size io_size sectors nsectors sector_count",
    "operation": "operation op opcode type rw io_type iotype action request_type",
    "device": "device dev disk disk_number disknumber device_id volume volume_id volumeid lun asu",
    "label": "label host hostname file filename path",
}
_ROLES = {name: role for role, names in _NAMES.items() for name in names.split()}
#: Plain names that say their unit.
_IN_SECTORS = frozenset(["lba", "lbn", "sector", "start_sector", "sector_number", "sectors", "nsectors", "sector_count"])
_WORDS = {
    READ: "r read rs ra rd", WRITE: "w write ws wr", TRIM: "d discard trim unmap", FLUSH: "f flush sync fsync",
}  # fmt: skip
_OF_WORD = {word: operation for operation, words in _WORDS.items() for word in words.split()}
_DELIMITERS = ",;\t|"
#: What is a whole number, unless its unit is larger than a sector.
_PLACES = ("offset", "length", "device")


@dataclass(frozen=True)
class _Column:
    """A column of the file: its name, and its unit (ns, or bytes) or words."""

    name: str
    unit: int = 0
    words: tuple[str, ...] = ()


def recognise(path: Path) -> bool:
    """The first line has names of an offset and a length, and a line with as many fields follows."""
    lines = [line.decode(errors="replace") for line in _text.head(path)]
    if len(lines) < 2:
        return False
    delimiter, names = header(lines[0])
    found = {role for name in names if (role := _guess(name)[0])}
    return {"offset", "length"} <= found and lines[1].count(delimiter) == len(names) - 1


def read(path: Path) -> Batches:
    return _NamedColumns().read(path)


def configured(options: str) -> Format:
    """Columns by options."""
    columns = {}
    for option in options.split(","):
        role, equals, column = option.strip().partition("=")
        name, colon, unit = column.rpartition(":")
        if not equals or role not in _NAMES or not column:
            raise InvalidParameterError("columns", repr(option[:60]), f"it must be ROLE=NAME:UNIT with a role of {', '.join(_NAMES)}")
        if role in columns:
            raise InvalidParameterError("columns", repr(options[:60]), f"{role} is named twice")
        columns[role] = _with_unit(role, name if colon else column, unit if colon else "")
    names = [column.name for column in columns.values()]
    if len(set(names)) < len(names):
        raise InvalidParameterError("columns", repr(options[:60]), "no two roles may be of one column")
    return _NamedColumns(columns)


def _with_unit(role: str, name: str, unit: str) -> _Column:
    if role == "operation":
        return _Column(name, words=tuple(unit.split("/")) if unit else ())
    if role in ("device", "label"):
        return _Column(name)
    known = _TIMES if role in ("time", "completed", "latency") else _SIZES
    if unit.lower() in known:
        return _Column(name, known[unit.lower()])
    if known is _SIZES and re.fullmatch(r"\d+\s*[A-Za-z]+", unit) and parse_size(unit, f"unit of {role}"):
        return _Column(name, parse_size(unit))
    more = ", 4KiB" if known is _SIZES else ""
    raise InvalidParameterError(f"unit of column {name[:40]}", repr(unit[:40]), f"{role} needs one of {', '.join(known)}{more}")


def header(line: str) -> tuple[str, list[str]]:
    """What separates fields, and the names in a first line."""
    delimiter = max(_DELIMITERS, key=line.count)
    return delimiter, [name.strip().strip("\"'").strip() for name in line.lstrip("\ufeff").split(delimiter)]


def _guess(name: str) -> tuple[str, str]:
    """What a column of that name holds, and its unit; empty where the name does not say."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if plain in _ROLES:
        return _ROLES[plain], "sectors" if plain in _IN_SECTORS else "bytes" if _ROLES[plain] in ("offset", "length") else ""
    begin, _, unit = plain.rpartition("_")
    role = _ROLES.get(begin, "")
    return (role, unit) if unit in (_SIZES if role in ("offset", "length") else _TIMES) else ("", "")


class _NamedColumns:
    """A `Format` of files whose columns are what their names and the user say."""

    TITLE: str = TITLE
    LEAVES_OUT: str = LEAVES_OUT
    EXAMPLE: Example | None = None
    GENERIC: bool = True

    def __init__(self, columns: dict[str, _Column] | None = None) -> None:
        self._given = columns or {}
        self._labels: dict[str, int] = {}

    def recognise(self, path: Path) -> bool:
        return recognise(path)

    def configured(self, options: str) -> Format:
        return configured(options)

    def read(self, path: Path) -> Batches:
        """See `traces.format.base.Format.read`."""
        first, self._labels = 0, {}
        for lines, columns in self._parsed(path):
            batch = self._batch(lines, columns, first)
            yield batch
            first += batch.num_rows

    def _parsed(self, path: Path) -> Iterator[tuple[_text.Lines, dict[str, _Column]]]:
        delimiter, names, columns = ",", list[str](), dict[str, _Column]()
        for number, _, data in _text.chunks(path):
            body = data.replace(b'"', b"")
            if number == 1:
                title, _, rest = body.partition(b"\n")
                delimiter, names = header(title.decode(errors="replace"))
                if not any(re.fullmatch(r"-?[\d.]+", name) for name in names):
                    body, number = rest, 2
                else:
                    names = [str(place) for place in range(1, len(names) + 1)]
                columns = self._roles(path, names)
            types = dict.fromkeys(names, pa.string())
            for role, column in columns.items():
                if role not in ("operation", "label"):
                    types[column.name] = pa.int64() if column.unit <= SECTOR and role in _PLACES else _text.DECIMAL
            if body:
                yield _text.parse(path, number, body, types, delimiter, [""]), columns

    def _roles(self, path: Path, names: list[str]) -> dict[str, _Column]:
        """The column of each role: as it was given, or as the only one whose name says so."""
        if len(set(names)) < len(names):
            raise DamagedFileError(f"trace: {path}, line 1: two columns have the same name")
        for role, column in self._given.items():
            if column.name not in names:
                raise InvalidParameterError("columns", f"{role}={column.name[:60]}", f"{path} has {', '.join(names)[:200]}")
        columns, taken = dict(self._given), {column.name for column in self._given.values()}
        for role in _NAMES.keys() - columns.keys():
            guesses = [(name, unit) for name in names if name not in taken for of, unit in [_guess(name)] if of == role]
            if len(guesses) > 1:
                named = " or ".join(name for name, _ in guesses)
                raise DamagedFileError(f"trace: {path}, line 1: {named} could be the {role}; name one with --columns {role}=NAME:UNIT")
            for name, unit in guesses:
                if not unit and role in ("time", "completed", "latency"):
                    raise DamagedFileError(f"trace: {path}, line 1: {name} has no unit; name one with --columns {role}={name}:ms")
                columns[role] = _with_unit(role, name, unit)
        for role in ("offset", "length"):
            if role not in columns:
                raise DamagedFileError(f"trace: {path}, line 1: no column is the {role}; name one with --columns {role}=NAME:UNIT")
        return columns

    def _batch(self, lines: _text.Lines, columns: dict[str, _Column], first: int) -> pa.RecordBatch:
        for role, column in columns.items():
            if role not in ("completed", "latency", "label"):
                lines.refuse(lines.table.column(column.name).is_null().to_numpy(), f"{column.name} is empty")
        found: dict[str, Any] = {role: _whole(lines, columns[role]) for role in ("offset", "length")}
        lines.refuse(found["offset"] + found["length"] >= NEVER, "the request ends beyond any device")
        if "time" in columns:
            found["arrival"] = _times(lines, columns["time"])[0]
        for role, begin in (("completed", 0), ("latency", found.get("arrival"))):
            if role in columns and begin is not None and "completed" not in found:
                times, known = _times(lines, columns[role])
                lines.refuse(known & (times >= NEVER - begin), f"{columns[role].name} is too large")
                found["completed"] = pa.array(times + begin, pa.int64(), mask=~known)
        label: Any = ""
        if "label" in columns:
            texts = pc.fill_null(lines.table.column(columns["label"].name), "").combine_chunks()
            label = texts.dictionary_encode()
            numbers = [self._labels.setdefault(text, len(self._labels)) for text in label.dictionary.to_pylist()]
            found["device"] = np.array(numbers, np.int64)[label.indices.to_numpy()]
        if "device" in columns:
            found["device"] = _whole(lines, columns["device"])
        if "device" in found:
            lines.refuse(found["device"] >= 1 << 15, f"its device must be in [0, {1 << 15})")
        if "operation" in columns:
            found["operation"] = _operations(lines, columns["operation"])
        return make_batch(found, first, label, () if "operation" in columns else ("operation",))


def _whole(lines: _text.Lines, column: _Column) -> Integers:
    """A column in bytes, or of plain whole numbers."""
    if column.unit <= SECTOR:
        return lines.scaled(column.name, max(1, column.unit))
    exact = pc.multiply(lines.table.column(column.name).cast(pa.decimal256(53, 15)), pa.scalar(Decimal(column.unit), pa.decimal256(20)))
    lines.refuse(pc.not_equal(pc.floor(exact), exact).to_numpy(), f"{column.name} must be whole bytes")
    most = pa.scalar(Decimal(NEVER), exact.type)
    lines.refuse(pc.or_(pc.less(exact, pa.scalar(Decimal(0), exact.type)), pc.greater_equal(exact, most)).to_numpy(), _beyond(column))
    return exact.cast(pa.int64()).to_numpy()


def _beyond(column: _Column) -> str:
    return f"{column.name} must be in [0, {NEVER} B)"


def _times(lines: _text.Lines, column: _Column) -> tuple[Integers, _text.Bools]:
    """A column of times in ns, and which of them are known."""
    values = lines.table.column(column.name)
    filled = _text.Lines(lines.path, lines.first, pa.table({column.name: pc.fill_null(values, 0)}))
    return filled.times(column.name, column.unit), values.is_valid().to_numpy()


def _operations(lines: _text.Lines, column: _Column) -> Integers:
    texts = pc.utf8_trim_whitespace(lines.table.column(column.name)).combine_chunks().dictionary_encode()
    given = dict(zip(column.words, (READ, WRITE, TRIM, FLUSH), strict=False))
    words = [given.get(text, -1) if given else _OF_WORD.get(text.lower(), -1) for text in texts.dictionary.to_pylist()]
    found = np.array(words, np.int64)[texts.indices.to_numpy()]
    known = "/".join(given or ("R", "W"))
    lines.refuse(found < 0, f"{column.name} is no operation ({known}); name others with --columns operation={column.name}:READ/WRITE")
    return found

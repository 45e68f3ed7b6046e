"""Tables of io-tracer (cacheMon on GitHub, its document on output formats), with or without a line of names.

Block events (``ds_*.csv.gz``) are requests, which begin their latency before the time of their line.  Events of files (``fs_*.csv.gz``) are
calls, whose requests a host causes as in `traces.format.calls`.  Versions of the tool differ in the columns after the eighth.
"""

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from flashsim.core.errors import DamagedFileError, FlashsimWarning
from flashsim.core.request import FLUSH, READ, SECTOR, TRIM, WRITE
from flashsim.core.units import MICROSECONDS, MILLISECONDS, NEVER
from flashsim.storage.packed_files import open_bytes
from traces.calls.page_cache import HostSettings
from traces.calls.schema import DIRECT, Recording, is_possible, lines_of, table_in_time
from traces.calls.syntax import MODES, kind_of
from traces.file.schema import Batches, make_batch
from traces.format._text import DeviceNumbers, looks_like
from traces.format.base import Example
from traces.format.calls import RecordingInText

_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?"
_BLOCK_NAMES = "timestamp,pid,command,sector,operation,size,latency_ms,tid"
_FILE_NAMES = "timestamp,operation,pid,command,filename,size,inode,flags"
_BLOCK = rf"{_BLOCK_NAMES},.*|{_TIME},\d+,[^,]*,\d+,[a-z_]+,\d+,[\d.]*,\d*,.*".encode()
_FILE = rf"{_FILE_NAMES}.*|{_TIME},[A-Z][A-Z_]+,\d+,.*,\d+,[\d:]*,[^,]*(?:,[^,]*)*".encode()
#: Columns after the eighth, by how many columns there are.
_MORE_OF_FILES = {9: ["latency_ns"], 10: ["offset", "tid"], 11: ["latency_ns", "offset", "tid"]}
_MORE_OF_BLOCKS = {count: ["cpu_id", "ppid", "dev"] for count in (12, 13)}
_OPERATIONS = {"read": READ, "write": WRITE, "flush": FLUSH, "discard": TRIM, "secure_erase": TRIM}
_CALLS = {"READ": "pread64", "DIO_READ": "pread64", "WRITE": "pwrite64", "DIO_WRITE": "pwrite64", "FSYNC": "fsync", "SYNC": "sync"}
_CALLS |= {"OPEN": "openat", "UNLINK": "unlink", "RENAME": "rename", "LINK": "link", "FALLOCATE": "fallocate"}
#: Operations that move bytes or change files in a way that the table does not tell.
_UNSEEN = ("TRUNCATE", "SENDFILE", "SPLICE", "VMSPLICE", "MSYNC")


def recording_of(lines: Iterable[str], source: Path) -> Recording:
    """The recording that a table of file events tells; a `DamagedFileError` names its source and a line that is no such event."""
    missed: dict[str, set[str]] = {}
    return Recording(table_in_time(_calls(lines, source, missed)), missed=lines_of(missed))


def _events(lines: Iterable[str], source: Path, names: str, more: Mapping[int, list[str]]) -> Iterator[tuple[int, dict[str, str]]]:
    """Events by the names of their columns, with the numbers of their lines."""
    for number, fields in enumerate(csv.reader(lines), 1):
        columns = names.split(",")
        columns += more.get(len(fields), [])
        if not fields or (number == 1 and fields[0] == "timestamp"):
            continue
        if len(fields) < len(columns) or not re.fullmatch(_TIME, fields[0]):
            raise DamagedFileError(f"trace: {source}, line {number}: it is not an event of io-tracer: {','.join(fields)[:60]!r}")
        yield number, dict(zip(columns, fields, strict=False))


def _nanoseconds(text: str) -> int:
    """A time as ns since 1970; the zone, which the table does not tell, is taken for UTC."""
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _BEGIN) // timedelta(microseconds=1) * MICROSECONDS


def _calls(lines: Iterable[str], source: Path, missed: dict[str, set[str]]) -> Iterator[dict[str, Any]]:
    files: dict[str, int] = {}
    latest: dict[int, dict[str, Any]] = {}
    begin = None
    for number, event in _events(lines, source, _FILE_NAMES, _MORE_OF_FILES):
        if "offset" not in event:
            why = "this version of io-tracer tells no offsets of reads and writes; its block events (ds_*.csv.gz) can be read"
            raise DamagedFileError(f"trace: {source}, line {number}: {why}")
        try:
            row, time = _call(event, files), _nanoseconds(event["timestamp"])
            begin = time if begin is None else begin
            row |= {"time": max(time - begin, 0)}
            if not is_possible(row):
                raise ValueError
        except ValueError:
            raise DamagedFileError(f"trace: {source}, line {number}: it is not an event of io-tracer: {event!s:.60}") from None
        name, thread = event["operation"], row["thread"]
        if name in _UNSEEN:
            missed.setdefault("what events did", set()).add(name)
        elif name in _CALLS and not event["filename"] and name != "SYNC":
            missed.setdefault("events of files without a name", set()).add(name)
        elif name.startswith("DIO_"):
            seen = latest.pop(thread, None)
            if seen and all(seen[key] == row[key] for key in ("call", "file", "offset", "length")):
                yield seen | {"flags": seen["flags"] | DIRECT}  # the same bytes: two probes saw them
            else:
                yield from (each for each in (seen, row) if each)
        elif name in _CALLS:
            if thread in latest:
                yield latest.pop(thread)
            latest[thread] = row
    yield from latest.values()


def _call(event: Mapping[str, str], files: dict[str, int]) -> dict[str, Any]:
    """The row of an event, without its time; files are numbered by their inode, or else by their name."""
    name, (path, _, other) = event["operation"], (each.strip() for each in event["filename"].partition("->"))
    inode = event["inode"].partition(":")[0]
    key = path if inode in ("", "0") else inode
    size, process = int(event["size"] or 0), int(event["pid"])
    flags = sum(MODES.get(word, 0) for word in set(event["flags"].split("|"))) | DIRECT * name.startswith("DIO_")
    return {
        **{"process": process, "thread": int(event.get("tid") or process), "call": _CALLS.get(name, ""), "kind": kind_of(path or "/")},
        **{"file": files.setdefault(key, len(files)), "path": path, "other": other or None, "offset": int(event["offset"] or 0)},
        **{"length": size, "result": size, "flags": flags, "duration": int(event.get("latency_ns") or 0)},
    }


def _requests(lines: Iterable[str], source: Path) -> Batches:
    """Requests in order of their arrival, which is when the drive got them; the table has them in order of completion."""
    rows, numbers, others = list[tuple[int, int, int, int, int, str]](), DeviceNumbers(), set[str]()
    for number, event in _events(lines, source, _BLOCK_NAMES, _MORE_OF_BLOCKS):
        try:
            completed = _nanoseconds(event["timestamp"])
            arrival = completed - round(float(event["latency_ms"] or 0) * MILLISECONDS)
            offset, size, operation = int(event["sector"]) * SECTOR, int(event["size"]), _OPERATIONS.get(event["operation"], -1)
        except (ValueError, OverflowError):
            operation, offset, size, arrival = READ, NEVER, 0, 0
        if operation < 0:
            others.add(event["operation"])
            continue
        operation = FLUSH if operation == WRITE and not size else operation
        if offset + size >= NEVER or arrival < 0 or (not size) != (operation == FLUSH):
            raise DamagedFileError(f"trace: {source}, line {number}: its sector, size, operation or latency is of no request")
        rows.append((arrival, completed, operation, offset * bool(size), size, event.get("dev", "").replace(":", ",")))
    if others:
        warnings.warn(
            f"trace: {source}: events that are no requests are left out: {', '.join(sorted(others))}", FlashsimWarning, stacklevel=2
        )
    if rows:
        *values, device = zip(*sorted(rows, key=lambda row: row[:2]), strict=True)
        names = ("arrival", "completed", "operation", "offset", "length")
        columns = {name: pa.array(each, pa.int64()).to_numpy() for name, each in zip(names, values, strict=True)}
        columns["device"] = pa.array([numbers.of(name) for name in device], pa.int64()).to_numpy()
        yield make_batch(columns, 0, pa.array(device).dictionary_encode() if any(device) else "", ())


class _IoTracer(RecordingInText):
    NAME = "io-tracer"
    TITLE = "tables of io-tracer: block events, or events of files through a page cache and a file system"
    BASIS = "columns of ds_*.csv or fs_*.csv; dates, latencies in ms, sectors, sizes in bytes"
    LEAVES_OUT = "processes, queue times and flags of requests; of events of files as `calls`, and how files were cut, spliced or mapped"
    recording_of = staticmethod(recording_of)

    def recognise(self, path: Path) -> bool:
        return looks_like(path, _BLOCK) or looks_like(path, _FILE)

    def read(self, path: Path) -> Batches:
        if not looks_like(path, _BLOCK):
            yield from super().read(path)
            return
        with io.TextIOWrapper(open_bytes(path), "utf-8", "backslashreplace") as lines:
            yield from _requests(lines, path)


_host = _IoTracer(HostSettings())
TITLE, LEAVES_OUT, BASIS = _host.TITLE, _host.LEAVES_OUT, _host.BASIS
recognise, with_options, read = _host.recognise, _host.with_options, _host.read
EXAMPLE = Example(
    b"""timestamp,pid,command,sector,operation,size,latency_ms,tid,cpu_id,ppid,dev,queue_time_ms
2024-01-15 10:30:45.123456,1234,python3,2048000,write,8192,1.234,1235,0,1233,8:0,0.123
2024-01-15 10:30:45.123556,1234,python3,2048016,read,4096,1.567,1235,1,1233,8:0,0.045
2024-01-15 10:30:45.345678,1234,python3,0,flush,0,2.345,1235,2,1233,8:0,
""",
    [
        (READ, 2048016 * SECTOR, 4096, 1_705_314_645_121_989_000),
        (WRITE, 2048000 * SECTOR, 8192, 1_705_314_645_122_222_000),
        (FLUSH, 0, 0, 1_705_314_645_343_333_000),
    ],
)

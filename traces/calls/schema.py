"""The schema of recorded system calls, a Parquet file: a row a call, in order of their begin.

========  ======  ====================================================================================================
column    unit    meaning
========  ======  ====================================================================================================
time      ns      begin of the call, since the first one
duration  ns      null where the call did not return
process           the process's number
thread            the thread's number
call              name of the system call
kind              of what the call works on: file, or pipe, socket, terminal, kernel (``/proc``, ``/sys``), memory, device, other
file              number of the file, which renames and links do not change; -1: none
path              at the time of the call
offset    bytes   in the file; null where it is not known, or has no meaning
length    bytes   asked for; of truncate and fallocate the new size
result            as the call returned it: bytes, or 0; of a wait the process that has ended; null where it did not return
error             such as ENOSPC; null for none
flags             bits of `FLAGS`
other             of a rename or link the new path, of a copy within the kernel the path of the other file
content           bytes written, if contents were recorded
========  ======  ====================================================================================================

What the recording misses stands in the file's metadata, in words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flashsim.core.errors import DamagedFileError, MissingFileError
from flashsim.core.units import NEVER

VERSION = 1
_ROWS = 1 << 16
#: Threads' numbers and the bytes of one call are below this.
_MOST = 1 << 31
KEY = b"flashsim.calls"
_NAME = pa.dictionary(pa.int32(), pa.string())
_KINDS = {"time": "int64", "duration": "int64", "process": "int32", "thread": "int32", "call": _NAME, "kind": _NAME, "file": "int32"}
_KINDS |= {"path": _NAME, "offset": "int64", "length": "int64", "result": "int64", "error": _NAME, "flags": "int16", "other": _NAME}
_NULLABLE = ("duration", "path", "offset", "length", "result", "error", "other", "content")
SCHEMA = pa.schema([pa.field(name, kind, name in _NULLABLE) for name, kind in {**_KINDS, "content": "large_binary"}.items()])
#: Flags of the open file, and of the call itself, by bit; what is printed is written to standard output, an exchange renames two paths.
FLAGS = ("direct", "sync", "dsync", "append", "create", "truncate", "exclusive", "shared", "data-only", "printed", "exchange")
DIRECT, SYNC, DSYNC, APPEND, CREATE, TRUNCATE, EXCLUSIVE, SHARED, DATA_ONLY, PRINTED, EXCHANGE = (1 << bit for bit in range(len(FLAGS)))
#: What a recording misses of copies that the kernel makes from one file to another.
COPIED = "bytes that the kernel copied from file to file"
#: Calls that bring bytes from a file, that take bytes to one, and that ask for what was written to be durable.
READS = ("read", "pread64", "readv", "preadv", "preadv2", "io_read")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2", "io_write")
SYNCS = ("fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs", "io_fsync")


@dataclass
class Call:
    """A recorded call, with columns of `SCHEMA`."""

    time: int
    duration: int | None
    process: int
    thread: int
    call: str
    file: int
    path: str | None
    offset: int | None
    length: int | None
    result: int | None
    flags: int
    other: str | None

    @property
    def end(self) -> int:
        return self.time + (self.duration or 0)

    @property
    def reach(self) -> int:
        """The byte at which what was read or written ends."""
        return (self.offset or 0) + max(0, self.result or 0)


@dataclass
class Recording:
    """Calls of a program."""

    #: Of `SCHEMA`, shape (calls,).
    table: pa.Table
    #: The program and its arguments; empty where a running process was attached to.
    command: Sequence[str] = ()
    #: What the program did that the recording does not show, a line each.
    missed: Sequence[str] = ()
    #: Numbers about the recording: seconds, the program's exit code, and what recording cost.
    facts: Mapping[str, Any] = field(default_factory=dict)
    #: Where files lie on their device after the run, by path, if that was asked for: byte of the file, byte of the device, and length.
    extents: Mapping[str, Sequence[tuple[int, int, int]]] = field(default_factory=dict)

    def write(self, path: Path | BinaryIO, provenance: Mapping[str, Any]) -> None:
        about = {"version": VERSION, "command": list(self.command), "missed": list(self.missed), "facts": dict(self.facts)}
        about |= {"extents": dict(self.extents)} if self.extents else {}
        metadata = {KEY: json.dumps(about | {"provenance": provenance}).encode()}
        pq.write_table(self.table.replace_schema_metadata(metadata), path, compression="zstd", write_page_checksum=True)

    @classmethod
    def read(cls, path: Path) -> Recording:
        """The recording that a file holds.

        Raises
        ------
        MissingFileError, DamagedFileError
            There is no file; it is no recording, or is cut short.
        """
        if not path.is_file():
            raise MissingFileError(f"recording: no file at {path}")
        try:
            table = pq.read_table(path, page_checksum_verification=True)
            about = json.loads((table.schema.metadata or {})[KEY])
            table = table.select(SCHEMA.names).cast(SCHEMA)
        except KeyError:
            raise DamagedFileError(f"{path}: it is not a recording of a program (flashsim record makes one)") from None
        except (pa.ArrowException, OSError, TypeError, ValueError) as problem:
            raise DamagedFileError(f"{path}: it cannot be read as a recording: {str(problem).splitlines()[0]}") from problem
        if about.get("version") != VERSION:
            raise DamagedFileError(f"{path}: a recording of version {about.get('version')}, but this flashsim reads {VERSION}")
        return cls(table, about["command"], about["missed"], about["facts"], about.get("extents", {}))


def is_possible(row: Mapping[str, Any]) -> bool:
    """Whether a call's numbers are ones that there are, and it moves no more bytes than Linux lets one move."""
    moved = row.get("result") if row["call"] in READS + WRITES else 0
    threads = abs(row["process"]), abs(row["thread"])
    return (moved or 0) < _MOST and max(threads) < _MOST and all(abs(value) < NEVER for value in row.values() if isinstance(value, int))


def table_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table of `SCHEMA`; what a row lacks is null."""
    return pa.Table.from_pylist(list(rows), SCHEMA)


def lines_of(missed: Mapping[str, Iterable[str]]) -> list[str]:
    """Lines of a report about missing calls, one a kind, with some of the places."""
    kinds = ((what, sorted(where)) for what, where in sorted(missed.items()))
    return [f"{what}: {', '.join(where[:3])}" + f" and {len(where) - 3} more" * (len(where) > 3) for what, where in kinds]


def table_in_time(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows in any order as a table in the order of their times, in little memory beyond that of the table."""
    rows = iter(rows)
    parts = [table_of(())]
    while part := [*islice(rows, _ROWS)]:
        parts.append(table_of(part))
    table = pa.concat_tables(parts).unify_dictionaries()
    return table.take(pc.sort_indices(table, [("time", "ascending")])).cast(SCHEMA)

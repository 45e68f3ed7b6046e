"""Memory of a process that stands for a file: what is written to it is no system call, and only that it may be written is seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traces.calls import schema
from traces.calls.descriptors import Observed, Process
from traces.calls.syntax import integer_of

#: What a recording says of a file that was written so.
MAPPED = "writes through memory that stands for a file (mmap)"


def mapping(reader: Observed, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Memory stands for a file."""
    if base["error"] is not None or len(arguments) < 6:
        return
    length = integer_of(arguments[1]) or 0
    begin = base["result"] or 0
    _forget(process, begin, begin + length)
    if arguments[4].startswith("-1"):
        return
    _, row = reader.on(process, arguments[4], base)
    if row["kind"] != "file":
        return
    is_shared = "MAP_SHARED" in arguments[3]
    if is_shared and "PROT_WRITE" in arguments[2]:
        reader.miss(MAPPED, row["path"])
    elif is_shared:
        process.mapped.append((begin, begin + length, row["path"]))
    flags = row["flags"] | schema.SHARED * is_shared
    yield row | {"offset": integer_of(arguments[5]), "length": length, "flags": flags, "result": 0}


def protect(reader: Observed, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Memory may be written from now on."""
    begin, length = integer_of(arguments[0]) or 0, integer_of(arguments[1]) or 0
    if base["error"] is None and "PROT_WRITE" in arguments[2]:
        for first, last, path in process.mapped:
            if first < begin + length and begin < last:
                reader.miss(MAPPED, path)
    yield from ()


def move(reader: Observed, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Memory is moved, or has another length."""
    old, new = integer_of(arguments[0]) or 0, base["result"]
    if base["error"] is None and new is not None:
        paths = {path for first, last, path in process.mapped if first <= old < last}
        _forget(process, new, new + (integer_of(arguments[2]) or 0))
        process.mapped += [(new, new + (integer_of(arguments[2]) or 0), path) for path in sorted(paths)]
    yield from ()


def _forget(process: Process, begin: int, end: int) -> None:
    """Memory stands for something else."""
    if process.mapped:
        parts = ((part, path) for first, last, path in process.mapped for part in ((first, min(last, begin)), (max(first, end), last)))
        process.mapped[:] = [(*part, path) for part, path in parts if part[0] < part[1]]

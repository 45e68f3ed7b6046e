"""Calls that make, rename and remove names of files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traces.calls import schema
from traces.calls.descriptors import Observed, OpenFile, Process
from traces.calls.syntax import descriptor_of, string_of

#: Calls that make, rename or remove names.
CALLS = "rename renameat renameat2 unlink unlinkat rmdir mkdir mkdirat link linkat symlink symlinkat"


def name(reader: Observed, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A path comes, goes, or stands for another file."""
    call, relative = base["call"], "at" in base["call"]
    if base["error"] is not None or base["result"] is None:
        return
    if call.startswith("symlink"):
        yield base | {"path": _entry(reader, process, arguments[1:], relative), "kind": "file", "other": string_of(arguments[0])}
        return
    old = _entry(reader, process, arguments, relative)
    opened = None
    if call == "linkat" and "AT_" in arguments[-1]:
        opened, old = _source(reader, process, arguments, old)
    row = base | {"path": old, "kind": "file"}
    if call.startswith(("rename", "link")):
        new, is_exchange = _entry(reader, process, arguments, relative, 1 + relative), "RENAME_EXCHANGE" in arguments[-1]
        row |= {"file": opened.file if opened else reader.names.number(old), "other": new, "flags": schema.EXCHANGE * is_exchange}
        if call.startswith("link"):
            reader.names.linked(row["file"], new)
        else:
            reader.names.renamed(old, new, is_exchange)
    elif call.startswith("unlink"):
        row["file"] = reader.names.number(old)
        reader.names.removed(old)
    yield row


def move_root(reader: Observed, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Paths of a process begin elsewhere."""
    if base["error"] is None:
        reader.miss("names that a process gave below another root (chroot)", f"process {process.number}")
    yield from ()


def _entry(reader: Observed, process: Process, arguments: list[str], relative: bool, at: int = 0) -> str:
    """The absolute path of a name that a call makes, renames or removes, of which a symbolic link in its folder's path is followed."""
    return reader.names.real(reader.named(process, arguments, relative, at), False)


def _source(reader: Observed, process: Process, arguments: list[str], path: str) -> tuple[OpenFile | None, str]:
    """The open file that a call links by its descriptor, if by one, and a path; a symbolic link in the path may be followed."""
    opened = process.at(path)
    if opened is None and "AT_EMPTY_PATH" in arguments[-1]:
        opened = process.descriptors.get(descriptor_of(arguments[0]).number)
    path = (reader.names.path_of(opened.file) if opened else None) or path
    return opened, reader.names.real(path, "AT_SYMLINK_FOLLOW" in arguments[-1])

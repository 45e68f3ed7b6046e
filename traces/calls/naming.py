"""Calls that make, rename and remove names of files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from traces.calls.descriptors import Observed, Process
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
    if call == "linkat" and "AT_" in arguments[-1]:
        old = _source(reader, process, arguments, old)
    row = base | {"path": old, "kind": "file"}
    if call.startswith(("rename", "link")):
        new = _entry(reader, process, arguments, relative, 1 + relative)
        row |= {"file": reader.names.number(old), "other": new}
        if call.startswith("link"):
            reader.names.linked(old, new)
        else:
            reader.names.renamed(old, new, "RENAME_EXCHANGE" in arguments[-1])
    elif call.startswith("unlink"):
        row["file"] = reader.names.number(old)
        reader.names.removed(old)
    yield row


def _entry(reader: Observed, process: Process, arguments: list[str], relative: bool, at: int = 0) -> str:
    """The absolute path of a name that a call makes, renames or removes, of which a symbolic link in its folder's path is followed."""
    return reader.names.real(reader.named(process, arguments, relative, at), False)


def _source(reader: Observed, process: Process, arguments: list[str], path: str) -> str:
    """The path of the file that a call links by its descriptor, or by a symbolic link that is followed."""
    match = re.fullmatch(r"/proc/(?:self|thread-self|\d+)/fd/(\d+)", path)
    number = int(match[1]) if match else descriptor_of(arguments[0]).number
    opened = process.descriptors.get(number) if match or "AT_EMPTY_PATH" in arguments[-1] else None
    path = (reader.names.path_of(opened.file) if opened else None) or path
    return reader.names.real(path, "AT_SYMLINK_FOLLOW" in arguments[-1])

"""Calls on names, on memory that stands for a file, and on files within the kernel, as rows; None where a call has no row.

What is written to mapped memory is no system call: only that it may be written is seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from traces.calls import schema
from traces.calls.processes import OpenFile, PathNamespace, Process
from traces.calls.syntax import STRING, descriptor_of, integer_of, string_of, unhex

#: Calls that make, rename or remove names.
NAMING = "rename renameat renameat2 unlink unlinkat rmdir mkdir mkdirat link linkat symlink symlinkat"
#: What a recording says of a file that is written through memory, and of a process with a ring of io_uring.
MAPPED, RINGS = "writes through memory that stands for a file (mmap)", "requests of io_uring, which are no system calls"
_CONTROL_BLOCK = re.compile(r"aio_lio_opcode=IOCB_CMD_(\w+).*?aio_fildes=([^,]+)")
_NUMBER = re.compile(r"aio_(nbytes|offset)=(\d+)")


class CallReader(Protocol):
    """What a call needs of the reader of a recording: `traces.calls.strace.StraceReader` says what its members mean."""

    contents: bool
    names: PathNamespace
    copied: Callable[[str, int, int], bytes | None]

    def miss(self, what: str, where: str) -> None: ...
    def on(self, process: Process, text: str, base: dict[str, Any]) -> tuple[OpenFile, dict[str, Any]]: ...
    def path_of(self, process: Process, arguments: list[str], relative: bool, at: int = 0) -> str: ...
    def is_output(self, opened: OpenFile, row: dict[str, Any]) -> bool: ...


def name(reader: CallReader, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
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
            reader.names.link(row["file"], new)
        else:
            reader.names.rename(old, new, is_exchange)
    elif call.startswith("unlink"):
        row["file"] = reader.names.number(old)
        reader.names.remove(old)
    yield row


def move_root(reader: CallReader, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
    """Paths of a process begin elsewhere."""
    if base["error"] is None:
        reader.miss("names that a process gave below another root (chroot)", f"process {process.number}")


def _entry(reader: CallReader, process: Process, arguments: list[str], relative: bool, at: int = 0) -> str:
    """The absolute path of a name that a call makes, renames or removes, of which a symbolic link in its folder's path is followed."""
    return reader.names.real(reader.path_of(process, arguments, relative, at), False)


def _source(reader: CallReader, process: Process, arguments: list[str], path: str) -> tuple[OpenFile | None, str]:
    """The open file that a call links by its descriptor, if by one, and a path; a symbolic link in the path may be followed."""
    opened = process.at(path)
    if opened is None and "AT_EMPTY_PATH" in arguments[-1]:
        opened = process.descriptors.get(descriptor_of(arguments[0]).number)
    path = (reader.names.path_of(opened.file) if opened else None) or path
    return opened, reader.names.real(path, "AT_SYMLINK_FOLLOW" in arguments[-1])


def map_memory(reader: CallReader, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if base["error"] is not None or len(arguments) < 6:
        return
    length = integer_of(arguments[1]) or 0
    begin = base["result"] or 0
    _unmap(process, begin, begin + length)
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


def protect_memory(reader: CallReader, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
    """Memory may be written from now on."""
    begin, length = integer_of(arguments[0]) or 0, integer_of(arguments[1]) or 0
    if base["error"] is None and "PROT_WRITE" in arguments[2]:
        for first, last, path in process.mapped:
            if first < begin + length and begin < last:
                reader.miss(MAPPED, path)


def move_memory(reader: CallReader, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
    old, new = integer_of(arguments[0]) or 0, base["result"]
    if base["error"] is None and new is not None:
        paths = {path for first, last, path in process.mapped if first <= old < last}
        _unmap(process, new, new + (integer_of(arguments[2]) or 0))
        process.mapped += [(new, new + (integer_of(arguments[2]) or 0), path) for path in sorted(paths)]


def _unmap(process: Process, begin: int, end: int) -> None:
    if process.mapped:
        parts = ((part, path) for first, last, path in process.mapped for part in ((first, min(last, begin)), (max(first, end), last)))
        process.mapped[:] = [(*part, path) for part, path in parts if part[0] < part[1]]


def ring(reader: CallReader, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
    """A ring of io_uring is made, whose requests are no system calls."""
    if base["error"] is None:
        reader.miss(RINGS, f"process {process.number}")


def submit(reader: CallReader, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Requests of libaio are submitted: a row each; they are taken to read and write all that they ask for."""
    blocks = re.split(r"\}, \{", arguments[2]) if len(arguments) > 2 else []
    for block in blocks[: base["result"] or 0]:
        match = _CONTROL_BLOCK.search(block)
        if match is None:
            continue
        opened, row = reader.on(process, match[2], base)
        numbers = {name: int(value) for name, value in _NUMBER.findall(block)}
        length = numbers.get("nbytes", 0)
        if match[1] in ("PREAD", "PREADV", "PWRITE", "PWRITEV", "FSYNC", "FDSYNC"):
            call = "io_fsync" if "SYNC" in match[1] else "io_read" if "READ" in match[1] else "io_write"
            length = sum(int(each) for each in re.findall(r"iov_len=(\d+)", block)) or length
            place = numbers.get("offset")
            if call == "io_write" and opened.flags & schema.APPEND:
                place = reader.names.sizes.get(opened.file)
            if call == "io_write" and place is not None:
                reader.names.grow(opened.file, place + length)
            if call == "io_write" and reader.contents:
                row["content"] = b"".join(unhex(each) for each, _ in STRING.findall(block))
                if len(row["content"]) < length:
                    reader.miss("all bytes that were written", row["path"])
            process.submitted[0 if call == "io_fsync" else length] += 1
            yield row | {"call": call, "offset": place, "length": length, "result": length}


def complete(reader: CallReader, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
    """Requests of libaio have ended; which one an event is of is not known, but whether all did what they were asked for."""
    for text in re.findall(r"\bres=(-?\d+)", " ".join(arguments)):
        if process.submitted[int(text)] <= 0:
            reader.miss("which requests of libaio failed, or moved less than they were asked for", f"process {process.number}")
        process.submitted[int(text)] -= 1


def transfer(reader: CallReader, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Bytes go from one file to another within the kernel: a read and a write."""
    call, count = base["call"], base["result"] or 0
    if base["error"] is not None:
        return
    source: dict[str, Any] = {}
    first, second = (1, 0) if call == "sendfile" else (0, 2)
    places = (arguments[2], "NULL") if call == "sendfile" else (arguments[1], arguments[3])
    for name, text, place_text in (("read", arguments[first], places[0]), ("write", arguments[second], places[1])):
        opened, row = reader.on(process, text, base)
        number = re.search(r"\d+", place_text)
        place = int(number[0]) if number else reader.names.place(opened, name == "write")
        if number is None and opened.position is not None:
            opened.position += count
        if name == "write" and opened.file >= 0 and place is not None:
            reader.names.grow(opened.file, place + count)
        other = descriptor_of(arguments[second if name == "read" else first]).path
        row |= {"call": name, "offset": place if opened.file >= 0 else None, "length": count, "other": other}
        if name == "read":
            source = row
        elif count:
            _keep(reader, source, row, reader.is_output(opened, row))
        yield row


def _keep(reader: CallReader, source: dict[str, Any], row: dict[str, Any], is_printed: bool) -> None:
    """Give a write within the kernel the bytes of its source, if contents are kept, and the source has not changed since."""
    if reader.contents and (row["kind"] == "file" or is_printed):
        is_placed = source["kind"] == "file" and source["offset"] is not None
        row["content"] = reader.copied(source["path"], source["offset"], row["length"]) if is_placed else None
        if row["content"] is None and not is_printed:
            reader.miss(schema.COPIED, row["path"])
    if is_printed and row.get("content") is None:
        reader.miss("what was printed by the kernel (sendfile, splice)", row["path"])
    elif is_printed:
        row["flags"] |= schema.PRINTED


def end_process(reader: CallReader, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    text = " ".join(arguments)
    said = re.search(r"si_pid=(\d+)", text) if base["call"] == "waitid" else None
    number = int(said[1]) if said else base["result"] or 0
    if base["error"] is None and number > 0 and not re.search("(WIF|CLD_)(STOPPED|CONTINUED|TRAPPED)", text):
        yield base | {"result": number}

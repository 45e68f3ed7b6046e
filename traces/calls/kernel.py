"""Reads and writes that the kernel does for a program: requests of libaio, copies from file to file, and rings of io_uring."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from traces.calls import schema
from traces.calls.descriptors import Observed, Process
from traces.calls.syntax import STRING, descriptor_of, unhex

_CONTROL_BLOCK = re.compile(r"aio_lio_opcode=IOCB_CMD_(\w+).*?aio_fildes=([^,]+)")
_NUMBER = re.compile(r"aio_(nbytes|offset)=(\d+)")
#: What a recording says of a process with a ring of io_uring.
RINGS = "requests of io_uring, which are no system calls"


def ring(reader: Observed, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A ring of io_uring is made, whose requests are no system calls."""
    if base["error"] is None:
        reader.miss(RINGS, f"process {process.number}")
    yield from ()


def submit(reader: Observed, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
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
                reader.names.grown(opened.file, place + length)
            if call == "io_write" and reader.contents:
                row["content"] = b"".join(unhex(each) for each, _ in STRING.findall(block))
                if len(row["content"]) < length:
                    reader.miss("all bytes that were written", row["path"])
            process.submitted[0 if call == "io_fsync" else length] += 1
            yield row | {"call": call, "offset": place, "length": length, "result": length}


def complete(reader: Observed, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Requests of libaio have ended; which one an event is of is not known, but whether all did what they were asked for."""
    for text in re.findall(r"\bres=(-?\d+)", " ".join(arguments)):
        if process.submitted[int(text)] <= 0:
            reader.miss("which requests of libaio failed, or moved less than they were asked for", f"process {process.number}")
        process.submitted[int(text)] -= 1
    yield from ()


def transfer(reader: Observed, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
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
            reader.names.grown(opened.file, place + count)
        other = descriptor_of(arguments[second if name == "read" else first]).path
        row |= {"call": name, "offset": place if opened.file >= 0 else None, "length": count, "other": other}
        if name == "read":
            source = row
        elif count:
            _keep(reader, source, row, reader.is_output(opened, row))
        yield row


def _keep(reader: Observed, source: dict[str, Any], row: dict[str, Any], is_printed: bool) -> None:
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

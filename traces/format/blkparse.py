"""What blkparse prints by default: ``major,minor cpu sequence seconds pid action rwbs sector + sectors [process]``; it is only read.

A request here is what the driver was given (action D); it arrived then and completed at the C of the same device and extent.  Where a
file holds no D (drivers without a queue), its Q are taken.  Other actions are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.errors import DamagedFileError
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, SECTOR, TRIM, WRITE, Integers
from flashsim.core.units import NEVER
from traces.format import _text
from traces.schema import Batches, make_batch

TITLE = "blkparse text"

_BEGIN = rb"[ \t]*(\d+),(\d+)[ \t]+\d+[ \t]+\d+[ \t]+(\d+)\.(\d{9})[ \t]+\d+[ \t]+([A-Zm])[ \t]++"
_ANY_EVENT = re.compile(_BEGIN)
#: What follows the events: a summary by processor, or of everything.
_SUMMARY = re.compile(rb"^(CPU\d* ?\(.*\):?|Total \(.*\):)", re.MULTILINE)
_WANTED = re.compile(rb"^" + _BEGIN.replace(b"([A-Zm])", b"([DQC])") + rb"([A-Z]+)[ \t]+(\d+)[ \t]+\+[ \t]+(\d+)[ \t].*$", re.MULTILINE)
_FLUSHES = re.compile(rb"^" + _BEGIN.replace(b"([A-Zm])", b"([DQC])") + rb"(F[A-Z]*)[ \t]+(\[.*)$", re.MULTILINE)

_EVENTS = np.dtype(
    [("time", "i8"), ("device", "i8"), ("action", "u1"), ("kind", "i1"), ("flags", "i1"), ("offset", "i8"), ("length", "i8")]
)
Events = npt.NDArray[Any]


def recognise(path: Path) -> bool:
    """The columns that blkparse prints."""
    return _text.looks_like(path, _BEGIN.replace(b"[ \\t]*", b"", 1) + rb".*")


def read(path: Path) -> Batches:
    """Requests in order of D; one whose C is more than some megabytes of text away has no completion."""
    issued, first, devices = _issued(path), 0, dict[int, int]()
    held = np.zeros(0, _EVENTS)
    completed = np.zeros(0, np.int64)
    for events in _events(path):
        new = events[events["action"] == issued]
        waiting = np.concatenate([held, new])
        done = _match(waiting, np.concatenate([completed, np.full(len(new), -1)]), events[events["action"] == ord("C")])
        if len(held):
            yield _batch(held, done[: len(held)], first, devices, path)
            first += len(held)
        held, completed = new, done[len(held) :]
    if len(held):
        yield _batch(held, completed, first, devices, path)


def _issued(path: Path) -> int:
    """The action that stands for a request."""
    found = any((events["action"] == ord("D")).any() for events in _events(path))
    return ord("D") if found else ord("Q")


def _events(path: Path) -> Iterator[Events]:
    for first, data in _text.chunks(path):
        summary = _SUMMARY.search(data)
        body = data[: summary.start()] if summary else data
        _check(path, first, body)
        rows = [*_WANTED.findall(body), *((*row[:6], b"0", b"0") for row in _FLUSHES.findall(body))]
        events = np.zeros(len(rows), _EVENTS)
        if rows:
            major, minor, second, fraction, action, kind, sector, sectors = zip(*rows, strict=True)
            numbers = [np.array(column).astype(np.float64) for column in (second, sector, sectors)]
            if max(float(column.max()) for column in numbers) >= NEVER / 1e9:
                raise DamagedFileError(f"trace: {path}, after line {first}: a time or sector is too large")
            events["time"] = np.array(second).astype(np.int64) * 1_000_000_000 + np.array(fraction).astype(np.int64)
            events["device"] = np.array(major).astype(np.int64) * (1 << 20) + np.array(minor).astype(np.int64)
            events["action"] = [name[0] for name in action]
            events["offset"], events["length"] = (np.array(column).astype(np.int64) * SECTOR for column in (sector, sectors))
            kinds = {name: _kind(name) for name in set(kind)}
            events["kind"], events["flags"] = zip(*(kinds[name] for name in kind), strict=True)
            events = events[events["kind"] >= 0]
        yield events[np.argsort(events["time"], kind="stable")]
        if summary:
            return


def _kind(letters: bytes) -> tuple[int, int]:
    """Operation and flags of blkparse's RWBS letters: D discard, F before the operation a flush, F after it force unit access."""
    body = letters.lstrip(b"F")
    flags = FORCE_UNIT_ACCESS if b"F" in body else 0
    for letter, operation in ((b"D", TRIM), (b"W", WRITE), (b"R", READ)):
        if body.startswith(letter):
            return operation, flags
    return (FLUSH, 0) if letters.startswith(b"F") else (-1, 0)


def _check(path: Path, first: int, body: bytes) -> None:
    """Refuse lines that are no event; only when there are some, lines are looked at one by one."""
    if len(re.findall(rb"^" + _BEGIN, body, re.MULTILINE)) == body.count(b"\n") + (not body.endswith(b"\n") and bool(body)):
        broken = re.search(
            rb"^" + _BEGIN.replace(b"([A-Zm])", b"[DQC]") + rb"(?![A-Z]+[ \t]+(?:\d+[ \t]+\+[ \t]+\d+[ \t]+)?[\[(]).*$", body, re.M
        )
        if not broken:
            return
        line = first + body.count(b"\n", 0, broken.start())
    else:
        lines = body.split(b"\n")
        number = next((number for number, text in enumerate(lines) if text.strip() and not _ANY_EVENT.match(text)), None)
        if number is None:
            return
        line = first + number
    raise DamagedFileError(f"trace: {path}, line {line}: it is no event that blkparse prints")


def _match(issued: Events, completed: Integers, done: Events) -> Integers:
    """Completion times, -1 for none: the k-th C of an extent belongs to the k-th request of it that is open."""
    times, opened = completed.copy(), np.flatnonzero(completed < 0)
    places = ["device", "offset", "length"]
    both = np.concatenate([issued[opened], done])
    _, extent = np.unique(both[places], return_inverse=True)
    is_done = np.arange(len(both)) >= len(opened)
    order = np.lexsort((is_done, extent))
    turn = np.zeros(len(both), np.int64)
    for flag in (False, True):
        chosen = order[is_done[order] == flag]
        begins = np.flatnonzero(np.diff(extent[chosen], prepend=-1))
        turn[chosen] = np.arange(len(chosen)) - np.repeat(begins, np.diff(np.append(begins, len(chosen))))
    key = extent * (len(both) + 1) + turn
    _, mine, theirs = np.intersect1d(key[~is_done], key[is_done], assume_unique=True, return_indices=True)
    fits = done["time"][theirs] >= issued["time"][opened[mine]]
    times[opened[mine[fits]]] = done["time"][theirs[fits]]
    return times


def _batch(events: Events, completed: Integers, first: int, devices: dict[int, int], path: Path) -> pa.RecordBatch:
    numbers, where = np.unique(events["device"], return_inverse=True)
    if len(devices) + len(numbers) >= 1 << 15:
        raise DamagedFileError(f"trace: {path} is of more devices than a trace holds")
    device = np.array([devices.setdefault(int(number), len(devices)) for number in numbers])[where]
    labels = pa.DictionaryArray.from_arrays(
        pa.array(where.astype(np.int32)), pa.array([f"{number >> 20},{number & 0xFFFFF}" for number in numbers])
    )
    columns = {name: events[name] for name in ("offset", "length", "flags")}
    columns |= {"device": device, "operation": events["kind"], "arrival": events["time"], "started": events["time"]}
    return make_batch(columns | {"completed": pa.array(completed, pa.int64(), mask=completed < 0)}, first, labels)

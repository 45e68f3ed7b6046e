"""The common ground of blktrace's binary streams and blkparse's text: events of a block device, and the requests that they tell of.

A request is queued (Q), issued to its driver (D) and completed (C).  Here it is what the driver was given: its D makes it, the earliest
open Q of the same device and extent says when it arrived (without one, as after a merge, it arrives with its D), and the next C of that
extent when it completed.  Of a device without any D (drivers without a queue) the Q make the requests, and of one that has C alone, these.
An event that is to flush before it writes makes a flush as well.  Zone resets and other events that move no data are counted, not read, and
so are Q without a D, unless one that has no Q of its own overlaps them (they were merged, or split), and C without a D.
"""

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError, FlashsimWarning, InvalidParameterError
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, OPERATIONS, READ, SECTOR, TRIM, WRITE, Integers
from flashsim.core.units import NEVER
from traces.file.schema import Batches, column, make_batch
from traces.format import _text

CARRIES = frozenset({"device", "operation", "offset", "length", "flags", "arrival", "started", "completed", "label"})
LEAVES_OUT = "actions other than Q, D, R and C; processors, processes, errors, commands that bypass the file system"
#: Requests of the examples of both formats: operation, offset, length and arrival of each request.
EXAMPLE = [(READ, 4096, 4096, 1000), (WRITE, 4096 * SECTOR, 8192, 100500), (FLUSH, 0, 0, 400000), (TRIM, 32768, 32768, 500000)]

QUEUED, ISSUED, COMPLETED, REQUEUED = b"QDCR"
#: An operation that moves no data and is no flush, and the flag of a write that is to flush before, both of events alone.
NO_REQUEST, FLUSH_BEFORE = -1, 1 << 8
#: `device` is ``major << 20 | minor`` as in the kernel; `arrival` and `completed` are filled in by pairing, -1 where nothing is known.
_FIELDS = ("time", "device", "action", "operation", "flags", "offset", "length", "arrival", "started", "completed")
#: A completion that is not to be looked for.
_UNKNOWN = -2
EVENT = np.dtype([(name, np.int64) for name in _FIELDS])
Events = npt.NDArray[Any]

#: A device that has no label is written with this major number, one of those that Linux keeps for local use, and its number as minor.
_LOCAL_MAJOR = 240
_MINORS = 1 << 20
#: The labels that events hold: the numbers of a device.
LABELS = r"(\d{1,4}),(\d{1,7})"
_MAJOR_MINOR = re.compile(LABELS)
#: A window: requests over which times may go back when written, and events that are paired when read.
#: Beyond it, events that may be held for the order in time.
_WINDOW = 1 << 16
#: Events by which devices are judged, if all of them have D there.
_JUDGED = 1 << 18
_MOST_HELD = 1 << 22


def new_events(count: int) -> Events:
    events = np.zeros(count, EVENT)
    events["arrival"] = events["started"] = events["completed"] = -1
    return events


def concatenate(pieces: Sequence[Events]) -> Events:
    """Events one after the other (NumPy copies records of numbers several times as fast as records of fields)."""
    return np.concatenate([piece.view(np.int64) for piece in pieces]).view(EVENT)


# --- from events to requests


def requests(events: Callable[[], Iterator[Events]], path: Path) -> Batches:
    """Requests in order of issue, from the batches of events that each call of `events` begins to yield anew.

    A Q, C or R (the driver gave a request back, which is issued again) more than a window of events away from its D is not found.
    """
    issues = _Issues(events())
    first, numbers = 0, _text.DeviceNumbers()
    waiting = issued = new_events(0)
    for batch in chain(_in_order(map(issues.of, events())), [new_events(0)]):
        both = concatenate([waiting, issued, batch])
        # an empty table of extents with room for all events, and of each event the next in its list
        _pair(both, np.full((1 << max(4, (2 * len(both)).bit_length()), 5), -1), np.full(len(both), -1))
        paired, new = both[len(waiting) : len(waiting) + len(issued)], both[len(waiting) + len(issued) :]
        issues.note_unpaired(both[: len(waiting)], both[len(waiting) :], new)
        again = paired.take(np.flatnonzero((paired["action"] == QUEUED) & (paired["arrival"] < 0)))
        paired = paired.take(np.flatnonzero(paired["action"] == ISSUED))
        if len(paired):
            yield _batch(paired, path, first, numbers)
            first += len(paired)
        issued = new.take(np.flatnonzero(new["action"] == ISSUED))
        waiting = concatenate([again, new.take(np.flatnonzero((new["action"] == QUEUED) & (new["arrival"] < 0)))])
    if len(issued):
        yield _batch(issued, path, first, numbers)
    for what in issues.losses():
        warnings.warn(f"trace: {path}: {what}", FlashsimWarning, stacklevel=2)


class _Issues:
    """Which action makes the requests of each device, by its events; if all have D, by the first of them."""

    def __init__(self, batches: Iterator[Events]) -> None:
        actions, count, order = defaultdict[int, set[int]](set), 0, (ISSUED, QUEUED, COMPLETED)
        self._left_out = self._queued = self._completed = 0
        for batch in batches:
            for action in order:
                devices = batch["device"][(batch["action"] == action) & (batch["operation"] != NO_REQUEST)]
                for device in np.unique(devices[np.flatnonzero(np.diff(devices, prepend=-1))]).tolist():
                    actions[device].add(action)
            count += len(batch)
            if count >= _JUDGED and all(ISSUED in each for each in actions.values()):
                break
        self._makers = {device: next(each for each in order if each in of_it) for device, of_it in actions.items()}

    def of(self, events: Events) -> Events:
        """Events of which those that make requests are issues, with a flush before each that is to flush before."""
        self._left_out += int((events["operation"] == NO_REQUEST).sum())
        events = events.take(np.flatnonzero(events["operation"] != NO_REQUEST))
        if (given_back := events["action"] == REQUEUED).any():
            issued = [device for device, maker in self._makers.items() if maker == ISSUED]
            events = events.take(np.flatnonzero(~given_back | np.isin(events["device"], issued)))
        devices, where = np.unique(events["device"], return_inverse=True)
        issue = events["action"] == np.array([self._makers.get(device, ISSUED) for device in devices.tolist()], np.int64)[where]
        events["started"] = np.where(issue & (events["action"] == ISSUED), events["time"], -1)
        events["action"][issue] = ISSUED
        flushes = issue & (events["flags"] & FLUSH_BEFORE != 0) & (events["length"] > 0) & (events["operation"] != FLUSH)
        events["flags"] &= np.where(events["operation"] == FLUSH, 0, ~FLUSH_BEFORE)
        if not flushes.any():
            return events
        rows = np.arange(len(events)).repeat(1 + flushes)
        added = np.flatnonzero(np.diff(rows, append=-1) == 0)
        events = events.take(rows)
        for name, value in {"operation": FLUSH, "flags": 0, "offset": 0, "length": 0, "completed": _UNKNOWN}.items():
            events[name][added] = value
        events["arrival"][added] = events["time"][added]
        return events

    def note_unpaired(self, waiting: Events, later: Events, new: Events) -> None:
        """Count Q that were waiting and C that are new which are of no request; one flush may serve many of them."""
        issued = later[later["action"] == ISSUED]
        flush = issued["operation"] == FLUSH
        self._queued += _outside(waiting[waiting["arrival"] < 0], issued[flush | (issued["arrival"] == issued["time"])])
        unpaired = (new["action"] == COMPLETED) & (new["completed"] < 0)
        self._completed += int((unpaired & ((new["operation"] != FLUSH) | (not flush.any()))).sum())

    def losses(self) -> Iterator[str]:
        """Warnings of events that are left out, and of captures that do not have the times of arrivals."""
        if self._left_out:
            yield f"{self._left_out:,} events are neither read, write, discard nor flush (commands of zones, or no data): they are left out"
        if self._queued:
            yield f"{self._queued:,} requests have a Q and no D (in flight at the end, or D is lost): left out"
        if self._completed:
            yield f"{self._completed:,} completions are of no whole request (of before the begin, in parts, or D is lost): left out"
        if COMPLETED in self._makers.values():
            yield "completions alone of a device: a request arrives when it completes, and its latency is not known"


def _outside(queued: Events, issued: Events) -> int:
    """How many Q overlap none of some later D of their device and operation."""
    count, (keys, issued_keys) = 0, (rows["device"] * len(OPERATIONS) + rows["operation"] for rows in (queued, issued))
    for key in np.unique(keys).tolist():
        ours, theirs = queued[keys == key], issued[issued_keys == key]
        theirs = theirs.take(np.argsort(theirs["offset"]))
        reach = np.maximum.accumulate(theirs["offset"] + np.maximum(theirs["length"], 1))
        first = np.searchsorted(reach, ours["offset"], side="right")
        last = np.searchsorted(theirs["offset"], ours["offset"] + np.maximum(ours["length"], 1))
        latest = np.maximum.reduceat(np.append(theirs["time"], -1), np.column_stack([first, last]).ravel())[::2]
        count += int(((first >= last) | (latest < ours["time"])).sum())
    return count


def _in_order(batches: Iterator[Events]) -> Iterator[Events]:
    """Events in order of time, a window or more at once, as far as none is more than a window out of its place."""
    earlier = new_events(0)
    for batch in map(sorted_events, _group(batches)):
        if len(earlier) and len(batch) and batch["time"][0] <= earlier["time"][-1]:
            both = sorted_events(concatenate([earlier, batch]))
            earlier, batch = both[: len(earlier)], both[len(earlier) :]
        yield earlier
        earlier = batch
    yield earlier


def _group(batches: Iterator[Events]) -> Iterator[Events]:
    pieces, count = [new_events(0)], 0
    for batch in batches:
        pieces.append(batch)
        count += len(batch)
        if count >= _WINDOW:
            yield concatenate(pieces)
            pieces, count = [new_events(0)], 0
    yield concatenate(pieces)


def sorted_events(events: Events) -> Events:
    """Events in order of time; at one time Q before D before C or R, as one request goes."""
    if len(events) < 2:
        return events
    rank = (events["action"] == ISSUED) + 2 * ((events["action"] == COMPLETED) | (events["action"] == REQUEUED))
    time = events["time"] - events["time"].min()
    if time.max() >= NEVER // 4:
        return events.take(np.lexsort((rank, time)))
    key = 4 * time + rank
    return events if (key[1:] >= key[:-1]).all() else events.take(np.argsort(key, kind="stable"))


# Rows of a table of extents: an event of this extent, its first and last open Q, and its first and last open D.
_EXTENT, _FIRST_QUEUED, _LAST_QUEUED, _FIRST_OPEN, _LAST_OPEN = range(5)


@inlined_kernel
def _place(events: Events, row: int, table: Integers) -> int:
    """Place of the extent of an event in the table, where it is put if it is new."""
    offset, length, device = events[row]["offset"], events[row]["length"], events[row]["device"]
    mixed = ((offset >> 9) & 0xFFFFFFFF) * 0x27D4EB2F ^ (((length >> 9) + (device << 8)) & 0xFFFFFFFF) * 0x9E3779
    place = (mixed ^ (mixed >> 29)) & (table.shape[0] - 1)
    while table[place, _EXTENT] >= 0:
        other = events[table[place, _EXTENT]]
        if other["offset"] == offset and other["length"] == length and other["device"] == device:
            return place
        place = (place + 1) & (table.shape[0] - 1)
    table[place, _EXTENT] = row
    return place


@inlined_kernel
def _append(table: Integers, place: int, first: int, row: int, following: Integers) -> None:
    if table[place, first] < 0:
        table[place, first] = row
    else:
        following[table[place, first + 1]] = row
    table[place, first + 1] = row
    following[row] = -1


@inlined_kernel
def _take(table: Integers, place: int, first: int, following: Integers) -> int:
    row = table[place, first]
    if row >= 0:
        table[place, first] = following[row]
    return row


@inlined_kernel
def _take_last(events: Events, row: int, table: Integers, place: int, following: Integers) -> int:
    """Take the last open D of an event's extent and operation out of its list; -1 if there is none."""
    last = before = earlier = -1
    opened = table[place, _FIRST_OPEN]
    while opened >= 0:
        if events[opened]["operation"] == events[row]["operation"]:
            last, before = opened, earlier
        opened, earlier = following[opened], opened
    if last >= 0 and before >= 0:
        following[before] = following[last]
    elif last >= 0:
        table[place, _FIRST_OPEN] = following[last]
    if last >= 0 and table[place, _LAST_OPEN] == last:
        table[place, _LAST_OPEN] = before
    return last


@lean_kernel
def _pair(events: Events, table: Integers, following: Integers) -> None:
    """Tell every request when it arrived and completed; a Q that is used up has its time as arrival, a D that came back is one again."""
    for row in range(events.shape[0]):
        action = events[row]["action"]
        place = _place(events, row, table)
        if action == ISSUED:
            if events[row]["arrival"] < 0:
                queued = _take(table, place, _FIRST_QUEUED, following)
                events[row]["arrival"] = events[row]["time"]
                if queued >= 0:
                    events[row]["arrival"] = events[queued]["time"]
                    events[queued]["arrival"] = events[queued]["time"]
            if events[row]["completed"] == -1:
                _append(table, place, _FIRST_OPEN, row, following)
        elif action == QUEUED:
            _append(table, place, _FIRST_QUEUED, row, following)
        elif action == COMPLETED:
            opened = _take(table, place, _FIRST_OPEN, following)
            if opened >= 0:
                events[opened]["completed"] = events[row]["completed"] = events[row]["time"]
        elif action == REQUEUED:
            opened = _take_last(events, row, table, place, following)
            if opened >= 0:
                before = events[opened - 1]
                if opened > 0 and before["completed"] == _UNKNOWN and before["device"] == events[opened]["device"]:  # its flush
                    before["action"] = 0
                events[opened]["action"], events[opened]["time"] = QUEUED, events[opened]["arrival"]
                events[opened]["arrival"] = -1
                _append(table, place, _FIRST_QUEUED, opened, following)


def _batch(events: Events, path: Path, first: int, numbers: _text.DeviceNumbers) -> pa.RecordBatch:
    """Requests of events; devices of the local major number have their minor as number, and no label."""
    kernels, where = np.unique(events["device"], return_inverse=True)
    own = [number % _MINORS if number // _MINORS == _LOCAL_MAJOR else None for number in kernels.tolist()]
    device = np.array([numbers.of(number, of_it) for number, of_it in zip(kernels.tolist(), own, strict=True)])
    if len(device) and device.max() >= 1 << 15:
        raise DamagedFileError(f"trace: {path} is of more devices than a trace holds")
    named = [f"{number // _MINORS},{number % _MINORS}" for number in kernels.tolist()]
    names = ["" if number == of_it else name for name, number, of_it in zip(named, device.tolist(), own, strict=True)]
    labels = pa.DictionaryArray.from_arrays(pa.array(where.astype(np.int32)), pa.array(names))
    columns: dict[str, Any] = {name: events[name].copy() for name in ("operation", "offset", "length", "flags", "arrival")}
    columns |= {name: pa.array(events[name], pa.int64(), mask=events[name] < 0) for name in ("started", "completed")}
    return make_batch(columns | {"device": device[where]}, first, labels)


# --- from requests to events


def events_of(batches: Batches, name: str) -> Iterator[Events]:
    """The events of requests, in order of time."""
    pending, new, requests, started = new_events(0), [new_events(0)], 0, None
    written = reach = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        known = batch.column("started").null_count
        started = known == 0 if started is None else started
        if known not in (0, batch.num_rows) or started != (known == 0):
            raise InvalidParameterError("started", "known of some requests only", f"{name} holds it of all requests or of none")
        new.append(_events(batch, name))
        requests += batch.num_rows
        if requests < _WINDOW:
            continue
        pending = sorted_events(concatenate([pending, *new]))
        _check_order(pending, written, name)
        ready = int(np.searchsorted(pending["time"], reach))
        if len(pending) - ready > _MOST_HELD:
            fewer = f"{name} is written in order of time, holding fewer"
            raise InvalidParameterError("arrival", f"{_MOST_HELD // 2:,} requests open", fewer)
        reach = max(int(batch["time"].max(where=batch["action"] == QUEUED, initial=reach)) for batch in new)
        yield pending[:ready]
        written = int(pending["time"][ready - 1]) if ready else written
        pending, new, requests = pending[ready:], [new_events(0)], 0
    pending = sorted_events(concatenate([pending, *new]))
    _check_order(pending, written, name)
    yield pending


def _check_order(pending: Events, written: int, name: str) -> None:
    if len(pending) and pending["time"][0] < written:
        raise InvalidParameterError("arrival", f"{pending['time'][0]} ns", f"{name} takes times that go back by at most {_WINDOW} requests")


def _events(batch: pa.RecordBatch, name: str) -> Events:
    arrival = _text.arrivals(batch, name)
    started, completed = (pc.fill_null(batch.column(name), -1).to_numpy() for name in ("started", "completed"))
    operation, flags = column(batch, "operation"), column(batch, "flags")
    if np.any(flags & ~FORCE_UNIT_ACCESS):
        raise InvalidParameterError("flags", int(flags.max()), f"{name} holds {FORCE_UNIT_ACCESS} (force unit access) only")
    wrong = (arrival < 0) | ((started >= 0) & (started < arrival)) | ((completed >= 0) & (completed < np.maximum(arrival, started)))
    why = f"{name} needs arrival, start and completion in this order"
    _text.refuse(wrong, "times", lambda row: f"{arrival[row]}, {started[row]}, {completed[row]} ns", why)
    lengths = _text.whole(batch, "length", SECTOR, name) * SECTOR
    empty = (lengths == 0) != (operation == FLUSH)
    _text.refuse(empty, "length", lambda row: f"{lengths[row]} B of a {OPERATIONS[operation[row]]}", f"in {name} flushes alone have none")
    events = np.zeros(3 * batch.num_rows, EVENT)
    events["action"] = np.repeat([QUEUED, ISSUED, COMPLETED], batch.num_rows)
    events["time"] = np.concatenate([arrival, started, completed])
    columns = {"device": _numbers(batch, name), "operation": operation, "flags": flags, "length": lengths}
    columns["offset"] = np.where(operation == FLUSH, 0, _text.whole(batch, "offset", SECTOR, name) * SECTOR)
    for field, values in columns.items():
        events[field] = np.tile(values, 3)
    known = events["time"] >= 0
    return events if known.all() else events.take(np.flatnonzero(known))


def _numbers(batch: pa.RecordBatch, name: str) -> Integers:
    """Device numbers of the kernel: a label ``major,minor`` as it says, of other requests the device on the local major."""
    labels = batch.column("label")
    kernels = []
    for label in labels.dictionary.to_pylist():
        match = _MAJOR_MINOR.fullmatch(label or "")
        fits = match is not None and int(match[1]) < 1 << 12 and int(match[2]) < _MINORS
        kernels.append(int(match[1]) << 20 | int(match[2]) if match and fits else -1)
    device = column(batch, "device").astype(np.int64)
    if (device < 0).any():
        raise InvalidParameterError("device", int(device.min()), f"{name} takes numbers from 0")
    numbers = np.append(kernels, -1).astype(np.int64)[pc.fill_null(labels.indices, len(kernels)).to_numpy(zero_copy_only=False)]
    return np.where(numbers >= 0, numbers, (_LOCAL_MAJOR << 20) + device)

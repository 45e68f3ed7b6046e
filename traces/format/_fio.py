"""fio's I/O logs: lines of a file's name, an action, offset and length in bytes, and of version 3 a time in microseconds before them.

Each version is a ``NAME.toml`` in this folder: ``title``, ``leaves_out``, ``version``, and ``example`` and ``requests`` as in
`traces.format._columns`.  In version 2, ``filename wait milliseconds 0`` says until when since fio's start the requests after it wait.  fio
3.33 writes and replays the times of version 3 in microseconds.  Its manual says otherwise of both; what it does is read and written here.
Times of version 3 count from that of the first line.  What is written begins at 1: fio does not wait after a line of time 0.

Sync and datasync are flushes.  A file ``deviceN`` is device N without a label; of others the name is the label.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core import errors, units
from flashsim.core.request import FLUSH, READ, TRIM, WRITE, Integers
from traces.file.schema import Batches, make_batch
from traces.format import _text
from traces.format.base import WritableFormat, table_example

#: Requests, what manages files, and `wait`; and the operation of each, -1 of what is no request.
_ACTIONS = ["read", "write", "trim", "sync", "datasync", "add", "open", "close", "wait"]
_WAIT = _ACTIONS.index("wait")
_OPERATIONS = np.array([READ, WRITE, TRIM, FLUSH, FLUSH, -1, -1, -1, -1])
_NAMES = {READ: "read", WRITE: "write", TRIM: "trim", FLUSH: "sync"}
_PLAIN = re.compile(r"device(0|[1-9]\d{0,8})")
#: Lines that manage files lack offset and length.
_SHORT = re.compile(rb" (add|open|close)$", re.MULTILINE)


class IOLog(WritableFormat):
    """A version of the I/O log."""

    CARRIES = frozenset({"device", "operation", "offset", "length", "arrival", "label"})
    LABELS = r"/.*"  # names of files are paths
    IN_ORDER = True

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        self.TITLE, self.LEAVES_OUT, self.EXAMPLE = table["title"], table["leaves_out"], table_example(table)
        self._name, self._is_stamped = name, table["version"] == 3
        self.RESOLUTION = units.MICROSECONDS if self._is_stamped else units.MILLISECONDS
        self.BASIS = f"its first line; times in {'us' if self._is_stamped else 'ms'}, places in bytes"
        self.FILLS = {"arrival": "0"} if self._is_stamped else {}
        self._title = b"fio version %d iolog" % table["version"]

    def recognise(self, path: Path) -> bool:
        return _text.head(path)[:1] == [self._title]

    def read(self, path: Path) -> Batches:
        """Version 2: a request arrives when the longest wait before it ends; in a file without waits, nothing is timed.

        Version 3: as fio plays it, a line waits for what its time is later than that of the line before, unless that is 0.
        """
        timed = self._is_stamped or any(re.search(rb"\swait\s", data) for *_, data in _text.chunks(path))
        numbers = _text.DeviceNumbers()
        first = now = last = 0
        for lines in self._lines(path):
            actions = lines.choice("action", _ACTIONS[: _WAIT + (not self._is_stamped)])
            operations = _OPERATIONS[actions]
            rows = np.flatnonzero(operations >= 0)
            device, labels = _files(lines, numbers)
            columns: dict[str, Any] = lines.extents("offset", "length") | {"device": device}
            _text.refuse_lengths(operations, columns["length"], lines.refuse)
            if self._is_stamped:
                stamps = lines.scaled_column("time", units.MICROSECONDS)
                before = np.append(last, stamps[:-1])
                columns["arrival"] = now + np.cumsum(np.where(before > 0, np.maximum(stamps - before, 0), 0))
                now, last = int(columns["arrival"][-1]), int(stamps[-1])
            elif timed:
                waits = np.where(actions == _WAIT, columns["offset"], 0)
                lines.refuse(waits >= units.NEVER // units.MILLISECONDS, "it waits longer than a trace lasts")
                columns["arrival"] = np.maximum.accumulate(np.maximum(waits * units.MILLISECONDS, now))
                now = int(columns["arrival"][-1])
            columns = {name: values[rows] for name, values in columns.items()}
            yield make_batch(columns | {"operation": operations[rows]}, first, labels.take(pa.array(rows)))
            first += len(rows)

    def _lines(self, path: Path) -> Iterator[_text.Lines]:
        """The lines after the first one, those of files with offset and length 0."""
        types = {"time": pa.int64()} if self._is_stamped else {}
        types |= {"filename": pa.string(), "action": pa.string(), "offset": pa.int64(), "length": pa.int64()}
        for first, _, data in _text.chunks(path):
            title, _, body = data.partition(b"\n") if first == 1 else (self._title, b"", data)
            if title.strip() != self._title:
                raise errors.DamagedFileError(f"trace: {path}, line 1: it must be '{self._title.decode()}'")
            if body:
                yield _text.parse(path, first + (first == 1), _SHORT.sub(rb" \1 0 0", _text.single_blanks(body)), types, " ")

    def write(self, batches: Batches, path: Path) -> None:
        """Header, each file's `add` and `open` before its first request, requests, and at the end each file's `close`.

        The file of a request is its label, where that is a path, or else ``deviceN``.  Times are rounded down to what the version counts
        in; of a trace without times they are 0, and in version 2 there are no waits.
        """
        entries: dict[str, None] = {}
        now, is_begun = int(self._is_stamped), False
        with path.open("wb") as file:
            file.write(self._title + b"\n")
            for batch in batches:
                label = pc.fill_null(batch.column("label").cast(pa.string()), "")
                device = pc.binary_join_element_wise("device", batch.column("device").cast(pa.string()), "")
                files = pc.if_else(pc.starts_with(label, "/"), label, device)
                stamp = f"{now} " if self._is_stamped else ""
                for entry in pc.unique(files).to_pylist():
                    if re.search(r"\s", entry):
                        raise errors.InvalidParameterError("label", repr(entry), f"{self._name} holds no file names with blanks")
                    if entry not in entries:
                        entries[entry] = None
                        file.write(f"{stamp}{entry} add\n{stamp}{entry} open\n".encode())
                columns = [files, _text.operations(batch, _NAMES, self._name), batch.column("offset"), batch.column("length")]
                is_timed = batch.column("arrival").null_count < batch.num_rows
                times = _text.arrivals(batch, self._name) // self.RESOLUTION if is_timed else np.zeros(batch.num_rows, np.int64)
                if self._is_stamped:  # fio waits for each step forward, so that a step back would delay all that follow
                    times = np.maximum.accumulate(np.maximum(times + 1, now))
                    columns = [times, *columns]
                elif is_timed:
                    times = np.maximum.accumulate(np.maximum(times, now))
                    columns = _with_waits(columns, times, np.diff(times, prepend=now if is_begun else -1) > 0)
                    is_begun = True
                now = int(times[-1]) if is_timed or (self._is_stamped and batch.num_rows) else now
                _text.write_table(file, columns, " ")
            stamp = f"{now} " if self._is_stamped else ""
            file.writelines(f"{stamp}{entry} close\n".encode() for entry in entries)


def _files(lines: _text.Lines, numbers: _text.DeviceNumbers) -> tuple[Integers, pa.DictionaryArray]:
    labels = lines.table.column("filename").combine_chunks().dictionary_encode()
    device, names = [], []
    for name in labels.dictionary.to_pylist():
        plain = _PLAIN.fullmatch(name)
        device.append(numbers.of(name, int(plain[1]) if plain else None))
        names.append("" if plain and device[-1] == int(plain[1]) else name)
    each = np.array(device, np.int64)[labels.indices.to_numpy()]
    lines.refuse(each >= 1 << 15, f"it is of the {1 << 15}th file, and a trace holds fewer")
    return each, pa.DictionaryArray.from_arrays(labels.indices, pa.array(names))


def _with_waits(columns: list[Any], times: Integers, waits: _text.Bools) -> list[Any]:
    """Lines with a line before each that waits; the first of all waits, so that the file says it has times."""
    rows = np.repeat(np.arange(len(times)), 1 + waits)
    is_wait = np.diff(rows, append=len(times)) == 0
    files, actions, offset, length = (column.take(pa.array(rows)) for column in columns)
    return [files, pc.if_else(pa.array(is_wait), "wait", actions), np.where(is_wait, times[rows], offset), np.where(is_wait, 0, length)]

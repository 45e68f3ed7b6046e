"""Record what a driver does into a trace file, in constant memory; the file appears under its name only once it is complete."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.core import errors, units
from flashsim.core.protocols import Label
from flashsim.core.records import RecordArray
from flashsim.core.request import Completions, Integers, Requests
from traces.file import schema

#: Most requests from one that a request waits for to that request: half of what a replay takes (`traces.replay.base.BACK`).
_BACK = 1 << 15
#: Requests held before they are written as one row group.
_ROW_GROUP = 1 << 18


@contextmanager
def complete_file(target: Path) -> Iterator[Path]:
    """A path to write to; what is there in the end appears under the name of `target`, or nothing if an error leaves the context."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.writing")
    try:
        yield partial
        os.replace(partial, target)
    except OSError as problem:
        raise errors.FlashsimError(f"trace: cannot write {target}: {problem.strerror or problem}") from problem
    finally:
        partial.unlink(missing_ok=True)


class ParquetWriter:
    """A trace file in the making, which replaces an existing one; leaving the context with an error leaves no file.

    The file has its provenance (`flashsim.core.provenance`), and the columns that the source does not tell
    (`traces.file.schema.unknown_columns`).
    """

    def __init__(self, path: str | Path, provenance: Mapping[str, Any] | None = None, unknown: Collection[str] = ()) -> None:
        self.path = Path(path)
        self._partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.writing")
        try:
            full = schema.schema_with(dict(provenance or {}), unknown)
            self._writer = pq.ParquetWriter(self._partial, full, compression="zstd", write_page_checksum=True)
        except OSError as problem:
            raise errors.FlashsimError(f"trace: cannot write {self.path}: {os.strerror(problem.errno or 0)}") from problem
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows of `traces.file.schema.SCHEMA`, shape (n,)."""
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        if self._pending_rows >= _ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            table = pa.Table.from_batches(self._pending).unify_dictionaries().combine_chunks()
            try:
                self._writer.write_table(table.replace_schema_metadata(self._writer.schema.metadata))
            except OSError as problem:
                raise errors.FlashsimError(f"trace: cannot write {self.path}: {problem}") from problem
        self._pending, self._pending_rows = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()
        os.replace(self._partial, self.path)

    def discard(self) -> None:
        self._writer.close()
        self._partial.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        (self.discard if kind else self.close)()


class ParquetRecorder(ParquetWriter):
    """A `core.protocols.Sink` that writes a trace file.

    Each submitted batch waits for the request of the batch before it that completed last, or for the one that it is said to come after, and
    its `think` is the time from there: replayed on another device, the trace keeps its order and its pauses rather than its times.

    An existing file is replaced; the provenance goes into it (`core.provenance`).

    Examples
    --------
    >>> import tempfile
    >>> from flashsim.core.request import READ, make_requests
    >>> with tempfile.TemporaryDirectory() as folder, ParquetRecorder(Path(folder) / "t.parquet") as recorder:
    ...     recorder.record(make_requests(READ, [0, 4096], 4096), None, "orders")
    """

    def __init__(self, path: str | Path, provenance: Mapping[str, Any] | None = None) -> None:
        super().__init__(path, provenance)
        self._next_id = 0
        self._awaited = -1  # the last request to complete so far
        self._awaited_until = 0

    def record(self, requests: Requests, completions: Completions | None, label: Label, after: int | None = None) -> None:
        """Take requests and their completions (None where nothing is timed), in the same order."""
        count = len(requests)
        ids = np.arange(self._next_id, self._next_id + count)
        first = requests["dependency"] < 0
        dependency = np.where(first, self._awaited if after is None else after, requests["dependency"] + self._next_id)
        think = requests["think"].astype(np.int64)
        names = ("device", "operation", "offset", "length", "stream", "priority", "flags", "tag")
        columns: dict[str, Any] = {name: requests[name] for name in names}
        if completions is None:
            self._awaited = int(ids[-1]) if count else self._awaited
        else:
            if after is None and self._awaited >= 0:
                think = np.where(first, completions["submitted"] - self._awaited_until, think)
            columns |= {"arrival": completions["submitted"], "started": completions["started"], "completed": completions["completed"]}
            if count:
                last = int(np.argmax(completions["completed"]))
                self._awaited, self._awaited_until = int(ids[last]), int(completions["completed"][last])
        labels = label if isinstance(label, str) else pa.array(label, pa.string()).dictionary_encode()
        self.write(schema.make_batch(columns | {"dependency": dependency, "think": think}, self._next_id, labels))
        self._next_id += count


class CausedRequests:
    """Requests of several devices, written with what each waited for.

    A request waits for the one after whose completion it was issued, and its `think` is the time from there.  One that is more than
    32,768 requests before is given up for the request that completed last before this one arrived, with the time from there.

    `labels` are what each device is called, and `devices` the number that each has in the trace; requests of devices without a label are
    left out.
    """

    def __init__(self, writer: ParquetWriter, labels: Sequence[str], devices: Sequence[int]) -> None:
        self._writer, self._has_label, self._devices = writer, np.array([bool(label) for label in labels]), np.array(devices)
        self._names = pa.array(labels, pa.string())
        self._count = 0
        self._numbers = self._completed = np.zeros(0, np.int64)  # of the last requests

    def take(self, first: int, rows: RecordArray) -> None:
        """Take the next requests, from number `first` on.

        Rows have the fields ``time device_number operation offset length cause completed``: `cause` is the number of the request after
        whose completion it was issued; that and when it completed are -1 for none.
        """
        for begin in range(0, len(rows), _BACK):
            piece = rows[begin : begin + _BACK]
            labelled = np.flatnonzero(self._has_label[piece.device_number])
            self._write(first + begin + labelled, piece[labelled])

    def _write(self, numbers: Integers, rows: RecordArray) -> None:
        arrival, device, cause, completed = rows.time, rows.device_number, rows.cause, rows.completed
        self._numbers = np.concatenate([self._numbers, numbers])
        self._completed = np.concatenate([self._completed, completed])
        place = np.searchsorted(self._numbers, cause)
        far = (cause >= 0) & (np.append(self._numbers, -1)[place] != cause)
        place[cause < 0] = -1
        if far.any():
            ends = np.where(self._completed < 0, units.NEVER, self._completed)
            order = np.argsort(ends, kind="stable")
            place[far] = np.append(-1, order)[np.searchsorted(ends[order], arrival[far], "right")]
        oldest = self._count - (len(self._numbers) - len(numbers))
        columns: dict[str, Any] = {"arrival": arrival, "device": self._devices[device], "operation": rows.operation, "offset": rows.offset}
        columns |= {"length": rows.length, "completed": pa.array(completed, pa.int64(), mask=completed < 0)}
        columns["dependency"] = np.where(place >= 0, place + oldest, -1)
        columns["think"] = np.where(place >= 0, arrival - self._completed[place], 0)
        label = pa.DictionaryArray.from_arrays(pa.array(device.astype(np.int32)), self._names)
        self._writer.write(schema.make_batch(columns, self._count, label))
        self._count += len(rows)
        self._numbers, self._completed = self._numbers[-_BACK:], self._completed[-_BACK:]

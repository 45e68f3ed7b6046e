"""Record what a driver does into a trace file, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.core.errors import FlashsimError
from flashsim.core.request import Completions, Requests
from traces.schema import SCHEMA, schema_with

#: Requests held before they are written as one row group.
_ROW_GROUP = 1 << 18


class ParquetRecorder:
    """A `core.protocols.Sink` that writes a Parquet file; it appears under its name only once it is complete.

    Each submitted batch waits for the request of the batch before it that completed last, and its `think` is the time from there:
    replayed on another device, the trace keeps its order and its pauses rather than its times.

    Parameters
    ----------
    path
        The file to make; an existing one is replaced.
    provenance
        Goes into the file (`core.provenance`).

    Raises
    ------
    FlashsimError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from flashsim.core.request import READ, make_requests
    >>> with tempfile.TemporaryDirectory() as folder, ParquetRecorder(Path(folder) / "t.parquet") as recorder:
    ...     recorder.record(make_requests(READ, [0, 4096], 4096), None, "orders")
    """

    def __init__(self, path: str | Path, provenance: Mapping[str, Any] | None = None) -> None:
        self.path = Path(path)
        self._partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.partial")
        try:
            self._writer = pq.ParquetWriter(self._partial, schema_with(dict(provenance or {})), compression="zstd")
        except OSError as problem:
            raise FlashsimError(f"trace: cannot write {self.path}: {os.strerror(problem.errno or 0)}") from problem
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._next_id = 0
        self._awaited = -1  # the last request to complete so far
        self._awaited_until = 0

    def record(self, requests: Requests, completions: Completions | None, label: str) -> None:
        """Take requests and their completions (None where nothing is timed), in the same order."""
        count = len(requests)
        ids = np.arange(self._next_id, self._next_id + count)
        first = requests["dependency"] < 0
        dependency = np.where(first, self._awaited, requests["dependency"] + self._next_id)
        think = requests["think"].astype(np.int64)
        columns: dict[str, Any] = {
            name: requests[name] for name in ("device", "operation", "offset", "length", "stream", "priority", "flags", "tag")
        }
        if completions is None:
            nothing = pa.nulls(count, pa.int64())
            columns |= {"arrival": nothing, "started": nothing, "completed": nothing}
            self._awaited = int(ids[-1]) if count else self._awaited
        else:
            if self._awaited >= 0:
                think = np.where(first, completions["submitted"] - self._awaited_until, think)
            columns |= {"arrival": completions["submitted"], "started": completions["started"], "completed": completions["completed"]}
            if count:
                last = int(np.argmax(completions["completed"]))
                self._awaited, self._awaited_until = int(ids[last]), int(completions["completed"][last])
        columns |= {"id": ids, "dependency": dependency, "think": think}
        columns["label"] = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([label]))
        self._pending.append(pa.record_batch([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA))
        self._pending_rows += count
        self._next_id += count
        if self._pending_rows >= _ROW_GROUP:
            self._write()

    def _write(self) -> None:
        if self._pending:
            table = pa.Table.from_batches(self._pending).unify_dictionaries().combine_chunks()
            try:
                self._writer.write_table(table.replace_schema_metadata(self._writer.schema.metadata))
            except OSError as problem:
                raise FlashsimError(f"trace: cannot write {self.path}: {problem}") from problem
        self._pending, self._pending_rows = [], 0

    def close(self) -> None:
        """Complete the file, and give it its name."""
        self._write()
        self._writer.close()
        os.replace(self._partial, self.path)

    def discard(self) -> None:
        """Leave no file behind."""
        self._writer.close()
        self._partial.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

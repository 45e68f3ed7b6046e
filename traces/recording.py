"""Record what a driver does into a trace file, in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from flashsim.core.protocols import Label
from flashsim.core.request import Completions, Requests
from traces.parquet_writer import ParquetWriter
from traces.schema import make_batch


class ParquetRecorder:
    """A `core.protocols.Sink` that writes a Parquet file; it appears under its name only once it is complete.

    Each submitted batch waits for the request of the batch before it that completed last, or for the one that it is said to come after, and
    its `think` is the time from there: replayed on another device, the trace keeps its order and its pauses rather than its times.

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
        self._writer = ParquetWriter(path, provenance)
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
        columns: dict[str, Any] = {
            name: requests[name] for name in ("device", "operation", "offset", "length", "stream", "priority", "flags", "tag")
        }
        if completions is None:
            self._awaited = int(ids[-1]) if count else self._awaited
        else:
            if after is None and self._awaited >= 0:
                think = np.where(first, completions["submitted"] - self._awaited_until, think)
            columns |= {"arrival": completions["submitted"], "started": completions["started"], "completed": completions["completed"]}
            if count:
                last = int(np.argmax(completions["completed"]))
                self._awaited, self._awaited_until = int(ids[last]), int(completions["completed"][last])
        names = label if isinstance(label, str) else pa.array(label, pa.string()).dictionary_encode()
        self._writer.write(make_batch(columns | {"dependency": dependency, "think": think}, self._next_id, names))
        self._next_id += count

    def close(self) -> None:
        """Complete the file, and give it its name."""
        self._writer.close()

    def discard(self) -> None:
        """Leave no file behind."""
        self._writer.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

"""Write batches of a trace into a Parquet file that appears under its name only once it is complete."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.core.errors import FlashsimError
from traces.schema import schema_with

#: Requests held before they are written as one row group.
_ROW_GROUP = 1 << 18


class ParquetWriter:
    """A trace file in the making; leaving the context with an error leaves no file.

    Parameters
    ----------
    path
        The file to make; an existing one is replaced.
    provenance
        Goes into the file (`flashsim.core.provenance`).
    unknown
        Columns that the source does not tell (`traces.schema.unknown_columns`).
    """

    def __init__(self, path: str | Path, provenance: Mapping[str, Any] | None = None, unknown: Collection[str] = ()) -> None:
        self.path = Path(path)
        self._partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.writing")
        try:
            schema = schema_with(dict(provenance or {}), unknown)
            self._writer = pq.ParquetWriter(self._partial, schema, compression="zstd", write_page_checksum=True)
        except OSError as problem:
            raise FlashsimError(f"trace: cannot write {self.path}: {os.strerror(problem.errno or 0)}") from problem
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows of `traces.schema.SCHEMA`, shape (n,)."""
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
                raise FlashsimError(f"trace: cannot write {self.path}: {problem}") from problem
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
        if kind is None:
            self.close()
        else:
            self.discard()

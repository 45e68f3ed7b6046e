"""Result rows, streamed into a Parquet file: R's columns first, the key once, in constant memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.core.request import Integers
from flashsim.storage.columns import without_unions
from flashsim.storage.relation import Relation

#: Rows taken and written at once.
_BATCH = 1 << 16


def column_names(r: Sequence[str], s: Sequence[str], s_key: str) -> tuple[list[str], list[str]]:
    """Names of R's and of S's columns in the result.

    S's key is left out.  A column of S whose name is taken gets ``_s`` behind it, as often as it takes.

    Examples
    --------
    >>> column_names(["id", "name"], ["id", "name", "name_s"], s_key="id")
    (['id', 'name'], ['name_s_s', 'name_s'])
    """
    kept = [name for name in s if name != s_key]
    taken = {*r, *(name for name in kept if name not in r)}
    named = []
    for name in kept:
        own = name
        if name in r:
            while own in taken:
                own += "_s"
            taken.add(own)
        named.append(own)
    return list(r), named


class RowWriter:
    """Takes pairs of row ids as a driver hands them out, and writes the rows.

    Parquet has no columns of several types: those that a SQLite table may have become texts.

    Parameters
    ----------
    path
        The Parquet file; it exists from the start, even without rows.
    r, s
        The relations, in the order of the result's columns.
    """

    def __init__(self, path: Path, r: Relation, s: Relation) -> None:
        self._r, self._s = r, s
        self._names = column_names(r.records.names, s.records.names, s.key)
        self._pending: list[tuple[Integers, Integers]] = []
        self._rows = 0
        nothing = np.zeros(0, np.int64)
        self._writer = pq.ParquetWriter(path, self._table(nothing, nothing).schema, compression="zstd")

    def __call__(self, r_rows: Integers, s_rows: Integers) -> None:
        """Take pairs of row ids, shape (n,) each."""
        self._pending.append((r_rows, s_rows))
        self._rows += len(r_rows)
        if self._rows >= _BATCH:
            self._write()

    def _table(self, r_rows: Integers, s_rows: Integers) -> pa.Table:
        r, s = self._r.records.take(r_rows), self._s.records.take(s_rows)
        left = r.rename_columns(self._names[0])
        kept = [index for index, name in enumerate(s.column_names) if name != self._s.key]
        for name, index in zip(self._names[1], kept, strict=True):
            left = left.append_column(name, s.column(index))
        return without_unions(left)

    def _write(self) -> None:
        if self._rows:
            r_rows, s_rows = (np.concatenate(side) for side in zip(*self._pending, strict=True))
            for start in range(0, len(r_rows), _BATCH):
                part = slice(start, start + _BATCH)
                self._writer.write_table(self._table(r_rows[part], s_rows[part]))
        self._pending, self._rows = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self._write()
        finally:
            self._writer.close()

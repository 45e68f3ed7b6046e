"""Rows and relations as files that other programs read."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.core.protocols import Progress
from flashsim.core.request import Integers
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.page import PAGE_FORMATS
from flashsim.storage.relation import Relation
from flashsim.storage.source import Source
from flashsim.storage.texts import check_parquet, without_unions

#: Rows taken and written at once.
_BATCH = 1 << 16


def lay_out_rows(source: Source, page_size: int, page_format: str) -> HeapFile:
    """A relation in row order, each page filled before the next; no column is a key."""
    return heap_file(Relation(source.name, source.names[0], np.zeros(source.rows, np.int32), source), page_size, page_format=page_format)


def export_relation(file: HeapFile, folder: Path, progress: Progress | None = None) -> dict[str, Any]:
    """Write a relation's files into an empty folder; the relation and the bytes of each file by name, JSON-ready."""
    page_format = file.layout.page_format
    PAGE_FORMATS.load(page_format).write_files(file, folder, progress)
    relation = {"name": file.name, "rows": file.tuples, "pages": file.pages, "page_format": page_format, "page_size": file.page_size}
    return {"relation": relation, "files": {path.name: path.stat().st_size for path in sorted(folder.iterdir())}}


def column_names(r: Sequence[str], s: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of R's and of S's columns in the result.

    A column of S whose name is taken gets ``_s`` behind it, as often as it takes.

    Examples
    --------
    >>> column_names(["id", "name"], ["name", "name_s"])
    (['id', 'name'], ['name_s_s', 'name_s'])
    """
    names = {*r, *(name for name in s if name not in r)}
    of_s = []
    for name in s:
        own = name
        while name in r and own in names:
            own += "_s"
        names.add(own)
        of_s.append(own)
    return list(r), of_s


class RowWriter(AbstractContextManager["RowWriter"]):
    """Takes pairs of row ids as a driver hands them out, and writes the rows into a Parquet file, which exists from the start.

    Parquet has no columns of several types: those that a SQLite table may have become texts.  `columns` are those of each relation, in the
    order of the result's; None: all of R's, and all of S's but its key.
    """

    def __init__(
        self, path: Path, r: Relation, s: Relation, columns: tuple[Sequence[str] | None, Sequence[str] | None] = (None, None)
    ) -> None:
        self._r, self._s = r, s
        of_s = [name for name in s.records.names if name != s.key] if columns[1] is None else list(columns[1])
        self._columns = r.records.names if columns[0] is None else list(columns[0]), of_s
        self._names = column_names(*self._columns)
        self._pending: list[tuple[Integers, Integers]] = []
        self._rows, nothing = 0, np.zeros(0, np.int64)
        self._writer = pq.ParquetWriter(path, self._table(nothing, nothing).schema, compression="zstd", write_page_checksum=True)

    def __call__(self, r_rows: Integers, s_rows: Integers) -> None:
        self._pending.append((r_rows, s_rows))
        self._rows += len(r_rows)
        if self._rows >= _BATCH:
            self._write()

    def _table(self, r_rows: Integers, s_rows: Integers) -> pa.Table:
        rows = self._r.records.take(r_rows), self._s.records.take(s_rows)
        arrays: dict[str, pa.ChunkedArray] = {}
        for table, relation, own, names in zip(rows, (self._r, self._s), self._columns, self._names, strict=True):
            arrays |= {name: table.column(relation.records.names.index(each)) for each, name in zip(own, names, strict=True)}
        return check_parquet(without_unions(pa.table(arrays)))

    def _write(self) -> None:
        if self._rows:
            r_rows, s_rows = (np.concatenate(side) for side in zip(*self._pending, strict=True))
            for start in range(0, len(r_rows), _BATCH):
                part = slice(start, start + _BATCH)
                self._writer.write_table(self._table(r_rows[part], s_rows[part]))
        self._pending, self._rows = [], 0

    def __exit__(self, kind: type[BaseException] | None, *problem: object) -> None:
        try:
            if kind is None:
                self._write()
        finally:
            self._writer.close()

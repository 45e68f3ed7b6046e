"""Tables on pages, whose bytes are encoded and decoded: what a scan reads, in extents over one drive or several."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from algorithms.programs.base import Operator
from algorithms.programs.partitioning import partitions
from flashsim.core.errors import SchemaError
from flashsim.core.request import Integers
from flashsim.core.units import MIB
from flashsim.execution.requests import Work
from flashsim.storage.columns import joined
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.record import Bytes
from flashsim.storage.relation import Records, Relation
from flashsim.storage.source.base import TableRecords, check_column
from flashsim.storage.texts import from_texts

#: Bytes of an extent: what a scan takes at a time.
EXTENT = MIB
#: Bytes of a table up to which its pages are kept.
_KEPT = 256 * MIB
#: Extents of a sample, and their pages at most.
_SAMPLES, _SAMPLE_PAGES = 48, 4
#: Kind of a scan's work: a tuple that is visited in pages that hold columns.
READ_COLUMNS = "read_columns"


@dataclass
class StoredTable:
    """A table on pages of one format."""

    #: What queries call it.
    name: str
    file: HeapFile
    records: Records
    #: A column, and the rows of each drive, which its hash says; without them extents are striped over drives.
    by: str = ""
    partitions: tuple[StoredTable, ...] = ()
    _bytes: Bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, name: str, records: Records, page_size: int, page_format: str) -> StoredTable:
        """Lay the rows of a source out on pages."""
        for column, attribute in zip(records.names, records.attributes(), strict=True):
            if pa.types.is_union(attribute.kind) or pa.types.is_duration(attribute.kind):
                raise SchemaError(f"table {name}: column {column} is of type {attribute.kind}, of which queries know nothing")
        codes = np.broadcast_to(np.int32(0), records.rows)
        return cls(name, heap_file(Relation(name, records.names[0], codes, records), page_size, page_format=page_format), records)

    def partitioned(self, by: str, drives: int) -> StoredTable:
        """The table with the rows of each drive on pages of their own, equal values of a column on one."""
        check_column(self.records, by)
        numbers, layout = partitions(joined(self.records.key(by)), drives), self.file.layout
        rows = [self.records.take(np.flatnonzero(numbers == drive)) for drive in range(drives)]
        parts = (StoredTable.of(self.name, TableRecords(self.name, each), layout.page_size, layout.page_format) for each in rows)
        return replace(self, by=by, partitions=tuple(parts))

    @property
    def schema(self) -> pa.Schema:
        """Columns and their types."""
        return pa.schema([(each.name, each.kind) for each in self.records.attributes()])

    @property
    def by_column(self) -> bool:
        return self.file.layout.keeps_columns_apart

    def extents(self) -> Integers:
        """First and last page of each extent, the last one excluded, shape (extents, 2)."""
        step = max(1, EXTENT // self.file.page_size)
        return self._ranges(step, step)

    def _ranges(self, step: int, size: int, share: int = 1) -> Integers:
        """Ranges of so many pages, of which one begins each `step` pages; of these one in `share`."""
        firsts = np.arange(0, self.file.pages, step)[::share]
        return np.stack([firsts, np.minimum(firsts + size, self.file.pages)], axis=1)

    def on_drives(self, drives: int, share: int = 0) -> list[tuple[StoredTable, Integers]]:
        """Pages and extents of each drive; of a sample, extents of a few pages all over the table, or one in `share` of them."""
        step = max(1, self.file.pages // _SAMPLES)
        cut = [each._ranges(step, min(step, _SAMPLE_PAGES), share) if share else each.extents() for each in self.partitions or [self]]
        if self.partitions:
            return list(zip(self.partitions, cut, strict=True))
        return [(self, cut[0][drive::drives]) for drive in range(drives)]

    def pages_on(self, drives: int) -> list[int]:
        return [int((extents[:, 1] - extents[:, 0]).sum()) for _, extents in self.on_drives(drives)]

    def pages(self, begin: int, end: int) -> Bytes:
        """The bytes of some pages, shape (pages, page size)."""
        if self.file.pages * self.file.page_size <= _KEPT:
            if self._bytes is None:
                self._bytes = self.file.layout.encode(self.file.run(0, self.file.pages), np.arange(self.file.pages))
            return self._bytes[begin:end]
        return self.file.layout.encode(self.file.run(begin, end), np.arange(begin, end))


class Scan(Operator):
    """Rows of pages, of some columns; it takes ranges of pages instead of batches."""

    def __init__(self, table: StoredTable, columns: tuple[str, ...], schema: pa.Schema) -> None:
        super().__init__(schema)
        self._table, self._columns = table, columns

    def read(self, begin: int, end: int) -> pa.RecordBatch:
        """The rows of pages `begin` to `end`, without the last."""
        values = self._table.file.layout.decode_values(self._table.pages(begin, end), self._columns)
        self.work[Work.PAGE] += end - begin
        self.work[READ_COLUMNS if self._table.by_column else Work.READ_TUPLE] += values.num_rows
        arrays = [restored(joined(column), kind.type) for column, kind in zip(values.columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def restored(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values in their column's type, where pages store another (`flashsim.storage.columns.stored_column`)."""
    if values.type == kind:
        return values
    if pa.types.is_union(values.type):
        values = pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())
    if pa.types.is_temporal(kind) and not pa.types.is_null(values.type):
        return from_texts(values, kind)
    if pa.types.is_decimal(kind):
        return values.cast(pa.string()).cast(kind)
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8()).cast(kind)
    return values.cast(kind, safe=not pa.types.is_floating(kind))

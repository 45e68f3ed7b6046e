"""Parquet files with a column page, id, key or object, and where there is one, a column write of truth values."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.core.errors import DamagedFileError
from flashsim.core.transactions import BATCH, ReferenceBatches, References
from traces.file.schema import DAMAGE, SCHEMA
from traces.page_format.base import are_words, as_ids

TITLE = "references (Parquet)"

_IDS = ("page", "id", "key", "object")
_SCHEMA = pa.schema([pa.field("page", pa.int64(), nullable=False), pa.field("write", pa.bool_())])


def recognise(path: Path) -> bool:
    """A Parquet file with such columns, and no trace of requests."""
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return False
    try:
        names = pq.read_schema(path).names
    except DAMAGE:
        return False
    return any(name in names for name in _IDS) and names != SCHEMA.names


def references(path: Path) -> ReferenceBatches:
    row = 0
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            ids = next((name for name in _IDS if name in file.schema_arrow.names), None)
            if ids is None:
                raise DamagedFileError(f"trace: {path} has no column page, id, key or object")
            columns = [name for name in (ids, "write") if name in file.schema_arrow.names]
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(BATCH, row_groups=[group], columns=columns):
                    yield _references(path, batch, ids, row)
                    row += batch.num_rows
    except DAMAGE as problem:
        raise DamagedFileError(f"trace: {path} is damaged: {problem}".split("\n", 1)[0]) from problem


def _references(path: Path, batch: pa.RecordBatch, ids: str, row: int) -> References:
    pages = batch.column(ids)
    if pages.null_count:
        raise DamagedFileError(f"trace: {path}, row {row + int(np.argmax(pages.is_null()))}: {ids} is empty")
    kind = pages.type.value_type if pa.types.is_dictionary(pages.type) else pages.type
    if not (pa.types.is_integer(kind) or are_words(kind)):
        raise DamagedFileError(f"trace: {path}: {ids} is of type {kind}, but ids are whole numbers or words")
    known = "write" in batch.schema.names and not batch.column("write").null_count
    return References(as_ids(pages), batch.column("write").cast(pa.bool_()).to_numpy(zero_copy_only=False) if known else None)


def write(batches: ReferenceBatches, path: Path) -> None:
    """Ids, and which references write; null where nobody knows."""
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd", write_page_checksum=True) as writer:
        for batch in batches:
            writes = pa.nulls(len(batch.pages), pa.bool_()) if batch.writes is None else pa.array(batch.writes)
            writer.write_batch(pa.record_batch([pa.array(batch.pages), writes], schema=_SCHEMA))

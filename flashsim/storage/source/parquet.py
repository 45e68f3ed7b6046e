"""Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.storage.source.base import TableRecords, reading

SUFFIXES = (".parquet",)


def open_records(text: str) -> TableRecords:
    """The rows of a Parquet file.

    Raises
    ------
    MissingFileError, DamagedFileError, SchemaError
        The file does not exist, is no intact Parquet file, or has nested columns.
    """
    path = Path(text)
    with reading(path):
        table = pq.ParquetFile(path).read()
        table.validate(full=True)
        return TableRecords(path.stem, table)


def example(folder: Path) -> str:
    """Numbers and texts, with NULL in all columns."""
    path = folder / "example.parquet"
    columns = {"k": [5, 300, None, -7, 5], "text": ["a", None, "ccc" * 50, "", "e"], "real": [1.0, 2.5, None, -0.0, 1e300]}
    pq.write_table(pa.table(columns), path)
    return str(path)

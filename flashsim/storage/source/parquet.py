"""Parquet files."""

from __future__ import annotations

from pathlib import Path

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

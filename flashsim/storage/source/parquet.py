"""Parquet files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.storage.source.base import TableRecords, check_memory, reading

SUFFIXES = (".parquet",)
#: A table is read, and made plain; a key has a code of so many bytes.
_COPIES, _CODE = 2, 8


def open_records(text: str) -> TableRecords:
    path = Path(text)
    with reading(path):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        # a column of one value is small in a file however long it is
        rows, width = file.metadata.num_rows, sum(-(-_bits(column.type) // 8) for column in file.schema_arrow)
        check_memory(str(path), rows * (_COPIES * width + _CODE), f"{rows:,} rows of at least {width:,} B take some", " to join")
        table = file.read()
        table.validate(full=True)
        return TableRecords(path.stem, table)


def _bits(kind: pa.DataType) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:  # of no fixed width: where it ends
        return 64


def example(folder: Path) -> str:
    path = folder / "example.parquet"
    columns = {"k": [5, 300, None, -7, 5], "text": ["a", None, "ccc" * 50, "", "e"], "real": [1.0, 2.5, None, -0.0, 1e300]}
    pq.write_table(pa.table(columns), path)
    return str(path)

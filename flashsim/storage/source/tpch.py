"""TPC-H's tables at any scale factor, generated once and kept in the user's cache folder."""

import os
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq

from flashsim.core.errors import FlashsimError, MissingExtraError
from flashsim.core.source_files import cache_of, is_trustworthy, make_private
from flashsim.storage.source.base import TableRecords, check_memory, reading, table_and_scale

SUFFIXES = ()
#: Rows at scale factor 1, and typical bytes of a row (TPC-H's specification, section 4.2.5); nation and region are the same at any scale.
_SIZES = {
    "customer": (150_000, 179), "lineitem": (6_001_215, 112), "nation": (0, 128), "orders": (1_500_000, 104), "part": (200_000, 155),
    "partsupp": (800_000, 144), "region": (0, 124), "supplier": (10_000, 159),
}  # fmt: skip
TABLES = tuple(_SIZES)


def open_records(text: str) -> TableRecords:
    table, scale = table_and_scale(text, "tpch", TABLES)
    rows, width = _SIZES[table]
    rows = int(scale * rows)
    check_memory(f"tpch:{text}", rows * width, f"{rows:,} rows of {width:,} B take")
    path = cache_of("tpch") / f"{table}-{scale.normalize():f}.parquet"
    if not path.exists() or not is_trustworthy(path):
        _generate(table, scale, path)
    with reading(path):
        return TableRecords(table, pq.ParquetFile(path, page_checksum_verification=True).read())


def example(folder: Path) -> str:
    return "tpch:supplier@0.01"


def _generator() -> str:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    program = str(beside) if beside.is_file() else shutil.which("tpchgen-cli")
    if program is None:
        raise MissingExtraError("tpchgen-cli", "tpch")
    return program


def _generate(table: str, scale: Decimal, path: Path) -> None:
    """Generate beside and rename, so that an interrupted run leaves no partial file."""
    program = _generator()
    try:
        make_private(path.parent)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            options = f"--scale-factor {scale:f} --tables {table} --compression ZSTD(1) --quiet"
            command = [program, "parquet", *options.split(), "--output-dir", folder]
            process = subprocess.run(command, capture_output=True, text=True, check=False)
            generated = Path(folder) / f"{table}.parquet"
            if process.returncode or not generated.is_file():
                reason = (process.stderr.strip().splitlines() or ["it wrote no file"])[-1]
                raise FlashsimError(f"tpch:{table}@{scale}: the generator failed: {reason}")
            os.replace(generated, path)
    except OSError as problem:
        raise FlashsimError(f"tpch:{table}@{scale}: {path} cannot be written: {problem.strerror}") from None

"""What flashsim writes, a PostgreSQL server shows, row for row, in tuples of the bytes that it makes itself, and finds nothing wrong."""

from __future__ import annotations

import csv
import io
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flashsim.experiments.runs.exporting import export_relation, lay_out_rows
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.source import Source, open_source
from flashsim.storage.source.base import TableRecords
from flashsim.storage.source.do2009 import PaperRecords
from tests.postgresql_server import Cluster

#: The longest tuple of a page of 8 KiB, without its header.
_LONGEST = 8160 - 24
_SECONDS = timedelta(seconds=1)


def numbers(random: random.Random, bits: int, signed: bool = True) -> int:
    """Small, large, or as large as they get."""
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return random.choice([least, most, 0, random.randint(max(least, -300), min(most, 300)), random.randint(least, most)])


def decimals(random: random.Random, precision: int, scale: int) -> Decimal:
    """Of any number of digits, some of which are zeros at an end."""
    digits = random.randint(0, 10 ** random.randint(0, precision) - 1) * 10 ** random.choice([0, 0, 2, 4, 5, 8]) % 10**precision
    return Decimal((random.randrange(2), tuple(map(int, str(digits))), -scale))


def texts(random: random.Random) -> str:
    """As long as lengths of one byte go, or longer, and of characters of several bytes."""
    length = random.choice([0, 1, 7, 40, 125, 126, 127, 128, 300])
    return "".join(random.choice("ab ,\"'\\äß€\n😀") for _ in range(length))[: max(0, length)]


KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "tiny": (pa.int8(), lambda random: numbers(random, 8)),
    "small": (pa.int16(), lambda random: numbers(random, 16)),
    "whole": (pa.int32(), lambda random: numbers(random, 32)),
    "large": (pa.int64(), lambda random: numbers(random, 64)),
    "byte": (pa.uint8(), lambda random: numbers(random, 8, signed=False)),
    "word": (pa.uint32(), lambda random: numbers(random, 32, signed=False)),
    "huge": (pa.uint64(), lambda random: numbers(random, 64, signed=False)),
    "single": (pa.float32(), lambda random: random.choice([0.0, -0.0, 1.5, 2.0**100, float("nan"), float("-inf")])),
    "double": (pa.float64(), lambda random: random.choice([0.0, -0.0, random.random(), 1e300, 5e-324, float("nan"), float("inf")])),
    "truth": (pa.bool_(), lambda random: random.random() < 0.5),
    "money": (pa.decimal128(15, 2), lambda random: decimals(random, 15, 2)),
    "precise": (pa.decimal128(38, 9), lambda random: decimals(random, 38, 9)),
    "fine": (pa.decimal256(76, 70), lambda random: decimals(random, 76, 70)),
    "count": (pa.decimal128(20, 0), lambda random: decimals(random, 20, 0)),
    "day": (pa.date32(), lambda random: date.fromordinal(random.choice([1, 730_119, 730_120, random.randint(1, 3_652_059)]))),
    "moment": (pa.timestamp("us"), lambda random: datetime(1, 1, 1) + timedelta(microseconds=random.randrange(3 * 10**17))),
    "coarse": (pa.timestamp("s"), lambda random: datetime(1990, 1, 1) + _SECONDS * random.randrange(10**9)),
    "zoned": (pa.timestamp("us", "UTC"), lambda random: datetime(1990, 1, 1, tzinfo=UTC) + _SECONDS * random.randrange(10**9)),
    "text": (pa.string(), texts),
    "bytes": (pa.binary(), lambda random: random.randbytes(random.choice([0, 1, 30, 126, 127, 500]))),
    "nothing": (pa.null(), lambda random: None),
}


def made_tables() -> Iterator[TableRecords]:
    """Every type alone, with and without NULL; drawn columns in drawn orders; and what is as wide as it gets."""
    draw = random.Random(18)
    for name, (kind, value) in KINDS.items():
        values = [value(draw) for _ in range(150)]
        some = [None if draw.random() < 0.3 else each for each in values]
        yield TableRecords(f"only {name}", pa.table({"a": pa.array(values, kind), "b": pa.array(some, kind), "c": pa.array(values, kind)}))
    for number in range(12):
        chosen = draw.choices(sorted(KINDS), k=draw.choice([1, 7, 8, 9, 16, 17]))
        share = draw.choice([0, 0.05, 0.5])
        columns = [[None if draw.random() < share else KINDS[name][1](draw) for _ in range(60)] for name in chosen]
        arrays = {f"{name} {place}": pa.array(columns[place], KINDS[name][0]) for place, name in enumerate(chosen)}
        yield TableRecords(f"drawn {number}", pa.table(arrays))
    yield TableRecords("without rows", pa.table({"a": pa.array([], pa.int32())}))
    yield TableRecords("longest", pa.table({"a": ["x" * (_LONGEST - 4), "y", "z" * 4000, "z" * 4060, "z" * 4060]}))
    wide = {f"c{number}": pa.array([number % 7, None if number % 3 else 1], pa.int32()) for number in range(1600)}
    yield TableRecords('a "wide" one', pa.table(wide))


def as_input(column: pa.ChunkedArray) -> list[str | None]:
    """Values as PostgreSQL reads them from text, in a way that is not flashsim's."""
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return [None if value is None else value.isoformat() for value in column.to_pylist()]
    return [None if value is None else str(value) for value in column.to_pylist()]


def quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def made_by_the_server(name: str, table: pa.Table, like: str) -> str:
    """Statements for a table of the same columns that the server fills from text, without compressing or moving values.

    In the transaction that makes the table rows are not put on earlier pages that have room, and may be frozen at once.
    """
    rows = zip(*(as_input(column) for column in table.columns), strict=True)
    lines = "\n".join(",".join("" if value is None else quoted(value) for value in row) for row in rows)
    copied = f"COPY {quoted(name)} FROM STDIN (FORMAT csv, FREEZE);\n{lines}\n\\.\n" if table.num_rows else ""
    unmoved = "".join(
        f"ALTER TABLE {quoted(name)} ALTER {quoted(column.name)} SET STORAGE external;"
        for column in table.schema
        if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    )
    return f"BEGIN; CREATE TABLE {quoted(name)} (LIKE {quoted(like)}) WITH (toast_tuple_target = 8160);{unmoved}\n{copied}COMMIT;\n"


def placed(postgresql: Cluster, sources: Sequence[Source], folder: Path) -> list[HeapFile]:
    """The relations in place of the files of tables, which were created by the statements beside them."""
    files, written = [lay_out_rows(source, 8192, "postgresql") for source in sources], []
    for number, file in enumerate(files):
        (folder / str(number)).mkdir()
        export_relation(file, folder / str(number))
        written += (folder / str(number)).glob("*.sql")
    postgresql.sql("".join(f"DROP TABLE IF EXISTS {quoted(file.name)};" for file in files))  # other tests share the server
    postgresql.sql("".join(statement.read_text() for statement in written))
    told = postgresql.sql("".join(f"SELECT pg_relation_filepath('{quoted(file.name)}');" for file in files)).split()
    with postgresql.stopped():
        for place, statement in zip(told, written, strict=True):
            (postgresql.data / place).write_bytes(statement.with_suffix("").read_bytes())  # the file keeps its owner
        postgresql.run("pg_checksums", "--check", "-D", postgresql.data)
    return files


@pytest.fixture(scope="module")
def inspecting(postgresql: Cluster) -> Cluster:
    """The server with what looks at its pages."""
    postgresql.sql("".join(f"CREATE EXTENSION IF NOT EXISTS {name};" for name in ("pageinspect", "amcheck", "pg_visibility")))
    return postgresql


def check(postgresql: Cluster, files: Sequence[HeapFile]) -> None:
    """The server shows the rows that it makes of their texts itself, in tuples of the same bytes, and finds nothing wrong."""
    assert postgresql.sql("".join(checks(file) for file in files), "-c", "SET client_min_messages = error", "-f", "-") == ""


def checks(file: HeapFile) -> str:
    """Statements that say what is wrong."""
    made = f"{file.name} made"
    name, other = quoted(file.name), quoted(made)
    pages = f"generate_series(0, {file.pages - 1}) AS p"
    ours, theirs = (f"{pages}, heap_page_items(get_raw_page('{each}', p))" for each in (name, other))
    heads = [f"SELECT ROW(lower, upper, special, pagesize, version) FROM page_header(get_raw_page('{each}', p))" for each in (name, other)]
    shown = [f"SELECT string_agg(t::text, '|' ORDER BY ctid) FROM {each} AS t" for each in (name, other)]
    same = "p, lp, lp_off, lp_flags, lp_len, t_ctid, t_infomask2, t_hoff, t_bits, t_oid, t_data, t_infomask, t_xmax"
    wrong = {
        "rows": f"({shown[0]}) IS DISTINCT FROM ({shown[1]})",
        "amcheck": f"EXISTS (SELECT * FROM verify_heapam('{name}', check_toast => true))",
        "sizes": " OR ".join(f"pg_relation_size('{each}') <> {file.pages} * 8192" for each in (name, other)),
        "heads": f"EXISTS (SELECT * FROM {pages} WHERE ({heads[0]}) <> ({heads[1]}))",
        "sums": f"EXISTS (SELECT * FROM {pages}, get_raw_page('{name}', p) AS page, page_header(page) AS head "
        "WHERE head.checksum <> page_checksum(page, p) OR head.prune_xid <> '0' OR head.flags <> 0)",
        "tuples": f"EXISTS (SELECT {same} FROM {ours} EXCEPT SELECT {same} FROM {theirs})",
        "inserter": f"EXISTS (SELECT * FROM {ours} WHERE t_xmin <> '2')",
        "row ids": f"EXISTS (SELECT t_field3 - row_number() OVER (ORDER BY p, lp) FROM {ours} EXCEPT SELECT -1)",
    }
    table = file.relation.records.take(np.arange(len(file.relation)))
    tests = "".join(f"SELECT '{name}', '{each}' WHERE {test};\n" for each, test in wrong.items())
    return made_by_the_server(made, table, file.name) + tests


def test_a_server_makes_the_same_of_every_type(inspecting: Cluster, tmp_path: Path) -> None:
    check(inspecting, placed(inspecting, list(made_tables()), tmp_path))


def test_a_server_reads_real_relations(inspecting: Cluster, tmp_path: Path, test_data: Path) -> None:
    chinook = test_data / "sqlite" / "Chinook_Sqlite.sqlite"
    names = [f"{chinook}:{name}" for name in ("Album", "Customer", "Employee", "Invoice", "Track")]
    names += [f"tpch:{name}@0.001" for name in ("customer", "lineitem", "nation", "orders", "part", "supplier")]
    check(inspecting, placed(inspecting, [open_source(name) for name in names], tmp_path))


def test_a_server_goes_on_from_there(inspecting: Cluster, tmp_path: Path) -> None:
    """Rows are changed, deleted and added, indexed and vacuumed."""
    source = TableRecords("changed", pa.table({"k": range(5000), "text": ["words"] * 5000}))
    placed(inspecting, [source], tmp_path)
    inspecting.sql("DELETE FROM changed WHERE k % 3 = 0; UPDATE changed SET text = 'other' WHERE k % 3 = 1;")
    inspecting.sql("INSERT INTO changed SELECT k + 5000, 'new' FROM changed; CREATE INDEX ON changed (k); VACUUM FREEZE changed;")
    kept = [(k, "other" if k % 3 == 1 else "words") for k in range(5000) if k % 3]
    expected = kept + [(k + 5000, "new") for k, _ in kept]
    rows = [(int(k), text) for k, text in csv.reader(io.StringIO(inspecting.sql("SELECT * FROM changed ORDER BY k")))]
    assert rows == expected
    assert inspecting.sql("SELECT * FROM verify_heapam('changed')") == inspecting.sql("SELECT * FROM pg_check_visible('changed')") == ""


@pytest.mark.deep
def test_a_server_reads_a_relation_of_two_segments(inspecting: Cluster, tmp_path: Path) -> None:
    """More than 1 GiB: pages of the second file have numbers that go on."""
    records = PaperRecords("orders", 5.6)
    file = lay_out_rows(records, 8192, "postgresql")
    exported = export_relation(file, tmp_path)
    assert exported["files"]["orders"] == 2**30 and 0 < exported["files"]["orders.1"] == file.pages * 8192 - 2**30
    inspecting.sql(f"DROP TABLE IF EXISTS orders; {(tmp_path / 'orders.sql').read_text()}")
    place = inspecting.path("orders")
    with inspecting.stopped():
        place.write_bytes((tmp_path / "orders").read_bytes())
        second, owner = place.with_name(f"{place.name}.1"), place.stat()
        shutil.copyfile(tmp_path / "orders.1", second)
        os.chown(second, owner.st_uid, owner.st_gid)
        inspecting.run("pg_checksums", "--check", "-D", inspecting.data)
    told = inspecting.sql("SELECT count(*), sum(o_custkey), sum(length(padding)), max(ctid) FROM orders").strip()
    last = f'"({file.pages - 1},{records.rows - int(file.first_rows[-2])})"'
    assert told == f"{records.rows},{int(records.keys.sum(dtype=np.int64))},{90 * records.rows},{last}"
    assert inspecting.sql(f"SELECT * FROM verify_heapam('orders', startblock => 131070, endblock => {file.pages - 1})") == ""
    inspecting.sql("DROP TABLE orders")

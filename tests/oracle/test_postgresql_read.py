"""What a real PostgreSQL server writes, flashsim reads from its files, row for row as SELECT gives them."""

from __future__ import annotations

import csv
import io
import random
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flashsim.core.errors import FlashsimError, MissingFileError
from flashsim.storage.columns import one_array
from flashsim.storage.source import open_source
from tests.benchmarks.yardstick import loop_slowness
from tests.postgresql_server import Cluster

NULL, END = "(none)", "#"  # neither is drawn


@dataclass(frozen=True)
class Kind:
    """A type: how a value of it is drawn as SQL, asked for, and compared with what SELECT prints."""

    name: str
    draw: Callable[[random.Random], str]
    asked: str = "{}"
    ours: Callable[[Any], Any] = lambda value: value
    theirs: Callable[[str], Any] = str


def text(draws: random.Random, most: int) -> str:
    """A quoted text of up to so many characters, of one to four bytes each."""
    length = min(most, draws.choice((0, 1, 5, 20, 125, 126, 127, 130, 400)))
    return "'" + "".join(draws.choices("abc xyz,\"\n.;''ÜßλЖ漢🚲".replace("'", ""), k=draws.randint(length // 2, length))) + "'"


def number(draws: random.Random, whole: int, scale: int) -> str:
    """A decimal number."""
    digits = draws.randint(0, whole)
    drawn = draws.choice((0, 10**digits, draws.randrange(10 ** (digits + 1)) if digits < whole else 7))
    return f"{draws.choice(('', '-'))}{drawn % 10**whole}.{draws.choice((0, draws.randrange(10**scale))):0{scale}d}"


def day(draws: random.Random, end: str = "") -> str:
    """A day from 4000 BC to 9999 AD, and a time of that day."""
    before = draws.random() < 0.3
    date = f"{draws.randint(1, 4000 if before else 9999):04}-{draws.randint(1, 12):02}-{draws.randint(1, 28):02}"
    return f"'{date}{end}{' BC' if before else ''}'"


def moment(draws: random.Random) -> str:
    """A time to the microsecond."""
    return day(draws, f" {draws.randint(0, 23):02}:{draws.randint(0, 59):02}:{draws.uniform(0, 59):09.6f}")


def integer(bits: int) -> Kind:
    def draw(draws: random.Random) -> str:
        return f"({draws.choice((0, 1, -1, 2 ** (bits - 1) - 1, draws.randrange(-(2 ** (bits - 1)) + 1, 2 ** (bits - 1))))})"

    return Kind(f"int{bits // 8}", draw, theirs=int)


def real(bits: int) -> Kind:
    def draw(draws: random.Random) -> str:
        return repr(draws.choice((0.0, -0.0, draws.gauss(0, 1), draws.uniform(-1e30, 1e30), "NaN", "-Infinity", "Infinity"))).replace(
            '"', "'"
        )

    kind = np.float32 if bits == 32 else np.float64
    return Kind(f"float{bits // 8}", draw, ours=lambda value: repr(kind(value)), theirs=lambda told: repr(kind(told)))


DAY = "{} - date '1970-01-01'"
MICROSECONDS = "(extract(epoch from {}) * 1000000)::numeric(40, 0)"
KINDS = [
    integer(16),
    integer(32),
    integer(64),
    real(32),
    real(64),
    Kind("bool", lambda draws: draws.choice(("true", "false")), theirs=lambda told: told == "t"),
    Kind("date", day, DAY, theirs=int),
    Kind("timestamp", moment, MICROSECONDS, theirs=int),
    Kind("timestamp(3) with time zone", moment, MICROSECONDS, theirs=int),
    Kind("char(7)", lambda draws: text(draws, 7), "rpad({}::text, 7)"),
    Kind("character", lambda draws: text(draws, 1), "rpad({}::text, 1)"),
    Kind("varchar(200)", lambda draws: text(draws, 200)),
    Kind("varchar", lambda draws: text(draws, 300)),
    Kind("text", lambda draws: text(draws, 400)),
    Kind(
        "bytea",
        lambda draws: f"'\\x{draws.randbytes(draws.choice((0, 1, 4, 125, 126, 127, 300))).hex()}'",
        ours=lambda value: f"\\x{value.hex()}",
    ),
    Kind("numeric", lambda draws: number(draws, 30, 20), theirs=Decimal),
    Kind("numeric(9, 2)", lambda draws: number(draws, 7, 2), theirs=Decimal),
    Kind("numeric(18)", lambda draws: number(draws, 17, 3), theirs=Decimal),
    Kind("decimal(60, 25)", lambda draws: number(draws, 35, 25), theirs=Decimal),
    Kind("uuid", lambda draws: f"'{UUID(bytes=draws.randbytes(16))}'", ours=lambda value: str(UUID(bytes=value))),
]


@dataclass
class Table:
    """A table of the server's with its history."""

    name: str
    definition: list[str] = field(default_factory=list)
    columns: dict[str, Kind] = field(default_factory=dict)
    wanted: list[list[Any]] = field(default_factory=list)
    path: Path = Path()

    def query(self) -> str:
        """Statements that tell the first file, then the rows."""
        asked = ", ".join(kind.asked.format(name) for name, kind in self.columns.items())
        return f"SELECT pg_relation_filepath('{self.name}');\nSELECT {asked} FROM {self.name};\n"

    def keep(self, told: str) -> None:
        """Keep what the query gave."""
        (path,), *told_rows = csv.reader(io.StringIO(told, newline=""))
        kinds = list(self.columns.values())
        self.path = Path(path)
        self.wanted = [
            [None if cell == NULL else kind.theirs(cell) for kind, cell in zip(kinds, row or [""], strict=True)] for row in told_rows
        ]

    def ours(self, path: Path) -> list[list[Any]]:
        """What flashsim reads of it."""
        found = open_source(f"pg:{path}:{'; '.join(self.definition)}")
        assert found.name == self.name and found.names == list(self.columns)
        columns = [[None if value is None else kind.ours(value) for value in plain(found.key(name))] for name, kind in self.columns.items()]
        return [list(row) for row in zip(*columns, strict=True)]


def ask(cluster: Cluster, tables: list[Table]) -> None:
    """Keep what SELECT gives of each; it notes on rows, for later readers, who was committed."""
    query = f"\\echo {END}\n".join(table.query() for table in tables)
    told = cluster.sql(f"SET timezone = 'Asia/Kathmandu';\n{query}", "-P", f"null={NULL}")
    for table, part in zip(tables, told.split(f"{END}\n"), strict=True):
        table.keep(part)


def plain(column: pa.ChunkedArray) -> list[Any]:
    """Values as Python objects; days and microseconds as numbers, for Python's own end where PostgreSQL's do not."""
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = column.cast(pa.int32() if pa.types.is_date(kind) else pa.int64())
    return one_array(column).to_pylist()


def rows(table: Table, draws: random.Random, count: int) -> str:
    """An INSERT of drawn rows."""
    cells = [[("NULL" if draws.random() < 0.15 else kind.draw(draws)) for kind in table.columns.values()] for _ in range(count)]
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES {', '.join('(' + ', '.join(row) + ')' for row in cells)};\n"


def change(table: Table, draws: random.Random) -> str:
    """An UPDATE or DELETE of some rows."""
    some = f"WHERE ctid IN (SELECT ctid FROM {table.name} ORDER BY md5(ctid::text || {draws.randrange(99)}) LIMIT {draws.randint(1, 40)})"
    if draws.random() < 0.3:
        return f"DELETE FROM {table.name} {some};\n"
    name = draws.choice(list(table.columns))
    value = draws.choice(("NULL", table.columns[name].draw(draws)))
    return f"UPDATE {table.name} SET {name} = {value} {some};\n"


def altered(table: Table, draws: random.Random, serial: int) -> str:
    """An ALTER TABLE, which the definition then has too."""
    if draws.random() < 0.4 and len(table.columns) > 1:
        name = draws.choice(list(table.columns))
        del table.columns[name]
        statement = f"ALTER TABLE {table.name} DROP COLUMN {name}"
    else:
        name, kind = f"added_{serial}", draws.choice(KINDS)
        default = draws.choice(("", f" DEFAULT {kind.draw(draws)}", f" DEFAULT ({kind.draw(draws)})::{kind.name}"))
        table.columns[name] = kind
        statement = f"ALTER TABLE public.{table.name} ADD COLUMN {name} {kind.name}{default}"
    table.definition.append(statement)
    return statement + ";\n"


def history(number: int, size: int) -> tuple[Table, str]:
    """A drawn table, and the statements that make it what it is."""
    draws = random.Random(f"table {number}")
    table = Table(f"t{number}")
    kinds = [*draws.sample(KINDS, draws.randint(1, 9)), KINDS[number % len(KINDS)]]
    draws.shuffle(kinds)
    table.columns = {f"c{place}": kind for place, kind in enumerate(kinds)}
    described = ", ".join(f"{name} {kind.name}" for name, kind in table.columns.items())
    table.definition = [f"CREATE TABLE {table.name} ({described}) WITH (fillfactor = {draws.choice((10, 40, 70, 100))})"]
    script = table.definition[0] + ";\n" + f"ALTER TABLE {table.name} SET (toast_tuple_target = 8160);\n"
    for step in range(8):
        match draws.randrange(7):
            case 0 | 1:
                script += rows(table, draws, size)
            case 2:
                script += change(table, draws)
            case 3:
                script += f"BEGIN;\n{rows(table, draws, 20)}{change(table, draws)}ROLLBACK;\n"
            case 4:
                kept = f"SAVEPOINT b;\n{rows(table, draws, 9)}RELEASE b;\n"
                script += f"BEGIN;\n{change(table, draws)}SAVEPOINT a;\n{change(table, draws)}ROLLBACK TO a;\n{kept}COMMIT;\n"
            case 5:
                script += draws.choice(("VACUUM", "VACUUM FREEZE", "VACUUM FULL", "SELECT count(*) FROM", "ANALYZE")) + f" {table.name};\n"
            case 6:
                script += altered(table, draws, step)
    return table, script + (rows(table, draws, size) if number % 3 else "")


@dataclass
class Tables:
    """Forty tables, and copies of the cluster's files before and after anybody read them."""

    tables: list[Table]
    before: Path
    after: Path


@pytest.fixture(scope="module")
def made(postgresql: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables, and what SELECT gave."""
    drawn = [history(number, 60) for number in range(40)]
    postgresql.sql("".join(script for _, script in drawn))
    tables = Tables([table for table, _ in drawn], tmp_path_factory.mktemp("before"), tmp_path_factory.mktemp("after"))
    for copy in (tables.before, tables.after):
        with postgresql.stopped():
            for name in ("base", "pg_xact", "global"):
                shutil.copytree(postgresql.data / name, copy / name)
        ask(postgresql, tables.tables)
    return tables


def test_rows_are_those_that_select_gives(made: Tables) -> None:
    """By what rows themselves tell of transactions, and where they do not, by what the cluster does."""
    assert {kind.name for table in made.tables for kind in table.columns.values()} == {kind.name for kind in KINDS}
    assert sum(len(table.wanted) for table in made.tables) > 3000
    told = 0
    for table in made.tables:
        assert table.ours(made.after / table.path) == table.wanted, table.definition
        assert table.ours(made.before / table.path) == table.wanted, table.definition
        with suppress(MissingFileError):  # refused by those that only the cluster tells
            assert table.ours(Path(shutil.copy(made.before / table.path, made.before))) == table.wanted
            told += 1
    assert 0 < told < 30


class Session:
    """A client whose transaction stays open between statements."""

    def __init__(self, cluster: Cluster) -> None:
        self.psql = cluster.client()

    def sql(self, statement: str) -> None:
        """Have the server do something, and wait for it."""
        assert self.psql.stdin and self.psql.stdout
        self.psql.stdin.write(f"{statement};\n\\echo done\n")
        self.psql.stdin.flush()
        while self.psql.stdout.readline() != "done\n":
            assert self.psql.poll() is None

    def end(self) -> None:
        """Go, whatever is open."""
        with self.psql:
            self.psql.kill()


def test_rows_that_several_transactions_hold(postgresql: Cluster) -> None:
    """Locked by two; locked by one and changed by another, which was committed or not; locked and deleted."""
    definition = "CREATE TABLE held (a int PRIMARY KEY, b int)"
    postgresql.sql(f"{definition}; INSERT INTO held SELECT i, 0 FROM generate_series(1, 8) i")
    one, other = Session(postgresql), Session(postgresql)
    try:
        for statement, ends in (
            ("SELECT FROM held WHERE a <= 2 FOR KEY SHARE", "COMMIT"),
            ("UPDATE held SET b = 1 WHERE a BETWEEN 3 AND 4", "COMMIT"),
            ("UPDATE held SET b = 2 WHERE a BETWEEN 5 AND 6", "ROLLBACK"),
            ("BEGIN; SAVEPOINT a; UPDATE held SET b = 3 WHERE a = 7; ROLLBACK TO a", "COMMIT"),
        ):
            one.sql("BEGIN; SELECT FROM held FOR KEY SHARE")
            other.sql(f"BEGIN; {statement}")
            one.sql("COMMIT")
            other.sql(ends)
    finally:
        one.end()
        other.end()
    wanted = postgresql.sql("SELECT * FROM held").splitlines()
    infomasks = postgresql.sql("SELECT count(*) FROM held WHERE xmax <> 0").strip()
    path = postgresql.path("held")
    with postgresql.stopped():
        source = open_source(f"pg:{path}:{definition}")
        assert infomasks != "0" and [f"{row['a']},{row['b']}" for row in source.table.to_pylist()] == wanted
        copy = postgresql.folder / "copy" / "base" / "5"
        copy.mkdir(parents=True)
        shutil.copytree(postgresql.data / "pg_xact", copy.parents[1] / "pg_xact")
        with pytest.raises(MissingFileError, match="several transactions held a row while one changed it"):
            open_source(f"pg:{shutil.copy(path, copy)}:{definition}")
        for content, told in ((b"", "no pg_multixact/offsets says"), (bytes(8192), "it lists no transactions that held rows as group")):
            (copy.parents[1] / "pg_multixact" / "offsets").mkdir(parents=True, exist_ok=True)
            (copy.parents[1] / "pg_multixact" / "offsets" / "0000").write_bytes(content)
            with pytest.raises(FlashsimError, match=told):
                open_source(f"pg:{copy / path.name}:{definition}")


def test_transactions_that_ended_with_the_server(postgresql: Cluster) -> None:
    definition = "CREATE TABLE ended (a int)"
    postgresql.sql(f"{definition}; INSERT INTO ended VALUES (1), (2), (3)")
    session = Session(postgresql)
    session.sql("BEGIN; INSERT INTO ended VALUES (4); DELETE FROM ended WHERE a = 2; SAVEPOINT a; INSERT INTO ended VALUES (5); RELEASE a")
    postgresql.sql("CHECKPOINT")
    postgresql.crash()
    session.end()
    with postgresql.stopped():
        pass
    path = postgresql.path("ended")
    with postgresql.stopped():
        assert open_source(f"pg:{path}:{definition}").key("a").to_pylist() == [1, 2, 3]


@pytest.mark.deep
def test_a_gigabyte_in_several_segments(postgresql: Cluster) -> None:
    """Rows by their sums, and no more than ten seconds of one core for each GiB."""
    definition = "CREATE TABLE large (a int, b char(15), c numeric(15, 2), d date, e varchar(79), f bigint)"
    postgresql.sql(
        f"""{definition};
        INSERT INTO large SELECT i, '5-LOW', i * 1.37, date '1992-01-01' + i % 2400, repeat('abc ', i % 20), i * 3::bigint
            FROM generate_series(1, 9500000) i;
        DELETE FROM large WHERE a % 10 = 0"""
    )
    path = postgresql.path("large")
    with postgresql.stopped():
        size = path.stat().st_size + path.with_name(f"{path.name}.1").stat().st_size
        assert size > path.stat().st_size == 1 << 30
        begun = time.process_time()
        source = open_source(f"pg:{path}:{definition}")
        took = time.process_time() - begun
        assert source.rows == 8_550_000
        assert pc.sum(source.key("a")).as_py() == pc.sum(source.key("f")).as_py() // 3 == sum(a for a in range(9_500_001) if a % 10)
        assert pc.sum(source.key("c")).as_py() == Decimal("1.37") * pc.sum(source.key("a")).as_py()
        assert took < 10 * loop_slowness() * size / 2**30, f"{took:.1f} s for {size / 2**30:.2f} GiB"

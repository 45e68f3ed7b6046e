"""Damaged and foreign PostgreSQL files end in one line; where a checksum tells, never in a wrong row."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from flashsim.core.errors import DamagedFileError, FlashsimError, MissingFileError, SchemaError, UnknownNameError
from flashsim.storage.page._postgresql import PAGE_HEADER, PAGE_SIZE
from flashsim.storage.source import open_source
from tests.postgresql_server import Cluster

#: What a damaged file may end in.
REFUSALS = (DamagedFileError, MissingFileError, SchemaError)
DEFINITION = "CREATE TABLE t (a int, b varchar(300), c numeric, d timestamp, e numeric(12, 3), f bool, g text)"


@dataclass
class Damaged:
    """A copy of a table of some pages, outside its cluster."""

    path: Path
    whole: bytes
    rows: pa.Table

    def read(self, content: bytes) -> pa.Table | None:
        """Rows of a file, or None if it is refused in one line."""
        self.path.write_bytes(content)
        refused = ""
        try:
            source = open_source(f"pg:{self.path}:{DEFINITION}")
            return source.take(np.arange(source.rows))
        except REFUSALS as problem:
            refused = str(problem)
        assert refused.startswith(str(self.path)) and refused.isprintable()
        return None

    def without_checksums(self) -> bytes:
        """The file as a cluster without checksums has it."""
        pages = np.frombuffer(self.whole, np.uint8).reshape(-1, PAGE_SIZE).copy()
        pages[:, 8:10] = 0
        return pages.tobytes()


@pytest.fixture(scope="module")
def others(postgresql: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Files of a cluster that has stopped: a table, and what is none; all rows say by whom they are visible."""
    postgresql.sql(  # tests of other modules may come between, and this fixture again after them
        f"""DROP TABLE IF EXISTS t, long, packed, empty; DROP SEQUENCE IF EXISTS s; {DEFINITION};
        INSERT INTO t SELECT i, repeat('Ü', i % 290), (i - 700) * 1.000037 ^ i, timestamp '2001-01-01' + i * interval '1 hour', i / 7.0,
            i % 3 = 0, CASE WHEN i % 5 > 0 THEN 'text ' || i END FROM generate_series(1, 1500) i;
        DELETE FROM t WHERE a % 7 = 0; UPDATE t SET f = NULL WHERE a % 11 = 0; VACUUM FREEZE t; CREATE INDEX i ON t (a); CREATE SEQUENCE s;
        CREATE TABLE long (x text); INSERT INTO long SELECT string_agg(md5(i::text), '') FROM generate_series(1, 300) i;
        CREATE TABLE packed (x text); INSERT INTO packed VALUES (repeat('x', 3000));
        CREATE TABLE empty (a int)"""
    )
    found = {name: postgresql.path(name) for name in ("t", "i", "s", "long", "packed", "empty")}
    with postgresql.stopped():
        yield found


@pytest.fixture
def damaged(others: dict[str, Path], tmp_path: Path) -> Damaged:
    """The table on its own, where only its pages tell anything."""
    made = Damaged(tmp_path / "16385", others["t"].read_bytes(), pa.table({}))
    rows = made.read(made.whole)
    assert rows is not None and rows.num_rows == 1286 and rows == made.read(made.without_checksums())
    made.rows = rows
    return made


def change(whole: bytes, draws: random.Random) -> bytes:
    """Some bits or bytes changed, most of them in the headers of pages and rows."""
    content = bytearray(whole)
    for _ in range(draws.choice((1, 1, 1, 2, 8, 64))):
        place = draws.randrange(len(content))
        if draws.random() < 0.5:
            page = place // PAGE_SIZE * PAGE_SIZE
            place = page + draws.randrange(PAGE_HEADER + 40)
            if draws.random() < 0.6:  # one of the first rows
                (pointer,) = struct.unpack_from("<I", content, page + PAGE_HEADER + 4 * draws.randrange(5))
                place = min(page + (pointer & 0x7FFF) + draws.randrange(60), len(content) - 1)
        content[place] = draws.choice((0, 255, content[place] ^ (1 << draws.randrange(8)), draws.randrange(256)))
    return bytes(content)


def header(whole: bytes, draws: random.Random) -> bytes:
    """A page whose header is drawn at random."""
    page = draws.randrange(len(whole) // PAGE_SIZE) * PAGE_SIZE
    return whole[:page] + draws.randbytes(PAGE_HEADER) + whole[page + PAGE_HEADER :]


def moved(whole: bytes, draws: random.Random) -> bytes:
    """Two pages that changed places."""
    pages = [whole[at : at + PAGE_SIZE] for at in range(0, len(whole), PAGE_SIZE)]
    one, other = draws.sample(range(len(pages)), 2)
    pages[one], pages[other] = pages[other], pages[one]
    return b"".join(pages)


def cut(whole: bytes, draws: random.Random) -> bytes:
    """Some first bytes."""
    return whole[: draws.randrange(1, len(whole)) // 8 * 8 + 4]


def foreign(whole: bytes, draws: random.Random) -> bytes:
    """Something else."""
    heads = (b"", b"\x89PNG\r\n\x1a\n", b"PAR1", b"SQLite format 3\0", b"PGDMP\x01\x0e", b"id,name\n1,a\n")
    return (draws.choice(heads) + draws.randbytes(2 * PAGE_SIZE))[: 2 * PAGE_SIZE]


@pytest.mark.parametrize("kind, count", [(change, 120), (header, 60), (moved, 40), (cut, 40), (foreign, 40)])
def test_damage_that_a_checksum_tells(kind: Callable[[bytes, random.Random], bytes], count: int, damaged: Damaged) -> None:
    draws = random.Random(f"damage {kind.__name__}")
    for _ in range(count):
        content = kind(damaged.whole, draws)
        found = damaged.read(content)
        assert found is None or content == damaged.whole


def test_damage_that_no_checksum_tells(damaged: Damaged) -> None:
    """Rows may then be wrong, and are read or refused, but nothing else happens."""
    draws = random.Random("damage without checksums")
    refused = [damaged.read(change(damaged.without_checksums(), draws)) is None for _ in range(50)]
    assert 10 < sum(refused) < 50
    assert all(damaged.read(header(damaged.without_checksums(), draws)) is None for _ in range(10))


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_damage_at_length(damaged: Damaged) -> None:
    draws = random.Random("damage at length")
    for _ in range(5000):
        content = change(damaged.whole, draws)
        assert damaged.read(content) is None or content == damaged.whole
        damaged.read(change(damaged.without_checksums(), draws))


def test_only_some_pages_have_checksums(damaged: Damaged) -> None:
    mixed = damaged.without_checksums()[:PAGE_SIZE] + damaged.whole[PAGE_SIZE:]
    assert damaged.read(mixed) is None
    lonely = damaged.whole[:PAGE_SIZE] + damaged.without_checksums()[PAGE_SIZE:]
    assert damaged.read(lonely) is None


def test_pages_that_were_never_written_hold_no_rows(damaged: Damaged) -> None:
    assert damaged.read(damaged.whole + bytes(3 * PAGE_SIZE)) == damaged.rows
    for content in (b"", bytes(PAGE_SIZE)):
        found = damaged.read(content)
        assert found is not None and found.num_rows == 0 and found.column_names == damaged.rows.column_names


def refusal(text: str) -> str:
    with pytest.raises(FlashsimError) as refused:
        open_source(text)
    assert str(refused.value).isprintable()
    return str(refused.value)


def test_pages_of_other_machines(damaged: Damaged) -> None:
    path, one = damaged.path, f"pg:{damaged.path}:{DEFINITION}"
    for change_at, value, told in (
        (18, b"\x20\x04", "its numbers are big-endian"),
        (18, b"\x04\x40", "its pages are of 16384 B, but only those of 8192 B are read"),
        (18, b"\x03\x20", "its pages are of layout 3, before PostgreSQL 8.3"),
        (18, b"\x05\x21", "it is not a PostgreSQL relation file"),
    ):
        path.write_bytes(damaged.whole[:change_at] + value + damaged.whole[change_at + len(value) :])
        assert told in refusal(one)


def test_segments(damaged: Damaged, tmp_path: Path) -> None:
    """Cut in pieces of any number of pages, as a server with other segments has them, rows are the same."""
    whole, path = damaged.whole, damaged.path
    pages = len(whole) // PAGE_SIZE
    for length in (1, 7, pages // 3 + 1, pages - 1, pages):
        pieces = [whole[at : at + length * PAGE_SIZE] for at in range(0, len(whole), length * PAGE_SIZE)]
        for number, piece in enumerate([*pieces, b"", b""]):
            path.with_name("16385" + (f".{number}" if number else "")).write_bytes(piece)
        assert damaged.read(pieces[0]) == damaged.rows
        if length == 7:
            path.with_name("16385.2").rename(tmp_path / "kept")
            assert "16385.2: this segment is missing, but later ones exist" in refusal(f"pg:{path}:{DEFINITION}")
            path.with_name("16385.2").write_bytes(pieces[2][:-PAGE_SIZE])
            assert "only the last is shorter" in refusal(f"pg:{path}:{DEFINITION}")
            path.with_name("16385.2").write_bytes(pieces[2][:-5])
            assert "16385.2: it is truncated" in refusal(f"pg:{path}:{DEFINITION}")
            path.with_name("16385.2").write_bytes(pieces[3])
            assert "its checksum is wrong" in refusal(f"pg:{path}:{DEFINITION}")
        for piece in tmp_path.glob("16385.*"):
            piece.unlink()
    assert "name that file instead" in refusal(f"pg:{path}.1:{DEFINITION}")


def test_what_is_no_table(others: dict[str, Path]) -> None:
    for name in ("i", "s"):
        assert "it is an index or a sequence" in refusal(f"pg:{others[name]}:CREATE TABLE t (a int)")
    assert "name that file instead" in refusal(f"pg:{others['t']}_fsm:{DEFINITION}")
    assert "there is no such file" in refusal(f"pg:{others['t'].with_name('1')}:{DEFINITION}")
    assert "it is not a file" in refusal(f"pg:{others['t'].parent}:{DEFINITION}")


def test_more_than_memory_holds(damaged: Damaged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flashsim.storage.source.base.free_memory", lambda: 100_000)
    damaged.path.write_bytes(damaged.whole)
    assert "take up to" in refusal(f"pg:{damaged.path}:{DEFINITION}")


def test_files_that_may_not_be_read(others: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("numpy.fromfile", refuse)
    assert "it may not be read" in refusal(f"pg:{others['t']}:{DEFINITION}")


def test_values_outside_rows_are_named(others: dict[str, Path]) -> None:
    for name, how in (("long", "outside the table"), ("packed", "compressed")):
        told = f"column x: row 1 of page 0 has a value that is stored {how}"
        assert told in refusal(f"pg:{others[name]}:CREATE TABLE {name} (x text)")
    assert open_source(f"pg:{others['empty']}:CREATE TABLE empty (a int)").rows == 0


@pytest.mark.parametrize(
    "definition, told",
    [
        (DEFINITION.replace(", g text", ""), "rows have 7 columns, but its definition has 6"),
        (DEFINITION.replace("a int", "a bigint"), "does not fit the table's definition"),
        (DEFINITION.replace("g text", "g int"), "does not fit the table's definition"),
        (DEFINITION.replace("f bool", "f bool NOT NULL"), "column f: it has no value in some row"),
        (DEFINITION.replace("varchar(300)", "varchar(50)"), "column b: a text of 289 characters, but its definition says 50"),
        (DEFINITION.replace("varchar(300)", "char(300)"), "column b: a text of 0 characters, but its definition says 300"),
        (DEFINITION.replace("varchar(300)", "numeric"), "column b: a value is not a numeric"),
        (DEFINITION.replace("12, 3", "12, 2"), "column e: a value has 3 digits before and 3 after the point"),
        (DEFINITION.replace("c numeric", "c jsonb"), "column c of table t is of type jsonb, but only bool,"),
        (DEFINITION.replace("c numeric", "c int[]"), "column c of table t is of type int []"),
        (DEFINITION.replace("c numeric", 'c "char"'), "column c of table t is of type char"),
        ("CREATE TABLE t (a int) INHERITS (b)", "has columns of another"),
        ("CREATE TABLE t (LIKE b)", "has columns of another"),
        ("CREATE TABLE t AS SELECT 1", "is created from another"),
        ("CREATE TABLE t ()", "it has no columns"),
        ("CREATE TABLE t (a int, a int)", "has two columns of one name"),
        ("CREATE TABLE t (a int; ", "unbalanced parentheses"),
        ("CREATE VIEW t", "it has no CREATE TABLE"),
        (f"{DEFINITION}; ALTER TABLE t DROP COLUMN z", "names column z, which it does not have"),
        (f"{DEFINITION}; CREATE TABLE u (a int)", "it creates t, u; name one"),
    ],
)
def test_definitions_that_do_not_fit(definition: str, told: str, others: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "d.sql").write_text(definition)
    message = refusal(f"pg:{others['t']}:{tmp_path / 'd.sql'}")
    assert told in message or told.replace("it has", "table t has") in message, message


def test_a_file_of_several_definitions(others: dict[str, Path], tmp_path: Path) -> None:
    before = "SET x = 1;\n\\restrict x'y\nCREATE FUNCTION f() AS $a$ it's; $a$;\n-- a\nCREATE TABLE public.u (a json)"
    (tmp_path / "d.sql").write_text(f"{before};\n{DEFINITION};\n")
    assert open_source(f"pg:{others['t']}:{tmp_path / 'd.sql'}:t").rows == 1286
    with pytest.raises(UnknownNameError, match="did you mean t or u|known: t, u"):
        open_source(f"pg:{others['t']}:{tmp_path / 'd.sql'}:v")
    assert "its columns are unknown" in refusal(f"pg:{others['t']}")
    assert "none.sql: there is no such file" in refusal(f"pg:{others['t']}:none.sql")


def test_servers_that_run_or_crashed(postgresql: Cluster, others: dict[str, Path]) -> None:
    one = f"pg:{others['t']}:{DEFINITION}"
    rows = open_source(one).rows
    postgresql.start()
    assert "a server runs there" in refusal(one)
    postgresql.crash()
    assert "its server did not shut down" in refusal(one)
    with postgresql.stopped():
        pass
    postgresql.stop()
    assert open_source(one).rows == rows


def test_cluster_files(others: dict[str, Path], postgresql: Cluster, tmp_path: Path) -> None:
    """Damaged, foreign, or without the transactions that are needed."""
    copy = tmp_path / "cluster"
    shutil.copytree(postgresql.data, copy)
    one = f"pg:{copy / others['empty'].relative_to(postgresql.data)}:CREATE TABLE empty (a int)"
    assert open_source(one).rows == 0
    control = copy / "global" / "pg_control"
    whole = control.read_bytes()
    size_at = whole.index(struct.pack("<d", 1234567.0)) + 8
    for content in (b"", whole[:100], whole[::-1], bytes(PAGE_SIZE)):
        control.write_bytes(content)
        assert "it is not a control file" in refusal(one)
    control.write_bytes(whole[:size_at] + struct.pack("<I", 16384) + whole[size_at + 4 :])
    assert "its pages are of 16384 B" in refusal(one)

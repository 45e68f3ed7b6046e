"""Damaged files end in one line, or in the very rows that SQLite still reads; never in another exception, wrong rows, or a hang."""

from __future__ import annotations

import random
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashsim.core.errors import DamagedFileError, FlashsimError, MissingFileError, SchemaError, UnknownNameError
from flashsim.storage.source import open_source

#: What a damaged database may end in; the last two where the damage makes a statement of its schema say something else.
REFUSALS = (DamagedFileError, MissingFileError, SchemaError, UnknownNameError)
KINDS = {"small": (512, "UTF-8", 60), "wide": (1024, "UTF-16le", 200)}


def database(path: Path, kind: str) -> bytes:
    """A database with interior pages, overflow pages, free pages and several types."""
    page_size, encoding, rows = KINDS[kind]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b REAL, c TEXT)")
        for row in range(rows):
            value: Any = [row, row / 7, f"text {row}", b"blob" * row, None][row % 5]
            connection.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (row * 3, value, row, "lang " * (row % 40) * (row % 11)))
        connection.execute("DELETE FROM t WHERE id % 9 = 0")
    return path.read_bytes()


def ours(path: Path) -> list[tuple[Any, ...]] | None:
    """The rows that flashsim reads, or None if it refuses in one line."""
    try:
        source = open_source(f"{path}:t")
    except REFUSALS as refused:
        return None if len(str(refused).splitlines()) == 1 else [(str(refused),)]
    return list(zip(*(source.key(name).to_pylist() for name in source.names), strict=True))


def theirs(path: Path) -> list[tuple[Any, ...]] | None:
    """The rows that SQLite reads in order of row id, or None if it finds damage, in what holds them together too."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            if any(told.startswith("***") for (told,) in connection.execute("PRAGMA integrity_check(t)")):
                return None
            return connection.execute("SELECT * FROM t NOT INDEXED ORDER BY rowid").fetchall()
        except (sqlite3.Error, UnicodeError, MemoryError):
            return None


def check(path: Path) -> bool:
    """Whether flashsim refuses; else SQLite finds the table sound and reads the same rows: the damage lies outside or cannot be seen."""
    found = ours(path)
    assert found is None or repr(found) == repr(theirs(path))
    return found is None


def flips(kind: str, count: int, tmp_path: Path) -> int:
    """Change some bytes of the database again and again; returns how often flashsim refused."""
    path = tmp_path / "x.db"
    whole = database(path, kind)
    changes = random.Random(f"flips of {kind}")
    refused = 0
    for _ in range(count):
        damaged = bytearray(whole)
        for _ in range(changes.choice((1, 1, 2, 8, 64))):
            # Half of the changes hit the headers of pages, where lengths and pointers stand.
            place = changes.randrange(len(whole))
            if changes.random() < 0.5:
                page = KINDS[kind][0]
                place = place // page * page + changes.randrange(24)
            damaged[place] = changes.choice((0, 255, damaged[place] ^ (1 << changes.randrange(8)), changes.randrange(256)))
        path.write_bytes(damaged)
        refused += check(path)
    return refused


@pytest.mark.parametrize("kind", KINDS)
def test_changed_bytes(kind: str, tmp_path: Path) -> None:
    assert flips(kind, 250, tmp_path) > 50


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_changed_bytes_at_length(kind: str, tmp_path: Path) -> None:
    assert flips(kind, 10_000, tmp_path) > 2000


def test_truncated_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    whole = database(path, "small")
    for size in [*range(0, 700, 23), *range(700, len(whole), 509)]:
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedFileError, match=r"x\.db: it is (truncated|not a SQLite database)"):
            open_source(f"{path}:t")


def test_foreign_and_encrypted_files(tmp_path: Path) -> None:
    for content in (b"", b"SQLite format 3", b"SQLite format 2\0" * 64, bytes(8192), random.Random(1).randbytes(8192), b"a,b\n1,2\n" * 100):
        (tmp_path / "x.db").write_bytes(content)
        with pytest.raises(DamagedFileError, match="it is not a SQLite database"):
            open_source(f"{tmp_path / 'x.db'}:t")
    for missing in (tmp_path / "y.db", tmp_path / "folder.db"):
        if missing.stem == "folder":
            missing.mkdir()
        with pytest.raises(MissingFileError):
            open_source(f"{missing}:t")


@pytest.fixture
def tree(tmp_path: Path) -> tuple[Path, bytearray, int]:
    """A table with interior pages of 512 bytes, and the number of its root page."""
    path = tmp_path / "x.db"
    whole = bytearray(database(path, "small"))
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master").fetchone()
    assert whole[(root - 1) * 512] == 5
    return path, whole, root


@pytest.mark.parametrize("target", ["itself", "page 1", "a sibling", "nothing", "beyond the file"])
def test_trees_that_are_no_trees(tree: tuple[Path, bytearray, int], target: str) -> None:
    path, whole, root = tree
    start = (root - 1) * 512
    (cell,) = struct.unpack_from(">H", whole, start + 12)
    (sibling,) = struct.unpack_from(">I", whole, start + cell)
    child = {"itself": root, "page 1": 1, "a sibling": sibling, "nothing": 0, "beyond the file": len(whole) // 512 + 1}[target]
    struct.pack_into(">I", whole, start + 8, child)
    path.write_bytes(whole)
    with pytest.raises(DamagedFileError, match=f"the tree at page {root}|out of order"):
        open_source(f"{path}:t")


def test_overflow_chains_that_run_in_circles(tree: tuple[Path, bytearray, int]) -> None:
    """Each page's link is turned to the page itself, and to page 2: chains never go on for ever."""
    path, whole, _ = tree
    refused = 0
    for page in range(2, len(whole) // 512 + 1):
        if whole[(page - 1) * 512] != 0:
            continue
        for target in (page, 2, len(whole) // 512 + 7):
            damaged = bytearray(whole)
            struct.pack_into(">I", damaged, (page - 1) * 512, target)
            path.write_bytes(damaged)
            refused += check(path)
    assert refused > 20


def test_lengths_beyond_the_file(tree: tuple[Path, bytearray, int]) -> None:
    """A record that claims to be huge is refused before memory is taken for it."""
    path, whole, _ = tree
    for page in range(1, len(whole) // 512):
        if whole[page * 512] == 13:
            damaged = bytearray(whole)
            (cell,) = struct.unpack_from(">H", damaged, page * 512 + 8)
            damaged[page * 512 + cell : page * 512 + cell + 9] = (
                b"\xff" * 4 + b"\x7f" + damaged[page * 512 + cell + 5 : page * 512 + cell + 9]
            )
            path.write_bytes(damaged)
            assert check(path)


def test_headers_that_contradict_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    whole = database(path, "small")
    for place, values in {
        16: (b"\0\0", b"\3\0", b"\1\0"),
        18: (b"\3", b"\xff"),
        20: (b"\xff", b"\x21"),
        21: (b"\0", b"\x41"),
        56: (b"\0\0\0\4",),
    }.items():
        for value in values:
            path.write_bytes(whole[:place] + value + whole[place + len(value) :])
            with pytest.raises(DamagedFileError, match=r"x\.db"):
                open_source(f"{path}:t")


def test_an_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.db"
    database(path, "small")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("numpy.fromfile", refuse)
    with pytest.raises(FlashsimError, match=r"x\.db: it may not be read"):
        open_source(f"{path}:t")

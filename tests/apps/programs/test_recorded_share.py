"""The share of the bytes that the kernel counted as written which a recording explains, of programs that people run."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow.compute as pc
import pytest

import flashsim as fs
from flashsim.apps.programs import notices
from tests import postgresql_server
from traces.calls import schema

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(not shutil.which("strace") or not notices.is_possible(), reason="strace, or notices of calls, are not there"),
]

SQLITE = """
import sqlite3, sys
base = sqlite3.connect("s.db", isolation_level=None)
base.execute(f"PRAGMA journal_mode={sys.argv[1]}")
base.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)")
for k in range(200):
    base.execute("INSERT INTO t VALUES (?, ?)", (k, bytes([k]) * 900))
"""
DUCKDB = """
import duckdb
base = duckdb.connect("d.db")
base.execute("CREATE TABLE t AS SELECT range AS k, hash(range) AS h FROM range(300000)")
base.execute("CHECKPOINT")
for k in range(30):
    base.execute(f"UPDATE t SET h = {k} WHERE k = {k}")
"""
LMDB = """
import lmdb, sys
store = lmdb.open("l", map_size=1 << 24, writemap=sys.argv[1] == "writemap")
for k in range(100):
    with store.begin(write=True) as t:
        t.put(str(k).encode(), bytes([k]) * 3000)
store.close()
"""
LEVELDB = """
import plyvel
store = plyvel.DB("v", create_if_missing=True, write_buffer_size=1 << 18)
for k in range(3000):
    store.put(str(k).encode(), bytes([k % 256]) * 300, sync=k % 10 == 0)
store.close()
"""
PICKLES = """
import os, pickle, random
for k in range(20):
    with open("new", "wb") as file:
        pickle.dump(random.Random(k).randbytes(200_000), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace("new", "saved")
"""
#: PostgreSQL's server, transactions of eight clients, and its shutdown; in AS are the words that make the server's user run a command.
POSTGRESQL = """
$AS $PLACE/postgres -D $DATA -c listen_addresses= -c unix_socket_directories=$DATA -c shared_buffers=16MB &
until $AS $PLACE/pg_isready -q -h $DATA; do sleep 0.1; done
$AS $PLACE/pgbench -q -h $DATA -U postgres -i -s 2 postgres
$AS $PLACE/pgbench -h $DATA -U postgres -c 8 -t 200 postgres
kill -INT $(head -1 $DATA/postmaster.pid)
wait
"""
_FIO = "fio --name=w --filename=data --size=8m --bs=4k --rw=randwrite --iodepth=8 --fallocate=none --direct=1"
PYTHON = sys.executable
DOCS = f"{Path(__file__).parents[3]}/docs"
#: Words of each program, and the package that it needs.
PROGRAMS = {
    "sqlite-rollback": ([PYTHON, "-c", SQLITE, "delete"], None),
    "sqlite-wal": ([PYTHON, "-c", SQLITE, "wal"], None),
    "postgresql": (["sh", "-c", POSTGRESQL], None),
    "fio-psync": ([*_FIO.split(), "--ioengine=psync"], None),
    "fio-libaio": ([*_FIO.split(), "--ioengine=libaio"], None),
    "fio-io_uring": ([*_FIO.split(), "--ioengine=io_uring"], None),
    "duckdb": ([PYTHON, "-c", DUCKDB], "duckdb"),
    "lmdb": ([PYTHON, "-c", LMDB, "calls"], "lmdb"),
    "lmdb-writemap": ([PYTHON, "-c", LMDB, "writemap"], "lmdb"),
    "leveldb": ([PYTHON, "-c", LEVELDB], "plyvel"),
    "pickles": ([PYTHON, "-c", PICKLES], None),
    "git": (["git", "clone", "-q", str(Path(__file__).parents[3]), "clone"], None),
    "rsync": (["rsync", "-a", DOCS, "copy"], None),
    "cp": (["cp", "-r", DOCS, "copy"], None),
}
#: Bytes that ext4 makes dirty per new directory (its first block, and its share of a table of inodes) and per new file, as measured with
#: 1,000 empty ones: 4,620 and 373.
DIRECTORY, FILE = 4620, 373


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_recording_explains_what_the_kernel_counted(name: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, package = PROGRAMS[name]
    if not shutil.which(words[0]) or (package and not importlib.util.find_spec(package)):
        pytest.skip(f"{package or words[0]} is not installed")
    if name == "postgresql":
        if not postgresql_server.programs():
            pytest.skip("PostgreSQL is not installed")
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            cluster = postgresql_server.Cluster(Path(folder))
            monkeypatch.setenv("AS", " ".join(cluster.as_owner))
            monkeypatch.setenv("PLACE", str(postgresql_server.programs()))
            monkeypatch.setenv("DATA", str(cluster.data))
            recorded = fs.record(words, out="run.parquet")
    else:
        recorded = fs.record(words, out="run.parquet")
    share, facts = recorded.seen_share, recorded.result.facts
    if share is None:
        pytest.skip("the kernel counts no writes here, or files lie in memory")
    table = recorded.result.table.filter(pc.is_null(recorded.result.table["error"]))
    files = table.filter(pc.and_(pc.equal(table["kind"], "file"), pc.greater_equal(table["file"], 0)))
    directories = sum(call in ("mkdir", "mkdirat") for call in table["call"].to_pylist())
    created = len(
        {file for file, flags in zip(files["file"].to_pylist(), files["flags"].to_pylist(), strict=True) if flags & schema.CREATE}
    )
    named = (facts["written_folio_bytes"] + directories * DIRECTORY + created * FILE) / facts["kernel_written_bytes"]
    print(f"{name}: {share:.1%}; with whole folios and metadata {named:.1%}")
    assert share >= 0.95 or 0.95 <= named <= 1.05

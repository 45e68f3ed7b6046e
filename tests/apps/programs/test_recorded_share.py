"""The share of the bytes that the kernel counted as written which a recording explains, of programs that people run."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

import flashsim as fs
from flashsim.apps.programs import notices

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
_FIO = "fio --name=w --filename=data --size=8m --bs=4k --rw=randwrite --iodepth=8 --fallocate=none --direct=1"
PYTHON = sys.executable
#: Words of each program, the package that it needs, and the least share; with less than 0.95 stands what is missing.
PROGRAMS = {
    "sqlite-rollback": ([PYTHON, "-c", SQLITE, "delete"], None, 0.95),
    "sqlite-wal": ([PYTHON, "-c", SQLITE, "wal"], None, 0.95),
    "fio-psync": ([*_FIO.split(), "--ioengine=psync"], None, 0.95),
    "fio-libaio": ([*_FIO.split(), "--ioengine=libaio"], None, 0.95),
    "fio-io_uring": ([*_FIO.split(), "--ioengine=io_uring"], None, 0.95),
    "duckdb": ([PYTHON, "-c", DUCKDB], "duckdb", 0.95),
    # a quarter is not explained; perhaps the kernel counts whole folios of its cache, which have several pages
    "lmdb": ([PYTHON, "-c", LMDB, "calls"], "lmdb", 0.6),
    "lmdb-writemap": ([PYTHON, "-c", LMDB, "writemap"], "lmdb", 0.6),
    "leveldb": ([PYTHON, "-c", LEVELDB], "plyvel", 0.95),
    "pickles": ([PYTHON, "-c", PICKLES], None, 0.95),
    # files are many and small; what is missing is not explained
    "git": (["git", "clone", "-q", str(Path(__file__).parents[3]), "clone"], None, 0.7),
    "rsync": (["rsync", "-a", f"{Path(__file__).parents[3]}/docs", "copy"], None, 0.7),
    "cp": (["cp", "-r", f"{Path(__file__).parents[3]}/docs", "copy"], None, 0.7),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_recording_explains_what_the_kernel_counted(name: str, here: Path) -> None:
    words, package, least = PROGRAMS[name]
    if not shutil.which(words[0]) or (package and not importlib.util.find_spec(package)):
        pytest.skip(f"{package or words[0]} is not installed")
    share = fs.record(words, out="run.parquet").seen_share
    if share is None:
        pytest.skip("the kernel counts no writes here, or files lie in memory")
    print(f"{name}: {share:.1%}")
    assert share >= least

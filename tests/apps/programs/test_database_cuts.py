"""Databases under power cuts: safe settings survive, unsafe ones are found, and a drive that ignores flushes is blamed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flashsim as fs
from tests import postgresql_server
from tests.postgresql_server import Cluster

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
needs_sqlite = pytest.mark.skipif(not shutil.which("sqlite3"), reason="the sqlite3 command is not installed")
#: Cuts that safe settings survive.
MANY = 10_000

SQLITE = """
import sqlite3, sys
mode, synchronous, rows = sys.argv[1:]
c = sqlite3.connect("bank.db", isolation_level=None)
c.execute(f"pragma journal_mode={mode}")
c.execute(f"pragma synchronous={synchronous}")
c.execute("pragma wal_autocheckpoint=20")
c.execute("create table t(k integer primary key, v text)")
for k in range(int(rows)):
    c.execute("begin")
    c.execute("insert into t values (?, ?)", (k, "x" * 400 * (k % 40)))
    c.execute("update t set v = v || 'y' where k % 5 = ?", (k % 5,))
    c.execute("commit")
    print(k, flush=True)
"""
SQLITE_CHECK = """
N=$(wc -l <$FLASHSIM_PRINTED)
[ $N = 0 ] || set -- "select 'rows=' || count(v) from t where k < $N"
out=$(sqlite3 bank.db 'pragma integrity_check' "$@" 2>&1) || { echo "$out"; exit 1; }
case "$N $out" in "0 ok"|*"ok
rows=$N") ;; *) echo "$out of $N"; exit 1;; esac
"""

#: Databases that nobody uses are dropped, for fewer files.
TABLE = """create table t(k int primary key, v text)
update pg_database set datistemplate = false
drop database template0
drop database template1
"""
#: The programs' folder, rows, and the server's settings.  Each row is committed before psql prints it.
SERVER = """
set -e
PATH=$0:$PATH; rows=$1; shift
postgres -D data -c listen_addresses= -c unix_socket_directories=$SOCKETS "$@" 2>/dev/null &
until pg_isready -q -h $SOCKETS; do sleep 0.05; done
for k in $(seq $rows); do
  echo "insert into t values ($k, repeat(md5('$k'), 30)) returning k;"
  [ $((k % 5)) != 0 ] || echo "checkpoint;"
  echo "update t set v = repeat(md5(v), 20) where k % 2 = 1;"
done | psql -qAtX -h $SOCKETS -U postgres postgres
kill -INT $!
wait
"""
SERVER_CHECK = """
cd data; chmod 700 .; rm -f postmaster.pid
N=$(wc -l <$FLASHSIM_PRINTED)
out=$(echo "select 'rows=' || count(v) from t where k <= $N" | $0/postgres --single -F -D . postgres 2>&1) || { echo "$out"; exit 1; }
case "$out" in *"rows=$N\\""*) ;; *) echo "$out"; exit 1;; esac
"""


def sqlite(here: Path, mode: str, synchronous: str, rows: int, **how: Any) -> Any:
    folder = here / "cut"
    folder.mkdir(exist_ok=True)
    (here / "program.py").write_text(SQLITE)
    (here / "check.sh").write_text(SQLITE_CHECK)
    program = [sys.executable, "-B", str(here / "program.py"), mode, synchronous, str(rows)]
    return fs.crash(program, check=f"sh {here / 'check.sh'}", folder=str(folder), **how)


@pytest.fixture
def server() -> Iterator[Any]:
    """Cuts the power of a server, on a cluster with an empty table."""
    if not postgresql_server.programs():
        pytest.skip("PostgreSQL's programs are not installed")
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as place, tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as sockets:
        cluster, programs = Cluster(Path(place), True, "--wal-segsize=1"), str(postgresql_server.programs())
        with (cluster.data / "postgresql.conf").open("a") as settings:
            settings.write("autovacuum=off\nmax_connections=10\nshared_buffers=1MB\n")
        cluster.run("postgres", "--single", "-D", cluster.data, "postgres", text=TABLE)
        owner = Path(place).stat().st_uid
        os.chown(sockets, owner, -1)
        check = shlex.join([*cluster.as_owner, "sh", "-c", SERVER_CHECK, programs])

        def cut(rows: int, *options: str, **how: Any) -> Any:
            program = [*cluster.as_owner, "env", f"SOCKETS={sockets}", "sh", "-c", SERVER, programs, str(rows), *options]
            return fs.crash(program, check=f"chown {owner} .. && chown -R {owner} . && {check}", folder=place, **how)

        yield cut


@needs_sqlite
@pytest.mark.parametrize(("mode", "synchronous"), [("delete", "off"), ("wal", "off"), ("wal", "normal"), ("delete", "full")])
def test_sqlite_loses_rows_with_less_than_safe_settings(here: Path, mode: str, synchronous: str) -> None:
    result = sqlite(here, mode, synchronous, 3, outcomes=10)
    assert result.result.failed_images and all(1 <= len(each.recipe) <= 10 for each in result.result.failures)


@needs_sqlite
def test_sqlite_is_safe_until_the_drive_ignores_flushes(here: Path) -> None:
    assert not sqlite(here, "wal", "full", 3, outcomes=10).result.failed_images
    shutil.rmtree(here / "cut")
    result = sqlite(here, "wal", "full", 3, outcomes=10, ignore_flush=True)
    assert result.result.failed_images and "It was the drive" in result.verdict


@pytest.mark.deep
def test_a_server_without_fsync_is_found(server: Any) -> None:
    found = server(1, "-c", "fsync=off", outcomes=10, jobs=1)
    assert found.result.failed_images and all(1 <= len(each.recipe) <= 10 for each in found.result.failures)


@needs_sqlite
@pytest.mark.deep
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("mode", "synchronous", "rows"), [("delete", "extra", 33), ("wal", "full", 33)])
def test_sqlite_survives(here: Path, mode: str, synchronous: str, rows: int) -> None:
    report = sqlite(here, mode, synchronous, rows, outcomes=20).result
    assert not report.failed_images and report.images >= MANY
    # The index of the write-ahead log is shared memory, which SQLite makes anew after a crash.
    assert all(line.endswith("bank.db-shm") for line in report.missed)


@pytest.mark.deep
@pytest.mark.timeout(7200)
def test_a_server_survives(server: Any) -> None:
    report = server(20, outcomes=45).result
    assert not report.failed_images and report.images >= MANY and not report.missed


@pytest.mark.deep
def test_a_server_on_a_drive_that_ignores_flushes_is_lost_by_the_drive(server: Any) -> None:
    result = server(3, outcomes=10, ignore_flush=True)
    assert result.result.failed_images and "It was the drive" in result.verdict

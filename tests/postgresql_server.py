"""A PostgreSQL server of the tests' own: in a short temporary folder, on a socket there and no port, ended when the tests are."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import wait_until
from tests.yardstick import seconds

#: Settings of the server: no port, and nothing happens that a test did not ask for.
SETTINGS = {"listen_addresses": "", "fsync": "off", "full_page_writes": "off", "autovacuum": "off", "max_connections": "20", "jit": "off"}


def programs() -> Path | None:
    """The folder of the server's programs, of the newest version that is installed; None without one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    place = shutil.which("initdb")
    return Path(place).resolve().parent if place else None


def _end_with_parent() -> None:
    """In the server's process, before it starts: it shuts down when its parent is gone, however that came."""
    ctypes.CDLL(None).prctl(1, signal.SIGINT)


class Cluster:
    """A cluster of databases, which a server serves between `start` and `stop`.

    Parameters
    ----------
    folder
        Short, for the socket's path has room for 107 bytes; the cluster's files are in ``data`` there.
    """

    def __init__(self, folder: Path, checksums: bool = True, *options: str) -> None:
        self.folder, self.data = folder, folder / "data"
        self._server: subprocess.Popen[bytes] | None = None
        self._identity: dict[str, Any] = {}
        if os.geteuid() == 0:  # the server refuses to run as root
            names = {entry.pw_name for entry in pwd.getpwall()}
            user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
            self._identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(folder, user.pw_uid, user.pw_gid)
        sums = ["--data-checksums"] if checksums else []
        self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", *sums, *options)

    @property
    def as_owner(self) -> list[str]:
        """Words before a command that make the server's user run it."""
        names = {"user": "--reuid", "group": "--regid"}
        return ["setpriv", *(f"{names[each]}={self._identity[each]}" for each in names), "--clear-groups"] if self._identity else []

    def run(self, program: str, *arguments: str | Path, text: str = "") -> str:
        """What one of PostgreSQL's programs prints; it must succeed."""
        place = programs()
        assert place
        command = [place / program, *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=self.folder, check=False, **self._identity)
        assert done.returncode == 0, f"{program}: {done.stderr or done.stdout}"
        return done.stdout

    def start(self) -> None:
        """Start the server and wait until it answers."""
        place = programs()
        assert place and self._server is None
        options = [
            part for name, value in (SETTINGS | {"unix_socket_directories": str(self.folder)}).items() for part in ("-c", f"{name}={value}")
        ]
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [place / "postgres", "-D", self.data, *options], stdout=log, stderr=log, preexec_fn=_end_with_parent, **self._identity
            )
        server, state = self._server, self.data / "postmaster.pid"
        assert wait_until(lambda: server.poll() is not None or (state.is_file() and "ready" in state.read_text()))
        assert server.poll() is None, (self.folder / "log").read_text()

    def crash(self) -> None:
        """End the server as a crash does: what is in its memory alone is lost until it has started again."""
        self.stop(signal.SIGQUIT)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server if it runs: clients are sent away, and all is written."""
        if self._server is not None:
            self._server.send_signal(how)
            try:
                self._server.wait(seconds(60))
            finally:
                self._server.kill()
                self._server.wait()
                self._server = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """A time in which the server does not run, and its files are complete."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def sql(self, text: str, *options: str) -> str:
        """What psql prints of statements, each in its own transaction unless they say otherwise: rows as CSV without a header."""
        return self.run("psql", *self._client_options(), *options, text=text)

    def client(self) -> subprocess.Popen[str]:
        """A psql that is told statements one by one."""
        place = programs()
        assert place
        command = [place / "psql", *self._client_options()]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder, **self._identity)

    def _client_options(self) -> list[str]:
        return ["-X", "-q", "-t", "--csv", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-U", "postgres"]

    def path(self, table: str) -> Path:
        """The first file of a table or index."""
        return self.data / self.sql(f"SELECT pg_relation_filepath('{table}')").strip()


@contextmanager
def cluster(checksums: bool = True) -> Iterator[Cluster]:
    """A cluster whose server runs; both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        made = Cluster(Path(folder), checksums)
        try:
            made.start()
            yield made
        finally:
            made.stop()

"""Where a served drive is reached: a socket in the file system, or a port."""

from __future__ import annotations

import errno
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from flashsim.core.errors import FlashsimError, InvalidParameterError, MissingFileError, RefusedError

#: The longest path of a socket (sun_path of unix(7), less its end).
_LONGEST = 107
#: Clients that may knock before one is let in; the event loop takes no more than 1,024 files, and lets so many in at once.
BACKLOG = 256


@dataclass(frozen=True)
class Address:
    """A bound socket and what clients call it; leaving the context closes it, and removes its file.

    `path` is None of a port.
    """

    socket: socket.socket
    uri: str
    path: Path | None = None

    def __enter__(self) -> Address:
        return self

    def __exit__(self, *problem: object) -> None:
        self.socket.close()
        if self.path:
            self.path.unlink(missing_ok=True)


def at_path(path: Path, force: bool) -> Address:
    """A socket in the file system."""
    path = Path(os.path.abspath(path))
    if len(os.fsencode(path)) > _LONGEST:
        raise InvalidParameterError("--socket", str(path), f"a socket's path takes at most {_LONGEST} bytes")
    if not path.parent.is_dir():
        raise MissingFileError(f"--socket: no folder {path.parent}")
    if os.path.lexists(path):
        _check_dead(path)
        if not force:
            raise RefusedError(f"--socket: {path} was left behind by a server that is gone; add --force to replace it")
        path.unlink()
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _listen_at(bound, path)
    except OSError as problem:
        bound.close()
        raise FlashsimError(f"--socket: cannot make {path}: {problem.strerror}") from problem
    return Address(bound, f"nbd+unix:///?socket={quote(str(path))}", path)


def _listen_at(bound: socket.socket, path: Path) -> None:
    """Listen under another name before the path is there, so that whoever finds it is let in."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        short = f".{os.getpid()}"
        bound.bind(f"/proc/self/fd/{folder}/{short}" if len(os.fsencode(path.with_name(short))) > _LONGEST else str(path.with_name(short)))
        try:
            bound.listen(BACKLOG)
            os.link(short, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.unlink(short, dir_fd=folder)
    finally:
        os.close(folder)


def _check_dead(path: Path) -> None:
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise RefusedError(f"--socket: {path} exists and is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return
        except OSError as problem:
            raise RefusedError(f"--socket: {path} exists and may be in use: {problem.strerror or problem}") from problem
    raise RefusedError(f"--socket: {path} is in use by a server")


def at_port(port: int, host: str) -> Address:
    """A TCP port of this machine; 0 takes any that is free."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as problem:
        raise InvalidParameterError("--listen", host, f"it must be an address of this machine ({problem.strerror})") from problem
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
        bound.listen(BACKLOG)
    except OSError as problem:
        bound.close()
        if problem.errno == errno.EADDRINUSE:
            raise RefusedError(f"--port: {port} is in use") from problem
        if problem.errno == errno.EADDRNOTAVAIL:
            raise InvalidParameterError("--listen", host, "it must be an address of this machine") from problem
        raise FlashsimError(f"--port: cannot listen on {host}:{port}: {problem.strerror}") from problem
    shown = f"[{host}]" if family == socket.AF_INET6 else host
    return Address(bound, f"nbd://{shown}:{bound.getsockname()[1]}")

"""Folders whose files are run as code: they are used only if nobody but this user, or the superuser, can have put something there.

Whoever may write to a folder above them could put another in their place, so the way down to them is checked as well, links included.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NoReturn

from flashsim.core.errors import RefusedError

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_REACHED = stat.S_IXGRP | stat.S_IXOTH
#: Links that are followed in one path, as Linux does.
_LINKS = 40


@cache
def check_trusted(root: Path, folder: Path) -> None:
    """Make a folder below `root` that nobody else reaches; where both exist, check that nobody else owns them or can write to them.

    Where it cannot be made, there is nothing to be loaded from it either.
    """
    with suppress(OSError):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    for each in _way(root):
        _check_way(each)
    for each in (root, folder):
        _check(each, True)
    reached = all(each.exists() and each.stat().st_mode & _REACHED for each in (root, folder))
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            _check(Path(place, name), reached)


def _check(path: Path, reached: bool) -> None:
    try:
        status = path.stat()
    except OSError:  # just removed
        return
    if not is_own(status):
        _refuse(path, f"belongs to user {status.st_uid}, not to {os.geteuid()}")
    if reached and status.st_mode & _BY_OTHERS:
        _refuse(path, f"can be written to by others (mode {stat.S_IMODE(status.st_mode):o}); chmod -R go-w it if all in it is yours")


def is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to this user or to the superuser."""
    return not hasattr(os, "geteuid") or status.st_uid in (0, os.geteuid())


def _way(path: Path) -> Iterator[Path]:
    path, links = path.absolute(), 0
    at, left = Path(path.anchor), list(path.parts[1:])
    while left:
        yield at
        at = at / left.pop(0)
        if at.is_symlink() and links < _LINKS:
            yield at
            links += 1
            target = at.parent / os.readlink(at)
            at, left = Path(target.anchor), [*target.parts[1:], *left]


def _check_way(path: Path) -> None:
    """Refuse a folder or link whose owner is somebody else, and a folder in which others may put one thing in another's place."""
    try:
        status = path.lstat()
    except OSError:
        return
    if not is_own(status):
        _refuse(path, f"leads there and belongs to user {status.st_uid}, not to {os.geteuid()}")
    by_group = status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid)
    if stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_ISVTX and (by_group or status.st_mode & stat.S_IWOTH):
        _refuse(path, f"leads there and can be written to by others (mode {stat.S_IMODE(status.st_mode):o})")


def _is_private_group(group: int) -> bool:
    """Whether a group has this user as its one member, as where everybody has a group of the same name."""
    try:
        import grp
        import pwd

        entry, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except (ImportError, KeyError):
        return False
    return group == user.pw_gid and entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}


def _refuse(path: Path, reason: str) -> NoReturn:
    raise RefusedError(f"compiled kernels: {path} {reason}; or set FLASHSIM_CACHE to a folder of your own")

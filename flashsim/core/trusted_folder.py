"""Folders whose files are run as code: they are used only if nobody but this user, or the superuser, can have put something there."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from flashsim.core.errors import RefusedError

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_REACHED = stat.S_IXGRP | stat.S_IXOTH


@cache
def check_trusted(root: Path, folder: Path) -> None:
    """Make a folder below `root` that nobody else reaches; where both exist, check that nobody else owns them or can write to them.

    Where it cannot be made, there is nothing to be loaded from it either.

    Raises
    ------
    RefusedError
        One of them, or something in the folder, belongs to somebody else, or others may write to it.
    """
    with suppress(OSError):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    for each in (root, folder):
        _check(each, True)
    reached = all(each.exists() and each.stat().st_mode & _REACHED for each in (root, folder))
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            _check(Path(place, name), reached)


def _check(path: Path, reached: bool) -> None:
    """Refuse what somebody else owns, or, where others reach it, what they may write to."""
    try:
        status = path.stat()
    except OSError:  # just removed
        return
    user = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
    if status.st_uid not in (0, user):
        reason = f"belongs to user {status.st_uid}, not to {user}"
    elif reached and status.st_mode & _BY_OTHERS:
        reason = f"can be written to by others (mode {stat.S_IMODE(status.st_mode):o}); chmod -R go-w it if all in it is yours"
    else:
        return
    raise RefusedError(f"compiled kernels: {path} {reason}; or set FLASHSIM_CACHE to a folder of your own")

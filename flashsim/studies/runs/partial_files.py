"""Files and folders that are written beside their place: their names, locks that say that somebody is at it, and leftovers."""

import fcntl
import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def partial_name(final: Path) -> str:
    """What a file is called while this process writes it."""
    return f".{final.name}.{os.getpid()}.partial"


def final_name(path: Path) -> str:
    """What a file that is written will be called, whether the path is its place for now or its own.

    Examples
    --------
    >>> final_name(Path(partial_name(Path("a.json")))), final_name(Path("a.json"))
    ('a.json', 'a.json')
    """
    mark = f".{os.getpid()}.partial"
    return path.name[1:].removesuffix(mark) if path.name.endswith(mark) else path.name


def hold(partial: Path) -> int:
    """Lock a file or folder that exists, for as long as the descriptor that this returns is open, as all are when a process is killed."""
    descriptor = os.open(partial, os.O_RDONLY)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def remove(partial: Path) -> None:
    """Remove a file or folder, if it is there."""
    if partial.is_dir():
        shutil.rmtree(partial, ignore_errors=True)
    else:
        partial.unlink(missing_ok=True)


def remove_leftovers(final: Path) -> None:
    """Remove what processes that were killed have left of writing a file or folder."""
    for left in final.parent.glob(f".{glob.escape(final.name)}.*.partial"):
        process = left.name.split(".")[-2]
        with suppress(OSError):
            if process.isdecimal() and not _runs(int(process)) and _free(left):
                remove(left)


@contextmanager
def whole(final: Path) -> Iterator[Path]:
    """Where to write a small file, which is then put in its place."""
    remove_leftovers(final)
    partial = final.with_name(partial_name(final))
    try:
        yield partial
        os.replace(partial, final)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _free(partial: Path) -> bool:
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True

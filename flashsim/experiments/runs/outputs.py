"""Output files: checked before the work begins, written beside their place, and moved there only once everything has succeeded.

A file or folder that is written has a name of its own and a lock, unlike those that a killed process leaves behind.
"""

import errno
import fcntl
import glob
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from flashsim.core.errors import FORCE, FlashsimError, RefusedError
from flashsim.experiments.runs import interrupts

#: Error numbers of no room: on the disk, by quota, or by a limit on files.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Outputs(AbstractContextManager["Outputs"]):
    """The files that one command writes, all or none; `force` is permission to replace existing ones.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Outputs(force=False) as outputs:
    ...     result = outputs.file("--json", Path(folder) / "result.json")
    ...     write_json(result, {"rows": 3})
    """

    def __init__(self, force: bool) -> None:
        self.force = force
        self._pending: list[tuple[str, Path, Path]] = []  # option, partial, final
        self._descriptors: list[int] = []
        self._made: list[Path] = []  # folders above those to be written, the deepest first
        self._inputs: dict[Path, str] = {}

    def file(self, option: str, path: Path) -> Path:
        """Take a file to be written; return where to write it for now.

        One that exists and may not be replaced, or is named twice, is a RefusedError; a place that cannot be written a FlashsimError.
        """
        final = self._final(option, path)
        special = _is_special(final)
        if final.is_dir():
            raise FlashsimError(f"{option}: {path} is a folder, but a file is needed")
        if os.path.lexists(final) and not special and not self.force:  # a symbolic link to itself too
            raise RefusedError(f"{option}: {path} exists; add " + FORCE + " to replace it")
        with _naming(option, path):
            partial = self._begin(option, final, Path(tempfile.gettempdir()) if special else final.parent, folder=False)
            if special:
                final.open("wb").close()
        return partial

    def folder(self, option: str, path: Path) -> Path:
        """Take a folder to be filled; return an empty one to write into for now.

        One that holds files which may not be replaced is a RefusedError; a place that cannot be written a FlashsimError.
        """
        final = self._final(option, path)
        if final.exists() and not final.is_dir():
            raise FlashsimError(f"{option}: {path} is a file, but a folder is needed")
        with _naming(option, path):
            remove_leftovers(final / final.name)
            if final.is_dir() and any(final.iterdir()) and not self.force:
                raise RefusedError(f"{option}: {path} is not empty; add " + FORCE + " to replace files in it")
            self._made += [each for each in final.parents if not each.exists()]
            final.parent.mkdir(parents=True, exist_ok=True)
            partial = self._begin(option, final, final if final.is_dir() else final.parent, folder=True)  # it may be a file system
        return partial

    def _begin(self, option: str, final: Path, place: Path, *, folder: bool) -> Path:
        partial = place / partial_name(final)
        remove_leftovers(place / final.name)
        partial.mkdir() if folder else partial.touch(exist_ok=False)
        self._pending.append((option, partial, final))
        self._descriptors.append(hold(partial))
        return partial

    def spare(self, option: str, path: Path) -> None:
        """Say that another option already uses a file, so that it cannot be written."""
        self._inputs[Path(os.path.realpath(path))] = option

    def _final(self, option: str, path: Path) -> Path:
        if str(path) == "-":
            raise FlashsimError(f"{option}: '-' stands for no file; name one (the standard output holds the tables)")
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise FlashsimError(f"{option}: {str(path)!a} is not a valid UTF-8 name") from None
        final = path.absolute() if _is_special(path) else Path(os.path.realpath(path))  # a pipe behind /dev/stdout has no path of its own
        if final in self._inputs:
            raise RefusedError(f"{option}: {path} is also what {self._inputs[final]} names")
        for other, _, other_final in self._pending:
            if other_final == final:
                raise RefusedError(f"{option}: {path} is also what {other} writes")
        return final

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> None:
        try:
            if isinstance(problem, OSError) and problem.filename is None and (number := _number(problem)) in _FULL:
                options = " or ".join(f"{option} {final}" for option, _, final in self._pending)
                raise FlashsimError(f"{options or 'output'}: {os.strerror(number)}") from problem
            if kind is None:
                pipes = [each for each in self._pending if _is_special(each[2])]  # may wait for their readers, and be interrupted
                problems = _move(pipes)
                interrupts.finish()
                problems += _move([each for each in self._pending if each not in pipes])
                if problems:
                    raise problems[0]
        finally:
            for _, partial, _ in self._pending:
                remove(partial)
            for descriptor in self._descriptors:
                os.close(descriptor)
            for folder in self._made if kind else ():
                with suppress(OSError):  # somebody else has put something there
                    folder.rmdir()


def _number(problem: OSError) -> int:
    """The system's number of an error; Arrow has it in its text."""
    match = re.search(r"\[errno (\d+)\]", str(problem), re.IGNORECASE)
    return problem.errno or (int(match[1]) if match else 0)


def _is_special(path: Path) -> bool:
    """A path is a pipe, a terminal or another device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _move(pending: Iterable[tuple[str, Path, Path]]) -> list[FlashsimError]:
    """Move files and folders to their places; why some cannot be moved, which take no other along."""
    problems = list[FlashsimError]()
    for option, partial, final in pending:
        try:
            with _naming(option, final):
                if partial.is_dir():
                    final.mkdir(exist_ok=True)
                    for file in sorted(partial.iterdir()):
                        os.replace(file, final / file.name)
                elif _is_special(final):
                    with partial.open("rb") as source, final.open("wb") as target:
                        shutil.copyfileobj(source, target)
                else:
                    os.replace(partial, final)
        except FlashsimError as problem:
            problems.append(problem)
    return problems


@contextmanager
def _naming(option: str, path: Path) -> Iterator[None]:
    """Say in one line which file cannot be written, and why."""
    try:
        yield
    except OSError as problem:
        raise FlashsimError(f"{option}: cannot write {path}: {problem.strerror or problem}") from problem


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON for people and programs."""
    path.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def partial_name(final: Path) -> str:
    """The name of a file while this process writes it."""
    return f".{final.name}.{os.getpid()}.partial"


def final_name(path: Path) -> str:
    """The name that a file will have, from that name or its partial one.

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
    """Remove partial files or folders of killed processes."""
    for partial in final.parent.glob(f".{glob.escape(final.name)}.*.partial"):
        process = partial.name.split(".")[-2]
        with suppress(OSError):
            if process.isdecimal() and not _runs(int(process)) and _free(partial):
                remove(partial)


@contextmanager
def whole(final: Path) -> Iterator[Path]:
    """A path to write a small file to, which is then moved to its place."""
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
    except (ProcessLookupError, OverflowError, PermissionError) as problem:
        return isinstance(problem, PermissionError)
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

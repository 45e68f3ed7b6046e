"""Output files: checked before the work begins, written beside their place, and moved there only once everything has succeeded."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from flashsim.core.errors import FlashsimError, RefusedError
from flashsim.studies.runs import interrupts
from flashsim.studies.runs.partial_files import hold, partial_name, remove, remove_leftovers

#: What systems say when there is no room: on the disk, by quota, or by a limit on files.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Outputs:
    """The files that one command writes, all or none.

    Parameters
    ----------
    force
        Whether existing files may be replaced.

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
        self._held: list[int] = []
        self._spared: dict[Path, str] = {}

    def file(self, option: str, path: Path) -> Path:
        """Take a file to be written; return where to write it for now.

        Raises
        ------
        RefusedError
            The file exists and may not be replaced, or is named twice.
        FlashsimError
            It cannot be written.
        """
        final = self._final(option, path)
        special = _is_special(final)
        if final.is_dir():
            raise FlashsimError(f"{option}: {path} is a folder, but a file is needed")
        if os.path.lexists(final) and not special and not self.force:  # a symbolic link to itself too
            raise RefusedError(f"{option}: {path} exists; add --force to replace it")
        partial = Path(tempfile.gettempdir(), partial_name(final)) if special else final.with_name(partial_name(final))
        try:
            remove_leftovers(partial.with_name(final.name))
            partial.open("xb").close()
            self._held.append(hold(partial))
            if special:
                final.open("wb").close()
        except OSError as problem:
            raise _unwritable(option, path, problem) from problem
        self._pending.append((option, partial, final))
        return partial

    def folder(self, option: str, path: Path) -> Path:
        """Take a folder to be filled; return an empty one to write into for now.

        Raises
        ------
        RefusedError
            The folder holds files already, and they may not be replaced.
        FlashsimError
            It cannot be written.
        """
        final = self._final(option, path)
        if final.exists() and not final.is_dir():
            raise FlashsimError(f"{option}: {path} is a file, but a folder is needed")
        partial = final.with_name(partial_name(final))
        try:
            if final.is_dir() and any(final.iterdir()) and not self.force:
                raise RefusedError(f"{option}: {path} is not empty; add --force to replace files in it")
            final.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(final)
            partial.mkdir()
            self._held.append(hold(partial))
            if final.is_dir() and not os.access(final, os.W_OK | os.X_OK):
                raise PermissionError(13, os.strerror(13))
        except OSError as problem:
            raise _unwritable(option, path, problem) from problem
        self._pending.append((option, partial, final))
        return partial

    def spare(self, option: str, path: Path) -> None:
        """Say that another option already uses a file, so that it cannot be written."""
        self._spared[Path(os.path.realpath(path))] = option

    def _final(self, option: str, path: Path) -> Path:
        if str(path) == "-":
            raise FlashsimError(f"{option}: '-' stands for no file; name one (the standard output holds the tables)")
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise FlashsimError(f"{option}: {str(path)!a} is no name in UTF-8") from None
        final = path.absolute() if _is_special(path) else Path(os.path.realpath(path))  # a pipe behind /dev/stdout has no path of its own
        if final in self._spared:
            raise RefusedError(f"{option}: {path} is also what {self._spared[final]} names")
        for other, _, taken in self._pending:
            if taken == final:
                raise RefusedError(f"{option}: {path} is also what {other} writes")
        return final

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if isinstance(problem, OSError) and problem.filename is None and (number := _number(problem)) in _FULL:
                wanted = " or ".join(f"{option} {final}" for option, _, final in self._pending)
                raise FlashsimError(f"{wanted or 'output'}: {os.strerror(number)}") from problem
            if kind is None:
                pipes = [each for each in self._pending if _is_special(each[2])]  # may wait for their readers, and be interrupted
                _put(pipes)
                interrupts.finish()
                _put([each for each in self._pending if each not in pipes])
        finally:
            for _, partial, _ in self._pending:
                remove(partial)
            for descriptor in self._held:
                os.close(descriptor)


def _number(problem: OSError) -> int:
    """The system's number of an error; Arrow has it in its text."""
    told = re.search(r"\[errno (\d+)\]", str(problem), re.IGNORECASE)
    return problem.errno or (int(told[1]) if told else 0)


def _is_special(path: Path) -> bool:
    """Whether it is a pipe, a terminal or another device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _put(pending: Iterable[tuple[str, Path, Path]]) -> None:
    """Put what was written in its place."""
    for option, partial, final in pending:
        try:
            _move(partial, final)
        except OSError as failure:
            raise _unwritable(option, final, failure) from failure


def _move(partial: Path, final: Path) -> None:
    if partial.is_dir():
        final.mkdir(exist_ok=True)
        for file in sorted(partial.iterdir()):
            os.replace(file, final / file.name)
    elif _is_special(final):
        with partial.open("rb") as source, final.open("wb") as target:
            shutil.copyfileobj(source, target)
    else:
        os.replace(partial, final)


def _unwritable(option: str, path: Path, problem: OSError) -> FlashsimError:
    return FlashsimError(f"{option}: cannot write {path}: {problem.strerror or problem}")


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON for people and programs."""
    path.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")

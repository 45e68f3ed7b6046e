"""Files whose state power cuts do not vary, such as a lock file that is mapped into memory."""

import os
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from flashsim.core.errors import RefusedError


class ExcludedFiles:
    """Files of a folder one of whose paths, or names, matches a glob: a file that has such a path at any time is excluded at all times.

    `before` numbers the paths at the begin, and `rows` are the calls on files.

    Raises
    ------
    RefusedError
        A glob matches no file that was there or that a call names.
    """

    def __init__(self, globs: Sequence[str], folder: Path, before: Mapping[str, int], rows: Iterable[Mapping[str, Any]]) -> None:
        self._globs, self._prefix = [os.path.normpath(each) for each in globs], f"{folder}/"
        folders = {number for path, number in before.items() if path.endswith("/")}
        named = list(before.items())
        for row in rows if globs else ():
            if row["call"].startswith("mkdir"):
                folders.add(row["file"])
            names = ("path", "other") if row["call"].startswith(("rename", "link")) else ("path",)
            named += [(row[name], row["file"]) for name in names if row[name]]
        files = [(path, number) for path, number in named if number >= 0 and number not in folders]
        #: Their numbers in the recording.
        self.numbers = {number for path, number in files if self.has(path)}
        paths = {path for path, _ in files}
        for glob, given in zip(self._globs, globs, strict=True):
            if not any(self._matches(path, glob) for path in paths):
                raise RefusedError(f"exclude: {given!r} matches no file of the program in {folder}")

    def has(self, path: str) -> bool:
        """Whether a path is one of an excluded file."""
        return any(self._matches(path, glob) for glob in self._globs)

    def _matches(self, path: str, glob: str) -> bool:
        inner = path.removeprefix(self._prefix)
        return inner != path and (fnmatchcase(inner, glob) or fnmatchcase(os.path.basename(inner), glob))

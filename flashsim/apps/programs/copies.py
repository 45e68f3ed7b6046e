"""Bytes that the kernel copies from one file to another: its calls do not show them, but files do that have not changed since."""

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from traces.calls import schema
from traces.calls.syntax import STRING, path_of, unescaped

#: The clock of files lags behind the system's by this at most, ns: a tick, of which there are 100 a second or more.
_TICK = 10_000_000


class Sources:
    """Files that the kernel copies from, looked at when a recording has ended.

    Parameters
    ----------
    lines
        What strace wrote.
    since
        Begin of the recording, ns of the epoch.
    longest
        Bytes of a copy that are read at most.
    """

    def __init__(self, lines: Path, since: int, longest: int) -> None:
        self.lines, self.since, self.longest = lines, since, longest

    def content(self, path: str, offset: int, length: int) -> bytes | None:
        """Bytes of a file, named as strace does; None where it has changed since the begin, or another may be there."""
        path = unescaped(path)
        try:
            # with a folder that has a name of the renamed, the path may be that of another file
            if length > self.longest or not os.path.isfile(path) or not self._renamed.isdisjoint(Path(path).parent.parts):
                return None
            with open(path, "rb") as file:
                file.seek(offset)
                content = file.read(length)
                changed = os.fstat(file.fileno()).st_ctime_ns
        except OSError:
            return None
        return content if len(content) == length and changed < self.since - _TICK else None

    @cached_property
    def _renamed(self) -> set[str]:
        """Last names of the paths in all renames."""
        with self.lines.open(encoding="ascii", errors="backslashreplace") as text:
            paths = [match[1] for line in text if " rename" in line for match in STRING.finditer(line)]
            return {os.path.basename(os.path.normpath(unescaped(path_of(path)))) for path in paths}


def left(content: bytes, copy: Mapping[str, Any], later: Iterable[Mapping[str, Any]]) -> bytes:
    """Bytes of a copy that stand in its target's last content; none where a later call may have changed them."""
    if copy["offset"] is None:
        return b""
    place = slice(copy["offset"], copy["offset"] + copy["length"])
    return b"" if any(row["file"] == copy["file"] and _changes(row, place) for row in later) else content[place]


def _changes(row: Mapping[str, Any], place: slice) -> bool:
    """Whether a call may change bytes at a place of its file."""
    if row["error"]:
        return False
    if row["call"] in schema.WRITES:
        begin = row["offset"]
        return begin is None or (begin < place.stop and place.start < begin + (row["result"] or 0))
    if row["call"] in ("truncate", "ftruncate"):
        return bool((row["length"] or 0) < place.stop)
    return bool(row["flags"] & schema.TRUNCATE) or (row["call"] == "fallocate" and row["other"] not in ("0", "FALLOC_FL_KEEP_SIZE"))

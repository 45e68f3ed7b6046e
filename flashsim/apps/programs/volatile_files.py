"""Files that a program writes, as far as they are durable: what a power cut leaves of them, by the rules of a journalling file system.

Rules, as ext4 has them with data that is written late:

- What is written goes to pages of the page cache, which reach the drive at any time and in any order; a page that reaches it has all that
  was written to it until then, and a cut may tear it between sectors.
- What happens to names and sizes (create, rename, unlink, truncate, mkdir) is journalled: it becomes durable in order, at any time.
- ``fsync`` returns once the file's pages are durable, and all of the journal so far if the file has changed there: it was made, has another
  size or another name, or lost one.  For ``fdatasync`` names of files do not count.  A write within a file changes its time alone, and
  that not within a tick of the clock: it does not count either.  ``sync`` does so for all files.  A drive that ignores flushes, and
  whose cache loses its content, breaks that: then nothing is durable until it has left the cache.
- Bytes written behind a truncation are there only if the truncation is.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from flashsim.apps.programs.images import LINK
from traces.calls import schema

PAGE = 4096
#: A page of a file: the file's number, and the page's.
Page = tuple[int, int]
#: Names that calls change, and sizes.
_CREATES = schema.CREATE | schema.TRUNCATE
#: Changes of a file rather than of names.
OF_SIZES = ("truncate", "grow", "zero")


class Patch(NamedTuple):
    """Bytes that a call writes to one page of a file."""

    call: int
    file: int
    offset: int
    content: bytes

    @property
    def page(self) -> Page:
        return self.file, self.offset // PAGE


class Change(NamedTuple):
    """Effect of a call on names or sizes: create, symlink, rename, exchange, link, unlink, truncate, grow or zero.

    Paths of folders end in a slash, and those of symbolic links in two; `replaced` is the file that had the other name before a rename.
    """

    call: int
    kind: str
    file: int
    path: str
    other: str = ""
    size: int = 0
    offset: int = 0
    replaced: int = -1


class Tear(NamedTuple):
    """Where a page is cut between sectors: those from `first` to before `behind` have all its patches, the others only `rest` of them."""

    rest: int
    first: int
    behind: int


class Remains(NamedTuple):
    """Pending effects that are on the drive after a cut."""

    #: How many of the journal's changes, the first ones.
    changes: int
    #: Of pages how many of their patches; a page that is not named has none.
    patches: Mapping[Page, int]
    torn: Mapping[Page, Tear] = MappingProxyType({})


@dataclass
class VolatileFiles:
    """Files below a folder while a program runs."""

    #: Files and folders at the begin: numbers by path, and bytes by number.
    names: dict[str, int]
    contents: dict[int, bytes]
    #: Whether what was flushed is durable.
    keeps_flushed: bool = True
    #: Bytes of a cache that loses its content; of more than that the oldest are durable, in a drive that ignores flushes.
    cache: int = 16 << 20
    patches: list[Patch] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    #: The last call that committed the journal.
    committed: int = -1
    #: Other files of the folder, which each cut leaves as they are for programs.
    beside: Self | None = None

    def __post_init__(self) -> None:
        self.latest = dict(self.names)  # names for programs, durable or not

    def apply(self, call: int, row: Mapping[str, Any]) -> bool:
        """Take a call of the recording; True if it changed what a cut may leave."""
        name, file, path = row["call"], row["file"], row["path"]
        before = len(self.patches), len(self.changes)
        if row["error"] or (row["kind"] != "file" and name not in ("sync",)):
            return False
        if name in schema.WRITES and row["content"] and row["offset"] is not None:
            self.patches += _patches(call, file, row["offset"], row["content"])
            if row["flags"] & (schema.SYNC | schema.DSYNC):
                self._flush(call, file, self._commits(file, path, not row["flags"] & schema.SYNC))
                return True
        elif name in ("open", "openat", "openat2", "creat"):
            created = (each.file for each in self.changes if each.kind == "create")
            if row["flags"] & _CREATES and file not in self.names.values() and file not in created:
                self.changes.append(Change(call, "create", file, path))
            elif row["flags"] & schema.TRUNCATE:
                self.changes.append(Change(call, "truncate", file, path))
        elif name in ("truncate", "ftruncate"):
            self.changes.append(Change(call, "truncate", file, path, size=row["length"]))
        elif name.startswith(("rename", "link")):
            kind = "exchange" if row["flags"] & schema.EXCHANGE else "rename" if name.startswith("rename") else "link"
            self.changes.append(Change(call, kind, file, path, row["other"], replaced=self.latest.get(row["other"], -1)))
        elif name.startswith("symlink"):
            self.changes.append(Change(call, "symlink", -2 - call, path + LINK, row["other"]))
        elif name == "fallocate":
            self.changes += _reservation_changes(call, row)
        elif name.startswith("mkdir"):
            self.changes.append(Change(call, "create", file, f"{path}/"))
        elif name.startswith(("unlink", "rmdir")):
            self.changes.append(Change(call, "unlink", file, path))
        elif name in schema.SYNCS and name not in ("sync_file_range", "msync"):
            is_all = name in ("sync", "syncfs")
            self._flush(call, None if is_all else file, is_all or self._commits(file, path, bool(row["flags"] & schema.DATA_ONLY)))
            return True
        for change in self.changes[before[1] :]:
            if change.kind not in OF_SIZES:
                _change(change, self.latest, {}, {})
        return before != (len(self.patches), len(self.changes))

    def _commits(self, file: int, path: str, data_only: bool) -> bool:
        """True if a file, or a folder, has changed so that a sync of it commits the journal."""
        for each in self.changes:
            of_size = each.kind in (*OF_SIZES, "create")
            if (each.file == file >= 0 and (of_size or not data_only)) or (each.replaced == file >= 0 and not data_only):
                return True
            folders = [os.path.dirname(name.rstrip("/")) for name in (each.path, each.other)] + [each.path[:-1]] * each.path.endswith("/")
            if each.kind not in OF_SIZES and path in folders:
                return True
        size = len(self.contents.get(file, b""))
        fresh = (each for each in self.patches if each.file == file and each.call > self.committed)
        return any(each.offset + len(each.content) > size for each in fresh)

    def _flush(self, call: int, file: int | None, commits: bool) -> None:
        """A file's pages, all files' without one, are written and flushed, and the journal if it commits."""
        if self.keeps_flushed:
            self._settle([each for each in self.patches if file in (None, each.file)], len(self.changes) if commits else 0)
            self.committed = call if commits else self.committed
            return
        size = sum(len(each.content) for each in self.patches)
        oldest = list[Patch]()
        while self.patches and size > self.cache:
            oldest.append(self.patches[len(oldest)])
            size -= len(oldest[-1].content)
        if oldest:
            self._settle(oldest, sum(each.call <= oldest[-1].call for each in self.changes))

    def _settle(self, patches: Sequence[Patch], changes: int) -> None:
        self.names, self.contents = self._after(Remains(changes, Counter(each.page for each in patches)))
        settled = {id(each) for each in patches}
        self.patches = [each for each in self.patches if id(each) not in settled]
        for change in self.changes[:changes]:
            if change.kind in ("truncate", "zero"):
                self.patches = [_before(each, change) for each in self.patches]
        self.patches = [each for each in self.patches if each.content]
        self.changes = self.changes[changes:]

    def is_like(self, other: Self) -> bool:
        """Whether a cut may leave the same of others."""
        return all(getattr(self, name) == getattr(other, name) for name in ("names", "contents", "patches", "changes"))

    def freeze(self) -> Self:
        """The files as they are now; what was durable is shared."""
        frozen = copy(self)
        frozen.patches, frozen.changes, frozen.latest = list(self.patches), list(self.changes), dict(self.latest)
        if self.beside is not None:
            if self.beside.patches or self.beside.changes:
                self.beside._settle(self.beside.patches, len(self.beside.changes))
            frozen.beside = self.beside.freeze()
        return frozen

    def everything(self) -> Remains:
        return Remains(len(self.changes), Counter(each.page for each in self.patches))

    def visible(self) -> list[dict[Page, int]]:
        """For each number of the journal's changes, how many patches of each page can be seen with them, where there are any.

        Those of a file that has no name then, and those behind a truncation that is not there, cannot.
        """
        names, pending, visible = dict(self.names), {each.file for each in self.patches}, list[dict[Page, int]]()
        for count in range(len(self.changes) + 1):
            if count and (change := self.changes[count - 1]).kind not in OF_SIZES:
                _change(change, names, {}, {})
            there, missing = pending.intersection(names.values()), self._missing(count)
            seen = (each.page for each in self.patches if each.file in there and each.call < missing.get(each.file, each.call + 1))
            visible.append(dict(Counter(seen)))
        return visible

    def _missing(self, changes: int) -> dict[int, int]:
        """The first call that truncated each file, or zeroed a part, of those that are not among the first changes."""
        return {each.file: each.call for each in reversed(self.changes[changes:]) if each.kind in ("truncate", "zero")}

    def image(self, remains: Remains) -> dict[str, bytes]:
        """The files that a cut leaves, by path."""
        names, contents = self._after(remains)
        return {path: contents.get(file, b"") for path, file in names.items()}

    def image_beside(self) -> dict[str, bytes]:
        """The files that each cut leaves as they are, by path."""
        return {} if self.beside is None else self.beside.image(self.beside.everything())

    def _after(self, remains: Remains) -> tuple[dict[str, int], dict[int, bytes]]:
        names, contents = dict(self.names), dict(self.contents)
        missing = self._missing(remains.changes)
        taken: dict[Page, int] = {}
        opened: dict[int, bytearray] = {}
        effects: list[Patch | Change] = sorted([*self.changes[: remains.changes], *self.patches], key=lambda each: each.call)
        for each in effects:
            if isinstance(each, Change):
                _change(each, names, contents, opened)
                continue
            page = each.page
            number = taken[page] = taken.get(page, 0) + 1
            if number > remains.patches.get(page, 0) or missing.get(each.file, each.call + 1) <= each.call:
                continue
            data = opened.setdefault(each.file, bytearray(contents.get(each.file, b"")))
            tear = remains.torn.get(page)
            _write(data, each, tear if tear and number > tear.rest else None)
        return names, contents | {file: bytes(data) for file, data in opened.items()}

    def content(self, file: int) -> bytes:
        """Bytes of a file for programs, durable or not."""
        return self._after(self.everything())[1].get(file, b"")

    def effects(self, remains: Remains) -> tuple[list[Patch | Change], list[Patch | Change]]:
        """Pending effects that a cut leaves, and those that it loses."""
        kept, lost = list[Patch | Change](self.changes[: remains.changes]), list[Patch | Change](self.changes[remains.changes :])
        taken: dict[Page, int] = {}
        for each in self.patches:
            taken[each.page] = taken.get(each.page, 0) + 1
            (kept if taken[each.page] <= remains.patches.get(each.page, 0) else lost).append(each)
        return kept, lost


def _patches(call: int, file: int, offset: int, content: bytes) -> Iterator[Patch]:
    begin = 0
    while begin < len(content):
        end = min(len(content), begin + PAGE - (offset + begin) % PAGE)
        yield Patch(call, file, offset + begin, content[begin:end])
        begin = end


def _before(patch: Patch, truncation: Change) -> Patch:
    if patch.file != truncation.file or patch.call > truncation.call:
        return patch
    begin, end = (max(0, place - patch.offset) for place in (truncation.offset, truncation.offset + truncation.size))
    if truncation.kind == "truncate":
        return patch._replace(content=patch.content[:end])
    content = bytearray(patch.content)
    content[begin:end] = bytes(len(content[begin:end]))
    return patch._replace(content=bytes(content))


def _reservation_changes(call: int, row: Mapping[str, Any]) -> Iterator[Change]:
    """Changes of room that is set aside, zeroed, or given back."""
    mode, begin, length = row["other"], row["offset"], row["length"]
    if "PUNCH_HOLE" in mode or "ZERO_RANGE" in mode:
        yield Change(call, "zero", row["file"], row["path"], size=length, offset=begin)
    if mode in ("0", "FALLOC_FL_ZERO_RANGE"):
        yield Change(call, "grow", row["file"], row["path"], size=begin + length)


def _change(change: Change, names: dict[str, int], contents: dict[int, bytes], opened: dict[int, bytearray]) -> None:
    if change.kind == "create":
        names[change.path] = change.file
        contents.setdefault(change.file, b"")
    elif change.kind == "symlink":
        names[change.path] = change.file
        contents[change.file] = os.fsencode(change.other)
    elif change.kind in OF_SIZES:
        data = bytearray(opened.pop(change.file, contents.get(change.file, b"")))
        if change.kind == "truncate":
            del data[change.size :]
        elif change.kind == "zero":
            place = slice(change.offset, change.offset + change.size)
            data[place] = bytes(len(data[place]))
        contents[change.file] = bytes(data) if change.kind == "zero" else bytes(data).ljust(change.size, b"\0")
    elif change.kind == "unlink":
        _take_names(names, change.path)
    elif change.kind == "link":
        names[change.other] = names.get(change.path, change.file)
    elif change.kind == "exchange":
        moved, back = _take_names(names, change.path), _take_names(names, change.other)
        names |= {change.other + rest: file for rest, file in moved.items()} | {change.path + rest: file for rest, file in back.items()}
    elif change.path not in names or names[change.path] != names.get(change.other):
        moved = _take_names(names, change.path)
        if moved:
            _take_names(names, change.other)
        names |= {change.other + rest: file for rest, file in moved.items()}


def _take_names(names: dict[str, int], path: str) -> dict[str, int]:
    """Take a path and all below it out of the names; their rests behind the path, and files."""
    return {each.removeprefix(path): names.pop(each) for each in list(names) if each == path or each.startswith(f"{path}/")}


def _write(data: bytearray, patch: Patch, tear: Tear | None) -> None:
    content, begin = patch.content, patch.offset
    if tear:
        first, behind = (max(0, patch.page[1] * PAGE + sector * 512 - begin) for sector in (tear.first, tear.behind))
        content, begin = content[first:behind], begin + first
    data.extend(bytes(max(0, begin - len(data))) if content else b"")
    data[begin : begin + len(content)] = content

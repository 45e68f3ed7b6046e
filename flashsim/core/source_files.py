"""Folders of results between runs: they are named after a hash of the source files on which they rest, and must be trusted.

Files that are run as code are used only if nobody but this user, or the superuser, can have put something there.  Whoever may write to a
folder above them could put another in their place, so the way down to them is checked as well, links included.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import platformdirs

from flashsim.core.errors import FlashsimWarning, RefusedError

#: The top-level packages of flashsim whose modules may rest on one another.
ROOMS = ("flashsim", "models", "algorithms", "traces")
#: The floors of `flashsim` that stand above algorithms and traces.
UPPER_FLOORS = ("flashsim.operations", "flashsim.apps", "flashsim.experiments", "flashsim.pools")
_IMPORT = re.compile(rb"^\s*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)", re.MULTILINE)
_PLAIN = re.compile(rb"^\s*import[ \t]+([^\n#;]+)", re.MULTILINE)
_FAMILY = re.compile(rb"\bFamily(?:\[[^\]]*\])?\(\s*\"([\w.]+)\"")
_NAME, _DOTTED = re.compile(rb"\w+"), re.compile(rb"[\w.]+")
#: A text that may be the name of a module, which is then imported by it.
_NAMED = re.compile(rb"\"(\w+(?:\.\w+)+)\"")
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_REACHED = stat.S_IXGRP | stat.S_IXOTH
_LINKS = 40  #: Links that are followed in one path, as Linux does.


def cache_of(kind: str) -> Path:
    """The folder of one kind of what is kept between runs; refused where the environment's ``FLASHSIM_CACHE`` is no whole path."""
    named = os.environ.get("FLASHSIM_CACHE")
    folder = Path(os.path.expanduser(named) if named else platformdirs.user_cache_dir("flashsim"))
    if not folder.is_absolute():  # each folder that a command runs in would have a cache
        raise RefusedError(f"FLASHSIM_CACHE: {named!r}, but a whole path is needed, such as ~/flashsim-cache")
    return folder / kind


def kernels_folder() -> Path:
    return cache_of("kernels")


def own_sources(file: Path) -> list[bytes]:
    """The texts of a file of the user's own, and of all beside it that it imports, however indirectly."""
    texts: dict[Path, bytes] = {}
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in texts and path.is_file():
            texts[path] = path.read_bytes()
            names = sorted({name.decode().rpartition(".")[2] for name in _imported_names(texts[path])})
            waiting += [path.parent / f"{name}.py" for name in names if name]
    return list(texts.values())


def _imported_names(source: bytes) -> set[bytes]:
    imported_names = {name for names in _PLAIN.findall(source) for name in _DOTTED.findall(names)}
    for package, names in _IMPORT.findall(source):
        imported_names |= {package, *(package + b"." + name for name in _NAME.findall(names))}
    return imported_names


class SourceTree:
    """The modules of some packages, their texts by import name, and what they import of one another."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self.sources = sources
        self._imports: dict[str, tuple[str, ...]] = {}
        self._members: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(cls, rooms: Iterable[str]) -> SourceTree:
        """The tree of some top-level packages, as it stands on disk."""
        sources = {}
        for room in rooms:
            spec = find_spec(room)
            places = list(spec.submodule_search_locations or []) if spec else []
            for place in places[-1:]:  # before ours may stand a package of the user's that has the name too
                for path in Path(place).rglob("*.py"):
                    parts = (room, *path.relative_to(place).with_suffix("").parts)
                    sources[".".join(parts).removesuffix(".__init__")] = path.read_bytes()
        return cls(sources)

    def imports_of(self, source: bytes) -> tuple[str, ...]:
        return tuple(name for each in _imported_names(source) if (name := each.decode()) in self.sources)

    def closure(self, modules: Iterable[str], *, members: bool = False) -> set[str]:
        """Modules, and all that they import, however indirectly.

        With `members`, what is loaded by name counts too: modules that a text names, and the members of a family that a module defines.
        """
        reached: set[str] = set()
        waiting = list(modules)
        while waiting:
            module = waiting.pop()
            if module in reached or module not in self.sources:
                continue
            reached.add(module)
            if module not in self._imports:
                self._imports[module] = self.imports_of(self.sources[module])
            waiting += self._imports[module]
            if members:
                waiting += self._members_of(module)
        return reached

    def _members_of(self, module: str) -> tuple[str, ...]:
        if module not in self._members:
            text = self.sources[module]
            named = [name for each in _NAMED.findall(text) if (name := each.decode()) in self.sources]
            families = tuple(package.decode() + "." for package in _FAMILY.findall(text))
            self._members[module] = (*named, *(name for name in self.sources if families and name.startswith(families)))
        return self._members[module]

    def digest(self, modules: Iterable[str], *salt: bytes) -> str:
        digest = hashlib.sha256(b"\0".join(salt))
        for module in sorted(modules):
            digest.update(module.encode() + b"\0" + self.sources[module])
        return digest.hexdigest()


@cache
def source_tree() -> SourceTree:
    """All of flashsim as it stood when this process first asked."""
    return SourceTree.of(ROOMS)


def make_private(folder: Path) -> None:
    """Make a folder, and what leads there as far as it is missing, for this user alone, whatever mode is usual."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)


@cache
def check_trusted(root: Path, folder: Path) -> None:
    """Make a folder below `root` that nobody else reaches; where both exist, check that nobody else owns them or can write to them.

    Where it cannot be made, there is nothing to be loaded from it either.
    """
    with suppress(OSError):
        make_private(root)
        make_private(folder)
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


@cache
def _is_private(folder: Path) -> bool:
    """Nobody else may have put something into a folder; otherwise its user is told, once."""
    try:
        for each in _way(folder):
            _check_way(each)
        _check(folder, True)
    except RefusedError as problem:
        warnings.warn(str(problem).replace("compiled kernels: ", "what is kept of earlier runs is not used: "), FlashsimWarning, 2)
        return False
    return True


def is_trustworthy(path: Path) -> bool:
    """A kept file belongs to this user or the superuser, and nobody else may write to it or have put it there."""
    status = path.stat()
    return is_own(status) and not status.st_mode & stat.S_IWOTH and _is_private(path.parent)


def is_own(status: os.stat_result) -> bool:
    """True if a file belongs to this user or to the superuser."""
    return not hasattr(os, "geteuid") or status.st_uid in (0, os.geteuid())


def _way(path: Path) -> Iterator[Path]:
    path, links = path.absolute(), 0
    at, rest = Path(path.anchor), list(path.parts[1:])
    while rest:
        yield at
        at = at / rest.pop(0)
        if at.is_symlink() and links < _LINKS:
            yield at
            links += 1
            target = at.parent / os.readlink(at)
            at, rest = Path(target.anchor), [*target.parts[1:], *rest]


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
    """True if a group has this user as its one member, as where everybody has a group of the same name."""
    try:
        import grp
        import pwd

        entry, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except (ImportError, KeyError):
        return False
    return group == user.pw_gid and entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}


def _refuse(path: Path, reason: str) -> NoReturn:
    raise RefusedError(f"compiled kernels: {path} {reason}; or set FLASHSIM_CACHE to a folder of your own")

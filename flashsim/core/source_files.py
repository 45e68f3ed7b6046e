"""Which source files a module rests on: what is kept between runs is named after a hash of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

#: The top-level packages of flashsim whose modules may rest on one another.
ROOMS = ("flashsim", "models", "algorithms", "traces")
#: The floors of `flashsim` that stand above algorithms and traces.
UPPER_FLOORS = ("flashsim.operations", "flashsim.literature", "flashsim.studies", "flashsim.pools")
_IMPORT = re.compile(rb"^\s*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)", re.MULTILINE)
_PLAIN = re.compile(rb"^\s*import[ \t]+([^\n#;]+)", re.MULTILINE)
_FAMILY = re.compile(rb"\bFamily(?:\[[^\]]*\])?\(\s*\"([\w.]+)\"")
_NAME, _DOTTED = re.compile(rb"\w+"), re.compile(rb"[\w.]+")
#: A text that may be the name of a module, which is then imported by it.
_NAMED = re.compile(rb"\"(\w+(?:\.\w+)+)\"")


def own_sources(file: Path) -> list[bytes]:
    """The texts of a file of the user's own, and of all beside it that it imports, however indirectly."""
    found: dict[Path, bytes] = {}
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in found and path.is_file():
            found[path] = path.read_bytes()
            names = sorted({name.decode().rpartition(".")[2] for name in _imported_names(found[path])})
            waiting += [path.parent / f"{name}.py" for name in names if name]
    return list(found.values())


def _imported_names(source: bytes) -> set[bytes]:
    named = {name for names in _PLAIN.findall(source) for name in _DOTTED.findall(names)}
    for package, names in _IMPORT.findall(source):
        named |= {package, *(package + b"." + name for name in _NAME.findall(names))}
    return named


class SourceTree:
    """The modules of some packages by import name, and what they import of one another.

    Parameters
    ----------
    sources
        The text of every module, by import name.
    """

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self.sources = sources
        self._known: dict[str, tuple[str, ...]] = {}
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

    def imported(self, source: bytes) -> tuple[str, ...]:
        return tuple(name for each in _imported_names(source) if (name := each.decode()) in self.sources)

    def closure(self, modules: Iterable[str], *, members: bool = False) -> set[str]:
        """Modules, and all that they import, however indirectly.

        Parameters
        ----------
        members
            Count what is loaded by name as imported too: modules that a text names, and the members of a family that a module defines.
        """
        found: set[str] = set()
        waiting = list(modules)
        while waiting:
            module = waiting.pop()
            if module in found or module not in self.sources:
                continue
            found.add(module)
            if module not in self._known:
                self._known[module] = self.imported(self.sources[module])
            waiting += self._known[module]
            if members:
                waiting += self._members_of(module)
        return found

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

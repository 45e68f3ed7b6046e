"""Which source files a module rests on: what is kept between runs is named after a hash of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

_IMPORT = re.compile(rb"^\s*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)", re.MULTILINE)
_NAME = re.compile(rb"\w+")


def sources_of(rooms: Iterable[str]) -> dict[bytes, bytes]:
    """The source of every module of some top-level packages, by its import name."""
    sources = {}
    for room in rooms:
        spec = find_spec(room)
        for place in (spec.submodule_search_locations or []) if spec else []:
            for path in Path(place).rglob("*.py"):
                parts = (room, *path.relative_to(place).with_suffix("").parts)
                sources[".".join(parts).removesuffix(".__init__").encode()] = path.read_bytes()
    return sources


def with_imports(modules: Iterable[bytes], sources: Mapping[bytes, bytes]) -> set[bytes]:
    """Modules, and all that they import from the sources by ``from ... import``, however indirectly."""
    found: set[bytes] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found and module in sources:
            found.add(module)
            for package, names in _IMPORT.findall(sources[module]):
                waiting += [package, *(package + b"." + name for name in _NAME.findall(names))]
    return found

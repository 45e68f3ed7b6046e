"""Results kept between runs, each in a file named after all that it depends on: parameters, versions and sources."""

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy

from flashsim.core.provenance import flashsim_version
from flashsim.core.source_files import UPPER_FLOORS, cache_of, is_trustworthy, make_private, own_sources, source_tree
from flashsim.experiments.runs.outputs import whole

#: Identities of the results that this process has kept.
kept_here: set[str] = set()


@cache
def sources_digest(module: str) -> str:
    """A hash of all that a module rests on: what it imports, members of families included, and the presets beside that."""
    tree = source_tree()
    modules = tree.closure([module], members=True)
    presets = [
        f"{package}/{path.name}\0".encode() + path.read_bytes()
        for package in sorted({name.rpartition(".")[0] for name in modules if not name.startswith(UPPER_FLOORS)})
        for place in _places(package)
        for path in sorted(Path(place).rglob("*.toml"))
    ]
    return tree.digest(modules, *presets)


def _places(package: str) -> list[str]:
    spec = find_spec(package) if package else None
    return list(spec.submodule_search_locations or []) if spec else []


def identity(what: Mapping[str, Any], module: str) -> str:
    """A short name of everything that a result depends on: its parameters, versions, and the sources that `module` rests on."""
    versions = [flashsim_version(), numpy.__version__, platform.machine(), sources_digest(module)]
    return hashlib.sha256(json.dumps([dict(what), versions], sort_keys=True).encode()).hexdigest()[:32]


def stamps(texts: Iterable[str]) -> dict[str, str]:
    """Stamps of the files that texts such as ``mine.py:each=3`` begin with: the text of a file, or its size and time."""
    stamp_of = {}
    for text in texts:
        path = Path(text if Path(text).is_file() else text.partition(":")[0])
        if path.suffix == ".py" and path.is_file():
            stamp_of[str(path)] = hashlib.sha256(b"\0".join(own_sources(path))).hexdigest()
        elif path.is_file():
            stamp_of[str(path)] = f"{path.stat().st_size} B, changed at {path.stat().st_mtime_ns} ns"
    return stamp_of


def place(kind: str, name: str) -> Path:
    """The path of a kept file of a kind, whether the file exists or not."""
    return cache_of(kind) / name


def write(path: Path, content: bytes) -> None:
    """Write a file that appears under its name only once it is complete."""
    make_private(path.parent)
    with whole(path) as partial:
        partial.write_bytes(content)


def recall(name: str) -> Any:
    """The result that is kept under an `identity` (JSON-ready), or None: also where somebody else may have written it."""
    try:
        path = place("results", f"{name}.json")
        return json.loads(path.read_text(encoding="utf-8")) if is_trustworthy(path) else None
    except (OSError, ValueError):
        return None


def keep(result: Any, name: str) -> None:
    """Keep a JSON-ready result under an `identity`; where there is nowhere to write, it is not kept."""
    with suppress(OSError):
        write(place("results", f"{name}.json"), json.dumps(result).encode())
        kept_here.add(name)

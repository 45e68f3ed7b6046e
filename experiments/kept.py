"""Results that are kept between runs, each in a file named after everything that it depends on: parameters, versions and sources."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy
import platformdirs

from flashsim.core.provenance import flashsim_version
from flashsim.core.source_files import sources_of, with_imports

#: The rooms whose sources and presets decide every result; members of families are loaded by name, so no import tells which.
_WHOLE = ("flashsim", "algorithms")
#: The rooms whose modules decide only the results of those that import them.
_IMPORTED = ("models", "experiments")


@cache
def sources_digest(module: str) -> str:
    """A hash of all that a module of `experiments` rests on: the lower rooms whole, with their presets, and what it imports of its own."""
    digest = hashlib.sha256()
    needed = with_imports([module.encode()], sources := sources_of([*_WHOLE, *_IMPORTED])) | set(sources_of(_WHOLE))
    for name in sorted(needed):
        digest.update(name + b"\0" + sources[name])
    for room in _WHOLE:
        for place in import_module(room).__path__:
            for path in sorted(Path(place).rglob("*.toml")):
                digest.update(f"{room}/{path.relative_to(place)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def identity(what: Mapping[str, Any], module: str) -> str:
    """A short name of everything that a result depends on: its parameters, versions, and the sources that `module` rests on."""
    versions = [flashsim_version(), numpy.__version__, platform.machine(), sources_digest(module)]
    return hashlib.sha256(json.dumps([dict(what), versions], sort_keys=True).encode()).hexdigest()[:32]


def _path(name: str) -> Path:
    root = os.environ.get("FLASHSIM_CACHE") or platformdirs.user_cache_dir("flashsim")
    return Path(root) / "results" / f"{name}.json"


def recall(name: str) -> Any:
    """The result that is kept under an `identity` (JSON-ready), or None."""
    try:
        return json.loads(_path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep(result: Any, name: str) -> None:
    """Keep a JSON-ready result under an `identity`; where there is nowhere to write, it is not kept."""
    path = _path(name)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(result), encoding="utf-8")
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)

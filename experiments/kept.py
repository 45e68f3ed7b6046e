"""Results that are kept between runs, each in a file named after everything that it depends on: parameters, versions and sources."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import platformdirs

from flashsim.core.provenance import flashsim_version

#: The rooms whose sources and presets decide a result.
_ROOMS = ("flashsim", "models", "algorithms")


@cache
def sources_digest(*packages: str) -> str:
    """A hash of all Python and TOML files of some packages, and of some single modules."""
    digest = hashlib.sha256()
    for package in packages:
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or [spec.origin or ""]) if spec else []:
            for path in sorted(Path(place).rglob("*")) if os.path.isdir(place) else [Path(place)]:
                if path.suffix in (".py", ".toml"):
                    digest.update(f"{package}/{path.relative_to(place)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _path(what: Mapping[str, Any], *packages: str) -> Path:
    versions = [flashsim_version(), numpy.__version__, platform.machine(), sources_digest(*_ROOMS, *packages)]
    name = hashlib.sha256(json.dumps([dict(what), versions], sort_keys=True).encode()).hexdigest()[:32]
    root = os.environ.get("FLASHSIM_CACHE") or platformdirs.user_cache_dir("flashsim")
    return Path(root) / "results" / f"{name}.json"


def recall(what: Mapping[str, Any], *packages: str) -> Any:
    """The result kept for these parameters (JSON-ready), or None; `packages` are further sources that it depends on."""
    try:
        return json.loads(_path(what, *packages).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep(result: Any, what: Mapping[str, Any], *packages: str) -> None:
    """Keep a JSON-ready result; where there is nowhere to write, it is not kept."""
    path = _path(what, *packages)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(result), encoding="utf-8")
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)

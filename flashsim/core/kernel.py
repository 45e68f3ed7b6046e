"""The one Numba decorator: everything that must be fast is compiled through it.

Numba's disk cache does not notice an edit in another file that a cached function calls, so the cache lives in a user folder that
is named after a hash of all sources that hold kernels.  The user's own Numba setting is left as it is.
With ``NUMBA_DISABLE_JIT=1`` kernels are plain Python and can be stepped through.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numba
import platformdirs
from numba.core import config

Function = TypeVar("Function", bound=Callable[..., Any])

#: The rooms that hold kernels.
_ROOMS = ("flashsim", "algorithms", "traces")


def compiled() -> bool:
    """Whether kernels run compiled (False under ``NUMBA_DISABLE_JIT=1``)."""
    return not config.DISABLE_JIT


@cache
def cache_folder() -> Path:
    """The folder that holds compiled kernels of exactly these sources."""
    digest = hashlib.sha256(numba.__version__.encode())
    for room in _ROOMS:
        spec = find_spec(room)
        for place in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(place).rglob("*.py")):
                source = path.read_bytes()
                if b"import kernel" in source or path.name == "kernel.py":
                    digest.update(str(path.relative_to(place)).encode() + b"\0" + source)
    root = os.environ.get("FLASHSIM_CACHE") or platformdirs.user_cache_dir("flashsim")
    return Path(root) / "kernels" / digest.hexdigest()[:16]


def kernel(function: Function) -> Function:
    """Compile a function of arrays and numbers, in nopython mode, cached on disk."""
    theirs = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())
    try:
        decorated: Function = numba.njit(cache=True)(function)
    finally:
        config.CACHE_DIR = theirs
    return decorated

"""The one Numba decorator: everything that must be fast is compiled through it.

Numba's disk cache does not notice an edit in another file that a cached function calls, so the cache lives in a user folder that
is named after a hash of all sources that hold kernels, and of those that they import (constants are compiled in).  The user's
own Numba setting is left as it is.
With ``NUMBA_DISABLE_JIT=1`` kernels are plain Python and can be stepped through.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import platformdirs

from flashsim.core.source_files import sources_of, with_imports

# Numba loads scipy.linalg only to see whether it is there, which is a quarter of the time to a first request.  SciPy is required here, so
# Numba is shown an empty module; a kernel that multiplies matrices loads the real one.
_LINEAR_ALGEBRA = "scipy.linalg.cython_blas"
_spared = _LINEAR_ALGEBRA not in sys.modules
if _spared:
    sys.modules[_LINEAR_ALGEBRA] = ModuleType(_LINEAR_ALGEBRA)
try:
    import numba
    from numba.core import config
    from numba.core.runtime.nrt import rtsys
finally:
    if _spared:
        del sys.modules[_LINEAR_ALGEBRA]

Function = TypeVar("Function", bound=Callable[..., Any])

#: The rooms that hold kernels.
_ROOMS = ("flashsim", "algorithms", "traces")
_HOLDS_KERNELS = re.compile(rb"@([a-z]+_)?kernel|kernel(_of)?\(")
#: Numba's run-time (reference counts) is switched off by this option, which its documentation does not list.
_LEAN = {"_nrt": False, "error_model": "numpy"}
_INLINED = {**_LEAN, "forceinline": True}
_SPLICED = {**_LEAN, "inline": "always"}


def compiled() -> bool:
    """Whether kernels run compiled (False under ``NUMBA_DISABLE_JIT=1``)."""
    return not config.DISABLE_JIT


@cache
def cache_folder() -> Path:
    """The folder that holds compiled kernels of exactly these sources."""
    digest = hashlib.sha256(numba.__version__.encode())
    sources = sources_of(_ROOMS)
    for module in sorted(with_imports((module for module, source in sources.items() if _HOLDS_KERNELS.search(source)), sources)):
        digest.update(module + b"\0" + sources[module])
    root = os.environ.get("FLASHSIM_CACHE") or platformdirs.user_cache_dir("flashsim")
    return Path(root) / "kernels" / digest.hexdigest()[:16]


def kernel(function: Function) -> Function:
    """Compile a function of arrays and numbers, in nopython mode, cached on disk."""
    return _decorated(function)


def lean_kernel(function: Function) -> Function:
    """As `kernel`, for functions that make no array: they keep no reference counts.

    Where many arrays pass through nested calls, counting references takes longer than the work itself.  An integer division by zero is
    not noticed.
    """
    return _decorated(function, **_LEAN)


def inlined_kernel(function: Function) -> Function:
    """As `lean_kernel`, and always compiled into its callers: where it is called often, passing its arrays takes longer than its work."""
    return _decorated(function, **_INLINED)


def spliced_kernel(function: Function) -> Function:
    """As `lean_kernel`, for what one kernel alone calls: it is spliced into that one before it is compiled, and not compiled apart."""
    return _decorated(function, **_SPLICED)


def kernel_of(signature: Any) -> Callable[[Function], Function]:
    """As `lean_kernel`, but compiled at once for one signature: needed where an argument is a function (``numba.types.FunctionType``).

    What Python gets is the compiled function itself, which takes arguments of just these types and does not look at them first: finding out
    the types of functions takes longer than a short call.  It cannot be called by other kernels.
    """

    def decorate(function: Function) -> Function:
        decorated: Any = _decorated(function, signature, **_LEAN)
        only: Function = decorated.get_overload(signature) if compiled() else decorated
        return only

    return decorate


def _decorated(function: Function, *signature: Any, **options: Any) -> Function:
    theirs = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())
    try:
        decorated: Any = numba.njit(cache=True, **options)(function)
        if compiled():
            decorated._cache.load_overload = partial(_load, decorated._cache, options.get("_nrt", True))
    except RuntimeError:  # typed at a prompt, or nowhere to write: compiled anew in every process
        decorated = numba.njit(**options)(function)
    finally:
        config.CACHE_DIR = theirs
    if signature and compiled():
        for each in signature:
            decorated.compile(each)
        decorated.disable_compile()
    only: Function = decorated
    return only


def _load(cache: Any, counts: bool, signature: Any, context: Any) -> Any:
    """Load a compiled kernel as Numba does, but without loading all that it can compile, which takes longer than all the rest of a start.

    What is compiled needs none of it but the run-time, if it counts references, and Numba sees to the rest before it compiles anything.
    """
    if counts:
        rtsys.initialize(context)
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, context)

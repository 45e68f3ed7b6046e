"""The one Numba decorator: everything that must be fast is compiled through it.

Numba's disk cache does not notice an edit in another file that a cached function calls, so the kernels of a module are kept in a user
folder that is named after a hash of that module and all that it imports (constants are compiled in).  The user's own Numba setting is
left as it is.
With ``NUMBA_DISABLE_JIT=1`` kernels are plain Python and can be stepped through.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import cache, cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from flashsim.core.source_files import check_trusted, kernels_folder, own_sources, source_tree

# Numba loads scipy.linalg only to see whether it is there, which is a quarter of the time to a first request.  SciPy is required here, so
# Numba is shown an empty module; a kernel that multiplies matrices loads the real one.
_LINEAR_ALGEBRA = "scipy.linalg.cython_blas"
# Numba loads coverage, where it is installed, to mark lines of kernels as run; whoever measures has loaded it already.
_spared: dict[str, Any] = {_LINEAR_ALGEBRA: ModuleType(_LINEAR_ALGEBRA), "coverage": None}
_spared = {name: module for name, module in _spared.items() if name not in sys.modules}
sys.modules.update(_spared)
try:
    import llvmlite
    import numba
    from llvmlite import binding
    from numba.core import config, types
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import CPUDispatcher

    from flashsim.core.kept_kernels import KeptKernels
    from flashsim.core.machine_code import CalleeCompiler, EntryCompiler
finally:
    for _name in _spared:
        del sys.modules[_name]

Function = TypeVar("Function", bound=Callable[..., Any])

#: Numba's run-time (reference counts) is switched off by this option, which its documentation does not list.
_LEAN = {"_nrt": False, "error_model": "numpy"}
_INLINED = {**_LEAN, "forceinline": True}


def is_compiled() -> bool:
    """True if kernels run compiled (False under ``NUMBA_DISABLE_JIT=1``)."""
    return not config.DISABLE_JIT


@cache
def _digest(module: str, file: str) -> str:
    """A hash of a module, which may be a file of the user's own with others beside it, and of all that it imports."""
    tree = source_tree()
    own = [] if module in tree.sources else own_sources(Path(file))
    modules = {name for text in own for name in tree.imports_of(text)} if own else {module}
    return tree.digest(tree.closure(modules), _compiler().encode(), *own)


def _compiler() -> str:
    """Versions of the compiler, and the processor for which it makes code."""
    processor = config.CPU_NAME or binding.get_host_cpu_name(), config.CPU_FEATURES or binding.get_host_cpu_features().flatten()
    return " ".join((sys.implementation.cache_tag or "", numba.__version__, llvmlite.__version__, *processor))


def folder_of_module(module: str) -> Path:
    """The folder that holds compiled kernels of a module of flashsim."""
    return kernels_folder() / _digest(module, "")[:16]


def cache_folder(function: Callable[..., Any]) -> Path:
    """The folder that holds compiled kernels of exactly the sources that a function's module rests on."""
    folder = kernels_folder() / _digest(function.__module__ or "", function.__code__.co_filename)[:16]
    check_trusted(kernels_folder(), folder)
    return folder


def kernel(function: Function) -> Function:
    """Compile a function of arrays and numbers, in nopython mode, cached on disk."""
    return _decorate(function, {})


def lean_kernel(function: Function) -> Function:
    """A kernel (see `kernel`) that makes no array: it keeps no reference counts.

    Where many arrays pass through nested calls, counting references takes longer than the work itself.  An integer division by zero is
    not noticed.
    """
    return _decorate(function, _LEAN)


def inlined_kernel(function: Function) -> Function:
    """A `lean_kernel` that is always compiled into its callers, where calls of it take longer than its work by a profile."""
    return _decorate(function, _INLINED)


def in_python(function: Function) -> Function:
    """A kernel as plain Python, for callers in Python: to pass arguments to compiled code takes longer than a small rule."""
    return cast(Function, getattr(function, "py_func", function))


def kernel_of(signature: Any, unlocked: bool = False, seconds: float = 0, on_demand: bool = False) -> Callable[[Function], Function]:
    """A `lean_kernel` that is compiled for one signature: needed where an argument is a function (``numba.types.FunctionType``).

    What Python calls is the compiled function itself, which takes arguments of just these types and does not look at them first: finding
    out the types of functions takes longer than a short call.  It cannot be called by other kernels.  It is compiled when it is first
    called, or asked for by `entry` or `address_of`.

    Parameters
    ----------
    unlocked
        Other threads of Python run while it does.
    seconds
        About how long a large one takes to compile: `flashsim.core.compiling` reads it in the source.
    on_demand
        Few runs call it, so that it is not compiled beforehand.
    """

    def decorate(function: Function) -> Function:
        decorated: Any = _decorate(function, {**_LEAN, "nogil": unlocked})
        only: Any = _Only(decorated, signature) if is_compiled() else function
        return cast(Function, only)

    return decorate


class _Only:
    """A kernel that is compiled for one signature."""

    def __init__(self, decorated: _Kernel, signature: Any) -> None:
        self.kernel = decorated
        self._signature = signature

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    @cached_property
    def function(self) -> Any:
        function, named = self.kernel.compile(self._signature), self.kernel.py_func
        space = named.__globals__
        if space.get(named.__name__) is self:
            space[named.__name__] = function
        _compiled_here[function] = self
        return function

    @cached_property
    def address(self) -> int:
        assert self.function
        (result,) = self.kernel.overloads.values()
        return pointer_to(result)


def pointer_to(result: Any) -> int:
    """Address of what Numba has compiled, which is never unloaded."""
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


_compiled_here: dict[Any, _Only] = {}


def entry(function: Any) -> Any:
    """The entry by which Python calls a function of `kernel_of`."""
    return function.function if isinstance(function, _Only) else function


def address_of(function: Any) -> Any:
    """Address of a function of `kernel_of`, for kernels that take addresses; uncompiled, the function itself."""
    return _compiled_here[entry(function)].address if is_compiled() else function


class _Called(CPUDispatcher):  # type: ignore[misc]
    """A kernel as other kernels call it: intermediate code, without what Python and C call."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions={**options, "no_cpython_wrapper": True}, pipeline_class=CalleeCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return super().get_call_template([_wide_type(each) for each in args], {name: _wide_type(each) for name, each in kws.items()})


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """A kernel as Python calls it; both are compiled when they are first called."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        # Whether a kernel is inlined is stated for every one: Numba would take it over from the caller that is compiled first.
        every = {"nopython": True, "no_cfunc_wrapper": True, "forceinline": False}
        super().__init__(function, targetoptions={**every, **options}, pipeline_class=EntryCompiler)
        self._cache = KeptKernels(function, partial(cache_folder, function), options.get("_nrt", True))

    @cached_property
    def as_callee(self) -> _Called:
        return _Called(self.py_func, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:  # what a kernel that names this one sees
        return self.as_callee._numba_type_

    def compile(self, signature: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            with global_compiler_lock, self._cache:
                return super().compile(signature)
        finally:
            if collects:
                gc.enable()


def _decorate(function: Function, options: dict[str, Any]) -> Function:
    if not is_compiled():
        return function
    decorated: Any = _Kernel(function, options)
    only: Function = decorated
    return only


def _wide_type(given: Any) -> Any:
    """The type for which a kernel is compiled: 64 bits for narrower integers, so that few kernels are compiled twice."""
    given = given.literal_type if isinstance(given, types.Literal) else given
    return types.int64 if given in types.signed_domain else given

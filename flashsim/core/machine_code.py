"""What Numba makes of kernels: machine code of those that Python calls or that are called by address, and of no other.

Numba optimises every kernel by itself, makes machine code of it, and does both again within each of its callers.  Here a kernel that other
kernels call stays intermediate code (`CalleeCode`).  What Python calls links all such code below it, each once, and is optimised as a whole
(`EntryCode`), so that LLVM sees every call.  Only the machine code of an entry is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags
from numba.core.environment import lookup_environment
from numba.core.itanium_mangler import PREFIX, mangle_identifier

_ENVIRONMENT = "_ZN08NumbaEnv"


class _Code(JITCodeLibrary):  # type: ignore[misc]
    @property
    def below(self) -> Iterable[Any]:
        """The code of what the kernel calls."""
        return self._linking_libraries

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> EntryCode:
        name, machine_code, symbols = state
        code = EntryCode(codegen, name)
        code.enable_object_caching()
        code._set_compiled_object(machine_code)
        code._finalize_final_module()
        codegen._engine._defined_symbols |= set(symbols)
        return code


class _Nowhere:
    """Where environments of intermediate code are set: machine code that has them sets them."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        pass


class CalleeCode(_Code):
    """Intermediate code of a kernel, for callers to link."""

    codegen = _Nowhere()

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._with_all_below: Any = None
        self._machine_code: EntryCode | None = None

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Address of a function, for what Python may call too: compiled functions of others, which keep their wrappers."""
        if all(function.name != name for function in self.get_defined_functions()):
            return 0
        if self._machine_code is None:
            self._machine_code = EntryCode(self._codegen, self.name)
            self._machine_code._final_module.link_in(self._final_module.clone())
            self._machine_code._linking_libraries += self._linking_libraries
        return int(self._machine_code.get_pointer_to_function(name))

    @property
    def module(self) -> Any:
        """The kernel alone, without what it calls."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """The kernel with all that it calls, for code that is not made here, such as a user's own."""
        if self._with_all_below is None:
            self._with_all_below = self.module.clone()
            _link(self._with_all_below, self)
        return self._with_all_below


class EntryCode(_Code):
    """Machine code of a kernel and all that it calls."""

    def finalize(self) -> None:
        own = {function.name for function in self._final_module.functions if not function.is_declaration}
        _link(self._final_module, self)
        self._linking_libraries.clear()
        for function in self._final_module.functions:
            # Seen from here alone, so that LLVM need not keep a copy of what it inlines, and may leave out arguments.  Private and not
            # internal: the loader would take the name for that of another entry's copy.
            if not function.is_declaration and function.name not in own:
                function.linkage = Linkage.private
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT):  # most are never read, and left out then
                variable.linkage = Linkage.linkonce_odr
        super().finalize()

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT) and (environment := lookup_environment(variable.name)) is not None:
                self._codegen.set_env(variable.name, environment)

    def serialize_using_object_code(self) -> tuple[str, bytes, list[str]]:
        self._ensure_finalized()
        module = self._final_module
        defined = (each for group in (module.functions, module.global_variables) for each in group if not each.is_declaration)
        symbols = [each.name for each in defined if each.linkage not in (Linkage.internal, Linkage.private)]
        return self.name, self._get_compiled_object(), symbols


def _link(module: Any, code: _Code) -> None:
    """Link everything below some code into a module, each once."""
    linked: set[Any] = {code}
    waiting = list(code.below)
    while waiting:
        library = waiting.pop(0)
        if library in linked:
            continue
        linked.add(library)
        code._reload_init.update(library._reload_init)
        if isinstance(library, CalleeCode):
            module.link_in(library.module, preserve=True)
            waiting += library.below
        else:
            module.link_in(library._get_module_for_linking(), preserve=True)


class _Flags(Flags):  # type: ignore[misc]
    """Numba's flags, compared by those that are set: Numba compares all values of both with each overload that it tries."""

    __slots__ = ()
    _HASH = hash(Flags())

    def __hash__(self) -> int:
        return self._HASH

    def __eq__(self, other: object) -> bool:
        same: bool = (isinstance(other, Flags) and self._values == other._values) or super().__eq__(other)
        return same


class CalleeCompiler(Compiler):  # type: ignore[misc]
    """Compiles a kernel that kernels call."""

    code: type[_Code] = CalleeCode

    def __init__(self, typing_context: Any, target_context: Any, library: Any, args: Any, return_type: Any, flags: Any, *rest: Any) -> None:
        if library is None:
            library = self.code(target_context.codegen(), "kernel")
            library.enable_object_caching()
        super().__init__(typing_context, target_context, library, args, return_type, _Flags(flags), *rest)
        self.state.targetctx.mangler = _name


class EntryCompiler(CalleeCompiler):
    """Compiles a kernel that Python calls, or that is called by its address."""

    code = EntryCode

    def compile_extra(self, function: Any) -> Any:
        """Compile it, and Numba's own functions that it calls as callees."""
        with _use_code(self.state.targetctx.codegen(), CalleeCode):
            return super().compile_extra(function)


def _name(name: str, types: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    """The name of compiled code.  Numba writes out all types, which takes kilobytes per call where they are records."""
    digest = sha256(repr((types, abi_tags)).encode()).hexdigest()[:16]
    return PREFIX + mangle_identifier(name, abi_tags=(digest,), uid=uid)


@contextmanager
def _use_code(codegen: Any, code: type[_Code]) -> Iterator[None]:
    usual = codegen._library_class
    codegen._library_class = code
    try:
        yield
    finally:
        codegen._library_class = usual


def load(context: Any, kept: Any) -> Any:
    """A compile result from what `CompileResult._reduce` made of one."""
    with _use_code(context.codegen(), EntryCode):
        return CompileResult._rebuild(context, *kept)

"""Members of families as compiled functions, with one line for people where that fails."""

from __future__ import annotations

from typing import Any

from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.types.function_type import CompileResultWAP

from flashsim.core.errors import FlashsimError
from flashsim.core.kernel import compiled
from flashsim.core.members import Family


def policy_function(family: Family, name: str, attribute: str, function_type: Any) -> Any:
    """A member's function, compiled for the family's one signature, with its address looked up once and for all.

    Raises
    ------
    UnknownNameError, MissingFileError
        There is no such member or file.
    FlashsimError
        The member lacks the function, or it is no kernel, or it does not compile.
    """
    function = getattr(family.load(name), attribute)
    if not compiled():
        return function
    if not isinstance(function, Dispatcher):
        raise FlashsimError(f"{family.kind}: {attribute} of '{name}' must be decorated with flashsim.core.kernel.lean_kernel")
    try:
        function.compile(function_type.signature)
    except NumbaError as problem:
        reason = next((line for line in reversed(str(problem).splitlines()) if "Error" in line), type(problem).__name__).strip()
        raise FlashsimError(
            f"{family.kind}: '{name}' does not compile ({reason}); run with NUMBA_DISABLE_JIT=1 to step through it"
        ) from problem
    return CompileResultWAP(function.get_compile_result(function_type.signature))

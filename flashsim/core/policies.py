"""Members of families as compiled functions, with one line for people where that fails, and how kernels reach those of a device.

A device's policies travel as one vector of their compiled functions' addresses: as arguments of a call from Python each of them would cost
more than all arrays together.  Uncompiled, a tuple of the functions themselves takes its place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from operator import itemgetter
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.core.types.function_type import CompileResultWAP
from numba.extending import intrinsic

from flashsim.core.errors import FlashsimError
from flashsim.core.kernel import address_of, is_compiled, pointer_to
from flashsim.core.members import Family
from flashsim.core.records import VECTOR

#: The policies of a device: addresses of compiled functions, int64, shape (n,); uncompiled, a tuple of n functions.
Policies = Any


@dataclass(frozen=True)
class Policy:
    """A function that every member of a family defines for kernels to call."""

    family: Family[Any]  #: Whose members define it.
    attribute: str  #: Its name in a member's module.
    place: int  #: Where it stands among a device's policies.
    function_type: Any  #: Its one signature, a ``numba.types.FunctionType``.

    def function(self, name: str) -> Any:
        """A member's function, compiled for the family's one signature, with its address looked up once and for all."""
        member = getattr(self.family.load(name), self.attribute)
        return compiled_member(self.family.kind, name, self.attribute, member, self.function_type)

    def accessor(self) -> Callable[[Policies], Any]:
        return function_in(self.place, self.function_type)


def function_in(place: int, function_type: Any) -> Callable[[Policies], Any]:
    """Function that a kernel calls with a device's policies to get the one at a place; it must be a global name of the kernel's module."""
    if not is_compiled():
        return itemgetter(place)

    @intrinsic  # type: ignore[untyped-decorator]
    def policy_of(typing: Any, policies: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vector = context.make_array(VECTOR)(context, builder, arguments[0])
            return _function(context, builder, function_type, builder.load(cgutils.gep(builder, vector.data, place)))

        return function_type(VECTOR), lower

    return policy_of


def function_at(function_type: Any) -> Callable[[Any], Any]:
    """Function that a kernel calls with an address to get one of that type; it must be a global name of the kernel's module."""
    if not is_compiled():
        return lambda function: function

    @intrinsic  # type: ignore[untyped-decorator]
    def function_of(typing: Any, address: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _function(context, builder, function_type, arguments[0])

        return function_type(types.int64), lower

    return function_of


def _function(context: Any, builder: Any, function_type: Any, address: Any) -> Any:
    function = cgutils.create_struct_proxy(function_type)(context, builder)
    # As compiled functions call one another: C's way would copy what they take once more.
    function.jit_addr = builder.inttoptr(address, function.jit_addr.type)
    return function._getvalue()


def policy_vector(members: Mapping[Policy, str], *functions: Any) -> Policies:
    """A device's policies, from the names of the members that define each, for every place from 0 on; functions of `kernel_of` follow."""
    in_order = sorted(members, key=lambda policy: policy.place)
    vector = vector_of([policy.function(members[policy]) for policy in in_order])
    return np.append(vector, [address_of(each) for each in functions]).astype(np.int64) if is_compiled() else (*vector, *functions)


def vector_of(functions: Sequence[Any]) -> Policies:
    return np.array([pointer_to(function.cres) for function in functions]) if is_compiled() else tuple(functions)


def addresses_of(*functions: Any) -> Policies:
    """Functions of `flashsim.core.kernel.kernel_of` as kernels take them; without one, a place that nothing is called by."""
    return np.array([address_of(each) for each in functions] or [0]) if is_compiled() else functions


def compiled_member(kind: str, name: str, attribute: str, function: Any, function_type: Any) -> Any:
    """A function of a member that is loaded already, compiled; `kind` is what its family's members are called."""
    if not callable(function):
        raise FlashsimError(f"{kind}: {attribute} of '{name}' is not a function")
    takes, expected = len(signature(getattr(function, "py_func", function)).parameters), len(function_type.signature.args)
    if takes != expected:
        raise FlashsimError(f"{kind}: {attribute} of '{name}' takes {takes} parameters, but the family's takes {expected}")
    if not is_compiled():
        return function
    if not isinstance(function, Dispatcher):
        raise FlashsimError(f"{kind}: {attribute} of '{name}' must be decorated with flashsim.core.kernel.lean_kernel")
    try:
        function.compile(function_type.signature)
        return CompileResultWAP(function.get_compile_result(function_type.signature))
    except (NumbaError, UnsupportedBytecodeError) as problem:
        reason = next((line for line in reversed(str(problem).splitlines()) if "Error" in line), type(problem).__name__).strip()
        raise FlashsimError(f"{kind}: '{name}' does not compile ({reason}); run with NUMBA_DISABLE_JIT=1 to step through it") from problem

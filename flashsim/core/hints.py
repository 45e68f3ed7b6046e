"""Hints: to the processor that an entry of an array is needed soon, and to the compiler that a condition rarely holds.

Entries far apart are not in the processor's caches, and each takes as long as a hundred instructions; of those hinted at, several come at
once.  Code that rarely runs is put behind a kernel's end, so that it takes no room in the cache of instructions.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from flashsim.core.kernel import is_compiled

_FOR_WRITING, _KEPT_LONG, _DATA = 1, 3, 1


def _hint(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    from numba.np.arrayobj import make_array  # only where something is compiled: loading it takes longer than a start

    array, index = make_array(signature.args[0])(context, builder, arguments[0]), arguments[1]
    begin = [context.get_constant(types.intp, 0)] * (signature.args[0].ndim - 1)
    entry = cgutils.get_item_pointer(context, builder, signature.args[0], array, [index, *begin], wraparound=False)
    word = ir.IntType(32)
    hint = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
    called = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], hint)
    builder.call(called, [builder.bitcast(entry, cgutils.voidptr_t), word(_FOR_WRITING), word(_KEPT_LONG), word(_DATA)])
    return context.get_dummy_value()


def _nothing(array: Any, index: int) -> None:
    """Plain Python gives no hints."""


def _prefetch(context: Any, array: Any, index: Any) -> Any:
    return types.void(array, types.intp), _hint


#: ``prefetch(array, index)`` in a kernel, of an entry or of a row's begin.
prefetch: Any = intrinsic(_prefetch) if is_compiled() else _nothing


def _expect_false(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    bit = ir.IntType(1)
    expect = builder.module.declare_intrinsic("llvm.expect", [bit], ir.FunctionType(bit, [bit, bit]))
    return builder.call(expect, [builder.icmp_signed("!=", arguments[0], arguments[0].type(0)), bit(0)])


def _rarely(context: Any, number: Any) -> Any:
    return types.boolean(types.int64), _expect_false


#: ``rarely(number)`` as a condition in a kernel: True if the number is not 0, which it hardly ever is.
rarely: Any = intrinsic(_rarely) if is_compiled() else bool

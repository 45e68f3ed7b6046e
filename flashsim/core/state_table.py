"""An engine's state as one vector of integers: where its arrays stand and how long they are, from which kernels make them again.

Every array that Python hands to a kernel costs time at the crossing, and a kernel that drives several engines cannot name the arrays of
each.  So the address and the shape of every array stand in one int64 vector, and what the kernel makes of it are the named groups that all
others take.  Uncompiled, the groups themselves travel instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import typeof, types
from numba.extending import intrinsic

from flashsim.core.groups import ENTRIES, leaves, value_at
from flashsim.core.kernel import is_compiled
from flashsim.core.records import VECTOR

#: The one signature of an engine's compiled loop: its state, the time to which it lets time pass, and how many completions end it before.
#: The function returns the time of the next event, or a negative number that says why it stopped short.
ADVANCE = types.int64(VECTOR, types.int64, types.int64)

State = Any  #: Argument for an engine's state in a call: the vector; uncompiled, the groups.


class StateTable:
    """The vector of one engine's state.

    The state is a named tuple of arrays or a tuple of such and of arrays (``numba.types.NamedTuple``, ``numba.types.Tuple``); arrays are
    contiguous and have one or two dimensions.
    """

    def __init__(self, state_type: Any) -> None:
        self._types = list(state_type)
        self._parts: list[Any] = [None] * len(self._types)
        places = np.cumsum([0] + [len(leaves(part)) * ENTRIES for part in self._types])
        self._places, self._vector = places.tolist(), np.zeros(places[-1], np.int64)

    def __deepcopy__(self, memo: dict[int, Any]) -> StateTable:
        return StateTable(self._types)

    def crossing(self, state: tuple[Any, ...]) -> State:
        """Argument of a kernel for the state, of which some parts may be others than at the last crossing."""
        if not is_compiled():
            return state
        for number, part in enumerate(state):
            if part is not self._parts[number]:
                self._take(number, part)
        return self._vector

    def _take(self, number: int, part: Any) -> None:
        self._parts[number] = part  # and so its arrays live as long as their addresses are in use
        place = self._places[number]
        for array, kind in zip(leaves(part), leaves(self._types[number]), strict=True):
            assert _type_of(array) == kind, "kernels would take it for something else"
            self._vector[place] = array.__array_interface__["data"][0]
            self._vector[place + 1 : place + 1 + array.ndim] = array.shape
            place += ENTRIES


_known_types: dict[Any, Any] = {}


def _type_of(array: Any) -> Any:
    """Numba's type of an array or record, kept by what decides it, since `typeof` takes longer than the rest of a crossing."""
    key = type(array), array.dtype, array.ndim, array.flags.num
    if key not in _known_types:
        _known_types[key] = typeof(array)
    return _known_types[key]


def state_of(state_type: Any) -> Callable[[State], Any]:
    """Function that kernels call for a state of that type (``numba.types.NamedTuple``); it must be a global name of the kernel's module."""
    if not is_compiled():
        return lambda state: state

    @intrinsic  # type: ignore[untyped-decorator]
    def rebuild_state(typing: Any, table: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            from numba.np.arrayobj import make_array  # only to compile: loading it takes longer than a start

            return value_at(context, builder, state_type, make_array(VECTOR)(context, builder, arguments[0]).data)

        return state_type(VECTOR), lower

    return rebuild_state


if is_compiled():

    @intrinsic  # type: ignore[untyped-decorator]
    def vector_at(typing: Any, address: Any, length: Any) -> Any:
        """The int64 vector at an address."""

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            from numba.np.arrayobj import make_array, populate_array

            array = make_array(VECTOR)(context, builder)
            size = context.get_constant(types.intp, 8)
            data = builder.inttoptr(arguments[0], array.data.type)
            populate_array(array, data=data, shape=[arguments[1]], strides=[size], itemsize=size, meminfo=None)
            return array._getvalue()

        return VECTOR(types.int64, types.int64), lower

else:

    def vector_at(state: Any, length: int) -> Any:
        """The state itself, which stands where its address would."""
        return state

"""Groups: the named tuples of arrays that kernels take, which reach compiled code as one pointer.

Where a pointer leads stand the address and the lengths of each array of the group, in the order of its fields.  Compiled code reads them
where it uses a field.  Numba's own named tuples travel as eight numbers per array: some hundred for a drive, which every call would copy.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.extending import NativeValue, register_model, unbox
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import typeof_impl

from flashsim.core.kernel import is_compiled

ENTRIES = 3  #: Entries of an array: its address, and the length of each of at most two dimensions.

_WORD = ir.IntType(64)


class GroupType(types.Type):  # type: ignore[misc]
    """Numba's type of a group, which Python passes as a named tuple.

    `members`: types of the fields: arrays that are contiguous and have one or two dimensions, records, and groups; `named`: the class of
    the named tuples.
    """

    def __init__(self, members: Sequence[Any], named: type[tuple[Any, ...]]) -> None:
        names: Sequence[str] = vars(named)["_fields"]
        self.members = dict(zip(names, members, strict=True))
        self.plain: Any = types.NamedTuple([member.plain if isinstance(member, GroupType) else member for member in members], named)
        super().__init__(f"Group({named.__module__}.{named.__qualname__})")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members.values())


def group_type(members: Sequence[Any], named: type[tuple[Any, ...]]) -> Any:
    """Type of a group (see `GroupType`); uncompiled, of a named tuple."""
    if not is_compiled():
        return types.NamedTuple(members, named)
    group = GroupType(members, named)

    @typeof_impl.register(named)  # type: ignore[untyped-decorator]
    def type_of(value: Any, context: Any) -> Any:
        given = [typeof_impl(each, context) for each in value]
        return group if given == [*group] else types.NamedTuple(given, named)

    return group


def leaves(kind: Any) -> list[Any]:
    """Types of the arrays and records of a type, or those of a state themselves, in order."""
    return [leaf for part in kind for leaf in leaves(part)] if isinstance(kind, (tuple, types.BaseTuple, GroupType)) else [kind]


def value_at(context: Any, builder: Any, kind: Any, entries: Any) -> Any:
    """The value of a type, from where its entries begin."""
    if isinstance(kind, GroupType):
        return entries
    if isinstance(kind, types.BaseTuple):
        parts = []
        for part in kind:
            parts.append(value_at(context, builder, part, entries))
            entries = cgutils.gep(builder, entries, len(leaves(part)) * ENTRIES)
        return context.make_tuple(builder, kind, parts)

    def entry(at: int) -> Any:
        read = builder.load(cgutils.gep(builder, entries, at))
        read.set_metadata("invariant.load", builder.module.add_metadata([]))  # Python writes them, between calls
        return read

    if isinstance(kind, types.Record):
        return builder.inttoptr(entry(0), context.get_value_type(kind))
    from numba.np.arrayobj import make_array, populate_array  # only to compile: loading it takes longer than a start

    array = make_array(kind)(context, builder)
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    shape = [entry(1 + dimension) for dimension in range(kind.ndim)]
    strides = [size]
    if kind.ndim == 2:
        strides = [size, builder.mul(shape[0], size)] if kind.layout == "F" else [builder.mul(shape[1], size), size]
    data = builder.inttoptr(entry(0), array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


def _write_entries(context: Any, builder: Any, kind: Any, value: Any, entries: Any) -> Any:
    """Write the entries of a value; where those of what follows begin."""
    if isinstance(kind, types.BaseTuple):
        for number, part in enumerate(kind):
            entries = _write_entries(context, builder, part, builder.extract_value(value, number), entries)
        return entries
    numbers = [builder.ptrtoint(value, _WORD)] if isinstance(kind, types.Record) else []
    if not numbers:
        from numba.np.arrayobj import make_array

        array = make_array(kind)(context, builder, value)
        numbers = [builder.ptrtoint(array.data, _WORD), *cgutils.unpack_tuple(builder, array.shape, kind.ndim)]
    for at, number in enumerate(numbers):
        builder.store(number, cgutils.gep(builder, entries, at))
    return cgutils.gep(builder, entries, ENTRIES)


@register_model(GroupType)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: GroupType) -> None:
        super().__init__(manager, kind, _WORD.as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = GroupType

    def generic_resolve(self, group: GroupType, name: str) -> Any:
        return group.members.get(name)


@lower_getattr_generic(GroupType)  # type: ignore[untyped-decorator]
def _field(context: Any, builder: Any, group: GroupType, value: Any, name: str) -> Any:
    before = list(group.members)[: list(group.members).index(name)]
    place = sum(len(leaves(group.members[each])) for each in before) * ENTRIES
    return value_at(context, builder, group.members[name], cgutils.gep(builder, value, place))


@unbox(GroupType)  # type: ignore[untyped-decorator]
def _from_named_tuple(group: GroupType, value: Any, c: Any) -> Any:
    native = c.unbox(group.plain, value)
    entries = cgutils.alloca_once(c.builder, _WORD, size=len(leaves(group)) * ENTRIES)
    _write_entries(c.context, c.builder, group.plain, native.value, entries)
    # Entries are said not to change, so the compiler must not see that they are written here.
    hidden = ir.InlineAsm(ir.FunctionType(entries.type, [entries.type]), "", "=r,0,~{memory}", side_effect=True)
    return NativeValue(c.builder.call(hidden, [entries]), is_error=native.is_error, cleanup=native.cleanup)

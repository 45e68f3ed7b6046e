"""Options of joins at the command line and in `fs`, as the joins' own records declare them."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict, Unpack

from algorithms.joins.base import join_options
from flashsim.core.options import Option
from flashsim.operations.face._device_arguments import device_of
from flashsim.operations.fields import Count, Field, Flag, Name, Number, Size, commas, each, text


def _names(value: Any, parameter: str) -> tuple[str, ...]:
    return tuple(commas(text)(value, parameter))


#: Type and field of an option of a kind.
_KINDS: dict[str, tuple[Any, Any]] = {
    "name": (str | None, Name),
    "names": (Any, partial(Field, parse=_names, python="Or a list of them.")),
    "size": (Any, Size),
    "count": (int | None, Count),
    "number": (float | None, Number),
    "flag": (bool, Flag),
}


def _field(option: Option) -> Field:
    default = False if option.kind == "flag" else None
    more = {} if option.metavar is None else {"metavar": option.metavar}
    _, field = _KINDS[option.kind]
    return field(option.help, completes=option.completes, default=default, seldom=True, **more)


FIELDS = {name: _field(option) for name, option in join_options().items()}
if TYPE_CHECKING:  # type checkers do not know which options there are
    JoinChoices: TypeAlias = Any
else:
    #: Options that all commands of joins have.
    JoinChoices = Unpack[
        TypedDict(
            "JoinChoices",
            {name: Annotated[_KINDS[option.kind][0], FIELDS[name]] for name, option in join_options().items() if not option.apart},
            total=False,
        )
    ]


DEVICES = Field(
    "A preset (see flashsim device list), a TOML file, or the path of a real file or disk. Several devices receive the same requests.",
    "DEVICE",
    each(device_of),
    ("presets",),
    python="Or an `fs.drive`, which is left as it is.",
    several=True,
    single=True,
    reads=True,
)
PLACEMENT = Name("Placement of files: {placements}; or a Python file.", "PLACEMENT", completes=("placements",), seldom=True)
BUFFERS_FOR = Name("Allocate buffers for this device instead of --device.", "PRESET", completes=("presets",), seldom=True)
ALLOCATION = Name(
    "Buffer allocation: haas (Haas et al.), or drive (closed forms for a flash drive: bnl, sort-merge, grace-hash, hybrid-hash, and "
    "grace-hash with n-hash, for which it also chooses sub-buffers).",
    "RULE",
    seldom=True,
)
CORES = Count(
    "Cores of the simulated machine; by default those of the CPU preset.", metavar="C", after_group=True, needs="strands", seldom=True
)


def given_options(choices: Mapping[str, Any]) -> dict[str, Any]:
    """The options among choices that are not left at their defaults."""
    return {name: value for name, value in choices.items() if value is not None and value is not False}

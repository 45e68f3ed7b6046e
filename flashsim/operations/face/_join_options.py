"""Options of joins at the command line and in `fs`, as the joins' own records declare them."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict, Unpack

from algorithms.joins.base import join_options
from flashsim.core.options import Option
from flashsim.operations.fields import Count, Field, Flag, Name, Number, Size, commas, text


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
    return field(option.help, completes=option.completes, default=default, **more)


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


def given_options(choices: Mapping[str, Any]) -> dict[str, Any]:
    """The options among choices that are not left at their defaults."""
    return {name: value for name, value in choices.items() if value is not None and value is not False}

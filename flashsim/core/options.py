"""Options of members of families: fields of a member's record, whose annotations are what the command line says of them."""

from dataclasses import dataclass
from inspect import get_annotations
from typing import Any, Literal, get_type_hints

from flashsim.core.errors import FlashsimError
from flashsim.core.units import format_size


@dataclass(frozen=True)
class Option:
    """What commands and functions of `fs` say of a field, as ``Annotated`` carries it; a field without is of Python files alone."""

    #: Text of both help texts; ``{joins}`` and the like stand for the names that exist.
    help: str
    #: Placeholder of the value in help texts.
    metavar: str | None = None
    #: What is given: a name or a path, a list of names, a size with a unit, a whole number from 1 on, a number, or nothing (true).
    kind: Literal["name", "names", "size", "count", "number", "flag"] = "name"
    #: Kinds of names that shells complete (`flashsim.operations.command.values`).
    completes: tuple[str, ...] = ()
    #: Only some commands have it; these declare it by itself.
    apart: bool = False

    def text(self, value: Any) -> str:
        """A value as messages show it."""
        return ",".join(value) if self.kind == "names" else format_size(value) if self.kind == "size" else str(value)


def options_in(record: type[Any]) -> dict[str, Option]:
    """The options that a record of a member declares, its own before those that it inherits.

    Raises
    ------
    FlashsimError
        It is no record, but the names of options as members had them before.
    """
    if not isinstance(record, type):
        raise FlashsimError(f"OPTIONS: {record!r}, but a record of options is needed, such as OPTIONS of algorithms.joins.grace_hash")
    hints = get_type_hints(record, include_extras=True)
    names = dict.fromkeys(name for kind in record.__mro__ for name in get_annotations(kind))
    declared = {name: getattr(hints[name], "__metadata__", ()) for name in names if name in hints}
    return {name: each for name, metadata in declared.items() for each in metadata if isinstance(each, Option)}

"""Parameters that kernels read: whole numbers, given by name or behind their owner's name, as in ``tac:extent=16,aging=100000``."""

from collections.abc import Mapping
from typing import Any

from flashsim.core.errors import FlashsimError, InvalidParameterError, UnknownNameError
from flashsim.core.parameters import check_once
from flashsim.core.replacement import Parameter
from flashsim.core.units import parse_count


def whole_numbers(kind: str, text: str, declared: Any, given: Mapping[str, Any], most: int) -> dict[str, int]:
    """The values of a member's parameters, in the order in which it declares them.

    Parameters
    ----------
    kind
        What a member of its family is called.
    text
        How the member was asked for: its name, and perhaps parameters behind a colon.
    declared
        Names of parameters, and a `Parameter` for each, if the member is well made.
    given
        Others, by name; they count more.
    most
        As many as there is room for.

    Examples
    --------
    >>> whole_numbers("policy", "mine:k=3", {"k": Parameter(2, 1, 9, "misses that count"), "share": Parameter(50, 0, 100, "")}, {}, 8)
    {'k': 3, 'share': 50}
    """
    name, _, written = text.partition(":")
    if not isinstance(declared, Mapping) or not all(isinstance(each, Parameter) for each in declared.values()):
        raise FlashsimError(f"{kind}: PARAMETERS of '{name}' must have a flashsim.core.replacement.Parameter for each name")
    if len(declared) > most:
        raise FlashsimError(
            f"{kind}: the length of PARAMETERS of '{name}' is {len(declared)}, but it must be a whole number from 0 to {most}"
        )
    pairs = [_written(kind, each) for each in written.split(",") if each.strip()]
    check_once(name, (parameter for parameter, _ in pairs))
    wanted = dict(pairs) | dict(given)
    for parameter in wanted:
        if parameter not in declared:
            raise UnknownNameError(f"parameter of {name}", parameter, declared)
    values = {parameter: wanted.get(parameter, each.default) for parameter, each in declared.items()}
    for parameter, value in values.items():
        lowest, highest = declared[parameter].least, declared[parameter].most
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise InvalidParameterError(f"{parameter} of {name}", value, f"it must be a whole number from {lowest} to {highest}")
    return values


def _written(kind: str, text: str) -> tuple[str, int]:
    name, sign, value = (each.strip() for each in text.partition("="))
    if not sign:
        raise InvalidParameterError(kind, repr(text), "a parameter is written NAME=NUMBER")
    return name, parse_count(value, name)

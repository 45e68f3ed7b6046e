"""Declared parameters: a dataclass field says what a value means and what bounds it has, and `build` checks values against that.

Values come from preset files and callers, durations, sizes and rates as text with a unit (``"20us"``, ``"4KiB"``, ``"120MB/s"``) or
already as integers in ns, bytes and bytes a second.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from flashsim.core.errors import FlashsimError, InvalidParameterError, check_known
from flashsim.core.replacement import Parameter
from flashsim.core.units import NEVER, SECONDS, format_duration, format_size, parse_count, parse_duration, parse_size

Declared = TypeVar("Declared")
#: Bound of the entries of a table: milliseconds, cylinders, sectors; as nanoseconds they still fit into 63 bits.
_MOST_ENTRY = 2**40


def _field(
    meaning: str, kind: type, default: Any, least: float | None = None, parse: Any = None, show: Any = None, most: Any = None
) -> Any:
    metadata = {"meaning": meaning, "parse": parse, "show": show, "least": least, "most": most, "type": kind}
    return dataclasses.field(default=dataclasses.MISSING if default is None else default, metadata=metadata)


def count(meaning: str, least: int = 1, most: int | None = None, default: int | None = None) -> Any:
    """A whole number of things."""
    return _field(meaning, int, default, least, most=most)


def number(meaning: str, least: float | None = None, most: float | None = None, default: float | None = None) -> Any:
    """A real number; its unit stands in `meaning`."""
    return _field(meaning, float, default, least, most=most)


def switch(meaning: str, default: bool | None = None) -> Any:
    return _field(meaning, bool, default, show=lambda value: "yes" if value else "no")


def duration(meaning: str, least: int = 0, default: int | None = None) -> Any:
    """Nanoseconds, at most an hour: the clock then lasts for a million of them."""
    return _field(meaning, int, default, least, parse_duration, format_duration, 3600 * SECONDS)


def durations(meaning: str) -> Any:
    """A tuple of durations of at least 1 ns, empty if none are given."""
    return _field(meaning, tuple, (), 1, parse_duration, lambda times: ", ".join(map(format_duration, times)), 3600 * SECONDS)


def size(meaning: str, least: int = 1, default: int | None = None) -> Any:
    return _field(meaning, int, default, least, parse_size, format_size)


def rate(meaning: str, default: int | None = None) -> Any:
    least = 1 if default is None else min(default, 1)
    return _field(meaning, int, default, least, _parse_rate, lambda value: f"{format_size(value)}/s")


def text(meaning: str, default: str | None = None) -> Any:
    return _field(meaning, str, default)


def table(meaning: str, default: tuple[tuple[float, ...], ...] | None = None) -> Any:
    """A tuple of tuples of numbers; the class checks it further."""
    return _field(meaning, tuple, default)


def _parse_rate(text: str, parameter: str) -> int:
    if not text.endswith("/s"):
        raise InvalidParameterError(parameter, repr(text), "a size a second is needed, such as 120MB/s")
    return parse_size(text[:-2], parameter)


def _text_of(value: float) -> str:
    return f"an integer of {value.bit_length()} bits" if isinstance(value, int) and abs(value) >= NEVER else repr(value)


def _rows(name: str, value: Any) -> tuple[tuple[float, ...], ...]:
    rows: Any = value if isinstance(value, (list, tuple)) else [None]
    if not all(isinstance(row, (list, tuple)) and all(isinstance(entry, (int, float)) for entry in row) for row in rows):
        raise InvalidParameterError(name, repr(value), "it must be a table: rows of numbers")
    if strange := [entry for row in rows for entry in row if not abs(entry) < _MOST_ENTRY]:  # NaN too
        raise InvalidParameterError(name, _text_of(strange[0]), f"an entry must be a number below {_MOST_ENTRY}")
    return tuple(tuple(row) for row in rows)


def _check_value(name: str, value: Any, declared: Mapping[str, Any]) -> Any:
    kind = declared["type"]
    if isinstance(value, int) and abs(value) >= NEVER:
        raise InvalidParameterError(name, _text_of(value), f"it must be below {NEVER}")
    if kind is tuple and declared["parse"]:
        if not isinstance(value, (list, tuple)):
            raise InvalidParameterError(name, repr(value), "it must be a list of durations")
        return tuple(_check_value(name, each, {**declared, "type": int}) for each in value)
    if kind is tuple:
        return _rows(name, value)
    if kind is bool:
        if not isinstance(value, bool):
            raise InvalidParameterError(name, repr(value), f"it must be true or false: {declared['meaning']}")
        return value
    if isinstance(value, str) and declared["parse"]:
        value = declared["parse"](value, name)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or isinstance(value, bool) or (kind is float and not math.isfinite(value)):
        raise InvalidParameterError(name, repr(value), f"it must be {'a name' if kind is str else 'a number'}: {declared['meaning']}")
    least, most = declared["least"], declared.get("most")
    if least is not None and value < least:
        raise InvalidParameterError(name, value, f"it must be at least {least}")
    if most is not None and value > most:
        raise InvalidParameterError(name, value, f"it must be at most {most}")
    return value


def build(cls: type[Declared], values: Mapping[str, Any]) -> Declared:
    """Make a declared dataclass from values.

    Raises UnknownNameError: a value for a parameter that is not declared; InvalidParameterError: a value is missing, of the wrong kind, or
    out of bounds.
    """
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name in values:
        check_known("parameter", name, fields)
    checked = {}
    for name, field in fields.items():
        if name in values:
            checked[name] = _check_value(name, values[name], field.metadata)
        elif field.default is dataclasses.MISSING:
            raise InvalidParameterError(name, "missing", f"it is required: {field.metadata['meaning']}")
    return cls(**checked)


def check_once(name: str, parameters: Iterable[str]) -> None:
    """Refuse a parameter of a member that a text gives twice."""
    names = set[str]()
    for parameter in parameters:
        if parameter in names:
            raise InvalidParameterError(f"{parameter} of " + name, "given twice", "it must be given once")
        names.add(parameter)


def describe(declared: Any) -> list[tuple[str, str, str]]:
    """Name, value with its unit, and meaning of every parameter, in order of declaration."""
    rows = []
    for field in dataclasses.fields(declared):
        value, show = getattr(declared, field.name), field.metadata["show"]
        rows.append((field.name, show(value) if show else str(value), field.metadata["meaning"]))
    return rows


def whole_numbers(kind: str, text: str, declared: Any, by_name: Mapping[str, Any], most: int) -> dict[str, int]:
    """The values of a member's parameters, in the order in which it declares them.

    Parameters
    ----------
    kind
        What a member of its family is called.
    text
        How the member was asked for: its name, and perhaps parameters behind a colon.
    declared
        Names of parameters, and a `Parameter` for each, if the member is well made.
    by_name
        Others, by name; they count more.
    most
        As many as there is room for.

    Examples
    --------
    >>> whole_numbers("policy", "mine:k=3", {"k": Parameter(2, 1, 9, "misses that count"), "share": Parameter(50, 0, 100, "")}, {}, 8)
    {'k': 3, 'share': 50}
    """
    name, _, texts = text.partition(":")
    if not isinstance(declared, Mapping) or not all(isinstance(each, Parameter) for each in declared.values()):
        raise FlashsimError(f"{kind}: PARAMETERS of '{name}' must have a flashsim.core.replacement.Parameter for each name")
    if len(declared) > most:
        raise FlashsimError(
            f"{kind}: the length of PARAMETERS of '{name}' is {len(declared)}, but it must be a whole number from 0 to {most}"
        )
    pairs = [_pair_of(kind, each) for each in texts.split(",") if each.strip()]
    check_once(name, (parameter for parameter, _ in pairs))
    values_by_name = dict(pairs) | dict(by_name)
    for parameter in values_by_name:
        check_known(f"parameter of {name}", parameter, declared)
    values = {parameter: values_by_name.get(parameter, each.default) for parameter, each in declared.items()}
    for parameter, value in values.items():
        lowest, highest = declared[parameter].least, declared[parameter].most
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise InvalidParameterError(f"{parameter} of {name}", value, f"it must be a whole number from {lowest} to {highest}")
    return values


def _pair_of(kind: str, text: str) -> tuple[str, int]:
    name, sign, value = (each.strip() for each in text.partition("="))
    if not sign:
        raise InvalidParameterError(kind, repr(text), "a parameter is written NAME=NUMBER")
    return name, parse_count(value, name)

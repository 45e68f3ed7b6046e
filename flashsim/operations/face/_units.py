"""Arguments as people write them: sizes with a unit, and one name or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from os import PathLike, fspath
from typing import Any

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import parse_duration, parse_size


def size(value: Any, parameter: str) -> int:
    """Bytes of a size with a unit.

    Examples
    --------
    >>> size("64MiB", "memory")
    67108864
    """
    return _parsed(value, parameter, "a size with a unit is needed, such as '64MiB' or '100MB'", parse_size)


def duration(value: Any, parameter: str) -> int:
    """Nanoseconds of a time with a unit.

    Examples
    --------
    >>> duration("75us", "think")
    75000
    """
    return _parsed(value, parameter, "a time with a unit is needed, such as '75us' or '1.5s'", parse_duration)


def _parsed(value: Any, parameter: str, bound: str, parse: Callable[[str, str], int]) -> int:
    if not isinstance(value, str):
        raise InvalidParameterError(parameter, repr(value), bound)
    return parse(value, parameter)


def count(value: Any, parameter: str, least: int = 1) -> int:
    """A whole number, at least so large."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidParameterError(parameter, repr(value), f"a whole number of at least {least} is needed")
    if value.__index__() < least:
        raise InvalidParameterError(parameter, value, f"it must be at least {least}")
    return int(value.__index__())


def number(value: Any, parameter: str, bound: str) -> float:
    """A number, whole or not."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameterError(parameter, repr(value), bound)
    return float(value)


def text(value: Any, parameter: str) -> str:
    """A name, or a path as text."""
    if isinstance(value, PathLike):
        value = fspath(value)
    if not isinstance(value, str) or not value:
        raise InvalidParameterError(parameter, repr(value), "a name or a path is needed, as text")
    return value


def several(value: Any, parameter: str) -> list[Any]:
    """One thing as a list of one; a list, a tuple or another collection as a list.

    Examples
    --------
    >>> several("bnl", "algorithm"), several(("bnl", "grace-hash"), "algorithm")
    (['bnl'], ['bnl', 'grace-hash'])
    """
    many = isinstance(value, Iterable) and not isinstance(value, str | bytes | PathLike | Mapping)
    found = list(value) if many else [value]
    if not found:
        raise InvalidParameterError(parameter, repr(value), "at least one is needed")
    return found

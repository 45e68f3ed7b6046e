"""What a replacement policy is: a file with a plain form to read, and kernels that are used; see `flashsim.core.replacement`.

A member defines a class ``Plain`` (a `flashsim.core.replacement.PlainPolicy`, or anything with its methods), which takes a pool and the
member's parameters by name, or the same policy as lean kernels ``hit``, ``enter`` and ``victim``, with ``setup`` and ``forget`` if it
needs them, or both, as all members here do.  Without kernels it runs in its plain form, which takes some microseconds a reference.
"""

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any, Protocol

import numpy as np

from flashsim.core.compiling import Part
from flashsim.core.errors import FlashsimError, in_one_line
from flashsim.core.kernel import compiled, pointer_to
from flashsim.core.members import Family
from flashsim.core.parameters import whole_numbers
from flashsim.core.policies import Policies, compiled_member
from flashsim.core.replacement import FIRST_PARAMETER, KERNELS, OWN_NUMBER, Parameter, ReplacementPolicy, leave_ring, nothing
from flashsim.core.source_files import source_tree


class Replacement(Protocol):
    """A member's module."""

    Plain: Callable[..., Any] | None = None
    TITLE: str = ""  # its name in full, and its source
    PARAMETERS: Mapping[str, Parameter] = {}
    COLUMNS: int | Callable[[Mapping[str, int]], int] = 0  # of each page, for its own use, perhaps by the values of its parameters
    WORDS: int = 0  # for each frame, besides 128
    INCLUSION: bool = False  # a larger pool holds all that a smaller one holds
    FUTURE: bool = False  # it must know which reference asks for a page next


REPLACEMENT = Family("algorithms.replacement", "replacement policy", Replacement, [["Plain"], ["hit", "enter", "victim"]])

_LEFT_OUT = {"setup": nothing, "forget": leave_ring}
#: Seconds that a member takes to compile, about.
_COMPILED_IN = 1.5
_METHODS = ("hit", "enter", "victim", "forget")
#: A page takes at most 256 bytes, and so does a frame besides.
_MOST_COLUMNS, _MOST_WORDS = 61, 32


def replacement_policy(text: str, **parameters: int) -> ReplacementPolicy:
    """A policy, given as ``NAME`` or ``FILE.py``, with parameters by name or behind it, as in ``lru-k:k=3,correlated=10``.

    Raises
    ------
    UnknownNameError, MissingFileError
        There is no such policy, file or parameter.
    InvalidParameterError
        A parameter out of its bounds.
    FlashsimError
        The file is no policy, or a kernel of it does not compile.

    Examples
    --------
    >>> replacement_policy("lru").parameters
    {}
    """
    name, member, values = _checked(text, parameters)
    columns = _bounded(name, "COLUMNS", _columns(name, member, values), _MOST_COLUMNS)
    words = _bounded(name, "WORDS", member.WORDS, _MOST_WORDS)
    return ReplacementPolicy(text, values, member.Plain, _kernels(name, member), columns, words, member.FUTURE)


def check_replacement_policy(text: str) -> None:
    """Refuse what `replacement_policy` would refuse, but for kernels, of which none is compiled here."""
    _checked(text, {})


def _checked(text: str, parameters: Mapping[str, int]) -> tuple[str, Replacement, dict[str, int]]:
    name = text.partition(":")[0]
    member = REPLACEMENT.load(name)
    values = whole_numbers(REPLACEMENT.kind, text, member.PARAMETERS, parameters, OWN_NUMBER - FIRST_PARAMETER)
    _check_plain(name, member.Plain)
    return name, member, values


def _check_plain(name: str, plain: Any) -> None:
    if plain is None:
        return
    if missing := [method for method in _METHODS if not callable(getattr(plain, method, None))]:
        raise FlashsimError(f"{REPLACEMENT.kind}: Plain of '{name}' does not define {', '.join(missing)}")
    for method in _METHODS:
        takes = len(signature(getattr(plain, method)).parameters)
        if takes != 2:
            raise FlashsimError(
                f"{REPLACEMENT.kind}: {method} of Plain of '{name}' takes {takes} parameters, but it must take self and page"
            )


def _columns(name: str, member: Any, values: Mapping[str, int]) -> Any:
    try:
        return member.COLUMNS(values) if callable(member.COLUMNS) else member.COLUMNS
    except Exception as problem:
        raise FlashsimError(f"{REPLACEMENT.kind}: COLUMNS of '{name}' failed with {in_one_line(problem)}") from problem


def _bounded(policy: str, name: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise FlashsimError(f"{REPLACEMENT.kind}: {name} of '{policy}' is {value!r}, but it must be a whole number from 0 to {most}")
    return value


def replacement_parts(names: Iterable[str]) -> list[Part]:
    """What of some members is compiled, a part a member, so that several can be compiled side by side; files of one's own are left out."""
    sources = source_tree().sources
    modules = [f"{REPLACEMENT.package}.{name.replace('-', '_')}" for name in dict.fromkeys(names)]
    own = [module for module in modules if b"\ndef hit(" in sources.get(module, b"")]
    return [Part(module, "victim", f"{__name__}:{replacement_policy.__name__}", seconds=_COMPILED_IN) for module in own]


def _kernels(name: str, member: Any) -> Policies | None:
    """Addresses of a member's functions; None if it has its plain form alone."""
    if not any(hasattr(member, each) for each in KERNELS):
        return None
    functions = []
    for each, function_type in KERNELS.items():
        function = getattr(member, each, _LEFT_OUT.get(each))
        if function is None:
            raise FlashsimError(f"{REPLACEMENT.kind}: '{name}' has kernels, but does not define {each}")
        functions.append(compiled_member(REPLACEMENT.kind, name, each, function, function_type))
    return np.array([pointer_to(function.cres) for function in functions]) if compiled() else tuple(functions)

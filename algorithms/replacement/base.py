"""Contract of replacement policies: a file with a plain form to read, and kernels that are used; see `flashsim.core.replacement`.

A member defines a class ``Plain`` (a `flashsim.core.replacement.PlainPolicy`, or anything with its methods), which takes a pool and the
member's parameters by name, or the same policy as lean kernels ``hit``, ``enter`` and ``victim``, with ``setup`` and ``forget`` if it
needs them, or both, as all members here do.  Without kernels it runs in its plain form, which takes some microseconds a reference.
"""

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any, Protocol

from flashsim.core.compiling import Part, member_parts
from flashsim.core.errors import FlashsimError, in_one_line
from flashsim.core.members import Family
from flashsim.core.parameters import whole_numbers
from flashsim.core.policies import Policies, compiled_member, vector_of
from flashsim.core.replacement import FIRST_PARAMETER, KERNELS, OWN_NUMBER, Parameter, ReplacementPolicy, leave_ring, nothing


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

#: Kernels that a member may leave out, and what then takes their place.
_LEFT_OUT = {"setup": nothing, "forget": leave_ring}
_METHODS = ("hit", "enter", "victim", "forget")
_MOST_COLUMNS, _MOST_WORDS = 61, 32  #: A page takes at most 256 bytes, and so does a frame besides.


def replacement_policy(text: str, **parameters: int) -> ReplacementPolicy:
    """A policy, given as ``NAME`` or ``FILE.py``, with parameters by name or behind it, as in ``lru-k:k=3,correlated=10``.

    Raises UnknownNameError or MissingFileError: there is no such policy, file or parameter; InvalidParameterError: a parameter out of its
    bounds; FlashsimError: the file is no policy, or a kernel of it does not compile.

    >>> replacement_policy("lru").parameters
    {}
    """
    name, member, values = _check(text, parameters)
    try:
        columns: Any = member.COLUMNS(values) if callable(member.COLUMNS) else member.COLUMNS
    except Exception as problem:
        raise FlashsimError(f"{REPLACEMENT.kind}: COLUMNS of '{name}' failed with {in_one_line(problem)}") from problem
    for what, value, most in (("COLUMNS", columns, _MOST_COLUMNS), ("WORDS", member.WORDS, _MOST_WORDS)):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise FlashsimError(f"{REPLACEMENT.kind}: {what} of '{name}' is {value!r}, but it must be a whole number from 0 to {most}")
    return ReplacementPolicy(text, values, member.Plain, _kernels(name, member), columns, member.WORDS, member.FUTURE)


def check_replacement_policy(text: str) -> None:
    """Refuse what `replacement_policy` would refuse, but for kernels, of which none is compiled here."""
    _check(text, {})


def _check(text: str, parameters: Mapping[str, int]) -> tuple[str, Replacement, dict[str, int]]:
    name = text.partition(":")[0]
    member = REPLACEMENT.load(name)
    values = whole_numbers(REPLACEMENT.kind, text, member.PARAMETERS, parameters, OWN_NUMBER - FIRST_PARAMETER)
    plain = member.Plain
    if plain is not None and (missing := [method for method in _METHODS if not callable(getattr(plain, method, None))]):
        raise FlashsimError(f"{REPLACEMENT.kind}: Plain of '{name}' does not define {', '.join(missing)}")
    for method in _METHODS if plain is not None else ():
        if (takes := len(signature(getattr(plain, method)).parameters)) != 2:
            raise FlashsimError(
                f"{REPLACEMENT.kind}: {method} of Plain of '{name}' takes {takes} parameters, but it must take self and page"
            )
    return name, member, values


def replacement_parts(names: Iterable[str]) -> list[Part]:
    """The kernels of some policies that are compiled apart."""
    return member_parts(REPLACEMENT, names, KERNELS, f"{__name__}:{replacement_policy.__name__}")


def _kernels(name: str, member: Any) -> Policies | None:
    """Addresses of a member's functions; None if it has its plain form alone."""
    if not any(hasattr(member, each) for each in KERNELS):
        return None
    functions = {each: getattr(member, each, _LEFT_OUT.get(each)) for each in KERNELS}
    for each, function in functions.items():
        if function is None:
            raise FlashsimError(f"{REPLACEMENT.kind}: '{name}' has kernels, but does not define {each}")
    return vector_of([compiled_member(REPLACEMENT.kind, name, each, functions[each], kind) for each, kind in KERNELS.items()])

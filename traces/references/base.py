"""The contract of generated references: a class of declared parameters that makes any part of them from a seed.

They are asked for as ``zipf:pages=1000000,references=1e7,skew=0.99,write-share=0.2,seed=3``.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.members import Family
from flashsim.core.parameters import build, check_once, count, number
from flashsim.core.request import Integers
from flashsim.core.rng import generator
from flashsim.core.transactions import BATCH, ReferenceBatches, References
from flashsim.core.units import parse_count

Declared = TypeVar("Declared")

#: Pages that are numbered, at most.
MOST_PAGES = (1 << 31) - 16
#: Words for truth values.
_TRUE = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


@dataclass(frozen=True, kw_only=True)
class Generated(ABC):
    """What all generated references have; make it with `generated` or `flashsim.core.parameters.build`.

    Every part has draws of its own, so that fewer references are the first of more.
    """

    references: int = count("references that are made", most=10**12, default=10**6)
    seed: int = count("of all that is drawn", least=0, default=0)

    @abstractmethod
    def batches(self) -> ReferenceBatches:
        """All references, from the first; each call begins anew."""


@dataclass(frozen=True, kw_only=True)
class Independent(Generated):
    """References of which any part can be made by itself, and each of which writes by chance."""

    write_share: float = number("share of references that write their page", 0, 1, default=0.0)

    @abstractmethod
    def pages_from(self, first: int, size: int, random: np.random.Generator) -> Integers:
        """The pages that references ask for from number `first` on, from 0, shape (size,); `random` is this part's own."""

    def batches(self) -> ReferenceBatches:
        for part, first in enumerate(range(0, self.references, BATCH)):
            size = min(BATCH, self.references - first)
            writes = generator(self.seed, "writes", part).random(size) < self.write_share if self.write_share else None
            yield References(self.pages_from(first, BATCH, generator(self.seed, "pages", part))[:size], writes)


class Generator(Protocol):
    """A member's module."""

    TITLE: str  # a line that says what it is
    Stream: type[Generated]  # its parameters


GENERATORS = Family("traces.references", "generated references", Generator)


@dataclass(frozen=True)
class GeneratedTrace:
    """Generated references, and how they were asked for."""

    name: str
    stream: Generated

    def batches(self) -> ReferenceBatches:
        return self.stream.batches()


def generated(text: str, **given: Any) -> GeneratedTrace:
    """References as they are asked for: a member's name, or a Python file, and its parameters behind a colon.

    Parameters
    ----------
    text
        Such as ``"zipf:pages=1e6,skew=1.2"``.
    **given
        Parameters as values, for those members that have them; what the text says counts more.

    Raises
    ------
    UnknownNameError
        No member, or no parameter, has that name.
    InvalidParameterError
        A value is missing, of the wrong kind, or out of bounds.

    Examples
    --------
    >>> next(generated("loop:pages=3,references=7").batches()).pages.tolist()
    [0, 1, 2, 0, 1, 2, 0]
    """
    return GeneratedTrace(text, parsed(text, GENERATORS.load(text.partition(":")[0]).Stream, given))


def parsed(text: str, declared: type[Declared], given: Mapping[str, Any]) -> Declared:
    """Declared parameters from ``NAME:PARAMETER=VALUE,...`` and others; see `generated`."""
    name, _, rest = text.partition(":")
    known = {field.name.replace("_", "-"): field for field in dataclasses.fields(declared)}  # type: ignore[arg-type]
    values = {field.name: given[field.name] for field in known.values() if field.name in given}
    parts = [part.strip() for part in rest.split(",") if part.strip()]
    check_once(name, (part.partition("=")[0].strip() for part in parts))
    for part in parts:
        parameter, equals, value = (each.strip() for each in part.partition("="))
        if not equals:
            raise InvalidParameterError(name, repr(part), f"parameters are given as NAME=VALUE; it has {', '.join(known)}")
        if parameter not in known:
            raise UnknownNameError(f"parameter of {name}", parameter, known)
        field = known[parameter]
        values[field.name] = _value(parameter, value, field.metadata)
    return build(declared, values)


def _value(parameter: str, text: str, declared: Mapping[str, Any]) -> Any:
    if declared["parse"] or declared["type"] is str:
        return text
    if declared["type"] is int:
        return parse_count(text, parameter)
    try:
        return _TRUE[text.lower()] if declared["type"] is bool else float(text)
    except (KeyError, ValueError):
        needed = "yes or no" if declared["type"] is bool else "a number"
        raise InvalidParameterError(parameter, repr(text), f"{needed} is needed: {declared['meaning']}") from None


def expanded(begin: Integers, counts: Integers) -> Iterator[tuple[Integers, Integers]]:
    """The numbers of runs that begin somewhere, one run after the other, some at a time, and from which run each is.

    Examples
    --------
    >>> [(pages.tolist(), runs.tolist()) for pages, runs in expanded(np.array([7, 3]), np.array([3, 2]))]
    [([7, 8, 9, 3, 4], [0, 0, 0, 1, 1])]
    """
    until = np.cumsum(counts)
    total = int(until[-1]) if len(until) else 0
    for start in range(0, total, BATCH):
        stop = min(start + BATCH, total)
        first, last = np.searchsorted(until, (start, stop - 1), side="right")
        runs = np.arange(first, last + 1)
        before = until[runs] - counts[runs]
        held = np.minimum(until[runs], stop) - np.maximum(before, start)
        yield np.repeat(begin[runs] - before, held) + np.arange(start, stop), np.repeat(runs, held)

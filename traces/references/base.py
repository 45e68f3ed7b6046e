"""The contract of generated references: a class of declared parameters that makes any part of them from a seed.

They are asked for as ``zipf:pages=1000000,references=1e7,skew=0.99,write-share=0.2,seed=3``.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from flashsim.core import errors, parameters, rng, units
from flashsim.core.members import Family
from flashsim.core.request import Integers
from flashsim.core.transactions import BATCH, ReferenceBatches, References

Floats = npt.NDArray[np.float64]

Declared = TypeVar("Declared")

#: Pages that are numbered, at most.
MOST_PAGES = (1 << 31) - 16
#: Words for truth values.
_TRUE = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


@dataclass(frozen=True, kw_only=True)
class Generated(ABC):
    """The parameters of all generated references; make them with `generated_trace` or `flashsim.core.parameters.build`.

    Every part has draws of its own, so that fewer references are the first of more.
    """

    references: int = parameters.count("references that are made", most=10**12, default=10**6)
    seed: int = parameters.count("of all that is drawn", least=0, default=0)

    @property
    def most_pages(self) -> int | None:
        """Pages have numbers below this, if that is known."""
        return getattr(self, "pages", None)

    @abstractmethod
    def batches(self) -> ReferenceBatches:
        """All references, from the first; each call begins anew."""


@dataclass(frozen=True, kw_only=True)
class Independent(Generated):
    """References of which any part can be made by itself, and each of which writes by chance."""

    write_share: float = parameters.number("share of references that write their page", 0, 1, default=0.0)

    @abstractmethod
    def pages_from(self, first: int, size: int, random: np.random.Generator) -> Integers:
        """The pages that references ask for from number `first` on, from 0, shape (size,); `random` is this part's own."""

    def batches(self) -> ReferenceBatches:
        for part, first in enumerate(range(0, self.references, BATCH)):
            size = min(BATCH, self.references - first)
            writes = rng.generator(self.seed, "writes", part).random(size) < self.write_share if self.write_share else None
            yield References(self.pages_from(first, BATCH, rng.generator(self.seed, "pages", part))[:size], writes)


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


def generated_trace(text: str, **values: Any) -> GeneratedTrace:
    """References as they are asked for: a member's name, or a Python file, and its parameters behind a colon.

    Such as ``"zipf:pages=1e6,skew=1.2"``; parameters may be values too, for those members that have them, but what the text says counts
    more.

    Raises
    ------
    UnknownNameError
        No member, or no parameter, has that name.
    InvalidParameterError
        A value is missing, of the wrong kind, or out of bounds.

    Examples
    --------
    >>> next(generated_trace("loop:pages=3,references=7").batches()).pages.tolist()
    [0, 1, 2, 0, 1, 2, 0]
    """
    return GeneratedTrace(text, parse(text, GENERATORS.load(text.partition(":")[0]).Stream, values))


def parse(text: str, declared: type[Declared], arguments: Mapping[str, Any]) -> Declared:
    """Declared parameters from ``NAME:PARAMETER=VALUE,...`` and others; see `generated_trace`."""
    name, _, rest = text.partition(":")
    fields = {field.name.replace("_", "-"): field for field in dataclasses.fields(declared)}  # type: ignore[arg-type]
    values = {field.name: arguments[field.name] for field in fields.values() if field.name in arguments}
    parts = [part.strip() for part in rest.split(",") if part.strip()]
    parameters.check_once(name, (part.partition("=")[0].strip() for part in parts))
    for part in parts:
        parameter, equals, value = (each.strip() for each in part.partition("="))
        if not equals:
            raise errors.InvalidParameterError(name, repr(part), f"parameters are given as NAME=VALUE; it has {', '.join(fields)}")
        if parameter not in fields:
            raise errors.UnknownNameError(f"parameter of {name}", parameter, fields)
        field = fields[parameter]
        values[field.name] = _value(parameter, value, field.metadata)
    return parameters.build(declared, values)


def _value(parameter: str, text: str, declared: Mapping[str, Any]) -> Any:
    if declared["parse"] or declared["type"] is str:
        return text
    if declared["type"] is int:
        return units.parse_count(text, parameter)
    try:
        return _TRUE[text.lower()] if declared["type"] is bool else float(text)
    except (KeyError, ValueError):
        kind_of_value = "yes or no" if declared["type"] is bool else "a number"
        raise errors.InvalidParameterError(parameter, repr(text), f"{kind_of_value} is needed: {declared['meaning']}") from None


def pieces(batch: References) -> Iterator[References]:
    """A batch in pieces of `flashsim.core.transactions.BATCH` references."""
    for begin in range(0, len(batch.pages), BATCH):
        part = slice(begin, begin + BATCH)
        yield References(batch.pages[part], None if batch.writes is None else batch.writes[part])


def expand(begin: Integers, counts: Integers) -> Iterator[tuple[Integers, Integers]]:
    """The numbers of runs that begin somewhere, one run after the other, some at a time, and from which run each is.

    Examples
    --------
    >>> [(pages.tolist(), runs.tolist()) for pages, runs in expand(np.array([7, 3]), np.array([3, 2]))]
    [([7, 8, 9, 3, 4], [0, 0, 0, 1, 1])]
    """
    until = np.cumsum(counts)
    total = int(until[-1]) if len(until) else 0
    for start in range(0, total, BATCH):
        stop = min(start + BATCH, total)
        first, last = np.searchsorted(until, (start, stop - 1), side="right")
        runs = np.arange(first, last + 1)
        before = until[runs] - counts[runs]
        lengths = np.minimum(until[runs], stop) - np.maximum(before, start)
        yield np.repeat(begin[runs] - before, lengths) + np.arange(start, stop), np.repeat(runs, lengths)


#: Below this, (exp(x) - 1) / x and log(1 + x) / x are 1 + x / 2 and 1 - x / 2 as exactly as numbers are.
_TINY = 1e-8


class Zipf:
    """Exact draws of ranks from 1 on by Zipf's law: of n, rank k is drawn with a probability in proportion to k**-skew.

    By rejection-inversion (Hörmann, Derflinger: Rejection-inversion to generate variates from monotone discrete distributions, ACM TOMACS
    6(3), 1996), which takes neither tables nor sums, so that n may be anything, and another one for every draw.

    `ranks` is n: one for all draws, or one a draw, shape (size,).  `skew` is at least 0, which is uniform.
    """

    def __init__(self, ranks: int | Integers, skew: float) -> None:
        self._ranks, self._skew = np.asarray(ranks, np.float64), skew
        self._first = float(self._integral(np.asarray(1.5))) - 1
        self._last = self._integral(self._ranks + 0.5)
        #: So far above a rank all is accepted that is rounded down to it.
        self._sure = 2 - float(self._inverse(self._integral(np.asarray(2.5)) - 2.0**-skew))

    def draw(self, size: int, random: np.random.Generator) -> Integers:
        ranks, pending = np.empty(size, np.int64), np.arange(size)
        while len(pending):
            last, most = (each if each.ndim == 0 else each[pending] for each in (self._last, self._ranks))
            under = last + random.random(len(pending)) * (self._first - last)
            place = self._inverse(under)
            nearest = np.clip(np.floor(place + 0.5), 1, most)
            unsure = np.flatnonzero(nearest - place > self._sure)
            at = nearest[unsure]
            refused = unsure[under[unsure] < self._integral(at + 0.5) - at**-self._skew]
            ranks[pending] = nearest
            pending = pending[refused]
        return ranks

    def _integral(self, place: Floats) -> Floats:
        """The integral of x**-skew from 1."""
        log = np.log(place)
        power = (1 - self._skew) * log
        return log * np.where(np.abs(power) < _TINY, 1 + power / 2, np.expm1(power) / np.where(power == 0, 1, power))

    def _inverse(self, value: Floats) -> Floats:
        power = np.maximum((1 - self._skew) * value, -1)
        with np.errstate(divide="ignore"):
            log = np.where(np.abs(power) < _TINY, 1 - power / 2, np.log1p(power) / np.where(power == 0, 1, power))
        return np.exp(value * log)


def scatter(ranks: Integers, pages: int) -> Integers:
    """Pages from 0 on, another one for every rank from 0 on, with those of neighbouring ranks a golden section of all apart."""
    step = max(1, round(pages * 0.6180339887498949))
    while gcd(step, pages) > 1:
        step += 1
    return ranks * step % pages

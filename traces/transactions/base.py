"""The contract of workloads of transactions: a class of declared parameters that makes transactions from a seed.

They are asked for as ``tpc-c:warehouses=20,seed=3``.  References of any kind become transactions of so many each: generated ones
(`traces.references`) as ``zipf:pages=1e6,write-share=0.2,each=20``, recorded ones as ``trace.parquet:each=20,page-size=8KiB``.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from flashsim.core import errors, parameters, units
from flashsim.core.members import Family
from flashsim.core.page_numbers import PageNumbers
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import Integers
from flashsim.core.transactions import COUNT, FIRST, MARKS, WRITES, ReferenceBatches, References, Transactions, TransactionStream
from traces.file.page_trace import PageTrace, page_trace
from traces.references.base import GENERATORS, Declared, Generated, parse

#: Bytes of a page of SQL Server, the system of do2012; of them a header takes 96, and each row 9 beside its columns: 4 of the row's header,
#: 3 of its bitmap of NULLs, and 2 in the page's table of slots.
PAGE = 8 * units.KIB
_HEADER, _BESIDE = 96, 9
#: Transactions of a batch, at most, unless it is said.
BATCH = 4096
_ENDLESS = 10**12
#: The parameters of generated references that grow with the database.
_SCALES = ("pages", "scanned", "records", "scale")


class Metric(NamedTuple):
    """The figure that a benchmark reports."""

    #: Such as ``"tpmC"``.
    name: str
    #: The kind of transactions that counts.
    kind: str
    #: This kind's share of all transactions.
    share: float
    #: Nanoseconds in which they are counted.
    period: int

    def of(self, count: float, duration: int) -> float:
        """From the number of transactions of that kind in a duration in ns."""
        return count * self.period / duration


@dataclass(frozen=True, kw_only=True)
class TransactionWorkload(ABC):
    """The parameters of all workloads; make one with `workload` or `flashsim.core.parameters.build`.

    It is a `flashsim.core.transactions.TransactionStream` without end, unless it says otherwise.
    """

    #: The parameters that grow with the database; rates and clients stay when a system is scaled.
    SCALES: ClassVar[tuple[str, ...]]
    #: Metric of the benchmark, if it counts transactions.
    METRIC: ClassVar[Metric | None] = None

    seed: int = parameters.count("of all that is drawn", least=0, default=0)
    batch: int = parameters.count("transactions of a batch, at most; what they are does not depend on it", default=BATCH)

    @property
    @abstractmethod
    def pages(self) -> int:
        """Pages of the database, with those that are still to be created."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds of transactions."""

    @abstractmethod
    def parts(self) -> Iterator[Transactions]:
        """All transactions, some at a time; each call begins anew."""

    def figures(self, ended: Mapping[str, float]) -> dict[str, float]:
        """The benchmark's figures of a run to its end, by name, from seconds until the last transaction of each kind had ended."""
        return {}

    def batches(self) -> Iterator[Transactions]:
        for part in self.parts():
            for begin in range(0, len(part.ends), self.batch):
                ends = part.ends[begin : begin + self.batch]
                first = part.ends[begin - 1] if begin else 0
                yield Transactions(part.references[first : ends[-1]], ends - first, part.kinds[begin : begin + self.batch])


class Member(Protocol):
    """A member's module."""

    TITLE: str  # a line that says what it is
    Workload: type[TransactionWorkload]  # its parameters


WORKLOADS = Family("traces.transactions", "workload of transactions", Member)


@dataclass(frozen=True, kw_only=True)
class _TransactionCut:
    """The parameters of references that become transactions."""

    each: int = parameters.count("references of a transaction", default=20)
    batch: int = parameters.count("transactions of a batch, at most", default=BATCH)
    page_size: int = parameters.size("of the pages that recorded requests are split into", least=512, default=PAGE)


def workload(text: str, **values: Any) -> TransactionStream:
    """Transactions as they are asked for: a member's name, a generator of references, or a path, and parameters behind a colon.

    Such as ``"tpc-c:warehouses=20"``; parameters may be values too, for those that have them, but what the text says counts more.

    Raises
    ------
    UnknownNameError
        Nothing, or no parameter, has that name.
    InvalidParameterError
        A value is missing, of the wrong kind, or out of bounds.
    MissingFileError, DamagedFileError
        There is no trace at that path, or no format fits it.

    Examples
    --------
    >>> batch = next(workload("loop:pages=3,references=6,each=3").batches())
    >>> batch.references[:, 0].tolist(), batch.ends.tolist()
    ([0, 1, 2, 0, 1, 2], [3, 6])
    """
    name = text.partition(":")[0]
    own_file = Path(name) if name.endswith(".py") else None
    if name in WORKLOADS.names() or (own_file is not None and WORKLOADS.is_defined_in(own_file)):
        return parse(text, WORKLOADS.load(name).Workload, values)
    names = {field.name.replace("_", "-") for field in dataclasses.fields(_TransactionCut)}
    parts = [part.strip() for part in text.partition(":")[2].split(",") if part.strip()]
    cutting = [part for part in parts if part.partition("=")[0].strip() in names]
    mine, rest = (f"{name}:{','.join(each)}" for each in (cutting, [part for part in parts if part not in cutting]))
    if own_file is None and name not in GENERATORS.names():
        if not Path(name).exists() and not {"/", "."} & set(name):
            raise errors.UnknownNameError(WORKLOADS.kind, name, [*WORKLOADS.names(), *GENERATORS.names()])
        if other := rest.partition(":")[2]:
            raise errors.UnknownNameError("parameter of a recorded trace", other.partition("=")[0], ["each", "batch", "page-size"])
        cut = parse(mine, _TransactionCut, values)
        return CutReferences(*number_pages(page_trace(Path(name), cut.page_size)), each=cut.each, batch=cut.batch)
    cut, declared = parse(mine, _TransactionCut, values), GENERATORS.load(name).Stream
    once, endless = parse(rest, declared, values), parse(rest, declared, {"references": _ENDLESS} | values)
    if endless.most_pages is None or once.most_pages is None:
        return CutReferences(*number_pages(once), each=cut.each, batch=cut.batch)
    # Where pages grow with the references, there are only as many as the text or the generator says.
    return CutReferences(endless if endless.most_pages == once.most_pages else once, once.most_pages, each=cut.each, batch=cut.batch)


def scale_stream(stream: TransactionStream, factor: float) -> TransactionStream:
    """A workload on a smaller or larger database; sizes of pools and simulated times should be scaled alike.

    Raises
    ------
    InvalidParameterError
        The factor is not above 0, a parameter leaves its bounds, or the workload is a recorded trace.
    """
    if not factor > 0:
        raise errors.InvalidParameterError("scale", factor, "it must be above 0")
    if isinstance(stream, TransactionWorkload):
        return _scale(stream, stream.SCALES, factor)
    if isinstance(stream, CutReferences) and isinstance(stream.source, Generated):
        source = _scale(stream.source, _SCALES, factor)
        return dataclasses.replace(stream, source=source, pages=source.most_pages or stream.pages)
    raise errors.InvalidParameterError("scale", factor, "a recording cannot be scaled")


def _scale(declared: Declared, names: Collection[str], factor: float) -> Declared:
    values = {field.name: getattr(declared, field.name) for field in dataclasses.fields(declared)}  # type: ignore[arg-type]
    for name in values.keys() & set(names):
        exact = values[name] * factor
        values[name] = max(1, round(exact)) if isinstance(values[name], int) else exact
    return parameters.build(type(declared), values)


def cut(references: Integers, each: int, kind: int) -> Transactions:
    """Transactions of `each` references, all of one kind; the last may be shorter."""
    ends = np.minimum(np.arange(each, len(references) + each, each), len(references))
    return Transactions(references, ends, np.full(len(ends), kind))


@dataclass(frozen=True)
class CutReferences:
    """A `flashsim.core.transactions.TransactionStream` of one kind; the last transaction may be shorter."""

    #: The references, whose pages are numbered from 0 on.
    source: "Generated | _Numbered"
    pages: int
    each: int
    batch: int

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("transaction",)

    def batches(self) -> Iterator[Transactions]:
        rest, most = np.empty((0, 3), np.int64), self.each * self.batch
        for batch in self.source.batches():
            whole = len(rest) + len(batch.pages)
            references = np.empty((whole, 3), np.int64)
            references[: len(rest)], new = rest, references[len(rest) :]
            new[:, FIRST], new[:, COUNT] = batch.pages, 1
            new[:, MARKS] = 0 if batch.writes is None else batch.writes * WRITES
            until = whole - whole % self.each
            for begin in range(0, until, most):
                yield cut(references[begin : min(begin + most, until)], self.each, 0)
            rest = references[until:]
        if len(rest):
            yield cut(rest, self.each, 0)


@dataclass(frozen=True)
class _Numbered:
    """References to any ids, as those to pages that are numbered from 0 on in the order of their ids."""

    source: Generated | PageTrace
    numbers: PageNumbers
    ranks: Integers

    def batches(self) -> ReferenceBatches:
        for batch in self.source.batches():
            yield References(self.ranks[self.numbers.number(batch.pages) - FIRST_PAGE], batch.writes)


def number_pages(source: Generated | PageTrace) -> tuple[_Numbered, int]:
    """References to pages of any ids, numbered in one pass, and how many pages that are; those never referenced are left out."""
    numbers = PageNumbers()
    for batch in source.batches():
        numbers.number(batch.pages)
    ranks = np.empty(len(numbers), np.int64)
    ranks[np.argsort(numbers.ids())] = np.arange(len(numbers))
    return _Numbered(source, numbers, ranks), len(numbers)


def rows_of_a_page(row: int, fill: int = 100) -> int:
    """Rows of `row` bytes in a page that is full to `fill` percent, at least one."""
    return max(1, (PAGE - _HEADER) // (row + _BESIDE) * fill // 100)

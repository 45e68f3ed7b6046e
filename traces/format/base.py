"""The contract of trace formats, and the recognition of a file's format.

A member follows `Format`, and one that can be written `WritableFormat`; batches are of `traces.file.schema.SCHEMA`, in constant memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np

from flashsim.core.errors import DamagedFileError, InvalidParameterError, MissingFileError, option
from flashsim.core.members import Family, optional
from flashsim.core.request import OPERATIONS
from flashsim.storage.packed_files import unpack_first
from traces.file.schema import Batches, column
from traces.format._other_tools import advice_of
from traces.format._text import Bools, refuse_lengths


class Example(NamedTuple):
    """A small file of a format, and its requests: operation, offset, length and arrival (ns; None where it is not known) of each."""

    content: bytes
    requests: Sequence[tuple[int, int, int, int | None]]


class Format(Protocol):
    """A member's module."""

    TITLE: str  # a line that says what it is
    LEAVES_OUT: str = ""  # what its files hold that the schema does not, in a few words
    EXAMPLE: Example | None = None  # for the tests of the family; a format that can be written does without
    GENERIC: bool = False  # it is only recognised where no other format fits
    BASIS: str = ""  # what its files are recognised by, and the units of their numbers, in a few words

    def recognise(self, path: Path) -> bool:
        """True if the file has this format, judged by its first bytes."""

    def read(self, path: Path) -> Batches:
        """The file's requests, in its order.

        Raises
        ------
        DamagedFileError
            Names the file, and the line or record.
        """

    @optional
    def with_options(self, options: str) -> Format:
        """A format that knows what its files do not say of themselves.

        Raises
        ------
        InvalidParameterError
            It takes no such options.
        """
        raise InvalidParameterError("trace format", repr(options), "only formats with columns of any name, such as csv, take options")

    @optional
    def doubt(self, path: Path) -> str:
        """Why a file that it recognises may as well be a table of other columns; nothing of a file that is beyond doubt."""
        return ""

    @optional
    def basis(self, path: Path) -> str:
        """What a file is recognised by, and the units of its numbers; `BASIS` if nothing."""
        return ""


#: Readers of the formats that tables describe, by the ``reader`` that a table names, or columns.
_READERS = {"columns": ("traces.format._columns", "ColumnsOfText"), "fio": ("traces.format._fio", "IOLog")}

FORMATS = Family("traces.format", "trace format", Format, tables="traces.format.base:from_table", renamed={"configured": "with_options"})


def from_table(name: str, table: Mapping[str, Any]) -> Format:
    """The format that a ``NAME.toml`` in this folder describes."""
    module, reader = _READERS[table.get("reader", "columns")]
    member: Format = getattr(import_module(module), reader)(name, table)
    return member


def table_example(table: Mapping[str, Any]) -> Example:
    """The ``example`` of a table, and its ``requests``: operation, offset, length and arrival (ns)."""
    return Example(table["example"].encode(), [(OPERATIONS.index(operation), *numbers) for operation, *numbers in table["requests"]])


class WritableFormat(Format, Protocol):
    """A member's module that also writes."""

    CARRIES: frozenset[str]  # the columns that it holds
    RESOLUTION: int  # the step of its times, ns
    FILLS: Mapping[str, str] = {}  # what it writes for a time that is not known, by column; other formats refuse, or leave it out
    LABELS: str = ".*"  # the labels that it holds, if it holds labels, as a regular expression
    KEEPS_UNKNOWN: bool = False  # it holds which columns the source did not tell
    IN_ORDER: bool = False  # it holds no request that arrives before one that precedes it, and lets it arrive with that

    def write(self, batches: Batches, path: Path) -> None:
        """Write requests into a file.

        Raises
        ------
        InvalidParameterError
            A request that the format cannot hold.
        """


@cache
def load_format(name: str) -> Format:
    """A member, by name or as the path of a Python file, or as ``name:options`` (`Format.with_options`)."""
    member, colon, options = name.partition(":")
    return FORMATS.load(member).with_options(options) if colon else FORMATS.load(name)


@cache
def formats() -> dict[str, Format]:
    return {name: load_format(name) for name in FORMATS.names()}


def writable() -> list[str]:
    return [name for name, member in formats().items() if _is_writable(member)]


def _is_writable(member: Format) -> TypeGuard[WritableFormat]:
    if not hasattr(member, "write"):
        return False
    for part in ("FILLS", "LABELS", "KEEPS_UNKNOWN", "IN_ORDER"):
        if not hasattr(member, part):
            setattr(member, part, getattr(WritableFormat, part))
    return True


def load_writable(name: str) -> WritableFormat:
    """A member that can be written; one that can only be read is refused."""
    member = load_format(name)
    if not _is_writable(member):
        raise InvalidParameterError("trace format", name, f"it can only be read; written can be {', '.join(writable())}")
    return member


def candidates(path: str | Path, names: Collection[str] | None = None, load: Callable[[str], Any] = load_format) -> list[str]:
    """The names of all formats that a file could have, of this family or of some names of another; errors as of `recognise`."""
    path = Path(path)
    if not path.is_file():
        raise MissingFileError(f"trace: {'it is not a file' if path.exists() else 'no file at'} {path}")
    try:
        fitting = [name for name in (FORMATS.names() if names is None else names) if load(name).recognise(path)]
    except OSError as problem:
        raise MissingFileError(f"trace: cannot read {path}: {problem.strerror or problem}") from problem
    return [name for name in fitting if not load(name).GENERIC] or ([] if advice_of(path) else fitting)


def doubts(path: Path, names: Sequence[str], load: Callable[[str], Any]) -> str:
    """Why a file could be of more formats than one, of those that it fits; nothing if it is of one."""
    if len(names) > 1:
        return f"it could be {' or '.join(names)}; name it with " + option("format")
    doubt = load(names[0]).doubt(path) if names else ""
    columns = option("format") + ", or the columns of a table with " + option("format") + " csv " + option("columns")
    return f"it could be {names[0]} or csv ({doubt}); name it with " + columns if doubt else ""


def unknown_file(path: Path, names: Collection[str]) -> DamagedFileError:
    """A file that no format of these names fits."""
    if advice := advice_of(path):
        return DamagedFileError(f"trace: {path} is {advice}")
    known = f"known are {', '.join(names)}; which column of a table is what, " + option("format") + " csv " + option("columns") + " says"
    what = unpack_first(path) or ("it is empty" if not path.stat().st_size else known)
    return DamagedFileError(f"trace: {path} has no recognizable format: " + what)


def recognise(path: str | Path) -> str:
    """The name of the format that a file has.

    Raises
    ------
    MissingFileError, DamagedFileError
        There is no file, or it cannot be read; no format fits, or more than one, or it is packed, and damaged.
    """
    path, names = Path(path), candidates(path)
    if why := doubts(path, names, load_format):
        raise DamagedFileError(f"trace: {path} has no recognizable format: " + why)
    if not names:
        raise unknown_file(path, FORMATS.names())
    return names[0]


def basis(path: str | Path, name: str) -> str:
    """What a file of a format is recognised by, and the units of its numbers."""
    member = load_format(name)
    return member.basis(Path(path)) or member.BASIS


def _refuse(path: str | Path, first: int, bad: Bools, why: str) -> None:
    if bad.any():
        raise DamagedFileError(f"trace: {path}, request {first + int(np.argmax(bad))}: {why}")


def read_trace(path: str | Path, name: str | None = None) -> Batches:
    """The requests of a trace file, of a format that is recognised or named.

    Raises
    ------
    MissingFileError, DamagedFileError
        See `recognise` and `Format.read`.
    """
    name = name or recognise(path)
    member, requests = load_format(name), 0
    if not Path(path).is_file():
        raise MissingFileError(f"trace: no file at {path}")
    try:
        for batch in member.read(Path(path)):
            refuse_lengths(column(batch, "operation"), column(batch, "length"), partial(_refuse, path, requests))
            yield batch
            requests += batch.num_rows
        if not requests:
            raise DamagedFileError(f"trace: {path} has no request, read as {name.partition(':')[0]}")
    except OSError as problem:
        raise DamagedFileError(f"trace: {path} cannot be read: {problem}".split("\n", 1)[0]) from problem

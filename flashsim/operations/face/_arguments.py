"""Arguments that are tables, as a join takes them: names of sources, files, frames, Arrow."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import pyarrow as pa

from flashsim.core.errors import InvalidParameterError, SchemaError, UnknownNameError
from flashsim.operations.fields import Field, several, text
from flashsim.storage.source import Source, open_source
from flashsim.storage.source._fields import type_named
from flashsim.storage.source.base import TableRecords, TextRecords

if TYPE_CHECKING:  # names of sources and presets have no use for their libraries
    import pandas as pd


class ArrowStream(Protocol):
    """Arrow tables and readers, and the frames of pandas, Polars and DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


#: Messages that say what a table, and a trace, may be.
A_TABLE = "a table is needed: a DataFrame, an Arrow table, a path, or a source such as tpch:customer@0.1"
A_TRACE = "a trace is needed: a file's path, an fs.trace, or a table with columns operation, offset and length (bytes)"

#: A relation of a join.
Table = str | PathLike[str] | ArrowStream | Mapping[str, Any]


def by_name(value: Any, parameter: str, form: str = "NAME=SOURCE, such as t=tpch:orders@0.1") -> dict[str, Any]:
    """What is given by a name: a mapping, or texts such as ``t=tpch:orders@0.1``."""
    if isinstance(value, Mapping):
        return dict(value)
    named: dict[str, Any] = {}
    for each in several(value, parameter):
        name, equals, rest = text(each, parameter).partition("=")
        if not (name and equals and rest):
            raise InvalidParameterError(parameter, repr(each), f"it must read {form}")
        if name in named:
            raise InvalidParameterError(parameter, repr(each), f"{name} is given twice")
        named[name] = rest
    return named


def _types(value: Any, parameter: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        value = [part for each in several(value or [""], parameter) for part in re.split(r",(?![^(]*\))", text(each, parameter))]
    types = by_name(value, parameter, "COLUMN=TYPE, such as id=int64")
    for kind in types.values():
        type_named(text(kind, parameter), parameter)
    return types


_TYPES = "Types of columns of CSV and TSV files, such as id=int64,day=date; by default detected from the fields. May be repeated."
Types = Annotated[Any, Field(_TYPES, "COLUMN=TYPE,...", _types, several=True, python="Or types by column.", seldom=True)]


def sources(values: Mapping[str, Any], types: Mapping[str, str] | None = None) -> dict[str, Source]:
    """The rows of relations by the names that they have in messages; types of text files' columns, by ``COLUMN`` or ``NAME.COLUMN``.

    A value is ``tpch:customer@0.1``, ``do2009:orders@3``, a path, a DataFrame, whatever has Arrow's stream interface, or columns by name.
    """
    opened: dict[str, Source] = {}
    for name, value in values.items():
        is_name = isinstance(value, str | PathLike)
        opened[name] = open_source(text(value, name)) if is_name else TableRecords(name, arrow_table(value, name))
    texts = {name: each for name, each in opened.items() if isinstance(each, TextRecords)}
    for column, kind in (types or {}).items():
        places = [(name, column) for name, each in texts.items() if column in each.names]
        places = places or [(name, own) for name, each in texts.items() for own in each.names if f"{name}.{own}" == column]
        if not places:
            raise UnknownNameError("column of a text file", column, {name for each in texts.values() for name in each.names})
        for name, own in places:
            opened[name] = texts[name] = texts[name].with_type(own, type_named(kind, column))
    return opened


def arrow_table(value: Any, parameter: str, bound: str = A_TABLE) -> pa.Table:
    """A frame, or columns by name, as an Arrow table; an index with names becomes columns.  `bound` is the message for other values."""
    import pandas as pd

    try:
        if isinstance(value, pd.DataFrame):
            return _of_pandas(value, parameter)
        if isinstance(value, Mapping) or (hasattr(value, "__arrow_c_stream__") and not isinstance(value, pd.Series)):
            return pa.table(value)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        reason = ("; ".join(map(str, problem.args)) or type(problem).__name__).strip().splitlines()[0]
        raise SchemaError(f"{parameter}: the table cannot be taken: {reason}") from problem
    raise InvalidParameterError(parameter, "None" if value is None else f"an object of type {type(value).__name__}", bound)


def _of_pandas(frame: pd.DataFrame, parameter: str) -> pa.Table:
    index_names = [name for name in frame.index.names if name is not None]
    if index_names and not set(index_names) & set(frame.columns):
        frame = frame.reset_index()
    for name in frame.columns:
        if not isinstance(name, str):
            raise SchemaError(
                f"{parameter}: a column is named {name!r}, but names are texts; rename it, such as by frame.rename(columns=str)"
            )
    if frame.columns.has_duplicates:
        raise SchemaError(f"{parameter}: two columns are named {frame.columns[frame.columns.duplicated()][0]}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pa.Table.from_pandas(frame, preserve_index=False)


def key(on: Any, parameter: str = "on") -> str:
    """The key as ``COLUMN`` or ``R_COLUMN=S_COLUMN``, also from a list of just one such."""
    if isinstance(on, list | tuple) and len(on) == 1:
        on = on[0]
    if not isinstance(on, str):
        bound = "one column is needed, as text: 'COLUMN', or 'R_COLUMN=S_COLUMN' where names differ"
        raise InvalidParameterError(parameter, repr(on), bound)
    return on

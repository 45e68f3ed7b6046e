"""Sources of references: arrays, lists and series of ids, frames of requests, what a text names, and our own joins."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from algorithms.joins.base import plan
from flashsim.apps.caching.session import NamedReferences
from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError
from flashsim.core.parameters import count, size, text
from flashsim.core.request import Integers
from flashsim.core.transactions import ReferenceBatches, References
from flashsim.core.units import KIB
from flashsim.device import presets
from flashsim.execution.drivers import run
from flashsim.experiments.runs.joining import BUFFERS_FOR_REAL, JoinSetting, check_names, divide, lay_out, memory_pages, open_pair
from flashsim.storage.texts import frame_of
from traces.file.excerpt import excerpt
from traces.file.page_trace import page_trace
from traces.file.recording import ParquetRecorder
from traces.references import GENERATORS, generated_trace
from traces.references.base import parse, pieces

A_TRACE = (
    "references are needed: the path of a trace or a generator such as 'zipf:pages=1000', ids of pages as an array, a list or a Series, "
    "a pair (pages, writes), or a frame with a column page (and write), or operation, offset and length (bytes)"
)


@dataclass(frozen=True)
class ArrayTrace:
    """References that are in memory already."""

    name: str
    #: See `flashsim.core.transactions.References`.
    pages: Integers
    writes: np.ndarray | None = None

    def batches(self) -> Iterator[References]:
        return pieces(References(self.pages, self.writes))


def of_values(pages: Any, writes: Any = None, name: str = "pages") -> ArrayTrace:
    """References from ids of pages of any one type: integers are taken as they are, others by the order in which they appear.

    Writes are truth values, or 0 and 1.
    """
    numbers = _ids(_series(pages))
    if writes is None:
        return ArrayTrace(name, numbers)
    flags = _series(writes)
    if len(flags) != len(numbers):
        raise InvalidParameterError("trace", f"{len(numbers):,} pages and {len(flags):,} writes", "both must have the same length")
    strange = ~flags.isin((0, 1))
    if strange.any():
        raise InvalidParameterError("writes", flags[strange].iloc[0], "a truth value is needed, or 0 or 1")
    return ArrayTrace(name, numbers, flags.to_numpy(np.bool_))


def of_text(text: str, page_size: int, seed: int = 0, format_name: str | None = None, columns: str | None = None) -> NamedReferences:
    """References of whatever a text names: a trace of pages, or of requests, which are split into pages, or generated ones."""
    name, colon, _ = text.partition(":")
    if Path(text).exists() or name == "sample" or not (colon or name in GENERATORS.names()):
        return page_trace(excerpt(Path(text), format_name, columns), page_size)
    if format_name or columns:
        raise RefusedError(f"{'format' if format_name else 'columns'}: {name} is generated, and no file with a format")
    defaults = {"page_size": page_size, "seed": seed}
    if name == "join":  # such as join:algorithm=bnl,r=do2009:customer@0.1,s=do2009:orders@0.1,...
        trace = JoinTrace(text, parse(text, _JoinSource, defaults))
        check_names(trace.setting, trace.join.buffers_for)
        return trace
    if not name.endswith(".py") and name not in GENERATORS.names():
        raise UnknownNameError("trace", name, ["join", *GENERATORS.names()])
    return generated_trace(text, **defaults)


def _series(values: Any) -> pd.Series[Any]:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        values = frame_of(pa.table({"page": values}))["page"]
    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    is_list = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    if is_list or hasattr(values, "__array__"):
        with suppress(ValueError):  # of lists that differ in length, no array can be made
            array = np.asarray(values)
            if array.ndim == 1:
                may_convert = is_list and array.dtype.kind in "fcSU"  # large integers to floats, or numbers to text: pages would be one
                return pd.Series(np.asarray(values, dtype=object) if may_convert else array)
    raise InvalidParameterError("trace", "None" if values is None else f"an object of type {type(values).__name__}", A_TRACE)


def _ids(values: pd.Series[Any]) -> Integers:
    if values.isna().any():
        raise InvalidParameterError("trace", f"{int(values.isna().argmax()):,}", "the page of that reference is missing (numbered from 0)")
    if pd.api.types.is_unsigned_integer_dtype(values.dtype):
        return values.to_numpy(np.uint64).view(np.int64)
    if pd.api.types.is_integer_dtype(values.dtype):
        return values.to_numpy(np.int64)
    return pd.factorize(values)[0].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class _JoinSource:
    """Parameters of a join, as ``flashsim join`` has them."""

    algorithm: str = text("a join")
    r: str = text("one relation, as a source such as do2009:customer@0.1")
    s: str = text("the other relation")
    on: str = text("the key")
    memory: int = size("of the buffer pool")
    page_size: int = size("of a page", default=4 * KIB)
    buffers_for: str = text("the device preset that buffers are divided for", default=BUFFERS_FOR_REAL)
    first: str = text("of joins that fetch rows", default="")
    fetch: str = text("of joins that fetch rows", default="")
    partition: str = text("of joins that make buckets", default="")
    strands: int = count("of joins that make buckets", default=1)


@dataclass(frozen=True)
class JoinTrace:
    """References of a join, in the order of its requests; which pages it keeps in buffers is its own affair."""

    name: str
    join: _JoinSource

    @property
    def setting(self) -> JoinSetting:
        join = self.join
        options: dict[str, Any] = {name: value for name in ("first", "fetch", "partition") if (value := getattr(join, name))}
        if join.strands > 1:
            options["strands"] = join.strands
        return JoinSetting(join.algorithm, memory_pages(join.memory, join.page_size), buffers_for=join.buffers_for, given=options)

    def batches(self) -> ReferenceBatches:
        """All references, from the first; the join runs once for each call, and is recorded into a file that is removed."""
        join, setting = self.join, self.setting
        r, s = (lay_out(relation, join.page_size) for relation in open_pair(join.r, join.s, join.on))
        parameters, allocation = divide(setting, (r, s), presets.load(join.buffers_for))
        with tempfile.TemporaryDirectory() as folder:
            with ParquetRecorder(Path(folder) / "join.parquet") as recorder:
                run(lambda: plan(setting.algorithm, r, s, parameters, allocation), (r, s), sink=recorder)
            yield from page_trace(recorder.path, join.page_size).batches()

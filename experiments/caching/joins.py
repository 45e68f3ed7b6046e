"""What our own joins refer to: a join runs without any device, and its requests are split into pages."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from algorithms.joins.base import plan
from experiments.runs.joining import BUFFERS_FOR_REAL, JoinSetting, check_names, divide, lay_out, memory_pages, open_pair
from flashsim.core.parameters import count, size, text
from flashsim.core.references import ReferenceBatches
from flashsim.core.units import KIB
from flashsim.device import presets
from flashsim.execution.trace_only import trace_only
from traces.page_trace import page_trace
from traces.recording import ParquetRecorder
from traces.references.base import parsed


@dataclass(frozen=True, kw_only=True)
class _Join:
    """Its parameters, as of ``flashsim join``."""

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
    join: _Join

    @property
    def setting(self) -> JoinSetting:
        """How the join runs."""
        join = self.join
        options: dict[str, Any] = {name: value for name in ("first", "fetch", "partition") if (value := getattr(join, name))}
        if join.strands > 1:
            options["strands"] = join.strands
        return JoinSetting(join.algorithm, memory_pages(join.memory, join.page_size), buffers_for=join.buffers_for, **options)

    def batches(self) -> ReferenceBatches:
        """All references, from the first; the join runs once for each call, and is recorded into a file that is removed."""
        join, setting = self.join, self.setting
        r, s = (lay_out(relation, join.page_size) for relation in open_pair(join.r, join.s, join.on))
        parameters, allocation = divide(setting, (r, s), presets.load(join.buffers_for))
        with tempfile.TemporaryDirectory() as folder:
            with ParquetRecorder(Path(folder) / "join.parquet") as recorder:
                trace_only(plan(setting.algorithm, r, s, parameters, allocation), (r, s), recorder)
            yield from page_trace(recorder.path, join.page_size).batches()


def join_trace(asked: str, given: Mapping[str, Any]) -> JoinTrace:
    """References as they are asked for, such as ``join:algorithm=bnl,r=do2009:customer@0.1,s=do2009:orders@0.1,...``.

    Raises
    ------
    UnknownNameError, InvalidParameterError
        See `traces.references.generated` and `experiments.runs.joining.check_names`.
    """
    trace = JoinTrace(asked, parsed(asked, _Join, given))
    check_names(trace.setting, trace.join.buffers_for)
    return trace

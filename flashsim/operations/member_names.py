"""Names that help texts list and shells complete: of members of families, and of other lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

#: A family, a list or a function, by the name that a field gives it.
_NAMES = {
    "joins": "algorithms.joins.base:JOINS", "strategies": "algorithms.fetching.base:FETCHING",
    "partition_methods": "algorithms.partitioning.base:PARTITIONING", "page_formats": "flashsim.storage.page.base:PAGE_FORMATS",
    "placements": "flashsim.storage.placement.base:PLACEMENTS", "formats": "traces.format.base:FORMATS",
    "writable": "traces.format.base:writable", "page_traces": "traces.page_format.base:PAGE_FORMATS",
    "references": "traces.references.base:GENERATORS.names", "engines": "traces.replay.base:ENGINES",
    "planners": "algorithms.page_access.planners.base:PLANNERS", "graphs": "algorithms.page_access.instances:FAMILIES",
    "policies": "algorithms.replacement.base:REPLACEMENT", "designs": "algorithms.extensions.base:DESIGNS",
    "restarts": "algorithms.restart.base:RESTARTS", "workloads": "traces.transactions.base:WORKLOADS",
    "benchmarks": "traces.workload.base:FAMILY", "sets": "flashsim.experiments.bench.aio:SETS",
    "presets": "flashsim.device.presets:names", "cpus": "flashsim.execution.cpu:names",
}  # fmt: skip
#: Values that an option accepts besides the names of a list.
_BESIDES: dict[Any, list[str]] = {"cpus": ["none", "by-year"], "references": ["join"]}


def names(kind: str | Callable[[], Iterable[str]], files: bool = True) -> list[str]:
    """Names of a kind: members of a family and, with `files`, files in this folder that could be one; or those of a list or function."""
    from flashsim.core.members import Family  # with what is installed, for which no help need wait

    source = resolve_name(_NAMES[kind]) if isinstance(kind, str) else kind
    if isinstance(source, Family):
        return [*source.names(), *(source.files(Path()) if files else ())]
    return [*(source() if callable(source) else source), *_BESIDES.get(kind, ())]

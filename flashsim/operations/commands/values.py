"""Values that arguments and options take: what exists now, listed by help texts and completed by shells."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

#: The families that members are asked of, by what help texts call them: package and name of each.
_FAMILIES = {
    "joins": ("algorithms.joins.base", "JOINS"),
    "strategies": ("algorithms.fetching.base", "FETCHING"),
    "partition_methods": ("algorithms.partitioning.base", "PARTITIONING"),
    "page_formats": ("flashsim.storage.page.base", "PAGE_FORMATS"),
    "placements": ("flashsim.storage.placement.base", "PLACEMENTS"),
    "formats": ("traces.format.base", "FORMATS"),
    "page_traces": ("traces.page_format.base", "PAGE_FORMATS"),
    "engines": ("traces.replay.base", "ENGINES"),
    "planners": ("algorithms.page_access.planners.base", "PLANNERS"),
    "policies": ("algorithms.replacement.base", "REPLACEMENT"),
    "designs": ("algorithms.extensions.base", "DESIGNS"),
    "workloads": ("traces.transactions.base", "WORKLOADS"),
    "benchmarks": ("traces.workload.base", "FAMILY"),
}
_PLACE = re.compile(r"\{([a-z_]+)\}")


def values(kind: str) -> list[str]:
    """What there is of a kind: members of a family and files in this folder that could be one, presets, or papers."""
    if kind in _FAMILIES:
        module, name = _FAMILIES[kind]
        family = getattr(import_module(module), name)
        return [*family.names(), *family.files(Path())]
    match kind:
        case "presets":
            return list(import_module("flashsim.device.presets").names())
        case "cpus":
            return [*import_module("flashsim.execution.cpu").names(), "none"]
        case "sets":
            return list(import_module("flashsim.studies.bench.aio").SETS)
        case "writable":
            return list(import_module("traces.format.base").writable())
        case "references":
            return [*import_module("traces.references.base").GENERATORS.names(), "join"]
        case "graphs":
            return list(import_module("algorithms.page_access.instances").FAMILIES)
        case "papers":
            return list(import_module("flashsim.literature.base").PAPERS.names())
        case _:  # all claims of all papers, as PAPER/CLAIM
            papers = import_module("flashsim.literature.base")
            return [claim.name for name in papers.PAPERS.names() for claim in papers.load(name).claims]


def completes(*kinds: str) -> Callable[[str], list[str]]:
    """A completion for shells: all values of some kinds that begin as what was typed."""

    def complete(incomplete: str) -> list[str]:
        return [value for kind in kinds for value in values(kind) if value.startswith(incomplete)]

    return complete


def filled(text: str) -> str:
    """A help text with the values that exist in place of ``{kind}``."""
    return _PLACE.sub(lambda place: ", ".join(values(place[1])), text)

"""Runs of other readings of the paper and of other prices."""

from collections.abc import Mapping
from typing import Any

from flashsim.core.units import MB, MICROSECONDS, SECONDS
from flashsim.literature.li2009.runs import Setup, algorithm_of, execute, inputs

#: Values of the drive's parameters, ns and bytes a second.
_US = MICROSECONDS
_SLOW = {"read_latency": 200 * _US, "write_latency": 400 * _US, "continuation_latency": 0, "continuation_limit": 0}
DRIVES: dict[str, dict[str, int]] = {
    "as the worked example demands": {},
    "random reads of 0.08 ms": {"read": 8 * _US, "read_latency": 39 * _US},
    "random reads of 0.1 ms": {"read_latency": 59 * _US},
    "reads in sequence as dear as at random": {"continuation_latency": 49 * _US, "link_write_rate": 330 * MB},
    "pages in sequence cost their transfer alone": {"continuation_latency": 1},
    "0.2 and 0.4 ms a request (table I)": _SLOW,
}
#: Variants of graph-based fetching: bytes of a result in the graph, and the first among segments with as few pages missing.
GRAPHS: dict[str, dict[str, Any]] = {
    "16 bytes a result in the graph": {"entry_bytes": 16},
    "56 bytes a result in the graph": {"entry_bytes": 56},
    "96 bytes a result in the graph": {"entry_bytes": 96},
    "ties: the fewest results first": {"ties": "fewest"},
    "ties: any segment": {"ties": "any"},
}


def on_drives(setup: Mapping[str, Any], graph: str, drives: list[str], scale: float, seed: int) -> list[float]:
    """I/O seconds on every drive, JSON-ready."""
    of_run = Setup(**setup)
    files = inputs(of_run, scale, seed)
    algorithm = algorithm_of(of_run, files, scale, **GRAPHS.get(graph, {}))
    runs, _ = execute(files, algorithm, [DRIVES[name] for name in drives])
    return [run.total().io_time / SECONDS for run in runs]

"""What the phases of a serial run waited for: the parts of the requests on its critical path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flashsim.core import spans
from flashsim.core.errors import RefusedError
from flashsim.core.request import READ, Completions, Integers, Requests
from flashsim.core.spans import Spans
from flashsim.device.latency_parts import PARTS, parts_of
from flashsim.execution.machine import Machine


@dataclass
class PhasePath:
    """Requests of a phase, and the parts, ns, by `names`, of those that its time consists of beside CPU work."""

    parts: Integers = field(default_factory=lambda: np.zeros(len(PARTS), np.int64))
    requests: int = 0
    #: Reads by their length, bytes; and how many dies and reads of cells served those, all together.
    reads: dict[int, list[int]] = field(default_factory=dict)
    #: Titles of the parts, by name.
    names: Mapping[str, str] = field(default_factory=lambda: PARTS)
    #: What transactions ask of devices, by title.
    visits: Mapping[str, int] = field(default_factory=dict)

    def add_reads(self, operations: Any, lengths: Any, cells: Integers) -> None:
        """Count the reads among requests, of which `cells` has dies and reads of cells, shape (requests, 2)."""
        for length in np.unique(lengths[operations == READ]).tolist():
            those = cells[(operations == READ) & (lengths == length)]
            counts = self.reads.setdefault(length, [0, 0, 0])
            self.reads[length] = [counts[0] + len(those), *(counts[1:] + those.sum(axis=0)).tolist()]


class PathObserver:
    """Observes a machine (`flashsim.core.protocols.RunObserver`): `phases` are the paths of its phases, by name.

    RefusedError: a device does not record what its parts do.
    """

    def __init__(self, machine: Machine) -> None:
        self._devices = machine.devices
        self.phases = dict[str, PhasePath]()
        for device in machine.devices:
            if not device.record_spans():
                raise RefusedError(f"why: {device.name} does not record what its parts do")

    def observe(self, phases: Sequence[tuple[str, int]], requests: Requests, completions: Completions, at_once: bool) -> None:
        """Take requests; of those that go at once the last to complete is on the path."""
        parts = np.zeros((len(requests), len(PARTS)), np.int64)
        cells = np.zeros((len(requests), 2), np.int64)
        for number, device in enumerate(self._devices):
            own, record = requests["device"] == number, device.spans()
            parts[own] = parts_of(device, record, requests[own], completions[own])
            cells[own] = dies_and_reads(record, completions[own])
        on_path = np.full(len(requests), not at_once)
        on_path[int(np.argmax(completions["completed"]))] = True
        begin = 0
        for name, end in phases:
            path, those = self.phases.setdefault(name, PhasePath()), slice(begin, end)
            path.parts += parts[those][on_path[those]].sum(axis=0)
            path.requests += end - begin
            path.add_reads(requests["operation"][those], requests["length"][those], cells[those])
            begin = end


def dies_and_reads(record: Spans, completions: Completions) -> Integers:
    """How many dies served each request, and in how many reads of cells, shape (requests, 2)."""
    cells, ids = record[record["kind"] == spans.CELLS], completions["id"]
    pairs = np.unique(np.stack([cells["request"], cells["die"]]), axis=1)[0]
    order, result = np.argsort(ids, kind="stable"), np.zeros((len(ids), 2), np.int64)
    for column, requests in enumerate((pairs, np.sort(cells["request"]))):
        ends, begins = (np.searchsorted(requests, ids[order], side) for side in ("right", "left"))
        result[order, column] = ends - begins
    return result

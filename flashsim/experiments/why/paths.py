"""What the phases of a serial run waited for: the parts of the requests on its critical path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
    #: Numbers of dies, and of reads of cells, that served all reads of a length, by that length, bytes.
    reads: dict[int, tuple[int, int]] = field(default_factory=dict)
    #: Titles of the parts, by name.
    names: Mapping[str, str] = field(default_factory=lambda: PARTS)
    #: What transactions ask of devices, by title.
    visits: Mapping[str, int] = field(default_factory=dict)
    #: Requests on the path, and how many of them have each part.
    served: int = 0
    affected: Integers = field(default_factory=lambda: np.zeros(len(PARTS), np.int64))

    def add(self, requests: Requests, parts: Integers, cells: Integers) -> None:
        """Take requests, parts of those on the path, shape (n, `names`), and dies and reads of cells of all, shape (requests, 2)."""
        self.parts += parts.sum(axis=0)
        self.affected += (parts > 0).sum(axis=0)
        self.served += len(parts)
        self.requests += len(requests)
        reads, lengths = requests["operation"] == READ, requests["length"]
        for length in np.unique(lengths[reads]).tolist():
            dies, in_turn = cells[reads & (lengths == length)].sum(axis=0).tolist()
            before = self.reads.get(length, (0, 0))
            self.reads[length] = before[0] + dies, before[1] + in_turn


class PathObserver:
    """Observes a machine (`flashsim.core.protocols.RunObserver`): `phases` are the paths of its phases, by name.

    RefusedError: a device does not record its internal activity.
    """

    def __init__(self, machine: Machine) -> None:
        self._devices = machine.devices
        self.phases = dict[str, PhasePath]()
        for device in machine.devices:
            if not device.record_spans():
                raise RefusedError(f"why: {device.name} does not record its internal activity")

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
            those = slice(begin, end)
            self.phases.setdefault(name, PhasePath()).add(requests[those], parts[those][on_path[those]], cells[those])
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

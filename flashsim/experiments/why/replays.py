"""Why the requests of a replay took their time on a simulated drive."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import pyarrow as pa

from flashsim.core.errors import RefusedError
from flashsim.core.processes import cores
from flashsim.core.protocols import Progress
from flashsim.core.request import OPERATIONS, Completions, Integers, make_requests, response_times
from flashsim.core.spans import SPAN
from flashsim.device.device import Device
from flashsim.device.latency_parts import parts_of
from flashsim.device.mechanisms import load_on, mechanisms_of
from flashsim.execution.run import PhaseCost
from flashsim.experiments.replaying.simulated import ReplaySettings, replay
from flashsim.experiments.replaying.survey import Survey
from flashsim.experiments.runs.drives import ReadyDrive
from flashsim.experiments.why.answers import REQUEST, RunWhy
from flashsim.experiments.why.counterfactuals import Counterfactuals, IdealDrive, Ideals
from flashsim.experiments.why.paths import PhasePath, dies_and_reads
from traces.file.excerpt import Excerpt, Source, requests_of
from traces.file.schema import Batches

#: Columns of a trace that the parts of a request depend on.
_OF_REQUESTS = ("operation", "offset", "length")


@dataclass(frozen=True)
class _Apart(Excerpt):
    """The requests of a source at equal distances of `gap` ns."""

    source: Source = ""
    gap: int = 0

    def batches(self) -> Batches:
        count = 0
        for batch in requests_of(self.source):
            arrival = pa.array(np.arange(count, count + batch.num_rows) * self.gap)
            yield batch.set_column(batch.schema.get_field_index("arrival"), batch.schema.field("arrival"), arrival)
            count += batch.num_rows


class _LatencySums:
    """Latencies of requests by operation, all together, ns, shape (operations,)."""

    def __init__(self) -> None:
        self.sums = np.zeros(len(OPERATIONS), np.int64)

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        np.add.at(self.sums, batch.column("operation").to_numpy().astype(np.int64), response_times(completions))


class _OperationPaths:
    """Requests of each operation, by number, as a phase: parts of all their latencies, on a device that records what its parts do."""

    def __init__(self, device: Device) -> None:
        self._device, self._record = device, np.zeros(0, SPAN)
        self.paths, self.key, self.longest = dict[int, PhasePath](), 0, 0
        if not device.record_spans():
            raise RefusedError(f"why: {device.name} does not record its internal activity")

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        """Take requests that have completed, batch by batch in the order of their submission."""
        self._record = np.concatenate([self._record, self._device.spans()])
        requests, in_order = make_requests(*(batch.column(name).to_numpy() for name in _OF_REQUESTS)), np.sort(completions, order="id")
        requests = requests[np.argsort(completions["id"], kind="stable")]
        self.key = crc32(np.stack([requests[name] for name in _OF_REQUESTS]).tobytes(), self.key)
        self.longest = max(self.longest, int(response_times(in_order).max(initial=0)))
        parts, cells = parts_of(self._device, self._record, requests, in_order), dies_and_reads(self._record, in_order)
        for operation in np.unique(requests["operation"]).tolist():
            own = requests["operation"] == operation
            self.paths.setdefault(operation, PhasePath()).add(requests[own], parts[own], cells[own])
        since = int(completions["submitted"].min(initial=0))  # requests that come later wait for nothing that ended before
        self._record = self._record[self._record["end"] >= since]


def why_replay(
    source: Source, device: Device, settings: ReplaySettings, what: Survey, limit: int | None = None, progress: Progress | None = None, *,
    exact: bool = False,
) -> RunWhy:  # fmt: skip
    """Take the replay of a trace on copies of a drive as it stands apart, by operation; `exact`: with Shapley values.

    Raises
    ------
    RefusedError
        The drive is an array or a station.
    """
    held, mechanisms = ReadyDrive(device), mechanisms_of(device.preset)
    mechanisms += [load_on(device.preset)] if settings.pace == "timed" or settings.depth > 1 else []
    observed, runs = held.device(0), 1
    paths = _OperationPaths(observed)
    replay(source, observed, settings, what, paths.add, limit)
    own, apart = sorted(paths.paths), _Apart("", source=source, gap=paths.longest)
    base = np.array([paths.paths[each].parts.sum() for each in own], np.int64)

    def sums_of(ideal: Ideals) -> Integers:
        nonlocal runs
        if progress:
            progress(runs, 2 * len(mechanisms) + 2, f"{device.name} with ideal {', '.join(each.name for each in ideal)}")
        totals = _LatencySums()
        drive = IdealDrive(held, ideal).device(0)
        if any(each.one_at_a_time for each in ideal):
            replay(apart, drive, replace(settings, pace="timed"), replace(what, timed=True), totals.add, limit)
        else:
            replay(source, drive, settings, what, totals.add, limit)
        runs += 1
        return totals.sums[own]

    def evaluate(ideals: Sequence[Ideals]) -> list[Integers]:
        with ThreadPoolExecutor(cores()) as pool:
            return list(pool.map(sums_of, ideals))

    costs = [PhaseCost(OPERATIONS[each], io_time=int(time)) for each, time in zip(own, base, strict=True)]
    of_each = {OPERATIONS[each]: paths.paths[each] for each in own}
    none = [float("nan")] * len(own)
    answers = Counterfactuals(mechanisms, base, evaluate, exact)
    return RunWhy(device.name, "", costs, of_each, answers, none, none, REQUEST, key=paths.key, preset=device.preset)

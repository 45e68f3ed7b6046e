"""The times of a join's requests as they are executed and replayed: of each request, or of each phase where requests overlap."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.protocols import Label
from flashsim.core.request import FLUSH, Completions, Integers, Requests
from flashsim.core.units import SECONDS
from flashsim.execution.requests import Algorithm, Phase, Request, rewrite
from traces.file.recording import ParquetRecorder

Floats = npt.NDArray[np.float64]
#: Phases in the order in which they were entered, and the first time of each.
Begins = Sequence[tuple[str, int]]


class RequestTimes:
    """Begins and ends of requests, and the sum of their bytes."""

    def __init__(self) -> None:
        self.bytes = self.count = 0
        self._times = [np.zeros((2, 0), np.int64)]

    def add(self, begins: Integers, ends: Integers, lengths: Integers) -> None:
        """Take requests, ns and bytes, shape (n,) each."""
        self._times.append(np.stack([begins, ends]))
        self.count += len(begins)
        self.bytes += int(lengths.sum())

    def add_replay(self, batch: pa.RecordBatch, completions: Completions) -> None:
        moves = batch.column("operation").to_numpy() != FLUSH
        self.add(completions["started"][moves], completions["completed"][moves], batch.column("length").to_numpy()[moves])

    def seconds(self, phases: Begins, *, overlap: bool) -> Floats:
        """Seconds of each request; or, where requests overlap, those of each phase entered in which any request was under way."""
        starts, ends = np.concatenate(self._times, axis=1)
        if not overlap:
            return (ends - starts) / SECONDS
        bounds = [*(first for _, first in phases), len(starts)]
        return np.array([under_way(starts[first:end], ends[first:end]) / SECONDS for first, end in pairwise(bounds)])


def under_way(begins: Integers, ends: Integers) -> int:
    """The time in which any of some requests was under way, by their begins and ends.

    Examples
    --------
    >>> under_way(np.array([0, 20, 1]), np.array([5, 30, 9]))
    19
    """
    order = np.argsort(begins, kind="stable")
    until = np.maximum.accumulate(ends[order], dtype=np.int64)
    before = np.concatenate([[begins.min(initial=0)], until[:-1]]) if len(order) else until
    return int(np.maximum(until - np.maximum(begins[order], before), 0).sum())


class Tee:
    """Records a trace, the bytes and the time of every request, and where phases begin.

    An extent that lies in several places is several requests here, and one in the counts of a run.
    """

    def __init__(self, recorder: ParquetRecorder) -> None:
        self.recorder = recorder
        self.times = RequestTimes()
        self.begins: list[tuple[str, int]] = []  # of each phase entered, its first request

    def record(self, requests: Requests, completions: Completions | None, label: Label, after: int | None = None) -> None:
        self.recorder.record(requests, completions, label, after)
        if completions is not None:
            self.times.add(completions["submitted"], completions["completed"], requests["length"])

    def close(self) -> None:
        self.recorder.close()

    def watch(self, algorithm: Algorithm) -> Algorithm:
        """An algorithm whose phases are noted; it begins one when all its strands have ended."""

        def note(request: Request) -> Request:
            if isinstance(request, Phase):
                self.begins.append((request.name, self.times.count))
            return request

        return rewrite(algorithm, note)

"""How long dies are held by garbage collection: the pauses that a host operation may have to wait for."""

from __future__ import annotations

import numpy as np

from experiments.presentation.percentiles import summary
from flashsim.core.spans import GC, MERGE, SPAN, WEAR, Spans
from traces.histogram import Histogram


class GcPauses:
    """Pauses of all dies: holds of one die by garbage collection, merges or wear levelling that follow each other without a gap.

    A host operation or an idle moment between two holds ends a pause: an operation that comes then is served.

    Parameters
    ----------
    dies
        Of the drive; its first so many servers.
    """

    def __init__(self, dies: int) -> None:
        self._dies = dies
        self._times = Histogram()
        self._last = np.zeros(0, SPAN)  # a span a die: the last pause or other stretch of work, which may go on

    def add(self, spans: Spans) -> None:
        """Take what parts of the drive did, dtype SPAN; each call later than the one before."""
        self._times.add(self._stretches(np.concatenate([self._last, spans[spans["server"] < self._dies]]), keep=True))

    def as_dict(self) -> dict[str, float] | None:
        """How many there were, and their total, mean, percentiles and maximum, ns; None if there was none.  More may follow."""
        times = Histogram()
        times.merge(self._times)
        times.add(self._stretches(self._last, keep=False))
        return {"pauses": times.count, "total": round(times.mean * times.count), **summary(times)} if times.count else None

    def _stretches(self, spans: Spans, keep: bool) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The lengths of pauses that are over; with `keep`, the last stretch of each die is set aside."""
        spans = spans[np.lexsort((spans["begin"], spans["server"]))]
        if not len(spans):
            return np.zeros(0, np.int64)
        server, paused = spans["server"], np.isin(spans["cause"], (GC, MERGE, WEAR))
        starts = np.ones(len(spans), bool)
        starts[1:] = (server[1:] != server[:-1]) | (paused[1:] != paused[:-1]) | (spans["begin"][1:] > spans["end"][:-1])
        first = np.flatnonzero(starts)
        stretches = spans[first]
        stretches["end"] = np.maximum.reduceat(spans["end"], first)
        over = paused[first]
        if keep:
            newest = np.append(stretches["server"][1:] != stretches["server"][:-1], True)
            self._last = stretches[newest]
            over = over & ~newest
        return (stretches["end"] - stretches["begin"])[over]

"""Measured and simulated response times compared: means, percentiles, the demerit figure and the error request by request."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from experiments.presentation.tables import Entry, Table
from experiments.replaying.demerit import demerit
from experiments.validation.closed_loop import ClosedLoop
from flashsim.core.request import OPERATIONS, READ, WRITE, Integers
from flashsim.core.units import MILLISECONDS

PERCENTILES = (50, 90, 95, 99, 99.9)

#: The groups that every request is in one of.
_CLASSES = tuple(f"{OPERATIONS[operation]}s" for operation in (READ, WRITE))

Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Group:
    """One group of requests: times in ms, measured beside simulated.

    `median_error` is the median of the absolute error of a request; percentiles are pairs (measured, simulated) by share.
    """

    name: str
    requests: int
    measured_mean: float
    simulated_mean: float
    demerit: float
    median_error: float
    percentiles: dict[float, tuple[float, float]]

    @property
    def mean_error(self) -> float:
        """How far the simulated mean lies above the measured one, as a share of it."""
        return self.simulated_mean / self.measured_mean - 1

    def as_dict(self) -> dict[str, object]:
        """JSON-ready; times in ms."""
        return {
            "requests": self.requests,
            "mean_ms": {"measured": self.measured_mean, "simulated": self.simulated_mean},
            "mean_error": self.mean_error,
            "demerit_ms": self.demerit,
            "demerit_share": self.demerit / self.measured_mean,
            "median_absolute_error_ms": self.median_error,
            "percentiles_ms": {
                f"p{share:g}": {"measured": measured, "simulated": simulated} for share, (measured, simulated) in self.percentiles.items()
            },
        }


def compare(loop: ClosedLoop) -> list[Group]:
    """All requests, reads, writes, and both by what the measured drive's cache did, where the trace tells; no empty groups."""
    return [_group(name, loop.measured[rows], loop.simulated[rows]) for name, rows in _groups(loop) if rows.any()]


def _groups(loop: ClosedLoop) -> Iterator[tuple[str, Booleans]]:
    yield "all", np.ones(len(loop.measured), np.bool_)
    for operation in (READ, WRITE):
        yield f"{OPERATIONS[operation]}s", loop.operation == operation
    for operation in (READ, WRITE):
        for number, kind in enumerate(loop.kinds):
            yield f"{OPERATIONS[operation]}s: {kind.lower()}", (loop.operation == operation) & (loop.tag == number)


def _group(name: str, measured: Integers, simulated: Integers) -> Group:
    percentiles = np.percentile([measured, simulated], PERCENTILES, axis=1) / MILLISECONDS
    return Group(
        name,
        len(measured),
        float(measured.mean()) / MILLISECONDS,
        float(simulated.mean()) / MILLISECONDS,
        demerit(measured, simulated) / MILLISECONDS,
        float(np.median(np.abs(measured - simulated))) / MILLISECONDS,
        {share: (float(pair[0]), float(pair[1])) for share, pair in zip(PERCENTILES, percentiles, strict=True)},
    )


@dataclass(frozen=True)
class ByClass:
    """Errors of reads and of writes put together so that they cannot cancel, in ms.

    `demerit` is the root of the mean, over all requests, of their class's demerit squared; `mean_error` the mean of how far the mean of a
    request's class is off, either way, as a share of the measured mean.
    """

    demerit: float
    mean_error: float

    @classmethod
    def of(cls, groups: Sequence[Group]) -> ByClass:
        """Of the groups that `compare` returns."""
        classes = [group for group in groups if group.name in _CLASSES]
        requests = [group.requests for group in classes]
        off = np.average([abs(group.simulated_mean - group.measured_mean) for group in classes], weights=requests)
        squares = np.average([group.demerit**2 for group in classes], weights=requests)
        return cls(math.sqrt(squares), float(off) / groups[0].measured_mean)


def headline(groups: Sequence[Group]) -> str:
    """The demerit figure and the error of the mean, of all requests and by class, in a sentence."""
    total, by_class = groups[0], ByClass.of(groups)
    classes = [f"{each.name} {each.demerit:.3f} ms, mean {100 * each.mean_error:+.2f} %" for each in groups if each.name in _CLASSES]
    return (
        f"demerit {total.demerit:.3f} ms, mean {100 * total.mean_error:+.2f} %; {'; '.join(classes)}; "
        f"by class, where errors of reads and writes cannot cancel, {by_class.demerit:.3f} ms, mean {100 * by_class.mean_error:.2f} % off"
    )


def summary_table(groups: list[Group]) -> Table:
    """Means and errors, a row a group."""
    header = ["requests of", "count", "measured", "simulated", "mean error", "demerit", "of mean", "median error"]
    rows: list[list[Entry]] = [
        [
            group.name,
            group.requests,
            group.measured_mean,
            group.simulated_mean,
            f"{100 * group.mean_error:+.2f} %",
            group.demerit,
            f"{100 * group.demerit / group.measured_mean:.2f} %",
            group.median_error,
        ]
        for group in groups
    ]
    return Table(header, rows, digits=3, note="times in ms; median error: of a request, absolute")


def percentile_table(groups: list[Group]) -> Table:
    """Percentiles, measured and simulated in turns."""
    header = ["requests of", "", *(f"{share:g} %" for share in PERCENTILES)]
    rows: list[list[Entry]] = []
    for group in groups:
        for number, which in enumerate(("measured", "simulated")):
            rows.append([group.name, which, *(pair[number] for pair in group.percentiles.values())])
    return Table(header, rows, digits=3, note="times in ms")

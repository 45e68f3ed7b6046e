"""Runs the cells of a calibration on a simulated drive, all in one go: calls lie so far apart that each finds the drive idle."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.calibration.measure import Floats, Measured, samples, undisturbed
from flashsim.core.request import Integers, Requests
from flashsim.core.units import KIB, MILLISECONDS
from flashsim.device.device import Device

_UNIT = 4 * KIB
_MOST_CALLS = 200
#: Between calls: so many times as long as a call, or any request alone, took on the measured device, and a little.
_GAP = 20


@dataclass(frozen=True)
class Workload:
    """The first calls of some cells as they were measured, and when each request arrives.

    Parameters
    ----------
    calls
        Of each cell, the ranges of its calls' requests.
    """

    cells: Sequence[Measured]
    requests: Requests
    arrival: Integers
    calls: list[list[tuple[int, int]]]


def workload(cells: Sequence[Measured], area: int, seed: int, pages: int) -> Workload:
    """As many calls of each cell as move about `pages` pages of 4 KiB, one at least, within the first `area` bytes."""
    requests: list[Requests] = []
    arrival: list[Integers] = []
    calls: list[list[tuple[int, int]]] = []
    now = first = 0
    alone = max((one.time for one in cells if one.cell.depth == 1), default=0.0)  # a sequential call may begin with a random access
    for one in cells:
        count = int(np.clip(pages * _UNIT / (one.cell.batch_bytes * one.cell.chain), 1, _MOST_CALLS))
        ranges = []
        for number in range(count):
            call = one.cell.requests(area, seed, number // 8, number % 8)
            call["dependency"] += np.where(call["dependency"] >= 0, first, 0)
            ranges.append((first, first + len(call)))
            requests.append(call)
            arrival.append(np.full(len(call), now))
            first += len(call)
            now += int(_GAP * max(one.time * one.cell.chain, alone)) + MILLISECONDS
        calls.append(ranges)
    return Workload(cells, np.concatenate(requests), np.concatenate(arrival), calls)


def simulated(device: Device, work: Workload) -> Floats:
    """What the cells show on a drive, ns, shape (cells,)."""
    completions = device.serve(work.requests, device.now + work.arrival)
    return np.array(
        [
            undisturbed(np.concatenate([samples(one.cell, completions[begin:end]) for begin, end in ranges]))
            for one, ranges in zip(work.cells, work.calls, strict=True)
        ]
    )

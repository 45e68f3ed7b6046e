"""Runs of a flash drive, or of a part of a large one, under the loads that its figures are of."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from flashsim.apps.calibration.cells import Floats
from flashsim.apps.calibration.drive_figures import PERCENTILES, DriveFigure, DriveLoad
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE, Completions, Requests, make_requests, response_times
from flashsim.core.rng import generator
from flashsim.core.units import KIB, SECONDS
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.device.scaling import part_in_use
from flashsim.experiments.replaying.preconditioning import parse_state
from flashsim.experiments.runs import kept
from flashsim.ssd.parameters import SsdParameters

#: Mapping units of a drive that is simulated as a whole at most.
_WHOLE = 1 << 17
#: Bytes that reads and sequential writes go to at most, and bytes of the requests of a load: no run of long requests takes seconds.
_AREA, _BYTES = 1 << 28, 1 << 28
#: Requests of a load at least, and at least so many times its depth; longer ones than this are as many fewer.
_LEAST, _DEPTHS, _LONG = 64, 8, 16 * KIB
#: Seconds between two times at which a fit keeps what it has simulated.
_SAVED_EVERY = 5.0
#: Requests of a steady state are so many times as many, and write as many pages as there are at least, up to a number: blocks fill
#: unevenly, and a drive wanders.
_STEADY, _MOST = 6, 1 << 19


def simulated_figures(preset: Preset, figures: Sequence[DriveFigure], seed: int, requests: int) -> Floats:
    """Figures as a drive shows them, of about `requests` requests of a load; those of a steady state program all flash pages besides."""
    results = dict[DriveLoad, dict[str, float]]()
    for together in _together({each.load: None for each in figures}):
        results |= results_of(preset, together, seed, requests)
    return np.array([results[each.load][each.name] for each in figures])


class FigureRuns:
    """Figures of the drives that a fit tries: what was simulated is kept, so that a fit that was interrupted goes on where it stopped.

    Parameters
    ----------
    origin
        What the fit depends on (JSON-ready): it names the kept results.
    expected
        Requests that the fit is expected to simulate, a figure at a time, for its progress.
    """

    def __init__(self, origin: Mapping[str, Any], expected: float, progress: Progress | None) -> None:
        self._name = kept.identity(origin, __name__)
        self._results: dict[str, list[float]] = kept.recall(self._name) or {}
        self._expected, self._done, self._progress, self._saved = expected, 0.0, progress, time.monotonic()
        self._message = ""

    def __call__(self, flash: SsdParameters, figures: Sequence[DriveFigure], seed: int, requests: int) -> Floats:
        """`simulated_figures` of a drive."""
        text = repr((flash, [(each.load, each.name) for each in figures], seed, requests))
        key = sha256(text.encode()).hexdigest()[:32]
        if key not in self._results:
            self._results[key] = simulated_figures(Preset("fit", "ssd", "", flash, {}), figures, seed, requests).tolist()
            if time.monotonic() > self._saved + _SAVED_EVERY:
                self.save()
        self._done += requests * len(figures)
        if self._progress:
            self._progress(min(self._done, self._expected), self._expected, self._message)
        return np.array(self._results[key])

    def tell(self, message: str) -> None:
        """Take a message for the progress: the purpose of the next runs."""
        self._message = message

    def save(self) -> None:
        """Keep what was simulated."""
        kept.keep(self._results, self._name)
        self._saved = time.monotonic()


def _together(loads: Iterable[DriveLoad]) -> Iterable[list[DriveLoad]]:
    """Loads that leave a drive as they find it, and so can follow one another on one drive: reads, and those of a steady state.

    Reads and writes of a mixed load are of one run.
    """
    groups = dict[Any, list[DriveLoad]]()
    for load in loads:
        key: Any = replace(load, operation=READ) if load.reads else ("read", load.used) if load.operation == READ else load
        key = ("steady", load.used) if load.state == "steady" else key
        groups.setdefault(key, []).append(load)
    return groups.values()


def results_of(preset: Preset, loads: Sequence[DriveLoad], seed: int, requests: int) -> dict[DriveLoad, dict[str, float]]:
    """All figures of one drive under loads, one after the other, by load and name."""
    flash, first = preset.flash, loads[0]
    assert flash is not None
    capacity = int(flash.capacity * first.used) // flash.unit_size * flash.unit_size
    part = replace(preset, parameters=replace(flash, capacity=capacity))
    if flash.logical_pages > _WHOLE:
        if first.state != "steady":  # no garbage is collected: a part of a drive with more spare flash is smaller, and as fast
            part = replace(preset, parameters=replace(flash, capacity=capacity // 2 // flash.unit_size * flash.unit_size))
        part = part_in_use(part)
    assert part.flash is not None
    flash, device, random = part.flash, Device(part), generator(seed, "figures", str(first))
    if first.state == "steady":
        how = parse_state("steady", part, seed)
        device.precondition(how if how.occupancy is None or flash.logical_pages > _WHOLE else replace(how, longest=0))
        warm_up = random.integers(0, flash.logical_pages, min(flash.usable_pages, _MOST) // 3) * flash.unit_size
        device.serve(make_requests(WRITE, warm_up, flash.unit_size), settle=False)
    elif first.operation == READ or first.state == "sequential":
        # where reads do not go, nothing needs to be held, but for the rest of a group, and but for a map on flash, which tells of all
        reads_alone = first.operation == READ and not first.reads
        fewest = _AREA + flash.group * flash.unit_size if reads_alone and not flash.map_cache else device.capacity
        device.load(0, min(device.capacity, fewest))
    results = dict[DriveLoad, dict[str, float]]()
    for load in loads:
        results |= {} if load in results else _results(device, flash, load, random, requests)
    return results


def _results(
    device: Device, flash: SsdParameters, load: DriveLoad, random: np.random.Generator, requests: int
) -> dict[DriveLoad, dict[str, float]]:
    """Figures of a load by name, and of the other operation if it is mixed."""
    writes = load.operation == WRITE or load.reads is not None
    count = max(_LEAST, _DEPTHS * load.depth, min(requests, min(requests * _LONG, _BYTES) // load.size))
    if writes and load.state == "steady":
        count = max(min(flash.usable_pages, _MOST) * flash.unit_size // max(load.size, flash.unit_size), _STEADY * count)
    elif writes:
        free = flash.usable_pages - (flash.logical_pages if load.state == "sequential" else 0)
        buffered = 8 * flash.whole_page_buffer // load.size
        count = max(_DEPTHS, min(max(count, buffered), free * flash.unit_size // max(load.size, flash.unit_size) // 2))
    before = device.statistics()
    completions = _serve(device, load, count, random)
    after = device.statistics()
    growth = {name: after[name] - before[name] for name in ("flash_programs", "host_writes", "buffer_overwrites")}
    latencies, ends = response_times(completions)[count // 4 :], np.sort(completions["completed"])
    first, last = count // 4, 3 * count // 4
    every_rate = (last - first) * SECONDS / max(1, int(ends[last] - ends[first]))
    written = growth["host_writes"] - growth["buffer_overwrites"]
    amplification = float(growth["flash_programs"] / written) if written else np.nan
    results = dict[DriveLoad, dict[str, float]]()
    for operation in (READ, WRITE) if load.reads else (load.operation,):
        is_own = completions["tag"][count // 4 :] == operation if load.reads else np.full(len(latencies), True)
        own, rate = latencies[is_own], every_rate * is_own.mean()
        figures = {"iops": float(rate), "bandwidth": float(rate * load.size), "mean": float(own.mean())}
        figures |= dict(zip(PERCENTILES, np.percentile(own, list(PERCENTILES.values())).tolist(), strict=True))
        results[replace(load, operation=operation)] = figures | {"write_amplification": amplification}
    return results


def _serve(device: Device, load: DriveLoad, count: int, random: np.random.Generator) -> Completions:
    """Serve requests of a load: so many strands of one after the other, or at drawn times; tags of a mixed load are its operations."""
    most = device.capacity if load.reads or (load.state == "steady" and load.operation == WRITE) else _AREA
    area = max(1, min(device.capacity, most) // load.size)
    places = random.integers(0, area, count) if load.random else np.arange(count) % area
    requests: Requests = make_requests(load.operation, places * load.size, load.size)
    if load.reads:
        is_read = random.permutation(count) < round(load.reads * count)
        if not load.random:  # reads and writes go on from where the last one of their own ended, as fio's rw=rw
            places = np.where(is_read, np.cumsum(is_read), np.cumsum(~is_read)) - 1
            requests["offset"] = places % area * load.size
        requests["operation"] = requests["tag"] = np.where(is_read, READ, WRITE)
    if load.rate:
        gaps = random.exponential(SECONDS / load.rate, count)
        return device.serve(requests, device.now + np.cumsum(gaps).astype(np.int64), settle=False)
    requests["dependency"] = np.maximum(np.arange(count) - load.depth, -1)
    return device.serve(requests, settle=False)

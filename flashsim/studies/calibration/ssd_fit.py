"""Fits a flash drive: the simulator is run in the loop until its cells take as long as the measured ones.

What can be told from outside are five things of the model (`flashsim.ssd.specification`): the controller's time a command, which limits
requests a second; the time that a page holds its die; how many dies work side by side; the rate of the link; and how many commands the
drive takes at once.  Reads tell all five, writes tell their own controller time, die time and link rate.  What a die does while it is held,
cells or channel, cannot be told apart with one die a channel, and is given to the cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flashsim.core.parameters import build
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE, Integers, Requests
from flashsim.core.units import GB, GIB, KIB, MB, MIB, MILLISECONDS, SECONDS
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.ssd.parameters import SsdParameters
from flashsim.studies.calibration.fitting import Estimate, Floats, Model, Solution, estimates, solve
from flashsim.studies.calibration.measure import Measured, samples, undisturbed

#: Calls of a cell that are simulated, at most.
_MOST_CALLS = 200
#: Between calls: so many times as long as a call, or any request alone, took on the measured device, and a little.
_GAP = 20
#: Bytes of a flash page, and of a page of the calls' count.
PAGE = 4 * KIB
#: Of the simulated drive, while fitting: enough for random places, little enough to be loaded anew for each trial.
_AREA = 32 * MIB
_PAGES_PER_BLOCK = 64
#: Flash besides twice the capacity.
_FREE = GIB
#: The same of the drives that are tried: for reads, and for all that is written to one.
_READ_ONLY, _WRITTEN = 0, GIB // 2
#: A channel so fast that the time of a page on it is small: the die's time is then that of its cells.
_CHANNEL = 10 * GB
_TRANSFER = -(-PAGE * SECONDS // _CHANNEL)
_DIES = (1, 2, 4, 8, 16, 32, 64)
_DEPTHS = (256, 1, 2, 4, 8, 16, 32)
#: So many dies hardly meet; numbers that are tried between half and double of what fits best.
_MANY, _NEIGHBOURS = 32, 9
#: Controller and die between 50 ns and a second, a link between 100 KB/s and 200 GB/s.
_BOUNDS = (np.array([50.0, 2.0 * _TRANSFER, 0.1 * MB]), np.array([1e9, 1e9, 200.0 * GB]))
#: Pages of a cell that a trial simulates, and steps of a trial: few to choose the structure, more once it is chosen.
_COARSE, _FINE = (256, 4), (8192, 8)
#: Structures whose cost is within this factor of the best one's fit as well; those within the second are judged by writes too.
_AS_WELL, _COMPARED = 1.25, 2.5
#: Structures that show the cells to this mean square, 1 %, are as good as any.
_EXACT = 1e-4


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
        count = int(np.clip(pages * PAGE / (one.cell.batch_bytes * one.cell.chain), 1, _MOST_CALLS))
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


@dataclass(frozen=True)
class Structure:
    """What is counted rather than timed: dies side by side, and commands that the drive takes at once."""

    dies: int
    queue_depth: int


@dataclass(frozen=True)
class SsdFit:
    """A fitted drive.

    Parameters
    ----------
    parameters
        Of the whole device.
    alternatives
        Other structures that fit as well.
    """

    parameters: SsdParameters
    structure: Structure
    alternatives: list[Structure]
    estimates: list[Estimate]


def drive(structure: Structure, reads: Floats, writes: Floats, capacity: int, free: int = _FREE) -> SsdParameters:
    """A drive with controller time (ns), die time (ns) and link rate (bytes a second) of reads and writes.

    There is so much flash, `free` bytes besides twice the capacity, that garbage collection does not begin soon: nothing is known of it.
    """
    blocks = -(-(2 * capacity + free) // (PAGE * _PAGES_PER_BLOCK * structure.dies)) + 8
    (read_overhead, read, read_rate), (write_overhead, program, write_rate) = np.rint(reads).astype(int), np.rint(writes).astype(int)
    return build(
        SsdParameters,
        {
            "capacity": capacity,
            "page_size": PAGE,
            "pages_per_block": _PAGES_PER_BLOCK,
            "blocks_per_plane": blocks,
            "planes_per_die": 1,
            "dies_per_package": 1,
            "packages_per_channel": 1,
            "channels": structure.dies,
            "read": max(1, int(read) - _TRANSFER),
            "program": max(1, int(program) - _TRANSFER),
            "erase": MILLISECONDS,
            "channel_rate": _CHANNEL,
            "link_read_rate": int(read_rate),
            "link_write_rate": int(write_rate),
            "read_latency": max(1, int(read) - _TRANSFER) + _TRANSFER + max(1, int(read_overhead)),
            "write_latency": max(1, int(program) - _TRANSFER) + _TRANSFER + max(1, int(write_overhead)),
            "queue_depth": structure.queue_depth,
            "gc_reserve": 3,
        },
    )


def fit(measured: Sequence[Measured], capacity: int, seed: int, progress: Progress | None = None) -> SsdFit:
    """Fit a drive to measured cells, those held out excepted.

    Parameters
    ----------
    measured
        Reads at least.
    capacity
        Of the preset, bytes; whole flash pages.
    """
    seen = [one for one in measured if not one.cell.held_out]
    reads = [one for one in seen if one.cell.operation == READ]
    writes = [one for one in seen if one.cell.operation == WRITE]
    area = _AREA
    tried = _structures(reads, area, seed, progress)
    as_well = _within(tried, _AS_WELL)
    structure = _with_writes(_within(tried, _COMPARED), writes, area, seed) if writes else next(iter(as_well))
    start = tried[structure].values
    pages, steps = _FINE
    model = _read_model(structure, workload(reads, area, seed, pages))
    best = solve(model, _times(reads), [[start]], *_BOUNDS, steps)
    told = estimates(("read overhead", "read die time", "link read rate"), model, best, reads, seed)
    found = best.values
    if writes:
        model = _write_model(structure, best.values, workload(writes, area, seed, pages))
        solution = solve(model, _times(writes), _starts(writes, structure.dies), *_BOUNDS, steps)
        told += estimates(("write overhead", "write die time", "link write rate"), model, solution, writes, seed)
        found = solution.values
    return SsdFit(drive(structure, best.values, found, capacity), structure, [one for one in as_well if one != structure], told)


def _times(cells: Sequence[Measured]) -> Floats:
    return np.array([one.time for one in cells])


def _read_model(structure: Structure, work: Workload) -> Model:
    return lambda values: simulated(_fresh(drive(structure, values, values, _AREA, _READ_ONLY)), work)


def _write_model(structure: Structure, read: Floats, work: Workload) -> Model:
    return lambda values: simulated(_fresh(drive(structure, read, values, _AREA, _WRITTEN)), work)


def _fresh(parameters: SsdParameters) -> Device:
    device = Device(Preset("fit", "ssd", "", parameters, {}))
    device.load(0, parameters.capacity)
    return device


def _starts(cells: Sequence[Measured], dies: int) -> list[list[Floats]]:
    """Where to begin: as if the link had the best bandwidth, and as if the dies together had it and the link more.

    The controller takes the time of a request when there are many, or less, and a die what a single request leaves.
    """
    rate = max(one.bandwidth for one in cells)
    single = min(one.time for one in cells if one.cell.depth == 1)
    each = min(one.time / one.cell.depth for one in cells)
    die = min(0.95 * single, dies * PAGE * SECONDS / rate)
    by_link, by_dies = [], []
    for overhead in (each, each / 2, single / 50):
        alone = max(single - overhead - PAGE * SECONDS / rate, single / 10, 3.0 * _TRANSFER)
        by_link.append(np.array([overhead, alone, rate]))
    for overhead in (each, each / 2, single - die):
        by_dies.append(np.array([overhead, max(die, 3.0 * _TRANSFER), 2 * rate]))
    return [by_link, by_dies]


def _structures(reads: Sequence[Measured], area: int, seed: int, progress: Progress | None) -> dict[Structure, Solution]:
    tried: dict[Structure, Solution] = {}
    pages, steps = _COARSE
    work = workload(reads, area, seed, pages)

    def trial(structure: Structure, starts: Sequence[Sequence[Floats]]) -> None:
        if structure not in tried:
            if progress:
                progress(len(tried), len(_DIES) + len(_DEPTHS) + 6, f"fitting {structure.dies} dies")
            tried[structure] = solve(_read_model(structure, work), _times(reads), starts, *_BOUNDS, steps)

    def best() -> Structure:
        return next(iter(_within(tried, _AS_WELL)))

    for dies in _DIES:
        trial(Structure(dies, _DEPTHS[0]), _starts(reads, dies))
    unlimited = best()
    for depth in _DEPTHS[1:]:
        if tried[unlimited].cost > _EXACT:
            for dies in {unlimited.dies, _MANY}:
                trial(Structure(dies, depth), _starts(reads, dies))
    if best().queue_depth != _DEPTHS[0]:
        for dies in _DIES:
            trial(Structure(dies, best().queue_depth), _starts(reads, dies))
    chosen = best()
    for dies in _near(chosen.dies):
        trial(Structure(dies, chosen.queue_depth), [[tried[chosen].values]])
    return tried


def _within(tried: dict[Structure, Solution], factor: float) -> dict[Structure, Solution]:
    """Those that fit as well as the best but for a factor: first the ones whose queue limits least, and of these the one that fits best."""
    bound = factor * min(one.cost for one in tried.values()) + _EXACT
    return {
        structure: one
        for structure, one in sorted(tried.items(), key=lambda item: (-item[0].queue_depth, item[1].cost))
        if one.cost <= bound
    }


def _with_writes(found: dict[Structure, Solution], writes: Sequence[Measured], area: int, seed: int) -> Structure:
    """Of structures that show reads not much worse than the best, the one that shows reads and writes together best."""
    pages, steps = _COARSE
    work = workload(writes, area, seed, pages)
    costs: dict[Structure, float] = {}

    def best() -> Structure:
        return min(costs, key=lambda one: costs[one])

    def trial(structure: Structure) -> None:
        if structure in found and structure not in costs:
            model, starts = _write_model(structure, found[structure].values, work), _starts(writes, structure.dies)
            costs[structure] = found[structure].cost + solve(model, _times(writes), starts, *_BOUNDS, steps).cost

    trial(next(iter(found)))
    for one in found:
        if one.dies in _DIES:
            trial(one)
    chosen = best()
    for dies in _near(chosen.dies):
        trial(Structure(dies, chosen.queue_depth))
    return best()


def _near(dies: int) -> list[int]:
    return sorted(set(np.rint(np.geomspace(dies / 2, 2 * dies, _NEIGHBOURS)).astype(int).tolist()) - {0, dies})

"""Fits a flash drive: the simulator is run in the loop until its cells take as long as the measured ones.

What shows outside are five things of the model (`flashsim.ssd.specification`): the controller's time a command, which limits
requests a second; the time that a page holds its die; how many dies work side by side; the rate of the link; and how many commands the
drive takes at once.  Reads tell all five, writes tell their own controller time, die time and link rate.  What a die does while it is held,
cells or channel, is unknown with one die a channel, and is given to the cells.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from flashsim.apps.calibration.cells import CellTimes, Fit, Floats, Model, Solution, estimates, samples, solve, undisturbed_time
from flashsim.core.parameters import build
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE, Requests
from flashsim.core.units import GB, GIB, KIB, MB, MIB, MILLISECONDS, SECONDS
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.ssd.parameters import SsdParameters

#: Calls of a cell that are simulated, at most.
_MOST_CALLS = 200
#: Between calls: so many times as long as a call, or any request alone, took on the measured device, and a little.
_GAP = 20
#: Bytes of a flash page, and of a page of the calls' count.
PAGE = 4 * KIB
#: Bytes of the simulated drive while fitting: enough for random places, little enough to be loaded anew for each trial.
_AREA = 32 * MIB
_PAGES_PER_BLOCK = 64
#: Flash besides twice the capacity.
_FREE = GIB
#: The same of the drives that are tried: for reads, and for all that is written to one.
_READ_ONLY, _WRITTEN = 0, GIB // 2
#: A channel so fast that the time of a page on it is small: the die's time is then that of its cells.
_CHANNEL = 10 * GB
_TRANSFER = -(-PAGE * SECONDS // _CHANNEL)
#: Parameters that do not show outside; neither does the number of blocks.
_ASSUMED = {
    "page_size": PAGE, "pages_per_block": _PAGES_PER_BLOCK, "planes_per_die": 1, "dies_per_package": 1, "packages_per_channel": 1,
    "erase": MILLISECONDS, "channel_rate": _CHANNEL, "gc_reserve": 3,
}  # fmt: skip
_DIES = (1, 2, 4, 8, 16, 32, 64)
_DEPTHS = (256, 1, 2, 4, 8, 16, 32)
#: A number of dies at which requests hardly meet; trials between half and double of the best number.
_MANY, _NEIGHBOURS = 32, 9
#: Controller and die between 50 ns and a second, a link between 100 KB/s and 200 GB/s.
_BOUNDS = (np.array([50.0, 2.0 * _TRANSFER, 0.1 * MB]), np.array([1e9, 1e9, 200.0 * GB]))
#: Pages of a cell that a trial simulates, and steps of a trial: few to choose the structure, more once it is chosen.
_COARSE, _FINE = (256, 4), (8192, 8)
#: Structures whose cost is within this factor of the best one's fit as well; those within the second are judged by writes too.
_AS_WELL, _COMPARED = 1.25, 2.5
#: Structures that show the cells to this mean square, 1 %, are as good as any.
_EXACT = 1e-4


def simulator(cells: Sequence[CellTimes], area: int, seed: int, pages: int) -> Callable[[Device], Floats]:
    """A function from a drive to the times (ns) of cells on it: of as many of their first calls, as measured, as move about `pages` pages.

    A page is 4 KiB; one call of each cell at least is made, all within the first `area` bytes.
    """
    requests: list[Requests] = []
    arrival: list[int] = []
    calls: list[list[slice]] = []
    now = first = 0
    alone = max((one.time for one in cells if one.cell.depth == 1), default=0.0)  # a sequential call may begin with a random access
    for one in cells:
        count = int(np.clip(pages * PAGE / (one.cell.batch_bytes * one.cell.chain), 1, _MOST_CALLS))
        calls.append([])
        for number in range(count):
            call = one.cell.requests(area, seed, number // 8, number % 8)
            call["dependency"] += np.where(call["dependency"] >= 0, first, 0)
            calls[-1].append(slice(first, first + len(call)))
            requests.append(call)
            arrival += [now] * len(call)
            first += len(call)
            now += int(_GAP * max(one.time * one.cell.chain, alone)) + MILLISECONDS
    together, arrivals = np.concatenate(requests), np.array(arrival)

    def times(device: Device) -> Floats:
        completions = device.serve(together, device.now + arrivals)
        parts = [np.concatenate([samples(one.cell, completions[call]) for call in own]) for one, own in zip(cells, calls, strict=True)]
        return np.array([undisturbed_time(each) for each in parts])

    return times


@dataclass(frozen=True)
class Structure:
    """Numbers of the drive that are counted rather than timed: dies side by side, and commands that it takes at once."""

    dies: int
    queue_depth: int


def drive(structure: Structure, reads: Floats, writes: Floats, capacity: int, free: int = _FREE) -> SsdParameters:
    """A drive with controller time (ns), die time (ns) and link rate (bytes a second) of reads and writes.

    There is so much flash, `free` bytes besides twice the capacity, that garbage collection does not begin soon: nothing is known of it.
    """
    blocks = -(-(2 * capacity + free) // (PAGE * _PAGES_PER_BLOCK * structure.dies)) + 8
    (read_overhead, read_die, read_rate), (write_overhead, write_die, write_rate) = np.rint([reads, writes]).astype(int)
    read, program = (max(1, int(die) - _TRANSFER) for die in (read_die, write_die))
    shown = {
        "capacity": capacity,
        "blocks_per_plane": blocks,
        "channels": structure.dies,
        "read": read,
        "program": program,
        "link_read_rate": int(read_rate),
        "link_write_rate": int(write_rate),
        "read_latency": read + _TRANSFER + max(1, int(read_overhead)),
        "write_latency": program + _TRANSFER + max(1, int(write_overhead)),
        "queue_depth": structure.queue_depth,
    }
    return build(SsdParameters, _ASSUMED | shown)


def fit(cells: Sequence[CellTimes], capacity: int, seed: int, progress: Progress | None = None) -> Fit:
    """Fit a drive of a capacity (bytes, whole flash pages) to measured cells, reads at least, those held out excepted."""
    fit_cells = [one for one in cells if not one.cell.held_out]
    reads = [one for one in fit_cells if one.cell.operation == READ]
    writes = [one for one in fit_cells if one.cell.operation == WRITE]
    solutions = _structures(reads, seed, progress)
    as_well = _within(solutions, _AS_WELL)
    structure = _with_writes(_within(solutions, _COMPARED), writes, seed) if writes else next(iter(as_well))
    start = solutions[structure].values
    pages, steps = _FINE
    model = _model(structure, simulator(reads, _AREA, seed, pages))
    best = solve(model, _times(reads), [[start]], *_BOUNDS, steps)
    parameters = estimates(("read overhead", "read die time", "link read rate"), model, best, *_times_and_draws(reads, seed))
    write_values = best.values
    if writes:
        model = _model(structure, simulator(writes, _AREA, seed, pages), best.values)
        solution = solve(model, _times(writes), _starts(writes, structure.dies), *_BOUNDS, steps)
        parameters += estimates(("write overhead", "write die time", "link write rate"), model, solution, *_times_and_draws(writes, seed))
        write_values = solution.values
    findings = [f"{structure.dies} dies side by side, {structure.queue_depth} commands at once"]
    if as_well.keys() - {structure}:
        dies, depths = zip(*((one.dies, one.queue_depth) for one in (structure, *as_well)), strict=True)
        findings.append(f"reads alone fit about as well with {min(dies)} to {max(dies)} dies and {min(depths)} to {max(depths)} commands")
    measured = {one.name: f"measured ({one})" for one in parameters}
    sources = dict.fromkeys([*_ASSUMED, "blocks_per_plane"], "assumed: cannot be told from outside in a few minutes")
    sources["capacity"] = "measured: what was used"
    sources["channels"] = sources["queue_depth"] = "measured: best fit of bandwidth over depth"
    sources |= {"read": measured["read die time"], "link_read_rate": measured["link read rate"], "read_latency": measured["read overhead"]}
    for name, estimate in (("program", "write die time"), ("link_write_rate", "link write rate"), ("write_latency", "write overhead")):
        sources[name] = measured.get(estimate, "assumed: as for reads; writes were not measured")
    return Fit(drive(structure, best.values, write_values, capacity), sources, parameters, findings)


def _times(cells: Sequence[CellTimes]) -> Floats:
    return np.array([one.time for one in cells])


def _times_and_draws(cells: Sequence[CellTimes], seed: int) -> tuple[Floats, Floats]:
    """Times of cells, and logarithms of how far they are off when visits are drawn anew."""
    return _times(cells), np.stack([np.log(one.resample(seed) / one.time) for one in cells])


def _model(structure: Structure, times: Callable[[Device], Floats], reads: Floats | None = None) -> Model:
    """The cells' times over the parameters of reads, or, where these are given, over those of writes."""

    def model(values: Floats) -> Floats:
        first, free = (values, _READ_ONLY) if reads is None else (reads, _WRITTEN)
        device = Device(Preset("fit", "ssd", "", drive(structure, first, values, _AREA, free), {}))
        device.load(0, _AREA)
        return times(device)

    return model


def _starts(cells: Sequence[CellTimes], dies: int) -> list[list[Floats]]:
    """Starting points: as if the link had the best bandwidth, and as if the dies together had it and the link more.

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


def _structures(reads: Sequence[CellTimes], seed: int, progress: Progress | None) -> dict[Structure, Solution]:
    solutions: dict[Structure, Solution] = {}
    pages, steps = _COARSE
    times = simulator(reads, _AREA, seed, pages)

    def trial(structure: Structure, starts: Sequence[Sequence[Floats]]) -> None:
        if structure not in solutions:
            if progress:
                usual = len(_DIES) + len(_DEPTHS) + 6  # more where several depths of the queue fit
                progress(len(solutions), max(usual, len(solutions) + 1), f"fitting {structure.dies} dies")
            solutions[structure] = solve(_model(structure, times), _times(reads), starts, *_BOUNDS, steps)

    def best() -> Structure:
        return next(iter(_within(solutions, _AS_WELL)))

    for dies in _DIES:
        trial(Structure(dies, _DEPTHS[0]), _starts(reads, dies))
    deepest = best()
    for depth in _DEPTHS[1:]:
        if solutions[deepest].cost > _EXACT:
            for dies in {deepest.dies, _MANY}:
                trial(Structure(dies, depth), _starts(reads, dies))
    if best().queue_depth != _DEPTHS[0]:
        for dies in _DIES:
            trial(Structure(dies, best().queue_depth), _starts(reads, dies))
    top = best()
    for dies in _near(top.dies):
        trial(Structure(dies, top.queue_depth), [[solutions[top].values]])
    return solutions


def _within(solutions: dict[Structure, Solution], factor: float) -> dict[Structure, Solution]:
    """Candidates within a factor of the best fit: first the ones whose queue limits least, and of these the one that fits best."""
    bound = factor * min(one.cost for one in solutions.values()) + _EXACT
    return {
        structure: one
        for structure, one in sorted(solutions.items(), key=lambda item: (-item[0].queue_depth, item[1].cost))
        if one.cost <= bound
    }


def _with_writes(solutions: dict[Structure, Solution], writes: Sequence[CellTimes], seed: int) -> Structure:
    """The structure that fits reads and writes together best, of those that fit reads not much worse than the best."""
    pages, steps = _COARSE
    times = simulator(writes, _AREA, seed, pages)
    costs: dict[Structure, float] = {}

    def best() -> Structure:
        return min(costs, key=lambda one: costs[one])

    def trial(structure: Structure) -> None:
        if structure in solutions and structure not in costs:
            model, starts = _model(structure, times, solutions[structure].values), _starts(writes, structure.dies)
            costs[structure] = solutions[structure].cost + solve(model, _times(writes), starts, *_BOUNDS, steps).cost

    trial(next(iter(solutions)))
    for one in solutions:
        if one.dies in _DIES:
            trial(one)
    top = best()
    for dies in _near(top.dies):
        trial(Structure(dies, top.queue_depth))
    return best()


def _near(dies: int) -> list[int]:
    return sorted(set(np.rint(np.geomspace(dies / 2, 2 * dies, _NEIGHBOURS)).astype(int).tolist()) - {0, dies})

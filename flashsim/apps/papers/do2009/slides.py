"""The slides of the talk: ratios of CPU to I/O time (pages 16 and 17), and what a write costs a drive that maps blocks (29 and 30).

Beside the ratios stand the CPU times that table 3 implies.  With I/O seconds h on the HDD, an I/O speedup a and a speedup b of the whole
join, the SSD's I/O takes h / a, and equal CPU seconds c on both machines follow from (h + c) / (h / a + c) = b.  The counted work of the
joins with 200 and 500 MB, and their commands and bytes, leave a linear program: prices of at least 0 that minimise the largest relative
error of the priced times.  Whatever is fitted, and to what, no list of prices does better.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from flashsim.apps.papers.base import Cell, Claim, Entry, Exhibit, Judged, Section, Shown, Table, load
from flashsim.apps.papers.do2009.buffer_pools import JoinRuns
from flashsim.apps.papers.do2009.cpu_fit import KINDS, RUNS, Floats, Run, committed_work
from flashsim.apps.papers.do2009.runs import DEVICES, GRID, JOINS, LABELS, LONGEST_FIRST, MEMORY, Setup
from flashsim.core.parameters import build
from flashsim.core.request import WRITE, Requests, make_requests
from flashsim.core.units import SECONDS
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.experiments.judging.cells import number
from flashsim.ssd.parameters import SsdParameters

#: The joins and buffer pools of the ratios.
_SETUPS = [Setup(join, memory) for memory in (200, 500) for join in JOINS]
#: A drive of one plane whose erase blocks are 256 KB, 64 pages of 4 KB, all but a few of them full (slides, page 29).
_PAGE, _PER_BLOCK, _BLOCKS = 4096, 64, 64


def _ratios(runs: JoinRuns, machine: str) -> list[float | None]:
    """CPU over I/O seconds of the four joins, by buffer pool."""
    return [runs.ratio((setup, machine, what) for what in ("cpu", "io")) for setup in _SETUPS]


def _rank_ratios(claim: Claim, runs: JoinRuns) -> list[Cell]:
    """The ratios, smallest beside smallest, since the transcript of the slides scrambles their order."""
    every = []
    for machine, published in claim.published.items():
        ours = _ratios(runs, machine)
        ranked = ours if None in ours else sorted(filter(None, ours))
        for place, (value, own) in enumerate(zip(sorted(published), ranked, strict=True), 1):
            every.append(number(f"{machine}, number {place}", value, own, claim.limits["each"], row=machine, place=place))
    return every


def _erase_cells(claim: Claim, runs: JoinRuns) -> list[Cell]:
    """The counts of the examples, made on the spot; moves that keep a block in order are counted beside programs for the host."""
    return [
        number(f"{example}: {kind}", published, count, 0)
        for name, counts in erase_counts().items()
        for example, _, kinds in [name.partition(": ")]
        for kind, published, count in zip(kinds.split(", "), claim.published[name], counts, strict=True)
    ]


def _drive(is_full: bool) -> Device:
    values = {
        "capacity": _BLOCKS * _PER_BLOCK * _PAGE, "page_size": _PAGE, "pages_per_block": _PER_BLOCK, "blocks_per_plane": _BLOCKS + 3,
        "planes_per_die": 1, "dies_per_package": 1, "packages_per_channel": 1, "channels": 1, "read": "20us", "program": "200us",
        "erase": "1.5ms", "channel_rate": "40MB/s", "link_read_rate": "120MB/s", "link_write_rate": "80MB/s", "read_latency": "0.35ms",
        "write_latency": "0.35ms", "queue_depth": 1, "ftl": "block", "gc": "none", "allocation": "static", "gc_reserve": 2,
    }  # fmt: skip
    preset = Preset("slides", "ssd", "the drive of the slides' examples", build(SsdParameters, values), sources={})
    device = Device(preset, maximum_command=_PER_BLOCK * _PAGE)
    if is_full:
        device.load(0, device.capacity)
    return device


def _counts(device: Device, requests: Requests) -> list[int]:
    """Erases, moves and programs for the host that requests take, one after the other."""
    before = device.statistics()
    device.serve(requests)
    after = device.statistics()
    return [int(after[name] - before[name]) for name in ("flash_erases", "programs_merge", "programs_host")]


def _pages(*numbers: int) -> Requests:
    return make_requests(WRITE, np.array(numbers, np.int64) * _PAGE, _PAGE, serial=True)


def erase_counts() -> dict[str, list[int]]:
    """Costs of the three examples of pages 29 and 30, by the names of the published values."""
    whole = _counts(_drive(is_full=True), make_requests(WRITE, 5 * _PER_BLOCK * _PAGE, _PER_BLOCK * _PAGE))
    worst = _counts(_drive(is_full=True), _pages(*(block * _PER_BLOCK + _PER_BLOCK - 1 for block in range(_BLOCKS))))
    device = _drive(is_full=False)
    steps = np.array([_counts(device, _pages(page)) for page in (3, 100, 99, 1, 2)])
    first_block = steps[[0, 3, 4]].sum(axis=0).tolist()  # pages 3, 1 and 2: 99 and 100 lie in another block
    names = ("256 KB in one write: erases, programs", "256 KB in 64 writes, at worst: erases, programs")
    return dict(zip(names, (whole[::2], worst[::2]), strict=True)) | {"3, 100, 99, 1, 2: erases, moves, programs": first_block}


def _sections(runs: JoinRuns) -> list[Section]:
    rows = [[setup.join, setup.memory, *line] for setup, *line in zip(_SETUPS, *(_ratios(runs, name) for name in DEVICES), strict=True)]
    header = ["join", "MB", *(f"{machine}: CPU over I/O" for machine in DEVICES)]
    table = Table(header, rows, "slides", digits=2, runs=[runs.id(setup) for setup in _SETUPS])
    return [Section("CPU against I/O time (slides, pages 16 and 17)", "", [table])]


def implied_cpu(hdd_io: float, io_speedup: float, join_speedup: float) -> float:
    """CPU seconds that two speedups imply, given the I/O seconds on the slower device.

    Examples
    --------
    >>> implied_cpu(300, 2, 1.5)  # 300 s and 150 s of I/O: (300 + 150) / (150 + 150) = 1.5
    150.0
    """
    return (hdd_io - join_speedup * hdd_io / io_speedup) / (join_speedup - 1)


def implied_times(hdd_io: Mapping[Run, float]) -> dict[Run, tuple[float, float]]:
    """SSD's I/O and CPU seconds of each run that table 3 implies, from its I/O seconds on the HDD."""
    io, join = (load("do2009").claim(name).published for name in ("table3-io", "table3-join"))
    speedups = {run: [float(row[run[0]][MEMORY.index(run[1])]) for row in (io, join)] for run in hdd_io}
    return {run: (seconds / speedups[run][0], implied_cpu(seconds, *speedups[run])) for run, seconds in hdd_io.items()}


def _implied_sections(runs: JoinRuns) -> list[Section]:
    rows, totals = list[list[Entry]](), dict[Run, float]()
    for setup in GRID:
        run = join, memory = setup.join, setup.memory
        hdd, ssd = (runs.result(setup, machine) for machine in ("HDD", "SSD"))
        if hdd and ssd:
            ssd_io, cpu = implied_times({run: hdd.total.io})[run]
            totals[run] = ssd_io + cpu
            rows.append([LABELS[join], memory, cpu, hdd.total.cpu, ssd.total.cpu, totals[run], ssd.total.total, cpu / hdd.total.io])
    pairs = {memory: [totals.get((join, memory)) for join in ("grace-hash", "hybrid-hash")] for memory in MEMORY}
    ratios = [f"{grace / hybrid:.2f} at {memory} MB" for memory, (grace, hybrid) in pairs.items() if grace and hybrid]
    text = load("do2009").text("implied_cpu", ratios=", ".join(ratios))
    header = ["join", "MB", "CPU s implied", "ours, HDD", "ours, SSD", "SSD total s implied", "ours", "implied CPU over I/O, HDD"]
    return [Section("CPU times that table 3 implies", text, [Table(header, rows, "implied-cpu", digits=2)])]


@dataclass(frozen=True)
class ErrorBound:
    """The least largest relative error, the prices that have it, ns of each kind of work, and the seconds that they give each run."""

    error: float
    prices: dict[str, float]
    seconds: dict[Run, float]


def error_bound(seconds: Mapping[Run, float], scale: float = 1.0) -> ErrorBound:
    """The prices of user work and of the kernel's that come nearest to CPU seconds of runs at a scale."""
    counts = [committed_work()[0][run] for run in seconds]
    work: Floats = np.array([[one.get(kind, 0) for kind in KINDS] for one in counts]) * scale / SECONDS
    shares = work / np.array(list(seconds.values()))[:, None]
    least, ones = np.append(np.zeros(len(KINDS)), 1.0), np.ones((len(shares), 1))
    limits = np.vstack([np.hstack([shares, -ones]), np.hstack([-shares, -ones])])
    solution = linprog(least, A_ub=limits, b_ub=np.vstack([ones, -ones])[:, 0])
    *prices, error = np.asarray(solution.x).tolist()
    return ErrorBound(error, dict(zip(KINDS, prices, strict=True)), dict(zip(seconds, (work @ prices).tolist(), strict=True)))


def _error_bound_sections(runs: JoinRuns) -> list[Section]:
    io = {run: seconds for run in RUNS if (seconds := runs.seconds(Setup(*run), "HDD", "io")) is not None}
    if len(io) < len(RUNS):
        return []
    every = {run: cpu for run, (_, cpu) in implied_times(io).items()}
    without = {run: seconds for run, seconds in every.items() if run[0] != "grace-hash"}
    bounds = [error_bound(seconds, runs.settings.scale) for seconds in (every, without)]
    rows: list[list[Entry]] = [[LABELS[run[0]], run[1], every[run], *(one.seconds.get(run) for one in bounds)] for run in RUNS]
    text = load("do2009").text("cpu_bound", every=100 * bounds[0].error, without=100 * bounds[1].error)
    header = ["join", "MB", "CPU s implied", "nearest prices", "nearest without GH"]
    return [Section("Nearest prices of CPU work", text, [Table(header, rows, "cpu-bound", digits=1)])]


_JUDGES = {"slides-cpu-ratio": _rank_ratios, "slides-erase": _erase_cells}
EXHIBITS: Mapping[str, Exhibit] = {
    "implied_cpu": Shown(LONGEST_FIRST, _implied_sections, runs=JoinRuns),
    "cpu_bound": Shown([Setup(*run) for run in RUNS], _error_bound_sections, runs=JoinRuns),
    "slides": Judged({"slides-cpu-ratio": _SETUPS}, _sections, runs=JoinRuns, judges=_JUDGES),
}

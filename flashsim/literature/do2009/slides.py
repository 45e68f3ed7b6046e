"""The slides of the talk: ratios of CPU to I/O time (pages 16 and 17), and what a write costs a drive that maps blocks (29 and 30)."""

from collections.abc import Collection

import numpy as np

from flashsim.core.parameters import build
from flashsim.core.request import WRITE, Requests, make_requests
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.literature.base import Cell, Claim, Judgement, decided, judge_numbers, load
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import DEVICES, JOINS, Setup
from flashsim.ssd.parameters import SsdParameters
from flashsim.studies.presentation.plots import Beside, published_beside_ours
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

#: Buffer pools of the ratios.
_MEMORY = (200, 500)
#: A drive of one plane whose erase blocks are 256 KB, 64 pages of 4 KB, all but a few of them full (slides, page 29).
_PAGE, _PER_BLOCK, _BLOCKS = 4096, 64, 64


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """The joins whose ratios are shown; what a block map erases is counted on the spot."""
    return [Setup(join, memory).job(settings) for memory in _MEMORY for join in JOINS] if "slides-cpu-ratio" in claims else []


def judge(claim: Claim, results: Results) -> Judgement:
    if claim.id == "slides-erase":
        return _judge_erases(claim)
    rows = beside(claim, Runs(results))  # smallest with smallest: the transcript of the slides scrambles their order
    numbers = [(f"{machine}, number {place}", published, ours) for machine, row in rows.items() for place, published, ours in row.numbers()]
    return judge_numbers(claim, numbers)


def ratios(grid: Runs, machine: str) -> list[float | None]:
    """CPU over I/O seconds of the four joins, by buffer pool."""
    results = [grid.get(Setup(join, memory), machine) for memory in _MEMORY for join in JOINS]
    return [one.total.cpu / one.total.io if one else None for one in results]


def beside(claim: Claim, grid: Runs) -> dict[str, Beside]:
    """The published ratios and ours, each sorted, by machine; ours are left as they come if one of them is missing."""
    by_machine = {}
    for machine in DEVICES:
        ours = ratios(grid, machine)
        numbers = [ratio for ratio in ours if ratio is not None]
        published = sorted(map(float, claim.published[machine]))
        places = [str(place) for place in range(1, len(published) + 1)]
        by_machine[machine] = Beside(places, published, sorted(numbers) if len(numbers) == len(ours) else ours, claim.limits["each"])
    return by_machine


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


def counts(device: Device, requests: Requests) -> tuple[int, int, int]:
    """Erases, moves and programs for the host that requests take, one after the other."""
    names = ("flash_erases", "programs_merge", "programs_host")
    before = device.statistics()
    device.serve(requests)
    after = device.statistics()
    erases, moves, programs = (int(after[name] - before[name]) for name in names)
    return erases, moves, programs


def _pages(*numbers: int) -> Requests:
    return make_requests(WRITE, np.array(numbers, np.int64) * _PAGE, _PAGE, serial=True)


def erase_counts() -> dict[str, list[int]]:
    """Costs of the three examples of pages 29 and 30, by the names of the published values."""
    whole = counts(_drive(is_full=True), make_requests(WRITE, 5 * _PER_BLOCK * _PAGE, _PER_BLOCK * _PAGE))
    worst = counts(_drive(is_full=True), _pages(*(block * _PER_BLOCK + _PER_BLOCK - 1 for block in range(_BLOCKS))))
    device = _drive(is_full=False)
    steps = np.array([counts(device, _pages(page)) for page in (3, 100, 99, 1, 2)])
    first_block = steps[[0, 3, 4]].sum(axis=0)  # pages 3, 1 and 2: 99 and 100 lie in another block
    return {
        "256 KB in one write: erases, programs": [whole[0], whole[2]],
        "256 KB in 64 writes, at worst: erases, programs": [worst[0], worst[2]],
        "3, 100, 99, 1, 2: erases, moves, programs": [int(count) for count in first_block],
    }


def _judge_erases(claim: Claim) -> Judgement:
    ours = erase_counts()
    cells = [Cell(name, str(list(values)), str(ours[name]), ours[name] == list(values)) for name, values in claim.published.items()]
    agree = sum(bool(cell.inside) for cell in cells)
    note = "moves that keep a block in order are counted beside programs for the host; the last example counts pages 1 to 3"
    return Judgement(
        claim, decided(claim, agree == len(cells)), f"{len(cells)} examples", f"{agree} of {len(cells)} agree", cells, note, scaled=False
    )


def sections(results: Results) -> list[Section]:
    grid = Runs(results)
    setups = [Setup(join, memory) for memory in _MEMORY for join in JOINS]
    values = {machine: ratios(grid, machine) for machine in DEVICES}
    rows: list[list[Entry]] = [[setup.join, setup.memory, *line] for setup, *line in zip(setups, *values.values(), strict=True)]
    header = ["join", "MB", *(f"{machine}: CPU over I/O" for machine in DEVICES)]
    table = Table(header, rows, "slides", digits=2, runs=[grid.run(setup) for setup in setups])
    picture = published_beside_ours(beside(load("do2009").claim("slides-cpu-ratio"), grid), "place among the eight", "CPU over I/O time")
    text = "The slides' order is not known, so the eight ratios of a machine are compared smallest with smallest."
    return [Section("CPU against I/O time (slides, pages 16 and 17)", text, [table], {"slides": picture})]

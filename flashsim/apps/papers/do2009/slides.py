"""The slides of the talk: ratios of CPU to I/O time (pages 16 and 17), and what a write costs a drive that maps blocks (29 and 30)."""

import numpy as np

from flashsim.apps.papers.base import Cell, Claim, Judged, Section, Table
from flashsim.apps.papers.do2009.measured import Runs
from flashsim.apps.papers.do2009.runs import DEVICES, JOINS, Setup
from flashsim.core.parameters import build
from flashsim.core.request import WRITE, Requests, make_requests
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.ssd.parameters import SsdParameters
from flashsim.studies.judging.cells import number

#: The joins and buffer pools of the ratios.
_SETUPS = [Setup(join, memory) for memory in (200, 500) for join in JOINS]
#: A drive of one plane whose erase blocks are 256 KB, 64 pages of 4 KB, all but a few of them full (slides, page 29).
_PAGE, _PER_BLOCK, _BLOCKS = 4096, 64, 64


def _ratios(runs: Runs, machine: str) -> list[float | None]:
    """CPU over I/O seconds of the four joins, by buffer pool."""
    return [runs.ratio((setup, machine, what) for what in ("cpu", "io")) for setup in _SETUPS]


def _ranked(claim: Claim, runs: Runs) -> list[Cell]:
    """The ratios, smallest beside smallest, since the transcript of the slides scrambles their order."""
    every = []
    for machine, published in claim.published.items():
        ours = _ratios(runs, machine)
        ranked = ours if None in ours else sorted(filter(None, ours))
        for place, (value, own) in enumerate(zip(sorted(published), ranked, strict=True), 1):
            every.append(number(f"{machine}, number {place}", value, own, claim.limits["each"], row=machine, place=place))
    return every


def _erased(claim: Claim, runs: Runs) -> list[Cell]:
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


def _shown(runs: Runs) -> list[Section]:
    rows = [[setup.join, setup.memory, *line] for setup, *line in zip(_SETUPS, *(_ratios(runs, name) for name in DEVICES), strict=True)]
    header = ["join", "MB", *(f"{machine}: CPU over I/O" for machine in DEVICES)]
    table = Table(header, rows, "slides", digits=2, runs=[runs.id(setup) for setup in _SETUPS])
    return [Section("CPU against I/O time (slides, pages 16 and 17)", "", [table])]


_JUDGES = {"slides-cpu-ratio": _ranked, "slides-erase": _erased}
EXHIBITS = {"slides": Judged({"slides-cpu-ratio": _SETUPS}, _shown, runs=Runs, judges=_JUDGES)}

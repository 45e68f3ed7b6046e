"""How much each assumption on the drive's inside, its history and the file system moves the I/O speedups of table 3."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from statistics import median
from typing import Any

from experiments.papers.base import Claim, Section, load
from experiments.papers.do2009.runs import DEVICES, LABELS, Setup, laid_out, too_small
from experiments.papers.do2009.states import states
from experiments.presentation.tables import Entry, Table
from experiments.runs.jobs import Job, Results, Settings
from experiments.runs.joining import DriveInUse, simulate_join
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import SECONDS

TITLE = "How much each assumption matters"
#: The joins that write, and the buffer pools of the calibration columns.
_JOINS, _MEMORY = ("sort-merge", "grace-hash", "hybrid-hash"), (200, 500)
_PAGE_MAP = {"ftl": "page", "gc": "greedy", "log_blocks": 0}
#: Other values of the flash drive's parameters, and of what it held before.
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as assumed": ({}, {}),
    "a new drive": ({}, {"full": False, "overwrites": 0}),
    "no overwrites before": ({}, {"overwrites": 0}),
    "a volume that begins on a superblock": ({}, {"start": 0}),
    "4 log blocks a plane": ({"log_blocks": 4}, {}),
    "8 log blocks a plane": ({"log_blocks": 8}, {}),
    "32 log blocks a plane": ({"log_blocks": 32}, {}),
    "superblocks of 1 MiB": ({"pages_per_block": 32, "blocks_per_plane": 61_440}, {}),
    "superblocks of 4 MiB": ({"pages_per_block": 128, "blocks_per_plane": 15_360}, {}),
    "fully associative log blocks (fast)": ({"ftl": "fast"}, {}),
    "a page map, full in order": (_PAGE_MAP, {}),
    "a page map, new": (_PAGE_MAP, {"full": False, "overwrites": 0}),
}
#: Without a file system's metadata: its part, and what is left of the translation layer's.
_WITHOUT_METADATA = ("as assumed", "a page map, full in order")
_PLACEMENTS = {"ext3": tuple(VARIANTS), "packed": _WITHOUT_METADATA, "spread": _WITHOUT_METADATA}


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A pass each join, buffer pool and placement; all variants of the drive share it."""
    return [_job(settings, join, memory, placement) for placement in _PLACEMENTS for memory in _MEMORY for join in _JOINS]


def _job(settings: Settings, join: str, memory: int, placement: str) -> Job:
    label = f"{join}, {memory} MB, {placement}, other assumptions"
    arguments = {"join": join, "memory": memory, "placement": placement, "scale": settings.scale, "seed": settings.seed}
    return Job.of(f"{__name__}:io_seconds", label, **arguments)


def io_seconds(join: str, memory: int, placement: str, scale: float, seed: int) -> dict[str, float]:
    """I/O seconds of a join on the HDD and on each variant of the flash drive, JSON-ready; too small a pool leaves it empty."""
    files, setting = laid_out(Setup(join, memory), scale, seed)
    usual = {machine: found[0] for machine, found in states(DEVICES, 1, seed).items()}
    drives = {"HDD": usual["HDD"]} | {name: _varied(usual["SSD"], *VARIANTS[name]) for name in _PLACEMENTS[placement]}
    try:
        runs = simulate_join(replace(setting, placement=placement), files, list(drives.values())).runs
    except InvalidParameterError as problem:
        too_small(problem)
        return {}
    return {name: run.total().io_time / SECONDS for name, run in zip(drives, runs, strict=True)}


def _varied(drive: DriveInUse, parameters: dict[str, Any], history: dict[str, Any]) -> DriveInUse:
    return replace(drive, changes=parameters, **history)


def sections(results: Results) -> list[Section]:
    """Speedups of each variant, and how far they are from the published ones."""
    published = next(claim for claim in load("do2009").claims if claim.id == "table3-io")
    rows: list[list[Entry]] = []
    for placement, variants in _PLACEMENTS.items():
        for variant in variants:
            pairs = [_speedup(results, published, placement, variant, join, memory) for join in _JOINS for memory in _MEMORY]
            known = [pair for pair in pairs if pair is not None]
            if known:
                errors = [abs(ours / value - 1) for ours, value in known]
                rows.append([placement, variant, 100 * median(errors), 100 * max(errors), *(pair[0] if pair else None for pair in pairs)])
    header = [
        "placement",
        "assumption",
        "median error %",
        "worst %",
        *(f"{LABELS[join]} {memory} MB" for join in _JOINS for memory in _MEMORY),
    ]
    text = (
        "I/O speedups, SSD over HDD, of the joins that write, against table 3 at 200 and 500 MB, with one assumption changed at a time; "
        "packed is a file system without any metadata, spread one that also gives every temporary file a region of its own."
    )
    return [Section(TITLE, text, [Table(header, rows, "sensitivity", digits=2)])]


def _speedup(results: Results, claim: Claim, placement: str, variant: str, join: str, memory: int) -> tuple[float, float] | None:
    """Ours and the published one."""
    found = results.get(_job(results.settings, join, memory, placement), {})
    if variant not in found:
        return None
    return found["HDD"] / found[variant], float(claim.published[join][memory // 100 - 1])

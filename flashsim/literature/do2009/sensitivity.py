"""Sensitivity of the I/O speedups of table 3 to each assumption on the drive's inside, its history and the file system."""

from collections.abc import Collection
from statistics import median
from typing import Any

from flashsim.literature.base import Entry, Job, Results, Section, Settings, Table, load
from flashsim.literature.do2009.other_runs import PLACEMENTS, SMALL_PAGES, io_seconds
from flashsim.literature.do2009.runs import LABELS, PAGE_SIZES, PAGE_SIZES_MEMORY, PLACEMENT, Setup

TITLE = "How much each assumption matters"
#: The joins that write, with the buffer pools of the calibration columns.
_POOLS = [(join, memory) for join in ("sort-merge", "grace-hash", "hybrid-hash") for memory in (200, 500)]
#: Joins with pages of 2 KB, and whether requests are single pages: those of the claims that halves of flash pages decide.
_SMALL = (("hybrid-hash", False), ("sort-merge", True), ("grace-hash", True))


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A pass each join, buffer pool and placement; all variants of the drive share it."""
    usual = [_usual(settings, *pool, placement) for placement in PLACEMENTS for pool in sorted(_POOLS, key=lambda pool: pool[1])]
    return [*usual, *(_small(settings, join, page_io) for join, page_io in _SMALL)]


def _job(settings: Settings, label: str, setup: Setup, placement: str, **more: Any) -> Job:
    more |= {"scale": settings.scale, "seed": settings.seed, "ships_model": settings.ships_model}
    return Job.of(io_seconds, f"{label}, other assumptions", setup.name, join=setup.join, memory=setup.memory, placement=placement, **more)


def _usual(settings: Settings, join: str, memory: int, placement: str) -> Job:
    return _job(settings, f"{join}, {memory} MB, {placement}", Setup(join, memory), placement)


def _small(settings: Settings, join: str, page_io: bool) -> Job:
    setup = Setup(join, PAGE_SIZES_MEMORY, PAGE_SIZES[0], page_io)
    label = f"{join}, {setup.page_size // 1024} KB pages{', page-sized I/O' * page_io}"
    return _job(settings, label, setup, PLACEMENT, page_size=setup.page_size, page_io=page_io)


def sections(results: Results) -> list[Section]:
    """Speedups of each variant and how far they are from the published ones, and seconds with small pages."""
    settings, published = results.settings, load("do2009").claim("table3-io").published
    rows: list[list[Entry]] = []
    for placement, variants in PLACEMENTS.items():
        runs = {pool: results.get(_usual(settings, *pool, placement), {}) for pool in _POOLS}
        for variant in variants:
            ours = {pool: run["HDD"] / run[variant] for pool, run in runs.items() if variant in run}
            if errors := [abs(value / float(published[join][memory // 100 - 1]) - 1) for (join, memory), value in ours.items()]:
                rows.append([placement, variant, 100 * median(errors), 100 * max(errors), *map(ours.get, _POOLS)])
    header = ["placement", "assumption", "median error %", "worst %", *(f"{LABELS[join]} {memory} MB" for join, memory in _POOLS)]
    text = (
        "I/O speedups, SSD over HDD, of the joins that write, against table 3 at 200 and 500 MB, with one assumption changed at a time; "
        "packed is a file system without any metadata, spread one that also gives every temporary file a region of its own, and "
        "ext3-interleaved has reservation windows. Below are I/O seconds with pages of 2 KB: of a flash page whose halves two commands "
        "write, a drive that joins them programs one page."
    )
    small: list[list[Entry]] = []
    for join, page_io in _SMALL:
        seconds = results.get(_small(settings, join, page_io), {})
        small.append([LABELS[join], "page-sized" if page_io else "blocked", *(seconds.get(name) for name in ("HDD", *SMALL_PAGES))])
    small_header = ["join", "I/O", "HDD", *(f"SSD, {name}" for name in SMALL_PAGES)]
    tables = [Table(header, rows, "sensitivity", digits=2), Table(small_header, small, "small-pages", digits=1)]
    return [Section(TITLE, text, tables)]

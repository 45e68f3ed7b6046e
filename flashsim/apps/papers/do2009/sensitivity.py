"""Sensitivity of the I/O speedups of table 3 to each assumption on the drive's inside, its history and the file system."""

from collections.abc import Collection
from statistics import median

from flashsim.apps.papers.base import Entry, Job, Results, Section, Settings, Table, load
from flashsim.apps.papers.do2009.other_runs import PLACEMENTS, SMALL_PAGES, io_seconds
from flashsim.apps.papers.do2009.runs import LABELS, PAGE_SIZE, PAGE_SIZES, PLACEMENT, Setup, settings_of, sized_setup

TITLE = "How much each assumption matters"
#: The joins that write, with the buffer pools of the calibration columns.
_POOLS = [Setup(join, memory) for join in ("sort-merge", "grace-hash", "hybrid-hash") for memory in (200, 500)]
#: Joins with pages of 2 KB, blocked or with requests of single pages: those of the claims that halves of flash pages decide.
_SMALL = [
    sized_setup(join, PAGE_SIZES[0], page_io) for join, page_io in (("hybrid-hash", False), ("sort-merge", True), ("grace-hash", True))
]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A pass each join, buffer pool and placement; all variants of the drive share it."""
    usual = [_job(settings, pool, placement) for placement in PLACEMENTS for pool in sorted(_POOLS, key=lambda pool: pool.memory)]
    return [*usual, *(_job(settings, setup) for setup in _SMALL)]


def _job(settings: Settings, setup: Setup, placement: str = "") -> Job:
    """The run under a placement; with small pages under the usual one."""
    label, more = f"{setup.join}, {setup.memory} MB, {placement}", {"placement": placement or PLACEMENT, **settings_of(settings)}
    if setup.page_size != PAGE_SIZE:
        label = f"{setup.join}, {setup.page_size // 1024} KB pages{', page-sized I/O' * setup.page_io}"
        more |= {"page_size": setup.page_size, "page_io": setup.page_io}
    return Job.of(io_seconds, f"{label}, other assumptions", setup.name, join=setup.join, memory=setup.memory, **more)


def sections(results: Results) -> list[Section]:
    settings, published = results.settings, load("do2009").claim("table3-io").published
    rows: list[list[Entry]] = []
    for placement, variants in PLACEMENTS.items():
        runs = {pool: results.get(_job(settings, pool, placement), {}) for pool in _POOLS}
        for variant in variants:
            ours = {pool: run["HDD"] / run[variant] for pool, run in runs.items() if variant in run}
            if errors := [abs(value / float(published[pool.join][pool.memory // 100 - 1]) - 1) for pool, value in ours.items()]:
                rows.append([placement, variant, 100 * median(errors), 100 * max(errors), *map(ours.get, _POOLS)])
    header = ["placement", "assumption", "median error %", "worst %", *(f"{LABELS[pool.join]} {pool.memory} MB" for pool in _POOLS)]
    small = [
        [LABELS[setup.join], "page-sized" if setup.page_io else "blocked", *(seconds.get(name) for name in ("HDD", *SMALL_PAGES))]
        for setup in _SMALL
        for seconds in [results.get(_job(settings, setup), {})]
    ]
    small_header = ["join", "I/O", "HDD", *(f"SSD, {name}" for name in SMALL_PAGES)]
    tables = [Table(header, rows, "sensitivity", digits=2), Table(small_header, small, "small-pages", digits=1)]
    return [Section(TITLE, load("do2009").text("sensitivity"), tables)]

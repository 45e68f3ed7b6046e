"""Sensitivity of the I/O speedups of table 3 to each assumption on the drive's inside, its history and the file system."""

from collections.abc import Collection
from statistics import median

from flashsim.literature.base import load
from flashsim.literature.do2009.assumptions import PLACEMENTS, SMALL_PAGES, io_seconds
from flashsim.literature.do2009.runs import LABELS, PAGE_SIZES, PAGE_SIZES_MEMORY, PLACEMENT
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

TITLE = "How much each assumption matters"
#: The joins that write, and the buffer pools of the calibration columns.
_JOINS, _MEMORY = ("sort-merge", "grace-hash", "hybrid-hash"), (200, 500)
#: Joins with pages of 2 KB, and whether requests are single pages: those of the claims that halves of flash pages decide.
_SMALL = (("hybrid-hash", False), ("sort-merge", True), ("grace-hash", True))


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A pass each join, buffer pool and placement; all variants of the drive share it."""
    usual = [_job(settings, join, memory, placement) for placement in PLACEMENTS for memory in _MEMORY for join in _JOINS]
    return [*usual, *(_small_job(settings, join, page_io) for join, page_io in _SMALL)]


def _job(settings: Settings, join: str, memory: int, placement: str) -> Job:
    label = f"{join}, {memory} MB, {placement}, other assumptions"
    arguments = {"join": join, "memory": memory, "placement": placement, "scale": settings.scale, "seed": settings.seed}
    return Job.of(io_seconds, label, **arguments, ships_model=settings.ships_model)


def _small_job(settings: Settings, join: str, page_io: bool) -> Job:
    label = f"{join}, {PAGE_SIZES[0] // 1024} KB pages{', page-sized I/O' * page_io}, other assumptions"
    arguments = {"join": join, "memory": PAGE_SIZES_MEMORY, "placement": PLACEMENT, "page_size": PAGE_SIZES[0], "page_io": page_io}
    return Job.of(io_seconds, label, **arguments, scale=settings.scale, seed=settings.seed, ships_model=settings.ships_model)


def sections(results: Results) -> list[Section]:
    """Speedups of each variant, and how far they are from the published ones."""
    published = next(claim for claim in load("do2009").claims if claim.id == "table3-io")
    rows: list[list[Entry]] = []
    for placement, variants in PLACEMENTS.items():
        for variant in variants:
            pairs = [_speedup(results, published, placement, variant, join, memory) for join in _JOINS for memory in _MEMORY]
            both = [pair for pair in pairs if pair is not None]
            if both:
                errors = [abs(ours / value - 1) for ours, value in both]
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
        "packed is a file system without any metadata, spread one that also gives every temporary file a region of its own, and "
        "ext3-interleaved has reservation windows. Below are I/O seconds with pages of 2 KB: of a flash page whose halves two commands "
        "write, a drive that joins them programs one page."
    )
    return [Section(TITLE, text, [Table(header, rows, "sensitivity", digits=2), _small_pages(results)])]


def _small_pages(results: Results) -> Table:
    rows: list[list[Entry]] = []
    for join, page_io in _SMALL:
        seconds = results.get(_small_job(results.settings, join, page_io), {})
        rows.append([LABELS[join], "page-sized" if page_io else "blocked", *(seconds.get(name) for name in ("HDD", *SMALL_PAGES))])
    return Table(["join", "I/O", "HDD", *(f"SSD, {name}" for name in SMALL_PAGES)], rows, "small-pages", digits=1)


def _speedup(results: Results, claim: Claim, placement: str, variant: str, join: str, memory: int) -> tuple[float, float] | None:
    seconds = results.get(_job(results.settings, join, memory, placement), {})
    if variant not in seconds:
        return None
    return seconds["HDD"] / seconds[variant], float(claim.published[join][memory // 100 - 1])

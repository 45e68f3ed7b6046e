"""Joins on flash drives that differ in one assumption each: on the drive's inside, its history, or the file system."""

from dataclasses import replace
from typing import Any

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import SECONDS
from flashsim.literature.do2009.runs import DEVICES, FLASH_PAGE, PAGE_SIZE, Setup, buffers, laid_out, too_small
from flashsim.studies.runs.drives import ShipsModel, states
from flashsim.studies.runs.joining import simulate_join

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
#: Under other placements: the file system's part, and what is left of the translation layer's.
_OTHERWISE_PLACED = ("as assumed", "a page map, full in order")
PLACEMENTS = {"ext3": tuple(VARIANTS), **dict.fromkeys(("ext3-interleaved", "packed", "spread"), _OTHERWISE_PLACED)}
#: With pages that are parts of a flash page.  A drive that joins them holds one that waits for its other half, and one that is programmed.
SMALL_PAGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as assumed": ({}, {}),
    "parts of flash pages joined": ({"write_buffer": 2 * FLASH_PAGE, "write_buffer_mode": "coalescing"}, {}),
}


def io_seconds(
    join: str,
    memory: int,
    placement: str,
    scale: float,
    seed: int,
    ships_model: bool,
    page_size: int = PAGE_SIZE,
    page_io: bool = False,
) -> dict[str, float]:
    """I/O seconds of a join on the HDD and on each variant of the flash drive, JSON-ready; too small a pool leaves it empty."""
    setup = Setup(join, memory, page_size, page_io)
    files, setting = laid_out(setup, scale, seed)
    model = ShipsModel(scale, page_size * page_io) if ships_model else None
    usual = {machine: by_state[0].in_model(model) for machine, by_state in states(DEVICES, 1, seed).items()}
    drives = {"HDD": usual["HDD"]}
    variants = SMALL_PAGES if page_size < FLASH_PAGE else {name: VARIANTS[name] for name in PLACEMENTS[placement]}
    for name, (parameters, history) in variants.items():
        drives[name] = replace(usual["SSD"], changes=parameters, **history)
    try:
        allocation = buffers(setup, scale, *(file.pages for file in files), ships_model=ships_model)
        runs = simulate_join(replace(setting, placement=placement), files, list(drives.values()), allocation=allocation).runs
    except InvalidParameterError as problem:
        too_small(problem)
        return {}
    return {name: run.total().io_time / SECONDS for name, run in zip(drives, runs, strict=True)}

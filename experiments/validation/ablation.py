"""What each part of a disk's model is worth: the demerit figure without it."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.presentation.tables import Table
from experiments.replaying.demerit import demerit
from experiments.validation import closed_loop
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE
from flashsim.core.units import MILLISECONDS
from flashsim.device.presets import Preset
from flashsim.hdd.parameters import HddParameters

#: Seeks are made longer by this share.
SEEK_ERROR = 0.05

_HITS_AND_MISSES = tuple(
    (f"{kind}_hit_after_{last}", f"{kind}_miss_after_{last}") for kind in ("read", "write") for last in ("read", "write")
)
_CONTROLLER = (
    *(name for pair in _HITS_AND_MISSES for name in pair), "data_preparation", "reselect_first", "reselect_other",
    "disconnect_read_after_read", "disconnect_read_after_write", "disconnect_write", "complete_read", "complete_write", "extra_command",
    "extra_disconnect_first", "extra_pause", "extra_disconnect_second", "extra_seek_delay",
)  # fmt: skip

Change = Callable[[HddParameters], dict[str, Any]]


def _without_zones(drive: HddParameters) -> dict[str, Any]:
    tracks = np.array([row[0] for row in drive.zones])
    mean = int(np.ceil(np.average([row[1] for row in drive.zones], weights=tracks)))
    rows = []
    for row in drive.zones:
        skews = [value * mean / row[1] for value in row[2:5]]
        rows.append((row[0], mean, *skews, *row[5:]) if skews else (row[0], mean))
    return {"zones": tuple(rows)} | _without_spares(dataclasses.replace(drive, zones=tuple(rows), capacity=0))


def _without_spares(drive: HddParameters) -> dict[str, Any]:
    zones = tuple((*row[:5], 0, 0, *row[7:]) if len(row) > 2 else row for row in drive.zones)
    return {"zones": zones, "sparing": "none", "slips": (), "defects": (), "capacity": 0}


def _with_longer_seeks(drive: HddParameters) -> dict[str, Any]:
    longer = 1 + SEEK_ERROR
    return {
        "seek_table": tuple((distance, longer * time) for distance, time in drive.seek_table),
        "seek_formula": tuple((boundary, *(longer * value for value in rest)) for boundary, *rest in drive.seek_formula),
        "seek_first": tuple((longer * time,) for (time,) in drive.seek_first),
        **{name: round(longer * getattr(drive, name)) for name in ("seek_single", "seek_average", "seek_full")},
    }


def _hits_like_misses(drive: HddParameters) -> dict[str, Any]:
    means = {pair: (getattr(drive, pair[0]) + getattr(drive, pair[1])) // 2 for pair in _HITS_AND_MISSES}
    return {name: mean for pair, mean in means.items() for name in pair}


#: The parts, and what a drive without one changes.
PARTS: dict[str, Change] = {
    "zones: one mean density": _without_zones,
    "skews": lambda drive: {"zones": tuple((*row[:2], 0, 0, *(row[4:] or (0, 0, 0, 0))) for row in drive.zones)},
    "spares, slips and empty space": _without_spares,
    f"seeks {100 * SEEK_ERROR:.0f} % too long": _with_longer_seeks,
    "head switch": lambda drive: {"head_switch": 0},
    "settling of writes": lambda drive: {"write_settle": 0},
    "bus": lambda drive: {"bus_read": 0, "bus_write": 0, "bulk_transfer": 0},
    "controller's overheads": lambda drive: dict.fromkeys(_CONTROLLER, 0),
    "hits told from misses": _hits_like_misses,
    "read-ahead": lambda drive: {"read_ahead": 0, "read_ahead_least": 0},
    "discarding what was read": lambda drive: {"keep_read": True},
    "water marks": lambda drive: {"read_start": 0.0, "read_start_least": 1, "write_start": 1.0, "write_start_most": 0},
    "second disconnect of writes": lambda drive: {"extra_disconnect": False},
    "fast write": lambda drive: {"write_behind": 0},
}


def ablate(preset: Preset, trace: Path, progress: Progress | None = None) -> Iterator[tuple[str, dict[str, float]]]:
    """The demerit figures (ms) of all requests, of reads and of writes: first of the whole model, then without one part at a time.

    Parts that the drive does not have are left out.
    """
    drive = preset.disk
    assert drive
    changed = {"whole model": drive} | {part: dataclasses.replace(drive, **change(drive)) for part, change in PARTS.items()}
    kept = {part: other for part, other in changed.items() if part == "whole model" or other != drive}
    for number, (part, other) in enumerate(kept.items()):
        if progress:
            progress(number, len(kept), part)
        loop = closed_loop.run(dataclasses.replace(preset, parameters=other), trace)
        groups = {"all": np.ones(len(loop.measured), np.bool_), "reads": loop.operation == READ, "writes": loop.operation == WRITE}
        yield part, {name: demerit(loop.measured[rows], loop.simulated[rows]) / MILLISECONDS for name, rows in groups.items() if rows.any()}


def ablation_table(found: dict[str, dict[str, float]]) -> Table:
    """A row a part."""
    rows = [[part, *figures.values()] for part, figures in found.items()]
    return Table(["without", *next(iter(found.values()))], rows, digits=3, note="demerit, ms")

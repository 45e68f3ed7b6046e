"""Presets of flash drives under reads and writes that arrive together, held against what was measured on drives, row by row of a file.

Each row's load is played by the rules of the generator of SSD-iq (`flashsim.execution.scheduled_threads`) on a part of the drive in steady
state.  Above saturation a load shows the threads' slots whatever was offered: such rows of a drive are one plateau, and count once.  The
error of a measure on a drive is the mean over its rows of the logarithm's difference, as a factor; its null model is one number for all
rows of the drive, the median of the logarithms, of which that error is least.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean, median, median_low
from typing import Any

from flashsim.core.activity import activity
from flashsim.core.compiling import parts_of
from flashsim.core.copies import Original
from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, MissingFileError, RefusedError, UnknownNameError
from flashsim.core.input_files import read_text
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE
from flashsim.core.units import GIB, KIB, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.scaling import part_in_use
from flashsim.execution.compiled_loop import CompiledLoop
from flashsim.execution.scheduled_threads import ScheduledThreads, completed, forget_counts, percentile, recorded
from flashsim.studies.replaying.preconditioning import parse_state
from flashsim.studies.runs import kept
from flashsim.studies.runs.jobs import Job, Settings, make

#: Reads, and writes, of the probe that percentiles are taken of at scale 1: twenty are beyond the 99.9th.
SAMPLES = 20_000
#: Shares of the probe's reads, or writes, whose longest latency each percentile is, by its name.
_SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
_OPERATIONS = {"read": READ, "write": WRITE}
#: What is judged, by the file's columns, and the columns that say what the load is.
MEASURES = ("achieved_per_s", *(f"{kind}_{name}_us" for kind in _OPERATIONS for name in _SHARES))
_LOAD = ("used_gib", "background_per_s", "probe_per_s")
#: The share of what was offered below which a row is saturated.
_ACHIEVED = 0.98
#: Every plane collects about so often while latencies are counted, as planes may do it all at once; what is played before, as a share of
#: that; and simulated time after which a load that shows too little ends.
_CYCLES, _WARM_UP, _LONGEST = 3, 1 / 3, 300 * SECONDS
_PAGE = 4 * KIB


@dataclass(frozen=True)
class LoadRow:
    """A load and what was measured under it, by the file's columns."""

    drive: str
    values: Mapping[str, float]

    @property
    def saturated(self) -> bool:
        """True if clearly less was achieved than was offered."""
        offered = self.values["background_per_s"] + self.values["probe_per_s"]
        return self.values["achieved_per_s"] < _ACHIEVED * offered


def read(path: Path) -> list[LoadRow]:
    """Rows of a table (CSV); further columns are left out.

    Raises
    ------
    MissingFileError, DamagedFileError
        It cannot be read, is no such table, misses a column or has no rows.
    InvalidParameterError
        A value that is none.
    """
    where = f"--under-load: {path}"
    try:
        rows = list(csv.DictReader(read_text(path, "utf-8-sig").splitlines(), strict=True))
    except OSError as problem:
        raise MissingFileError(f"--under-load: cannot read {path}: {problem.strerror}") from problem
    except (ValueError, csv.Error) as problem:
        raise DamagedFileError(f"{where} is no table: {problem}") from None
    columns = set(rows[0]) if rows else set()
    if missing := [name for name in ("drive", *_LOAD, *MEASURES) if name not in columns] if rows else []:
        raise DamagedFileError(f"{where} has no column {missing[0]}: {', '.join(('drive', *_LOAD, *MEASURES))} are needed")
    if not rows:
        raise DamagedFileError(f"{where} has no rows")
    return [_row(row, f"{where}, row {number}") for number, row in enumerate(rows, start=1)]


def _row(row: Mapping[str, str | None], where: str) -> LoadRow:
    values = {}
    for name in (*_LOAD, *MEASURES):
        try:
            number = float(row[name] or "")
        except ValueError:
            number = math.nan
        if not (0 < number < math.inf or (number == 0 and name == "background_per_s")):
            raise InvalidParameterError(f"{where}: {name}", repr(row[name] or ""), "a number above 0 is needed")
        values[name] = number
    if not row["drive"]:
        raise InvalidParameterError(f"{where}: drive", "''", "a name is needed")
    return LoadRow(row["drive"], values)


def presets_of(drives: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    """The preset of each drive: as named, or the one all of whose words are the drive's, the most of them if there are several.

    Raises
    ------
    UnknownNameError
        A drive that is named is not in the file, or the presets have none of that name.
    """
    if unknown := [name for name in named if name not in drives]:
        raise UnknownNameError("--device: drive of the file", unknown[0], dict.fromkeys(drives))
    words = {preset: _words(preset) for preset in presets.names()}
    found = dict(named)
    for drive in dict.fromkeys(drives):
        fitting = sorted((preset for preset in words if words[preset] <= _words(drive)), key=lambda preset: -len(words[preset]))
        if drive not in found and not fitting:
            raise RefusedError(f"--under-load: no preset is called as drive {drive!r} of the file: name one with --device {drive!r}=PRESET")
        found.setdefault(drive, *fitting[:1])
    return found


def _words(name: str) -> set[str]:
    """Words of a drive's name, small; a number and its unit are one."""
    return {*re.split(r"[\s-]+", re.sub(r"(\d) +([gt]b)\b", r"\1\2", name.lower()))}


def play(preset: str, load: Mapping[str, float], scale: float, seed: int, stamps: Mapping[str, str]) -> dict[str, float]:
    """What a drive shows under a load, by measure."""
    original, cycle = _in_use(preset, load["used_gib"], scale, seed)
    device = original.copy()
    assert device.preset.flash is not None
    samples, requests = max(1, round(SAMPLES * scale)), round(_CYCLES * scale * cycle)
    threads = ScheduledThreads(load["background_per_s"], load["probe_per_s"], page_size=_PAGE, seed=seed)
    tables = threads.tables(device.capacity // _PAGE, device.now, device.preset.flash.queues)
    loop = CompiledLoop([device.compiled], threads.side(tables))
    loop.run(completions=round(_WARM_UP * requests))
    forget_counts(tables)
    begin = until = loop.now
    step = max(1, round(SECONDS * samples / load["probe_per_s"] / 25))
    counted = 0
    with activity(f"{preset} at {load['background_per_s']:,.0f} a second") as tell:
        while (counted < samples or completed(tables) < requests) and until - begin < _LONGEST:
            until += step
            loop.run(until)
            counted = min(recorded(tables, operation) for operation in _OPERATIONS.values())
            tell(min(counted / samples, completed(tables) / requests), 1)
    if not counted:
        raise FlashsimError(f"{preset}: no read or no write of the probe completes at {load['background_per_s']:,.0f} a second")
    shown = {"achieved_per_s": completed(tables) * SECONDS / (until - begin)}
    for kind, operation in _OPERATIONS.items():
        shown |= {f"{kind}_{name}_us": float(max(1, percentile(tables, operation, share))) for name, share in _SHARES.items()}
    return shown


@lru_cache(maxsize=1)
def _in_use(preset: str, used: float, scale: float, seed: int) -> tuple[Original[Device], float]:
    """A part of a drive in steady state, so many GiB of the whole in use, and writes between two collections of a plane, of all planes."""
    whole = presets.load(preset)
    if whole.flash is None:
        raise RefusedError(f"--under-load: {preset} is no flash drive")
    if used < whole.capacity // GIB:
        capacity = max(1, int(used * GIB) // whole.flash.unit_size) * whole.flash.unit_size
        whole = replace(whole, parameters=replace(whole.flash, capacity=capacity))
    part = part_in_use(whole, max(1, scale))
    assert part.flash is not None
    device = Device(part)
    reached = device.precondition(parse_state("steady", part, seed))
    cycle = part.flash.pools * part.flash.slots_per_block / max(1.0, reached.write_amplification)
    return Original(device, device.arrays), cycle


@dataclass(frozen=True)
class UnderLoad:
    """Rows of a file beside what presets show."""

    name: str
    #: The preset of each drive.
    presets: Mapping[str, str]
    #: A row a row of the file, saturated ones joined, and measure.
    cells: Sequence[Mapping[str, Any]]

    def title(self) -> str:
        """What was held against what."""
        return f"{self.name}: {len({row['drive'] for row in self.cells})} drives under load"

    def rows(self) -> list[dict[str, Any]]:
        """A row a load and measure: simulated, measured, and the null model's number."""
        return [dict(row) for row in self.cells]

    def drives(self) -> list[dict[str, Any]]:
        """A row a drive and measure: the error as a factor, and the null model's."""
        groups = dict[tuple[str, str], list[Mapping[str, Any]]]()
        for row in self.cells:
            groups.setdefault((row["drive"], row["measure"]), []).append(row)
        return [
            {"drive": drive, "measure": measure, "factor": _factor(rows, "simulated"), "null_factor": _factor(rows, "null")}
            for (drive, measure), rows in groups.items()
        ]

    def medians(self) -> dict[str, tuple[float, float]]:
        """The median over drives of the error of each measure, and of its null model's."""
        rows = self.drives()
        return {
            measure: (median(row["factor"] for row in own), median(row["null_factor"] for row in own))
            for measure in MEASURES
            for own in [[row for row in rows if row["measure"] == measure]]
        }

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"rows": self.rows(), "drives": self.drives(), "presets": dict(self.presets)}


def _factor(rows: Sequence[Mapping[str, Any]], side: str) -> float:
    return math.exp(fmean(abs(math.log(row[side] / row["measured"])) for row in rows))


def judged(rows: Sequence[LoadRow], shown: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    """Rows beside what was simulated for each: a row a load and measure, in which the saturated loads of a drive are one, their median."""
    loads = dict[tuple[str, float], list[tuple[LoadRow, Mapping[str, float]]]]()
    for number, (row, simulated) in enumerate(zip(rows, shown, strict=True)):
        loads.setdefault((row.drive, math.inf if row.saturated else number), []).append((row, simulated))
    cells = [
        {
            "drive": drive,
            "background_per_s": median_low(row.values["background_per_s"] for row, _ in own),
            "measure": measure,
            "simulated": median(simulated[measure] for _, simulated in own),
            "measured": median(row.values[measure] for row, _ in own),
        }
        for (drive, _), own in loads.items()
        for measure in MEASURES
    ]
    logarithms = dict[tuple[Any, Any], list[float]]()
    for cell in cells:
        logarithms.setdefault((cell["drive"], cell["measure"]), []).append(math.log(cell["measured"]))
    return [cell | {"null": math.exp(median(logarithms[cell["drive"], cell["measure"]]))} for cell in cells]


def validate(path: Path, named: Mapping[str, str], settings: Settings, progress: Progress | None = None) -> UnderLoad:
    """Play every row's load on the preset of its drive, those that are kept from before excepted, and judge what it shows."""
    rows = read(path)
    found = presets_of([row.drive for row in rows], named)
    for preset in found.values():
        if presets.load(preset).flash is None:
            raise RefusedError(f"--device: {preset} is no flash drive")
    shares = -(-settings.jobs // len(found))
    jobs = []
    for number, row in enumerate(rows):
        preset, load = found[row.drive], {name: row.values[name] for name in _LOAD}
        label = f"{row.drive} at {load['background_per_s']:,.0f}"
        arguments = {"preset": preset, "load": load, "scale": settings.scale, "seed": settings.seed, "stamps": kept.stamps([preset])}
        job = Job.of(play, label, f"{preset}, {load['used_gib']:g} GiB, {number % shares}", **arguments)
        jobs.append(replace(job, weight=load["background_per_s"]))
    layers = {flash.ftl for preset in found.values() if (flash := presets.load(preset).flash)}
    results = make(jobs, settings, progress, sorted(layers), kinds=("ssd",), more=parts_of(["flashsim.execution.scheduled_threads"]))
    return UnderLoad(path.name, found, judged(rows, [results[job] for job in jobs]))

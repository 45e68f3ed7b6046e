"""Presets of flash drives under reads and writes that arrive together, held against what was measured on drives, row by row of a file.

Each row's load is played by the rules of the generator of SSD-iq (`flashsim.execution.scheduled_threads`) on a part of the drive in steady
state.  Above saturation a load shows the threads' slots whatever was offered: such rows of a drive are one plateau, and count once.  The
error of a measure on a drive is the mean over its rows of the logarithm's difference, as a factor; its null model is one number for all
rows of the drive, the median of the logarithms, of which that error is least.
"""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import median_low
from typing import Any

import numpy as np
import pandas as pd

from flashsim.core.activity import activity
from flashsim.core.compiling import parts_of
from flashsim.core.errors import (
    DamagedFileError,
    FlashsimError,
    InvalidParameterError,
    MissingFileError,
    RefusedError,
    UnknownNameError,
    option,
)
from flashsim.core.input_files import read_text
from flashsim.core.large_arrays import Original
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE
from flashsim.core.units import GIB, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.device.scaling import part_in_use
from flashsim.execution.compiled_loop import CompiledLoop
from flashsim.execution.scheduled_threads import COMPLETED, PAGE, ScheduledThreads, forget_counts, percentile
from flashsim.experiments.replaying.preconditioning import parse_state
from flashsim.experiments.runs import kept
from flashsim.experiments.runs.jobs import Job, Settings, make

#: Reads, and writes, of the probe that percentiles are taken of at scale 1: twenty are beyond the 99.9th.
SAMPLES = 20_000
#: Shares of the probe's reads, or writes, whose longest latency each percentile is, by its name; the judged ones among them.
_SHARES = {"p10": 0.1, "p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_JUDGED = ("p50", "p99", "p99.9")
_OPERATIONS = {"read": READ, "write": WRITE}
#: What is judged, by the file's columns, the further columns that a file may have, and the columns that say what the load is.
MEASURES = ("achieved_per_s", *(f"{kind}_{name}_us" for kind in _OPERATIONS for name in _JUDGED))
FURTHER = tuple(f"{kind}_{name}_us" for kind in _OPERATIONS for name in _SHARES if name not in _JUDGED)
LOAD = ("used_gib", "background_per_s", "probe_per_s")
#: The share of what was offered below which a row is saturated.
_ACHIEVED = 0.98
#: Every plane collects about so often while latencies are counted, as planes may do it all at once; what is played before, as a share of
#: that; and simulated time after which a load that shows too little ends.
_CYCLES, _WARM_UP, _LONGEST = 3, 1 / 3, 300 * SECONDS
#: The share of a preset's capacity that may be in use: 894.3 GiB are the whole of 960 GB.
_LEAST_USED, _MOST_USED = 0.01, 1.01
#: Steady states of this process by what they depend on, with the write amplification, and how many are kept at most.
_STEADY: dict[Any, tuple[Original[Any], float]] = {}
_MOST_STEADY = 2
#: Requests a second of threads at least, if they ask for any.
_LEAST_RATE = 0.1


@dataclass(frozen=True)
class LoadRow:
    """A load and what was measured under it, by the file's columns."""

    drive: str
    values: Mapping[str, float]

    @property
    def is_saturated(self) -> bool:
        """True if clearly less was achieved than was offered."""
        offered = self.values["background_per_s"] + self.values["probe_per_s"]
        return self.values["achieved_per_s"] < _ACHIEVED * offered


def read(path: Path) -> list[LoadRow]:
    """Rows of a table (CSV), of which further columns are left out; a file that is none, or misses something, is refused."""
    return [_row(row, where) for row, where in rows_of(path, "under_load", ("drive", *LOAD, *MEASURES))]


def is_table(path: Path, columns: Iterable[str] = LOAD) -> bool:
    """True if a file begins as a table with such columns does, by default one under load."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        with path.open(encoding="utf-8-sig") as lines:
            return set(columns) <= {name.strip() for name in lines.readline().split(",")}
    except (OSError, UnicodeDecodeError):
        return False


def rows_of(path: Path, parameter: str, needed: Sequence[str]) -> list[tuple[Mapping[str, str | None], str]]:
    """Rows of a table (CSV) that a parameter names, each with its name in messages; the columns that are needed are there."""
    where = f"{parameter}: {path}"
    try:
        rows = list(csv.DictReader(read_text(path, "utf-8-sig").splitlines(), strict=True))
    except OSError as problem:
        raise MissingFileError(f"{parameter}: cannot read {path}: {problem.strerror}") from problem
    except (ValueError, csv.Error) as problem:
        raise DamagedFileError(f"{where} is not a table: {problem}") from None
    if not rows:
        raise DamagedFileError(f"{where} has no rows")
    if missing := [name for name in needed if name not in rows[0]]:
        raise DamagedFileError(f"{where} has no column {missing[0]}: {', '.join(needed)} are needed")
    return [(row, f"{where}, row {number}") for number, row in enumerate(rows, start=1)]


def numbers_of(
    row: Mapping[str, str | None], where: str, names: Iterable[str], whole: Sequence[str] = (), maybe_zero: Sequence[str] = ()
) -> dict[str, float]:
    """Finite numbers of a row, above 0 but for those that may be it; the whole ones are such."""
    values = {}
    for name in names:
        try:
            values[name] = float(row[name] or "")
        except ValueError:
            values[name] = math.nan
        is_inside = 0 < values[name] < math.inf or (values[name] == 0 and name in maybe_zero)
        if not is_inside or (name in whole and values[name] % 1):
            bound = f"a {'whole ' if name in whole else ''}number above 0 is needed"
            raise InvalidParameterError(f"{where}: {name}", repr(row[name] or ""), bound)
    return values


def _row(row: Mapping[str, str | None], where: str) -> LoadRow:
    if not row["drive"]:
        raise InvalidParameterError(f"{where}: drive", "''", "a name is needed")
    names = (*LOAD, *MEASURES, *(name for name in FURTHER if row.get(name)))
    return LoadRow(row["drive"], numbers_of(row, where, names, maybe_zero=("background_per_s",)))


def presets_of(drives: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    """The preset of each drive: as named, or the one all of whose words are the drive's, the most of them if there are several."""
    if unknown := [name for name in named if name not in drives]:
        raise UnknownNameError("device: drive of the file", unknown[0], dict.fromkeys(drives))
    found = dict(named)
    for drive in dict.fromkeys(drives):
        fitting = [preset for preset in presets.names() if _words(preset) <= _words(drive)]
        if drive not in found and not fitting:
            raise RefusedError(
                f"under_load: no preset is called as drive {drive!r} of the file: name one with " + option("device") + f" {drive!r}=PRESET"
            )
        found.setdefault(drive, max(fitting, key=lambda preset: len(_words(preset)), default=""))
    return found


def _words(name: str) -> set[str]:
    """Words of a drive's name, small; a number and its unit are one."""
    return {*re.split(r"[\s-]+", re.sub(r"(\d) +([gt]b)\b", r"\1\2", name.lower()))}


def _check(row: LoadRow, name: str) -> None:
    preset, used, rate = presets.load(name), row.values["used_gib"], row.values["background_per_s"]
    if preset.flash is None:
        raise RefusedError(f"device: {name} is not a flash drive")
    if not _LEAST_USED <= used * GIB / preset.capacity <= _MOST_USED:
        holds = f"{name} holds {preset.capacity / GIB:,.1f} GiB, of which at least {_LEAST_USED:.0%} must be in use"
        raise InvalidParameterError(f"under_load: {row.drive}: used_gib", f"{used:g}", holds)
    if 0 < rate < _LEAST_RATE or row.values["probe_per_s"] < _LEAST_RATE:
        raise InvalidParameterError(f"under_load: {row.drive}: requests a second", f"{rate:g}", f"at least {_LEAST_RATE:g} can be played")


def play(preset: str, load: Mapping[str, float], scale: float, seed: int, stamps: Mapping[str, str]) -> dict[str, float]:
    """Rate and latencies of a preset's drive under a load, by measure."""
    return serve(*_in_use(preset, load["used_gib"], scale, seed), load, scale, seed)


def serve(original: Original[Device], cycle: float, load: Mapping[str, float], scale: float, seed: int) -> dict[str, float]:
    """Rate and latencies of a copy of a drive (see `in_use`) under a load, by measure."""
    device = original.copy()
    preset = device.preset.name
    assert device.preset.flash is not None
    samples, requests = max(1, round(SAMPLES * scale)), round(_CYCLES * scale * cycle)
    threads = ScheduledThreads(load["background_per_s"], load["probe_per_s"], seed=seed)
    tables = threads.tables(device.capacity // PAGE, device.now, device.preset.flash.queues)
    loop = CompiledLoop([device.compiled_model], threads.side(tables))
    loop.run(completions=round(_WARM_UP * requests))
    forget_counts(tables)
    begin = until = loop.now
    step, done = max(1, round(SECONDS * samples / load["probe_per_s"] / 25)), 0.0
    with activity(f"{preset} at {load['background_per_s']:,.0f} a second") as tell:
        while done < 1 and until - begin < _LONGEST:
            until += step
            loop.run(until)
            done = min(tables.latencies.sum(axis=1).min() / samples, tables.numbers[COMPLETED] / max(1, requests))
            tell(min(done, 1), 1)
    if not tables.latencies.any(axis=1).all():
        raise FlashsimError(f"{preset}: no read or no write of the probe completes at {load['background_per_s']:,.0f} a second")
    shown = {"achieved_per_s": float(tables.numbers[COMPLETED] * SECONDS / (until - begin))}
    for kind, operation in _OPERATIONS.items():
        shown[f"{kind}s"] = int(tables.latencies[operation].sum())
        shown |= {f"{kind}_{name}_us": float(max(1, percentile(tables, operation, share))) for name, share in _SHARES.items()}
    return shown


@lru_cache(maxsize=1)
def _in_use(preset: str, used: float, scale: float, seed: int) -> tuple[Original[Device], float]:
    return in_use(presets.load(preset), used, scale, seed)


def in_use(whole: Preset, used: float, scale: float, seed: int) -> tuple[Original[Device], float]:
    """A part of a drive in steady state, so many GiB of the whole in use, and writes between two collections of a plane, of all planes."""
    if whole.flash is None:
        raise RefusedError(f"under_load: {whole.name} is not a flash drive")
    if used < whole.capacity // GIB:
        capacity = max(1, int(used * GIB) // whole.flash.unit_size) * whole.flash.unit_size
        whole = replace(whole, parameters=replace(whole.flash, capacity=capacity))
    part = part_in_use(whole, max(1, scale))
    assert part.flash is not None
    device = Device(part)
    content = device.content
    outline = seed, content.outline()
    if outline in _STEADY:  # only times differ, which the state does not depend on
        like, amplification = _STEADY[outline]
        content.take_content(like.copy())
    else:
        amplification = device.precondition(parse_state("steady", part, seed)).write_amplification
        while len(_STEADY) >= _MOST_STEADY:
            _STEADY.pop(next(iter(_STEADY)))
        _STEADY[outline] = Original(content, [*content.flash]), amplification
    return Original(device, device.arrays), part.flash.pools * part.flash.slots_per_block / max(1.0, amplification)


@dataclass(frozen=True)
class UnderLoad:
    """Rows of a file beside what presets show."""

    name: str
    #: A row a row of the file, saturated ones joined, and measure.
    cells: Sequence[Mapping[str, Any]]
    #: A row a row of the file: reads and writes of the probe that percentiles are taken of.
    samples: Sequence[Mapping[str, Any]]

    def title(self) -> str:
        return f"{self.name}: {len({row['drive'] for row in self.cells})} drives under load"

    def rows(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self.cells]

    def drives(self) -> list[dict[str, Any]]:
        """A row a drive and measure: the error as a factor, and the null model's."""
        return mean_factors(self.cells, ["drive", "measure"], {"factor": "simulated", "null_factor": "null"})

    def as_dict(self) -> dict[str, Any]:
        return {"rows": self.rows(), "drives": self.drives(), "samples": [dict(row) for row in self.samples]}


def mean_factors(cells: Sequence[Mapping[str, Any]], keys: list[str], sides: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row a group: the mean of the difference of logarithms between a side's column and `measured`, as a factor, by the side's name."""
    frame: Any = pd.DataFrame(cells)
    off = frame[keys].assign(**{name: np.log(frame[side] / frame["measured"]).abs() for name, side in sides.items()})
    rows: Any = np.exp(off.groupby(keys, sort=False).mean()).reset_index().to_dict("records")
    return list(rows)


def judge_rows(rows: Sequence[LoadRow], shown: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    """Rows beside what was simulated for each: a row a load and measure, in which the saturated loads of a drive are one, their median."""
    values = [
        (row.drive, -1 if row.is_saturated else number, measure, row.values["background_per_s"], simulated[measure], row.values[measure])
        for number, (row, simulated) in enumerate(zip(rows, shown, strict=True))
        for measure in MEASURES
    ]
    frame = pd.DataFrame(values, columns=["drive", "load", "measure", "background_per_s", "simulated", "measured"])
    how: Any = {"background_per_s": median_low, "measure": "first", "simulated": "median", "measured": "median"}
    cells = frame.groupby(["drive", "load", frame["measure"].rename("of")], sort=False).agg(how).reset_index(["load", "of"], drop=True)
    cells = cells.reset_index()
    null = cells.groupby(["drive", "measure"])["measured"].transform(lambda own: math.exp(np.log(own).median()))
    records: Any = cells.assign(null=null).to_dict("records")
    return list(records)


def validate(path: Path, named: Mapping[str, str], settings: Settings, progress: Progress | None = None) -> UnderLoad:
    """Play every row's load on the preset of its drive, those that are kept from before excepted, and judge what it shows."""
    rows = read(path)
    found = presets_of([row.drive for row in rows], named)
    for row in rows:
        _check(row, found[row.drive])
    shares, jobs = -(-settings.jobs // len(found)), []
    for number, row in enumerate(rows):
        preset, load = found[row.drive], {name: row.values[name] for name in LOAD}
        label, group = f"{row.drive} at {load['background_per_s']:,.0f}", f"{preset}, {load['used_gib']:g} GiB, {number % shares}"
        how: dict[str, Any] = {"scale": settings.scale, "seed": settings.seed}
        job = Job.of(play, label, group, preset=preset, load=load, stamps=kept.stamps([preset]), **how)
        jobs.append(replace(job, weight=load["background_per_s"]))
    layers = {flash.ftl for preset in found.values() if (flash := presets.load(preset).flash)}
    results = make(jobs, settings, progress, sorted(layers), kinds=("ssd",), more=parts_of(["flashsim.execution.scheduled_threads"]))
    shown = [results[job] for job in jobs]
    loads = ({"drive": row.drive, "background_per_s": row.values["background_per_s"]} for row in rows)
    samples = [load | {kind: each[kind] for kind in ("reads", "writes")} for load, each in zip(loads, shown, strict=True)]
    return UnderLoad(path.name, judge_rows(rows, shown), samples)

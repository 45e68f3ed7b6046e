"""Presets of flash drives under workloads that others published measurements of, and verdicts on how near they come.

Simulated is a part of a drive (`flashsim.device.scaling.part_in_use`): all of its channels and dies, and of every plane fewer blocks.
"""

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flashsim.core.protocols import Progress
from flashsim.core.request import WRITE, Completions, Integers, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import GB, GIB, KIB, MICROSECONDS, MILLISECONDS, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.device.scaling import part_in_use
from flashsim.experiments.judging.cells import number
from flashsim.experiments.judging.claims import ChosenParameter, Claim, Judgement
from flashsim.experiments.replaying.preconditioning import parse_state
from flashsim.experiments.runs.jobs import Job, Results, Settings, make
from flashsim.ssd.parameters import SsdParameters

#: The scale that limits are for, and the least that says anything: below it runs are shorter, above it parts are larger.
JUDGED, LEAST_SCALE = 1, 0.01
#: Requests of which a percentile is taken, at scale 1 and at least.
_TAIL, _LEAST_TAIL = 375_000, 20_000
#: Bytes of a write and windows of a drive that is filled; words of its columns.
_COMMAND, _WINDOWS = 128 * KIB, 1000
_ORDINALS, _MEAN = ("first", "second", "third"), "mean"
_CLAIMS = Path(__file__).with_name("published.toml")


def first(name: str, scale: float, seed: int) -> dict[str, float]:
    """Random writes on a part that was filled in order, while free blocks last: thousands a second, over the last half."""
    device, flash, _ = _device(presets.load(name), "sequential", scale, seed)
    count = _count((flash.usable_pages - flash.logical_pages) // 2, scale, 2 * flash.buffer_pages)
    ends = np.sort(_write(device, flash, count, seed)["completed"])[count // 2 :]
    return {"kIOPS": _rate(ends)}


def steady(name: str, scale: float, seed: int, used: float = math.inf) -> dict[str, float]:
    """Random writes on a part in steady state, `used` GiB of the drive: thousands a second, and write amplification.

    They program all flash pages once, after half as many that are not counted: counts of valid pages go up and down about so long.
    """
    whole = presets.load(name)
    assert whole.flash is not None
    capacity = int(min(whole.capacity, used * GIB)) // whole.flash.unit_size * whole.flash.unit_size
    device, flash, amplification = _device(replace(whole, parameters=replace(whole.flash, capacity=capacity)), "steady", scale, seed)
    count = _count(flash.usable_pages / amplification, scale, max(2 * flash.buffer_pages, flash.pools * flash.slots_per_block))
    _write(device, flash, count // 2, seed)
    before = device.statistics()
    ends = np.sort(_write(device, flash, count, seed + 1)["completed"])
    programs, writes, again = (device.statistics()[each] - before[each] for each in ("flash_programs", "host_writes", "buffer_overwrites"))
    return {"kIOPS": _rate(ends), "amplification": float(programs / (writes - again))}


def _rate(ends: Integers) -> float:
    """Thousands a second: the slope, since writes end in batches and dies collect in waves, and a run begins and ends anywhere in one."""
    return float(np.polyfit((ends - ends[0]) / MILLISECONDS, np.arange(len(ends)), 1)[0])


def tail(name: str, scale: float, seed: int, rate: float, changes: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Random writes at a mean rate, as a Poisson process, on a part in steady state: percentiles of the last half's latencies, us.

    `changes` are parameters of the drive that are others.
    """
    device, flash, _ = _device(_changed_preset(name, changes), "steady", scale, seed)
    count = _count(_TAIL * max(1, scale), scale, _LEAST_TAIL)
    gaps = generator(seed, "arrivals").exponential(SECONDS / rate, 2 * count)
    arrivals = device.now + np.cumsum(gaps).astype(np.int64)
    completions = _write(device, flash, 2 * count, seed, arrivals)
    latencies = (completions["completed"] - arrivals)[count:] / MICROSECONDS
    return {f"p{share:g}": float(np.percentile(latencies, share)) for share in (50, 99, 99.9, 100)}


def filling(name: str, scale: float, seed: int, changes: Mapping[str, Any] | None = None) -> dict[str, list[float]]:
    """Writes in order from the first byte of an empty part to its last: GB/s in each of equal windows, and the GB of the whole."""
    whole = _changed_preset(name, changes)
    device, *_ = _device(whole, "empty", scale, seed)
    count = device.capacity // _COMMAND
    ends = np.sort(device.serve(make_requests(WRITE, np.arange(count) * _COMMAND, _COMMAND), settle=False)["completed"])
    edges = np.linspace(0, count - 1, _WINDOWS + 1).astype(np.int64)
    rates = _COMMAND * np.diff(edges) / np.diff(ends[edges])
    return {"GB/s": [round(float(rate), 4) for rate in rates], "GB": [whole.capacity / GB]}


def _cliff(claim: Claim, drive: str, column: str, result: Mapping[str, list[float]]) -> float:
    """A level, GB/s, between published cliffs; a cliff, GB, where the time of writes bends most between its neighbours; or the mean.

    A cliff is at 0 unless the rates before it and behind it lie on two sides of the mean of its published levels.
    """
    published = list(zip(_columns(claim, drive), claim.published[drive], strict=True))
    levels, cliffs = ([value for name, value in published if word in name] for word in ("level", "cliff"))
    rates, size = np.array(result["GB/s"]), result["GB"][0] / len(result["GB/s"])
    if column == _MEAN:
        return _mean(rates)
    at = _ORDINALS.index(column.partition(" ")[0])
    ends = [0.0, *cliffs, result["GB"][0]]
    if "cliff" in column:  # planes fold their caches in waves, so that no single window tells
        own = rates[math.ceil(ends[at] / size) : int(ends[at + 2] / size)]
        times = np.cumsum(1 / own)
        place = int(np.argmax(times[-1] / len(own) * np.arange(1, len(own) + 1) - times)) + 1
        apart = len(own) > place and _mean(own[:place]) > math.sqrt(levels[at] * levels[at + 1]) > _mean(own[place:])
        return ends[at] + place * size if apart else 0.0
    return _mean(rates[math.ceil(ends[at] / size) + 2 : int(ends[at + 1] / size) - 2])


def _mean(rates: npt.NDArray[np.float64]) -> float:
    return float(len(rates) / np.sum(1 / rates))


def _changed_preset(name: str, changes: Mapping[str, Any] | None) -> Preset:
    whole = presets.load(name)
    return replace(whole, parameters=replace(whole.parameters, **(changes or {})))


def _count(requests: float, scale: float, least: int) -> int:
    return max(int(requests * min(1, scale)), least)


def _device(whole: Preset, state: str, scale: float, seed: int) -> tuple[Device, SsdParameters, float]:
    """A part of a drive in a state, its parameters, and its write amplification in steady state, which short runs do not confirm."""
    part = part_in_use(whole, max(1, scale))
    assert part.flash is not None
    device, how = Device(part), parse_state(state, part, seed)
    reached = device.precondition(replace(how, longest=0) if how.occupancy is not None and scale < JUDGED else how)
    return device, part.flash, reached.write_amplification if reached.steady else 1.0


def _write(device: Device, flash: SsdParameters, count: int, seed: int, at: Integers | None = None) -> Completions:
    units = generator(seed, "writes").integers(0, flash.capacity // flash.unit_size, count)
    return device.serve(make_requests(WRITE, units * flash.unit_size, flash.unit_size), at, settle=False)


@dataclass(frozen=True)
class Validation:
    """Claims on drives, judged."""

    #: One a claim, in order.
    judgements: Sequence[Judgement]
    results: Results

    def rows(self) -> list[dict[str, Any]]:
        """A row a published number: what it is, both sides, what the null model says, and whether it was fitted."""
        return [
            {
                "claim": each.claim.id,
                "drive": cell.name.partition(" at ")[0],
                "at": cell.name.partition(" at ")[2] or None,
                "unit": each.claim.values["unit"],
                "variant": cell.variant,
                "published": cell.published,
                "simulated": cell.measured,
                "difference": cell.values[0] / float(cell.published or 0) - 1 if cell.values[0] is not None else None,
                "null": null.measured if alike[cell.variant, cell.row] > 1 else None,
                "inside": cell.inside,
                "rests on": "experiment" if cell.variant else "fitted" if cell.calibrates else "predicted",
            }
            for each in self.judgements
            for alike in [Counter((cell.variant, cell.row) for cell in each.cells)]  # of a lone number the model would be the number
            for cell, null in zip(each.cells, each.null_cells, strict=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: claims as ``reproduce`` writes them, with the cells' fitted and predicted apart."""
        scale = self.results.settings.scale
        claims = [each.as_dict(scale) for each in self.judgements]
        return {"reference": reference(), "scale": scale, "claims": claims, "numbers": self.rows()}

    def title(self) -> str:
        """Numbers inside their limits, predicted and fitted."""
        cells = [cell for each in self.judgements for cell in each.cells if not cell.variant]
        parts = []
        for word, fitted in (("predicted", False), ("fitted", True)):
            inside = [cell.inside for cell in cells if cell.calibrates is fitted]
            parts.append(f"{sum(map(bool, inside))} of {len(inside)} {word} numbers")
        return f"{reference()}: {' and '.join(parts)} inside"


@cache
def _document() -> Mapping[str, Any]:
    return tomllib.loads(_CLAIMS.read_text(encoding="utf-8"))


def reference() -> str:
    return str(_document()["reference"])


@cache
def claims() -> tuple[Claim, ...]:
    parameters = {name: ChosenParameter(name, entry["how"], entry["from"]) for name, entry in _document()["parameters"].items()}
    parts = ("id", "title", "source", "tolerance", "null", "limits", "published")
    return tuple(
        Claim(
            "published",
            rests_on=[parameters[name] for name in entry.get("rests_on", ())],
            cause=entry.get("cause", ""),
            values=entry,
            **{key: entry[key] for key in parts},
        )
        for entry in _document()["claims"]
    )


def _figure(name: str) -> Callable[[Claim, str, Any, Any], float]:
    return lambda claim, drive, column, result: float(result[name])


#: The function of a claim's runs, what reads a number from its result, and the argument that a column is.
_RUNS: dict[str, tuple[Any, Callable[[Claim, str, Any, Any], float], str]] = {
    "first": (first, _figure("kIOPS"), ""),
    "steady": (steady, _figure("kIOPS"), ""),
    "amplification": (steady, _figure("amplification"), "used"),
    "tail": (tail, _figure("p99.9"), "rate"),
    "cliff": (filling, _cliff, ""),
}


def _columns(claim: Claim, drive: str) -> list[Any]:
    columns: list[Any] = claim.values["columns"]
    words: list[Any] = claim.values.get("places", {}).get(drive, columns)
    return words


def _job(claim: Claim, drive: str, column: Any, settings: Settings, changes: Mapping[str, Any]) -> Job:
    run, _, argument = _RUNS[claim.values["run"]]
    arguments: dict[str, Any] = {"name": drive, "scale": settings.scale, "seed": settings.seed}
    arguments |= ({argument: column} if argument else {}) | ({"changes": dict(changes)} if changes else {})
    return Job.of(run, f"{claim.id} of {_name(drive, column if argument else '')}", **arguments)


def _name(drive: str, column: Any) -> str:
    return drive if not column else f"{drive} at {column}" if isinstance(column, str) else f"{drive} at {column:,}"


def _setups(claim: Claim, settings: Settings, experiments: bool) -> list[tuple[str, Any, float, str, Job]]:
    """A claim's published numbers by drive and column, each with the run behind it, and again for every variant of the drives."""
    own: dict[str, Mapping[str, Any]] = {"": {"drives": list(claim.published), "changes": {}}}
    variants = own | (claim.values.get("variants", {}) if experiments else {})
    return [
        (drive, column, number, variant, _job(claim, drive, column, settings, entry["changes"]))
        for variant, entry in variants.items()
        for drive in entry["drives"]
        for column, number in zip(_columns(claim, drive), claim.published[drive], strict=True)
    ]


def judge_runs(claim: Claim, results: Results, experiments: bool = False) -> Judgement:
    """A claim by its runs; cells from which a parameter was solved are fitted."""
    read, limit = _RUNS[claim.values["run"]][1], claim.limits["each"]
    solved = [parameter for parameter in claim.rests_on if claim.id in parameter.solved_from]
    cells = []
    for drive, column, published, variant, job in _setups(claim, results.settings, experiments):
        name, result = _name(drive, column), results.get(job)
        fitted = not variant and any(each.is_solved_from(claim.id, name) for each in solved)
        value = None if result is None else read(claim, drive, column, result)
        row = column if isinstance(column, str) else ""
        cells.append(number(name, published, value, limit, row=row, variant=variant, runs=(job.id,), calibrates=fitted))
    return Judgement(claim, cells)


def validate(ids: Sequence[str], settings: Settings, progress: Progress | None = None, *, experiments: bool = False) -> Validation:
    """Make the runs of claims, those that are kept from before excepted, and judge them.

    Runs that show the cause of a difference are made if asked for: cells of variants, which decide nothing.
    """
    chosen = [claim for claim in claims() if claim.id in ids]
    jobs = [job for claim in chosen for *_, job in _setups(claim, settings, experiments)]
    results = make(jobs, settings, progress, ("page",), kinds=("ssd",))
    return Validation([judge_runs(claim, results, experiments) for claim in chosen], results)

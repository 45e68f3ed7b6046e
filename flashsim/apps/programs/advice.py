"""A study of drives under one load: runs of each drive, made once and kept, and what they say of it."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from flashsim.apps.programs.drive_parts import LoadSize, part_for, units_of
from flashsim.apps.programs.load_runs import LATENCIES, LoadStudy, TraceLoad, find_load, ready_drive, run_endlessly
from flashsim.apps.programs.load_search import BEYOND
from flashsim.core.errors import CapacityError, InvalidParameterError, UnknownNameError
from flashsim.core.processes import free_memory
from flashsim.core.protocols import Progress
from flashsim.core.units import GIB, MIB, MICROSECONDS, SECONDS, format_duration, format_size, parse_duration
from flashsim.device import engines, presets
from flashsim.experiments.replaying import preconditioning
from flashsim.experiments.replaying.simulated import ReplaySettings
from flashsim.experiments.replaying.survey import Survey, warn_of
from flashsim.experiments.runs import kept
from flashsim.experiments.runs.jobs import Job, Settings, make
from flashsim.experiments.why.answers import RunWhy
from flashsim.experiments.why.replays import why_replay

#: All drives that are simulated.
ALL = "all"
#: Bytes of memory that a run takes, about: for each mapping unit of a flash drive and of its copies, and besides; and those of all runs.
_ROOM, _BASE, _MEMORY = 24, 250 * MIB, 2 * GIB
#: Share of a study's time that repetitions take, about; the rest is the search for the load.
_REPEATS = 0.7
#: Drives of unknown life that a sentence names at most.
_NAMED = 3
_BOUND = re.compile(r"\s*([a-z0-9.]+)\s*=\s*(.+)")


@dataclass(frozen=True)
class Bound:
    """A latency of all requests together that must not be exceeded.

    Examples
    --------
    >>> Bound.parse("p99=2ms", "bound")
    Bound(latency='p99', most=2000000)
    """

    #: One of `flashsim.apps.programs.load_runs.LATENCIES`.
    latency: str
    #: In ns.
    most: int

    @classmethod
    def parse(cls, text: Any, parameter: str) -> Self:
        match = _BOUND.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InvalidParameterError(parameter, repr(text), "a latency and its bound are needed, such as p99=2ms")
        if match[1] not in LATENCIES:
            raise UnknownNameError(f"{parameter}: latency", match[1], LATENCIES)
        if (most := parse_duration(match[2], parameter)) <= 0:
            raise InvalidParameterError(parameter, text, "the bound must be above 0")
        return cls(match[1], most)

    def __str__(self) -> str:
        return f"{self.latency} within {format_duration(self.most)}"


@dataclass(frozen=True)
class AdviceStudy(LoadStudy):
    """Parameters of a study: `devices` are presets, or their files."""

    devices: Sequence[str]
    bound: Bound

    def load(self, device: str, preset: presets.Preset, what: Survey) -> TraceLoad:
        """The trace on one of the devices."""
        state = self.state if preset.flash else ""
        return TraceLoad(self.trace, self.format, device, state, self.seed, what.pace(), self.limit, written=self.written)


@dataclass(frozen=True)
class DriveAdvice:
    """Results of one drive's runs."""

    preset: presets.Preset
    study: AdviceStudy
    #: Results of `flashsim.apps.programs.load_runs.run_endlessly` and `find_load`; None where the drive was refused.
    repeated: Mapping[str, Any] | None = None
    load: Mapping[str, Any] | None = None
    #: Why it was.
    problem: str | None = None

    @property
    def name(self) -> str:
        return self.preset.name

    @property
    def greatest(self) -> float:
        """The greatest load as a multiple of the recorded one; infinite if no load breaks the bound."""
        assert self.load is not None
        return math.inf if self.load["greatest"] is None else self.load["greatest"]

    @property
    def is_load_settled(self) -> bool:
        """False where a flash drive had free blocks, or its rate still moved, all the time: in the long run it may carry less."""
        return self.repeated is None or bool(self.repeated["limit_settled"])

    @property
    def years(self) -> float | None:
        worn = self.repeated["wear"] if self.repeated else None
        return worn["years"] if worn else None

    @property
    def is_life_unknown(self) -> bool:
        """The trace writes to flash whose rated erases are not known."""
        return bool(self.repeated and self.repeated["wear"] and self.repeated["repetitions"][0]["written"]) and self.years is None

    @property
    def latency(self) -> float:
        """The latency that is bounded, ns, at the recorded load."""
        assert self.repeated is not None
        return float(self.repeated["latency"][self.study.bound.latency])

    @property
    def certainty(self) -> tuple[int, int]:
        """Repetitions of the recorded load in which the bound holds, and all: the drive's state differs from one to the next."""
        assert self.repeated is not None
        bound, every = self.study.bound, self.repeated["latencies"]
        return sum(each[bound.latency] <= bound.most for each in every), len(every)

    @property
    def energy(self) -> tuple[float | None, float | None]:
        """Energy of the trace as recorded, J, and its mean power, W; None: not known."""
        report = self.repeated["report"] if self.repeated else {}
        joules = (report.get("energy") or {}).get("total")
        return joules, joules / (report["duration"] / SECONDS) if joules and report["duration"] else None

    @property
    def performance(self) -> str:
        """What keeps the drive from a greater load than `greatest`: a latency beyond the bound, or else its throughput."""
        assert self.load is not None and self.repeated is not None
        bound, limit = self.study.bound, self.repeated["limit"] or math.inf
        broken = any(tried[bound.latency] > bound.most for tried in self.load["tried"] if tried["speed"] <= limit)
        return "latency" if broken else "throughput"

    @property
    def decides(self) -> str:
        """Limit of the drive's load: its latency, its throughput, its life, or nothing that was looked at."""
        if self.problem:
            return ""
        if self.greatest < 1:
            return self.performance
        if self.years is not None and self.years < self.study.years:
            return "life"
        if self.years is not None and self.years / self.study.years < self.greatest:
            return "life, at more load"
        return "nothing" if math.isinf(self.greatest) else f"{self.performance}, at more load"

    @property
    def proviso(self) -> str:
        """Words behind a load that may hold for some time alone."""
        return "" if self.is_load_settled else ", by a rate that had not settled"

    @property
    def carries(self) -> float:
        """The greatest load at which the bound holds and the drive lives as long as is needed."""
        return min(self.greatest, math.inf if self.years is None else self.years / self.study.years)

    def row(self) -> dict[str, Any]:
        """Latencies (us), greatest load, write amplification, years, and energy (J, W on average); JSON-ready, None: not known."""
        row: dict[str, Any] = {"device": self.name, "kind": self.preset.kind, "capacity": self.preset.capacity}
        if self.repeated is None or self.load is None:
            return row | {"problem": self.problem}
        row |= {f"{name}_us": value / MICROSECONDS for name, value in self.repeated["latency"].items()}
        row |= {"greatest_load": self.load["greatest"], "throughput_load": self.repeated["limit"], "load_settled": self.is_load_settled}
        row |= {"holds": self.greatest >= 1, "decides": self.decides}
        worn = self.repeated["wear"] or {}
        row |= {"simulated": self.repeated["capacity"], "folded": self.repeated["folded"]}
        row |= {"write_amplification": worn.get("write_amplification"), "settled": self.repeated["settled"], "years": self.years}
        row |= {"life_unknown": self.is_life_unknown}
        kept_repetitions, repetitions = self.certainty
        row |= {"kept_repetitions": kept_repetitions, "repetitions": repetitions}
        joules, watts = self.energy
        return row | {"energy_j": joules, "watts": watts}

    def sentence(self) -> str:
        """Life, power and certainty at the recorded load."""
        (joules, watts), (kept_repetitions, repetitions) = self.energy, self.certainty
        life = "has an unknown life" if self.is_life_unknown else f"lives {self.years:.3g} years" if self.years else ""
        power = f"takes {watts:.3g} W, {joules:.3g} J in all" if watts and joules else ""
        often = f"keeps the bound in {kept_repetitions} of {repetitions} repetitions" if repetitions > 1 else ""
        words = [each for each in (life, power, often) if each]
        return f" At the recorded load it {', '.join(words[:-1])}{' and ' if words[1:] else ''}{words[-1]}." if words else ""


@dataclass(frozen=True)
class Advice:
    """Results of a study."""

    study: AdviceStudy
    what: Survey
    #: Those that carry most first, of equal ones those of the lowest latency, then those that were refused.
    drives: Sequence[DriveAdvice]
    recalled: int = 0

    def title(self) -> str:
        return f"{self.study.name}: {self.what.requests:,} requests on {len(self.drives)} drives, {self.study.bound}"

    def rows(self) -> list[dict[str, Any]]:
        return [each.row() for each in self.drives]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: the rows; and by device the report of the trace as recorded, repetitions, and loads that were tried."""
        asked = asdict(self.study) | {"devices": list(self.study.devices), "stamps": None, "trace": None}
        runs = {each.name: {**each.repeated, "loads": each.load["tried"]} for each in self.drives if each.repeated and each.load}
        return {"study": asked, "verdict": self.verdict(), "drives": self.rows(), "runs": runs}

    def verdict(self) -> str:
        study, able = self.study, [each for each in self.drives if not each.problem]
        if not able:
            return f"None of {len(self.drives)} drives takes the trace: {self.drives[0].problem}."
        within = [each for each in able if each.greatest >= 1]
        best = able[0]
        if not within:
            words = f"none of {len(able)} drives carries the recorded load with {study.bound}"
            (decides,) = causes if len(causes := {each.performance for each in able}) == 1 else ("",)
            words = f"{decides.capitalize()} decides: {words}" if decides else words.capitalize()
            if decides == "latency":
                closest = min(able, key=lambda each: each.latency)
                words += f"; {closest.name} comes closest, with {format_duration(round(closest.latency))}"
            most = max(able, key=lambda each: each.greatest)
            return (
                f"{words}; {most.name} carries most, {most.greatest:.2g} times that load{most.proviso}." if most.greatest else f"{words}."
            )
        unknown = [each.name for each in within if each.is_life_unknown]
        living = [each for each in within if not each.is_life_unknown and (each.years is None or each.years >= study.years)]
        if not living and not unknown:
            longest = max(within, key=lambda each: each.years or 0)
            return (
                f"Life decides: {len(within)} of {len(able)} drives keep {study.bound}, but none lives {study.years:g} years; "
                f"{longest.name} lives longest, {longest.years:.2g} years."
            )
        words = f"{len(living)} of {len(able)} drives keep {study.bound}"
        words += "" if len(living) == len(within) else f" and live {study.years:g} years"
        words += f", {len(unknown)} more keep it and have an unknown life ({', '.join(unknown[:_NAMED])})" if unknown else ""
        if math.isinf(best.carries):
            others = ", nor that of ".join(each.name for each in able if math.isinf(each.carries))
            return f"{words}; no load breaks the bound of {others}{best.proviso}."
        cause = "its life" if best.decides.startswith("life") else best.performance
        carries = f"{best.name} carries most, {best.carries:.3g} times the recorded load, where {cause} decides{best.proviso}"
        ties = [each.name for each in able[1:] if each.carries * BEYOND >= best.carries]
        equals = f" {' and '.join(ties)} {'carries' if len(ties) == 1 else 'carry'} as much, within {BEYOND - 1:.0%}." if ties else ""
        return f"{words}; {carries}.{best.sentence()}{equals}"


def names_of(texts: Iterable[str]) -> list[str]:
    """Presets by name or file, with commas between; ``all`` stands for each flash drive and disk of the presets."""
    words = [word.strip() for text in texts for word in text.split(",") if word.strip()]
    every = [name for name in presets.names() if presets.load(name).kind in ("ssd", "hdd")] if ALL in words else []
    names = [each for word in words for each in (every if word == ALL else [word])]
    for name in names:
        presets.load(name)
    return list(dict.fromkeys(names))


def advise(study: AdviceStudy, what: Survey, settings: Settings, progress: Progress | None = None) -> Advice:
    """Run the trace on each drive, unless that is kept from before.

    Raises
    ------
    InvalidParameterError
        The trace has no times; an argument is out of its bounds.
    """
    if not what.timed:
        raise InvalidParameterError("trace", study.name, "it does not say when requests arrived, so it is not a load that could grow")
    if study.repeats < 1:
        raise InvalidParameterError("repeats", study.repeats, "it must be at least 1")
    warn_of(what, what.pace())
    drives, loads, problems = {device: presets.load(device) for device in study.devices}, dict[str, dict[str, Any]](), dict[str, str]()
    for device, preset in drives.items():
        try:
            loads[device] = _load_of(study, device, preset, what)
        except CapacityError as problem:
            problems[device] = str(problem)
    parts = list(dict.fromkeys(part for device in loads for part in engines.parts_for(drives[device])))
    room, free = max([_room(drives[device], study, what) for device in loads], default=_BASE), free_memory()
    settings = replace(settings, jobs=max(1, min(settings.jobs, min(free or _MEMORY, _MEMORY) // room)))
    repeated = {device: Job.of(run_endlessly, f"{device} as recorded", repeats=study.repeats, **load) for device, load in loads.items()}
    results = make(repeated.values(), settings, _stage(progress, 0, _REPEATS), parts=parts)
    bound, limits = study.bound, {device: results[job]["limit"] for device, job in repeated.items()}
    recorded = {device: _own_load(results[job]) for device, job in repeated.items()}
    bounded: dict[str, Any] = {"latency": bound.latency, "most": bound.most}
    tried = {
        device: Job.of(find_load, f"{device} at {bound}", recorded=recorded[device], limit=limits[device], **bounded, **load)
        for device, load in loads.items()
    }
    found = make(tried.values(), settings, _stage(progress, _REPEATS, 1), parts=parts)
    advised = [
        DriveAdvice(preset, study, results[repeated[device]], found[tried[device]])
        if device in loads
        else DriveAdvice(preset, study, problem=problems[device])
        for device, preset in drives.items()
    ]
    advised.sort(key=lambda each: (True, 0.0, 0.0) if each.problem else (False, -each.carries, each.latency))
    return Advice(study, what, advised, sum(run.recalled for runs in (results, found) for run in runs.runs.values()))


def _own_load(repeated: Mapping[str, Any]) -> dict[str, float]:
    """Latencies and duration of the trace as it was recorded."""
    return {"duration": repeated["report"]["duration"], **repeated["latency"]}


def _stage(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """The progress of a stage of a study, from one share of it to another."""
    if progress is None:
        return None
    return lambda done, total, message="": progress(begin + (end - begin) * done / total if total else begin, 1, message)


def why_load(advice: Advice, each: DriveAdvice, progress: Progress | None = None, *, exact: bool = False) -> RunWhy:
    """Take the trace as recorded on one of the drives apart."""
    device = next(name for name in advice.study.devices if presets.load(name).name == each.name)
    load = advice.study.load(device, each.preset, advice.what)
    what, original, _ = ready_drive(load)
    drive = original.copy()
    settings = ReplaySettings(load.pace, scale_offsets=what.reach > drive.capacity)
    return replace(why_replay(load.sources[0], drive, settings, what, load.limit, progress, exact=exact), device=each.name)


def _room(preset: presets.Preset, study: AdviceStudy, what: Survey) -> int:
    """Bytes of memory that a run of a drive takes, about."""
    flash = (preset if study.written is None else part_for(preset, LoadSize(what.reach, study.written))).flash
    return _BASE + _ROOM * units_of(flash) if flash else _BASE


def _load_of(study: AdviceStudy, device: str, preset: presets.Preset, what: Survey) -> dict[str, Any]:
    """Arguments of both runs of a drive: the load, and stamps of its files."""
    if what.reach > preset.capacity:
        raise CapacityError(f"it holds {format_size(preset.capacity)}, but the trace reaches to {format_size(what.reach)}")
    room, free = _room(preset, study, what), free_memory()
    if free is not None and room > free:
        raise CapacityError(f"it takes {format_size(room // GIB * GIB)} of memory, and {format_size(free // GIB * GIB)} are free")
    load = asdict(study.load(device, preset, what))
    if load["state"]:
        preconditioning.parse_state(load["state"], preset, parameter="state")
    return {"load": load, "stamps": dict(study.stamps) | kept.stamps([device])}

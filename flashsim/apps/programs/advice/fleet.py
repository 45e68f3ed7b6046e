"""Many drives under one load: each has a volume of the trace, or begins the trace at a place of its own, and a state of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.programs.advice.runs import Load, LoadStudy, run_briefly
from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.rng import generator
from flashsim.core.units import MICROSECONDS, SECONDS, format_duration, format_size
from flashsim.device import engines, presets
from flashsim.studies.presentation.plots import STEPS, panels, stroke
from flashsim.studies.presentation.tables import Table
from flashsim.studies.replaying import preconditioning
from flashsim.studies.replaying.survey import Survey, warn_of
from flashsim.studies.runs import kept
from flashsim.studies.runs.jobs import Job, Settings, make
from traces.file.excerpt import Source, requests_of

#: Percentiles of drives that the table has.
_SHARES = (0, 1, 10, 50, 90, 99, 100)


@dataclass(frozen=True)
class FleetStudy(LoadStudy):
    """Parameters of a study: the preset of all drives, whose states are drawn for each, and their number."""

    device: str
    count: int


@dataclass(frozen=True)
class Fleet:
    """Results of a study: a run a drive, in order of their numbers."""

    study: FleetStudy
    loads: Sequence[Load]
    runs: Sequence[Mapping[str, Any]]
    recalled: int = 0

    def title(self) -> str:
        return f"{self.study.name} on {len(self.runs):,} drives of {self.study.device}"

    def rows(self) -> list[dict[str, Any]]:
        """A row a drive: its volume, where the trace begins (s), latencies (us), write amplification and years; JSON-ready."""
        rows = []
        for number, (load, run) in enumerate(zip(self.loads, self.runs, strict=True)):
            row = {"drive": number, "volume": load.volume, "begin_s": load.begin / SECONDS, "requests": run["requests"]}
            row |= {f"{name}_us": value / MICROSECONDS for name, value in run["latency"].items()}
            wear = run["wear"] or {}
            rows.append(row | {"write_amplification": wear.get("write_amplification"), "years": wear.get("years")})
        return rows

    def failing(self) -> int:
        """Drives whose blocks have had their rated erases before the years that are needed."""
        return sum(row["years"] is not None and row["years"] < self.study.years for row in self.rows())

    def as_dict(self) -> dict[str, Any]:
        study = asdict(self.study) | {"trace": None, "stamps": None}
        percentiles = [
            {name: None if value != value else value for name, value in row.items()} for row in self.percentiles().to_dict("records")
        ]
        return {"study": study, "drives": self.rows(), "failing": self.failing(), "percentiles": percentiles}

    def percentiles(self) -> pd.DataFrame:
        """A row a percentile of drives: latencies (us), write amplification, years."""
        frame = pd.DataFrame(self.rows()).drop(columns=["drive", "volume", "begin_s", "requests"]).astype(float)
        rows = [frame.quantile(share / 100, interpolation="nearest") for share in _SHARES]
        return pd.DataFrame(rows).reset_index(drop=True).assign(share=_SHARES)

    def table(self) -> Table:
        rows = self.percentiles().to_dict("records")

        def time(value: float) -> str:
            return format_duration(round(value * MICROSECONDS))

        columns: dict[str, Any] = {"% of drives up to": "share"}
        columns |= {head: (f"{name}_us", time) for head, name in (("50 %", "p50"), ("99 %", "p99"), ("99.9 %", "p99.9"), ("worst", "max"))}
        return Table.of(rows, columns | {"write amplification": "write_amplification", "years": "years"}, title="percentiles")

    def verdict(self) -> str:
        """Sentence that says how many drives fail."""
        known = [row["years"] for row in self.rows() if row["years"] is not None]
        if not known:
            return "How long the drives live is not known: their rated erases are not, or nothing is written."
        failing = f"{self.failing():,} of {len(known):,} drives have had their rated erases before {self.study.years:g} years"
        return f"{failing}; the first after {min(known):.3g}."

    def figure(self) -> Figure:
        """The share of drives whose 99 % and worst latency is at most so long, and whose life is."""
        frame = pd.DataFrame(self.rows())
        has_life = int(frame["years"].notna().any())
        share = 100 * np.arange(1, len(frame) + 1) / len(frame)
        with panels(2.4 * (1 + has_life) + 0.4, 1 + has_life, squeeze=False) as (figure, grid):
            for number, name in enumerate(("p99", "max")):
                grid[0, 0].plot(np.sort(frame[f"{name}_us"]), share, label=name, **stroke(number) | STEPS)
            grid[0, 0].set(xscale="log", xlabel="latency, us", ylabel="drives, %")
            grid[0, 0].legend(frameon=False, fontsize=8)
            if has_life:
                years = np.sort(frame["years"].dropna())
                grid[1, 0].plot(years, 100 * np.arange(1, len(years) + 1) / len(frame), **stroke(0) | STEPS)
                grid[1, 0].set(xlabel="years", ylabel="drives worn out, %")
        return figure


def span_of(source: Source) -> int:
    """Nanoseconds from a trace's first arrival to its last."""
    first, last = -1, 0
    for batch in requests_of(source):
        if (arrival := batch.column("arrival").drop_null().to_numpy()).size:
            first, last = int(arrival[0]) if first < 0 else first, max(last, int(arrival.max()))
    return max(0, last - first)


def simulate(study: FleetStudy, what: Survey, span: int, settings: Settings, progress: Progress | None = None) -> Fleet:
    """Run the trace on each drive, unless that is kept from before; `span` is ns from the trace's first arrival to its last.

    Raises
    ------
    InvalidParameterError, CapacityError
        The trace has no times; it reaches beyond the drives' end.
    """
    preset = presets.load(study.device)
    if not what.timed:
        raise InvalidParameterError("trace", study.name, "it does not say when requests arrived, so that it is no load")
    if what.reach > preset.capacity:
        raise CapacityError(
            f"device: {preset.name} holds {format_size(preset.capacity)}, but the trace reaches to {format_size(what.reach)}"
        )
    if preset.flash:
        preconditioning.parse_state(study.state, preset, parameter="state")
    warn_of(what, what.pace())
    stamps = dict(study.stamps) | kept.stamps([study.device])
    loads = _loads(study, sorted(what.reaches), span, what.pace(), study.state if preset.flash else "")
    jobs = [
        Job.of(run_briefly, f"drive {number}", load=asdict(load), stamps=stamps, repeats=study.repeats) for number, load in enumerate(loads)
    ]
    results = make(jobs, settings, progress, parts=engines.parts_for(preset))
    return Fleet(study, loads, [results[job] for job in jobs], sum(run.recalled for run in results.runs.values()))


def _loads(study: FleetStudy, volumes: Sequence[int], span: int, pace: str, state: str) -> list[Load]:
    """The load of each drive: a volume in turn, or the only one from a time that is drawn for the drive."""
    several, loads = len(volumes) > 1, list[Load]()
    for number in range(study.count):
        draw = generator(study.seed, "fleet", number)
        state_seed, begin = int(draw.integers(1 << 31)), int(draw.integers(span + 1))
        volume = volumes[number % len(volumes)] if several else None
        load = Load(study.trace, study.format, study.device, state, state_seed, pace, study.limit, volume)
        loads.append(load if several or not number else replace(load, begin=begin))
    return loads

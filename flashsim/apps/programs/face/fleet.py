"""``flashsim fleet`` and ``fs.fleet``: many drives under one load.

Each has a volume of the trace, or begins the trace at a place of its own, and a state of its own.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Annotated, Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.programs.face.advise import Whole
from flashsim.apps.programs.load_runs import LoadStudy, TraceLoad, run_briefly, written_bytes
from flashsim.core.activity import activity
from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.rng import generator
from flashsim.core.units import MICROSECONDS, SECONDS, format_duration, format_size
from flashsim.device import engines, presets
from flashsim.experiments.presentation.plots import STEPS, panels, stroke
from flashsim.experiments.presentation.tables import Table
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.experiments.replaying import preconditioning as states
from flashsim.experiments.replaying.survey import Survey, survey, warn_of
from flashsim.experiments.runs import kept
from flashsim.experiments.runs.jobs import Job, Settings, make
from flashsim.operations import fields
from flashsim.operations.face._traces import TracePart, lasting, part_of, trace_file
from flashsim.operations.face.trace import Trace
from flashsim.operations.fields import Count, Name, Number
from flashsim.operations.operation import operation
from flashsim.operations.outcome import PICTURE, TABLE, Outcome
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
    loads: Sequence[TraceLoad]
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
        raise InvalidParameterError("trace", study.name, "it does not say when requests arrived, so it is not a load")
    if what.reach > preset.capacity:
        raise CapacityError(
            f"device: {preset.name} holds {format_size(preset.capacity)}, but the trace reaches to {format_size(what.reach)}"
        )
    if preset.flash:
        states.parse_state(study.state, preset, parameter="state")
    warn_of(what, what.pace())
    stamps = dict(study.stamps) | kept.stamps([study.device])
    loads = _loads(study, sorted(what.reaches), span, what.pace(), study.state if preset.flash else "")
    jobs = [
        Job.of(run_briefly, f"drive {number}", load=asdict(load), stamps=stamps, repeats=study.repeats) for number, load in enumerate(loads)
    ]
    results = make(jobs, settings, progress, parts=engines.parts_for(preset))
    return Fleet(study, loads, [results[job] for job in jobs], sum(run.recalled for run in results.runs.values()))


def _loads(study: FleetStudy, volumes: Sequence[int], span: int, pace: str, state: str) -> list[TraceLoad]:
    """The load of each drive: a volume in turn, or the only one from a time that is drawn for the drive."""
    several, loads = len(volumes) > 1, list[TraceLoad]()
    for number in range(study.count):
        draw = generator(study.seed, "fleet", number)
        state_seed, begin = int(draw.integers(1 << 31)), int(draw.integers(span + 1))
        volume = volumes[number % len(volumes)] if several else None
        load = TraceLoad(
            study.trace, study.format, study.device, state, state_seed, pace, study.limit, volume, written=study.written, keeps=False
        )
        loads.append(load if several or not number else replace(load, begin=begin))
    return loads


class FleetOutcome(Outcome):
    """Drives under a load, a row each: latencies, write amplification, and years until the rated erases are used up."""

    FILES = (TABLE, PICTURE)

    def failing(self) -> int:
        """Drives whose blocks have had their rated erases before the years that are needed."""
        return sum(row["years"] is not None and row["years"] < self.result.study.years for row in self.result.rows())

    def as_dict(self) -> dict[str, Any]:
        study = asdict(self.result.study) | {"trace": None, "stamps": None}
        percentiles = [
            {name: None if value != value else value for name, value in row.items()} for row in self.percentiles().to_dict("records")
        ]
        return {"study": study, "drives": self.result.rows(), "failing": self.failing(), "percentiles": percentiles}

    def percentiles(self) -> pd.DataFrame:
        """A row a percentile of drives: latencies (us), write amplification, years."""
        frame = pd.DataFrame(self.result.rows()).drop(columns=["drive", "volume", "begin_s", "requests"]).astype(float)
        rows = [frame.quantile(share / 100, interpolation="nearest") for share in _SHARES]
        return pd.DataFrame(rows).reset_index(drop=True).assign(share=_SHARES)

    def printout(self) -> Iterator[Part]:
        """Failures, and percentiles over drives."""
        yield from (self.title, "", Explanation(self.verdict()), "", self._table())
        yield from ("", next_steps("--plot FILE.svg draws all drives", "--out FILE.csv has one row per drive"))

    def verdict(self) -> str:
        """Sentence on the drives that fail."""
        known = [row["years"] for row in self.result.rows() if row["years"] is not None]
        if not known:
            return "How long the drives live is not known: their rated erases are not, or nothing is written."
        failing = f"{self.failing():,} of {len(known):,} drives have had their rated erases before {self.result.study.years:g} years"
        return f"{failing}; the first after {min(known):.3g} years."

    def _table(self) -> Table:
        rows = self.percentiles().to_dict("records")

        def time(value: float) -> str:
            return format_duration(round(value * MICROSECONDS))

        columns: dict[str, Any] = {"% of drives up to": "share"}
        columns |= {head: (f"{name}_us", time) for head, name in (("50 %", "p50"), ("99 %", "p99"), ("99.9 %", "p99.9"), ("worst", "max"))}
        return Table.of(
            rows,
            columns | {"write amplification": "write_amplification", "years": "years"},
            title="latency and life, by share of the drives",
        )

    def _draw(self) -> Figure:
        """The share of drives whose 99 % and worst latency is at most so long, and whose life is."""
        frame = pd.DataFrame(self.result.rows())
        has_life = int(frame["years"].notna().any())
        share = 100 * np.arange(1, len(frame) + 1) / len(frame)
        with panels(2.4 * (1 + has_life) + 0.4, 1 + has_life, squeeze=False) as (figure, grid):
            for number, name in enumerate(("p99", "max")):
                grid[0, 0].plot(np.sort(frame[f"{name}_us"]), share, label=name, **stroke(number) | STEPS)
            grid[0, 0].set(xscale="log", xlabel="latency (µs)", ylabel="drives (%)")
            grid[0, 0].legend(frameon=False, fontsize=8)
            if has_life:
                years = np.sort(frame["years"].dropna())
                grid[1, 0].plot(years, 100 * np.arange(1, len(years) + 1) / len(frame), **stroke(0) | STEPS)
                grid[1, 0].set(xlabel="years", ylabel="drives worn out (%)")
        return figure


@operation
def fleet(
    trace: Trace,
    *,
    device: Annotated[str, Name("Preset of all drives, or a TOML file.", "DEVICE", completes=("presets",))],
    drives: Annotated[int, Count("Number of drives.")] = 100,
    state: Annotated[
        str,
        Name("Initial state of flash drives, as --precondition of flashsim trace replay; drawn per drive.", "STATE", parse=states.state),
    ] = "random",
    repeats: Annotated[int, Count("Maximum number of repetitions of the trace, until write amplification settles.")] = 1,
    years: Annotated[float, Number("Required lifetime, years.", "N", parse=fields.positive("a number above 0 is needed"))] = 5.0,
    limit: Annotated[int | None, Count("Only the first N requests.")] = None,
    whole: Whole = False,
    jobs: fields.Jobs = None,
    cluster: Annotated[str | None, Name("A Dask scheduler whose workers execute the runs.", "ADDRESS", provenance=False)] = None,
    fresh: fields.Fresh = False,
    seed: fields.Seed = 0,
    **part: Unpack[TracePart],
) -> FleetOutcome:
    """Simulate a load on many drives of one kind.

    Reports tail latencies, write amplification and lifetimes over the drives.

    Of a trace of several devices each drive has one in turn. Otherwise each begins the trace at a time that is drawn for it, and goes on
    at its begin. Runs are kept, a drive each: one that was interrupted goes on where it stopped.

    Examples::

        flashsim fleet bnl.parquet --device toshiba-5400-320gb --drives 4 --limit 200 --json fleet.json --out drives.csv

    Examples
    --------
    >>> import flashsim as fs, pandas as pd
    >>> trace = pd.DataFrame({"operation": "read", "offset": [0, 65536, 4096], "length": 4096, "arrival": [0, 10**7, 2 * 10**7]})
    >>> fs.fleet(trace, device="toshiba-5400-320gb", drives=3, jobs=1).summary()["requests"].tolist()
    [3, 3, 3]
    """
    with trace_file(part_of(trace, part)) as source, activity("reading"):
        name, file = source.name, lasting(source, isinstance(trace, str | PathLike))
        what, span = survey(file), span_of(file)
        written = None if whole else written_bytes(file, limit)
    path, many = str(file.path), jobs or os.cpu_count() or 1
    study = FleetStudy(path, file.format, name, state, repeats, years, limit, seed, kept.stamps([path]), written, device, drives)
    with activity("drives") as progress:
        return FleetOutcome(simulate(study, what, span, Settings(jobs=many, fresh=fresh, cluster=cluster), progress))

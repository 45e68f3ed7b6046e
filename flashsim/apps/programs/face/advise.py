"""``flashsim advise`` and ``fs.advise``: which drive suits a load."""

import math
import os
from collections.abc import Iterator
from os import PathLike
from typing import Annotated, Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.programs.advice import ALL, Advice, AdviceStudy, Bound, DriveAdvice, names_of, why_load
from flashsim.apps.programs.advice import advise as study_of
from flashsim.apps.programs.load_runs import written_bytes
from flashsim.core.activity import activity
from flashsim.core.errors import option
from flashsim.core.units import MICROSECONDS, MILLISECONDS, format_duration, format_size
from flashsim.experiments.presentation.plots import MARKED, legend, lines, panels, stroke
from flashsim.experiments.presentation.report import Report, Section
from flashsim.experiments.presentation.tables import Table
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.experiments.replaying import preconditioning as states
from flashsim.experiments.replaying.survey import first_requests, survey
from flashsim.experiments.runs import kept
from flashsim.experiments.runs.jobs import Settings
from flashsim.operations import fields
from flashsim.operations.face._traces import TracePart, lasting, part_of, trace_file
from flashsim.operations.face._why_outcome import WhyOutcome, check_number, parts_of
from flashsim.operations.face.trace import Trace, served_share
from flashsim.operations.fields import Count, Flag, Name, Names, Number
from flashsim.operations.operation import operation
from flashsim.operations.outcome import PICTURE, REPORT, Outcome
from traces.file.excerpt import requests_of
from traces.file.page_trace import PAGE_SIZE
from traces.summary.miss_curve import MissCurve, curve_of

Whole = Annotated[bool, Flag("Simulate whole flash drives instead of a part with all channels and dies and fewer erase blocks.")]
_EXPLAINED = (
    "Latencies are of all requests as recorded. Load: the greatest multiple of the recorded one at which the bound holds and the drive "
    "keeps up, however long. Write amplification and life: as the trace is repeated, day and night. 'not yet': not settled after all "
    "repetitions; in the long run a load may be less. Simulated: the part of a flash drive that was, with all its channels "
    "and dies and fewer erase blocks (--whole: all of it); 'folded' if addresses count modulo its capacity."
)
_TIMES = ("p50", "p99", "p99.9", "max")
#: Drives of a picture; no more lines can be told apart.
_MOST_LINES = 12
#: Share of all hits that a memory worth its price serves.
_WORTH = 0.9


def memory_sentence(curve: MissCurve) -> str:
    """Memory that is worth its price."""
    if not (frames := curve.quantile(_WORTH)):
        return "No page is referenced twice by the trace's requests: more memory saves nothing."
    served, most = (1 - float(each) for each in curve.ratio([frames, curve.sizes[-1]]))
    memory = f"{format_size(frames * PAGE_SIZE)} of memory in front of the drive would serve {served:.0%}"
    references = f"what the trace's requests refer to on pages of {format_size(PAGE_SIZE)}"
    return f"{memory} of {references}, and any amount {most:.0%} (LRU)."


def advice_table(advice: Advice) -> Table:
    """A row a drive."""
    rows = []
    for row in advice.rows():
        load = "any" if row.get("holds") and row["greatest_load"] is None else f"{row['greatest_load']:.3g}" if "holds" in row else None
        load = f"{load} not yet" if load and row["greatest_load"] != 0 and not row["load_settled"] else load
        amplification = row.get("write_amplification")
        years = "unknown" if row.get("life_unknown") else row.get("years")
        part = None if "holds" not in row else format_size(row["simulated"]) + ", folded" * row["folded"]
        settled = None if amplification is None else f"{amplification:.2f}" + ("" if row["settled"] else " not yet")
        times = {name: format_duration(round(MICROSECONDS * row[f"{name}_us"])) for name in _TIMES if "holds" in row}
        rows.append(row | times | {"load": load, "part": part, "years": years, "amplification": settled})
    columns: dict[str, Any] = {"device": "device", "50 %": "p50", "99 %": "p99", "99.9 %": "p99.9", "worst": "max", "load": "load"}
    columns |= {
        "write amplification": "amplification",
        "life (years)": "years",
        "mean power (W)": "watts",
        "simulated": "part",
        "decides": "decides",
        "problem": "problem",
    }
    return Table.of(rows, columns, title="latency by percentile, greatest load and life")


def _wear_over_years(advice: Advice) -> Figure | None:
    """The share of rated erases that is used up over the years, a line a drive whose life is known; None if none is."""
    known = [each for each in advice.drives if each.years]
    if not known:
        return None
    horizon = np.linspace(0, 2 * advice.study.years, 50)
    series = {each.name: (horizon, np.minimum(100 * horizon / (each.years or 1), 100)) for each in known[:_MOST_LINES]}
    return lines(series, names=3, line={"marker": ""}, xlabel="years at the recorded load", ylabel="rated erases used (%)", ylim=(0, 102))


class AdviseOutcome(Outcome):
    """Drives under a load, those that carry most first, and hits over memory in front of the drive."""

    FILES = (PICTURE, REPORT)

    def __init__(self, advice: Any, memory: MissCurve, why: bool = False, exact: bool = False) -> None:
        super().__init__(advice)
        self.memory = memory
        able = [number for number, each in enumerate(advice.drives) if not each.problem] if why else []
        self._whys = [self.why(number, exact=exact).result for number in able]

    def drives(self) -> list[DriveAdvice]:
        """The drives, with what their runs showed."""
        return list(self.result.drives)

    def why(self, drive: int = 0, *, exact: bool = False) -> WhyOutcome:
        """Say why requests of the load as recorded take their time on a drive, by its place. `exact`: with Shapley values."""
        check_number("drive", drive, len(self.result.drives))
        with activity("why") as progress:
            return WhyOutcome(why_load(self.result, self.result.drives[drive], progress, exact=exact), self.provenance)

    def as_dict(self) -> dict[str, Any]:
        """The study JSON-ready, and hits over memory."""
        whys = {"why": {why.device: why.as_dict() for why in self._whys}} if self._whys else {}
        return self.result.as_dict() | {"memory": self.hits().to_dict("list")} | whys

    def loads(self) -> pd.DataFrame:
        """A row a drive and load that was tried: latencies (ns) and the run's time (ns)."""
        return pd.DataFrame([{"device": each.name} | tried for each in self.drives() if each.load for tried in each.load["tried"]])

    def hits(self) -> pd.DataFrame:
        """A row a size of memory in front of the drive (bytes), which doubles: the share of references to pages that it serves."""
        sizes = self.memory.doubling()
        return pd.DataFrame({"memory": sizes * PAGE_SIZE, "served": 1 - self.memory.ratio(sizes)})

    def verdict(self) -> str:
        """Sentence that says what decides."""
        sentence: str = self.result.verdict()
        return sentence

    def printout(self) -> Iterator[Part]:
        """The verdict, the drives, and what memory would save."""
        yield from (self.title, "", Explanation(self.verdict()), "", advice_table(self.result), "")
        yield Explanation(f"{memory_sentence(self.memory)} {_EXPLAINED}")
        for why in self._whys:
            yield from ("", why.title, *parts_of(why))
        steps = [] if self._whys else [f"{option('why')} explains the latencies"]
        yield from ("", next_steps(*steps, "flashsim fleet runs hundreds of one drive", "flashsim device list shows all drives"))

    def _draw(self) -> Figure:
        """The bounded latency over the load, a line a drive, and the bound."""
        bound = self.result.study.bound
        with panels(3.6) as (figure, axes):
            for number, each in enumerate([each for each in self.result.drives if each.load][:_MOST_LINES]):
                tried = [point for point in (each.load or {})["tried"] if math.isfinite(point["speed"])]
                speeds, times = [point["speed"] for point in tried], [point[bound.latency] / MILLISECONDS for point in tried]
                axes.plot(speeds, np.maximum(times, 1e-6), label=each.name, linewidth=1.2, **stroke(number) | MARKED)
            axes.axhline(bound.most / MILLISECONDS, color="#555555", linestyle=":", label=f"bound: {bound.most / MILLISECONDS:g} ms")
            axes.set(xscale="log", yscale="log", xlabel="load, multiples of the recorded one", ylabel=f"{bound.latency} latency (ms)")
            legend(figure, axes, 3)
        return figure

    def _report(self) -> Report:
        advice, hits, wear = self.result, self.hits(), _wear_over_years(self.result)
        sections = [
            Section("Drives", _EXPLAINED, [advice_table(advice)]),
            Section("Latency over load", f"Bound: {advice.study.bound}.", pictures={"latency_over_load": self._draw()}),
            Section("Wear over years", "", pictures={"wear_over_years": wear} if wear else {}),
            Section("Hits over memory", memory_sentence(self.memory), pictures={"hits_over_memory": served_share(hits)}),
        ]
        best = advice.drives[0]
        figures = [("requests", f"{advice.what.requests:,}"), ("drives", f"{len(advice.drives)}"), ("bound", str(advice.study.bound))]
        if not best.problem and best.carries:
            figures += [("carries most", best.name), ("load", "any" if math.isinf(best.carries) else f"{best.carries:.3g}")]
        frames = {"loads": self.loads(), "memory": hits}
        return Report(f"Drives for {advice.study.name}", advice.verdict(), figures, sections, self.provenance, frames)


@operation
def advise(
    trace: Trace,
    *,
    device: Annotated[
        Any, Names("Presets or TOML files, separated by commas; all: every flash drive and disk.", "DEVICE,...", completes=("presets",))
    ] = ALL,
    bound: Annotated[
        Any, Name("Latency bound, such as p99=10ms; mean, p50, p99, p99.9 or max.", "p99=TIME", parse=Bound.parse)
    ] = "p99=10ms",
    state: Annotated[
        str, Name("Initial state of flash drives, as --precondition of flashsim trace replay.", "STATE", parse=states.state)
    ] = "steady",
    repeats: Annotated[int, Count("Maximum number of repetitions of the trace, until write amplification settles.")] = 200,
    years: Annotated[float, Number("Required lifetime, years.", "N", parse=fields.positive("a number above 0 is needed"))] = 5.0,
    limit: Annotated[int | None, Count("Only the first N requests.")] = None,
    whole: Whole = False,
    jobs: fields.Jobs = None,
    fresh: fields.Fresh = False,
    seed: fields.Seed = 0,
    why: fields.Why = False,
    exact: fields.Exact = False,
    **part: Unpack[TracePart],
) -> AdviseOutcome:
    """Compare drives under a recorded load.

    Reports latencies at the recorded load, the highest load within the latency bound, write amplification, lifetime and energy.

    The trace needs times. Runs are kept: one that was interrupted goes on where it stopped.

    Examples::

        flashsim advise bnl.parquet --device ocz-core-60gb,toshiba-5400-320gb --bound p99=50ms --state sequential --repeats 4
        flashsim advise bnl.parquet --device toshiba-5400-320gb --bound max=1s --json advice.json --out-dir advice

    Examples
    --------
    >>> import flashsim as fs, pandas as pd
    >>> trace = pd.DataFrame({"operation": "read", "offset": [0, 65536, 4096], "length": 4096, "arrival": [0, 10**7, 2 * 10**7]})
    >>> result = fs.advise(trace, device="toshiba-5400-320gb", bound="p99=100ms")
    >>> result.summary()[["device", "holds"]].values.tolist()
    [['toshiba-5400-320gb', True]]
    """
    devices = names_of(device)
    with trace_file(part_of(trace, part)) as source:
        name = source.name
        with activity("reading"):
            file = lasting(source, isinstance(trace, str | PathLike))
            memory = curve_of(first_requests(requests_of(file), limit))
            written = None if whole else written_bytes(file, limit)
    path = str(file.path)
    study = AdviceStudy(path, file.format, name, state, repeats, years, limit, seed, kept.stamps([path]), written, devices, bound)
    settings = Settings(jobs=os.cpu_count() or 1 if jobs is None else jobs, fresh=fresh)
    with activity("runs") as progress:
        return AdviseOutcome(study_of(study, survey(file, limit), settings, progress), memory, why, exact)

"""``flashsim advise`` and ``fs.advise``: which drive suits a load."""

from __future__ import annotations

import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Unpack

import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.programs.advice import report
from flashsim.apps.programs.advice.session import ALL, AdviceStudy, Bound, DriveAdvice, names_of
from flashsim.apps.programs.advice.session import advise as study_of
from flashsim.core.activity import activity
from flashsim.operations import fields
from flashsim.operations.face._traces import lasting, part_of, trace_file
from flashsim.operations.face.trace import Trace
from flashsim.operations.fields import Count, Name, Names, Number
from flashsim.operations.operation import operation
from flashsim.operations.outcome import PICTURE, REPORT, Outcome
from flashsim.studies.presentation.terminal import Explanation, Part
from flashsim.studies.replaying import preconditioning as states
from flashsim.studies.replaying.survey import first_requests, survey
from flashsim.studies.runs import kept
from flashsim.studies.runs.jobs import Settings
from traces.file.excerpt import requests_of
from traces.summary.miss_curve import MissCurve, curve_of


class AdviseOutcome(Outcome):
    """Drives under a load, those that carry most first, and hits over memory in front of the drive."""

    FILES = (PICTURE, REPORT)

    def __init__(self, advice: Any, memory: MissCurve) -> None:
        super().__init__(advice)
        self.memory = memory

    def drives(self) -> list[DriveAdvice]:
        """The drives, with what their runs showed."""
        return list(self.result.drives)

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready."""
        return self.result.as_dict() | {"memory": self.hits().to_dict("list")}

    def loads(self) -> pd.DataFrame:
        """A row a drive and load that was tried: latencies (ns) and the run's time (ns)."""
        return report.loads_frame(self.result)

    def hits(self) -> pd.DataFrame:
        """A row a size of memory in front of the drive (bytes): the share of references to pages that it serves."""
        return report.memory_frame(self.memory)

    def verdict(self) -> str:
        """Sentence that says what decides."""
        sentence: str = self.result.verdict()
        return sentence

    def printout(self) -> Iterator[Part]:
        """The verdict, the drives, and what memory would save."""
        yield from (self.title, "", Explanation(self.verdict()), "", report.advice_table(self.result), "")
        yield Explanation(f"{report.memory_sentence(self.memory)} {report.EXPLAINED}")

    def _draw(self) -> Figure:
        return report.latency_over_load(self.result)

    def _write_report(self, folder: Path) -> None:
        report.write_report(folder, self.result, self.memory, self.provenance)


@operation
def advise(
    trace: Trace,
    *,
    device: Annotated[Any, Names("Presets or their files; all: every flash drive and disk.", "DEVICE,...", completes=("presets",))] = ALL,
    bound: Annotated[Any, Name("The latency that must be kept: mean, p50, p99, p99.9 or max.", "p99=TIME", parse=Bound.parse)] = "p99=10ms",
    state: Annotated[
        str, Name("Of flash drives before the trace, as --precondition of trace replay.", "STATE", parse=states.state)
    ] = "steady",
    repeats: Annotated[int, Count("The trace is repeated until write amplification has settled, so often at most.")] = 64,
    years: Annotated[float, Number("That a drive has to live.", "N", parse=fields.positive("a number above 0 is needed"))] = 5.0,
    limit: Annotated[int | None, Count("Only the first N requests.")] = None,
    jobs: fields.Jobs = None,
    fresh: fields.Fresh = False,
    seed: fields.Seed = 0,
    **part: Unpack[fields.TracePart],
) -> AdviseOutcome:
    """Compare drives under a load: latencies as recorded, the greatest load within a bound, write amplification and life, and energy.

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
    path = str(file.path)
    study = AdviceStudy(path, file.format, name, state, repeats, years, limit, seed, kept.stamps([path]), devices, bound)
    settings = Settings(jobs=os.cpu_count() or 1 if jobs is None else jobs, fresh=fresh)
    with activity("runs") as progress:
        return AdviseOutcome(study_of(study, survey(file, limit), settings, progress), memory)

"""``flashsim fleet`` and ``fs.fleet``: many drives under one load."""

from __future__ import annotations

import os
from collections.abc import Iterator
from os import PathLike
from typing import Annotated, Unpack

import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.programs.advice.fleet import FleetStudy, simulate, span_of
from flashsim.core.activity import activity
from flashsim.operations import fields
from flashsim.operations.face._traces import lasting, part_of, trace_file
from flashsim.operations.face.trace import Trace
from flashsim.operations.fields import Count, Name, Number
from flashsim.operations.operation import operation
from flashsim.operations.outcome import PICTURE, TABLE, Outcome
from flashsim.studies.presentation.terminal import Explanation, Part
from flashsim.studies.replaying import preconditioning as states
from flashsim.studies.replaying.survey import survey
from flashsim.studies.runs import kept
from flashsim.studies.runs.jobs import Settings


class FleetOutcome(Outcome):
    """Drives under a load, a row each: latencies, write amplification, and years until the rated erases are used up."""

    FILES = (TABLE, PICTURE)

    def percentiles(self) -> pd.DataFrame:
        """A row a percentile of drives: latencies (us), write amplification, years."""
        frame: pd.DataFrame = self.result.percentiles()
        return frame

    def printout(self) -> Iterator[Part]:
        """Failures, and percentiles over drives."""
        yield from (self.title, "", Explanation(self.result.verdict()), "", self.result.table())

    def _draw(self) -> Figure:
        figure: Figure = self.result.figure()
        return figure


@operation
def fleet(
    trace: Trace,
    *,
    device: Annotated[str, Name("The preset of all drives, or its file.", "DEVICE", completes=("presets",))],
    drives: Annotated[int, Count("Number of drives.")] = 100,
    state: Annotated[
        str, Name("Of flash drives before the trace, as --precondition of trace replay; drawn for each.", "STATE", parse=states.state)
    ] = "random",
    repeats: Annotated[int, Count("The trace is repeated until write amplification has settled, so often at most.")] = 1,
    years: Annotated[float, Number("That a drive has to live.", "N", parse=fields.positive("a number above 0 is needed"))] = 5.0,
    limit: Annotated[int | None, Count("Only the first N requests.")] = None,
    jobs: fields.Jobs = None,
    cluster: Annotated[str | None, Name("A Dask scheduler, whose workers make the runs.", "ADDRESS", provenance=False)] = None,
    fresh: fields.Fresh = False,
    seed: fields.Seed = 0,
    **part: Unpack[fields.TracePart],
) -> FleetOutcome:
    """Run a load on many drives of one kind: tails, write amplification and lives over drives.

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
    path, many = str(file.path), jobs or os.cpu_count() or 1
    study = FleetStudy(path, file.format, name, state, repeats, years, limit, seed, kept.stamps([path]), device, drives)
    with activity("drives") as progress:
        return FleetOutcome(simulate(study, what, span, Settings(jobs=many, fresh=fresh, cluster=cluster), progress))

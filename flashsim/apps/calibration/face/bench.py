"""``flashsim device bench`` and ``fs.bench``: a device measured with the micro-benchmarks of uFLIP, or with AIOMicrobench."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.calibration import bench_session
from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, option
from flashsim.core.units import MB, MICROSECONDS, format_duration, format_size
from flashsim.device.figures import show
from flashsim.experiments.bench.uflip import Method
from flashsim.experiments.presentation.report import Report, Section
from flashsim.experiments.presentation.tables import difference, with_caption
from flashsim.experiments.presentation.terminal import Part, next_steps
from flashsim.operations import fields
from flashsim.operations.face._device_arguments import AllowWrite
from flashsim.operations.face._drive_run import TimelineFile, TimelineFrom, TimelineTo, timeline_writer
from flashsim.operations.fields import Count, Field, Flag, Name, Names, commas
from flashsim.operations.operation import operation, origin
from flashsim.operations.outcome import REPORT, Outcome

_DEVICE = "A preset's name, a TOML file, or the path of a real file or block device."
_ONLY = "Run only this micro-benchmark: {benchmarks}; with --set aio: read, write. May be repeated."


class BenchOutcome(Outcome):
    """Results of micro-benchmarks."""

    FILES = (replace(REPORT, option="--out"),)

    def __init__(self, result: bench_session.BenchSession, provenance: dict[str, Any] | None = None) -> None:
        super().__init__(result, f"{result.device}: {len(result.runs)} runs over {format_size(result.size)}; {result.state}", provenance)
        self.lead = f"{result.device}, {format_size(result.size)}; state: {result.state}; {format_duration(result.pause)} between runs"

    def printout(self) -> Iterator[Part]:
        yield f"{self.lead}\n"
        if self.result.figures:
            yield from (bench_session.figures_table(self.result.figures), "")
        for tables in bench_session.tables_of(self.result.runs, self.result.set).values():
            for table in tables:
                yield from (table, "")
        yield next_steps("--out-dir DIR draws them", "docs/how-to/benchmark-a-device.md explains the patterns")

    def _report(self) -> Report:
        """A picture a micro-benchmark, unless it has a single value."""
        result, style, tiles = self.result, bench_session.STYLES[self.result.set], []
        for one in result.figures:
            beside = "" if one.difference is None else f" ({difference(one.difference)})"
            tiles.append((one.name.replace("_", " "), show(one.name, one.measured) + beside))
        figures = bench_session.figures_table(result.figures)
        sections = [Section("What matters", tables=[style.overview(result.runs)])] if len(result.runs) else []
        sections += [Section(figures.attrs["title"], tables=[with_caption(figures, title="figures")])] if tiles else []
        for name, own in result.runs.groupby("benchmark", sort=False):
            pictures = {str(name): style.picture(own)} if own["value"].nunique() > 1 else {}
            sections.append(Section(str(name).capitalize(), tables=style.tables(own), pictures=pictures))
        return Report(f"{style.title} on {result.device}", self.lead, tiles, sections, self.provenance)

    def summary(self) -> pd.DataFrame:
        """A row a micro-benchmark, pattern and value of its parameter: response times (us) and MB/s."""
        runs = self.result.runs
        names = {"min_us": "minimum", "mean_us": "mean", "p99_us": "p99", "max_us": "maximum"}
        times = {name: runs[column] / MICROSECONDS for name, column in names.items()}
        return runs[["benchmark", "pattern", "parameter", "value"]].assign(**times, mb_per_s=runs["bandwidth"] / MB)

    def figures(self) -> pd.DataFrame:
        """A row a nominal figure of a preset: measured, cited, and by how much they differ; none where only some benchmarks ran."""
        return pd.DataFrame(self.result.figures, columns=["figure", "measured", "cited", "source", "difference"]).drop(columns="source")

    def _draw(self) -> Figure:
        runs = self.result.runs
        return bench_session.STYLES[self.result.set].picture(runs[runs["benchmark"] == runs["benchmark"].iloc[0]])


def _level(value: Any, parameter: str) -> int:
    if isinstance(value, str):
        if not value.strip().isdecimal():
            raise InvalidParameterError(parameter, repr(value), "whole numbers with commas between them are needed, such as 1,8,64")
        return int(value)
    return fields.count(value, parameter)


def _state(value: Any, parameter: str) -> float | str:
    return value if isinstance(value, str) else fields.number("a share is needed, or the name of a state")(value, parameter)


@operation
def bench(
    device: Annotated[str, Name(_DEVICE, "DEVICE", completes=("presets",), argument=True)],
    only: Annotated[Any, Names(_ONLY, "NAME", completes=("benchmarks",), python="The first is drawn.")] = None,
    *,
    set: Annotated[
        str, Name("Benchmark set: uflip, or aio (bandwidth over I/O size and queue depth).", "SET", completes=("sets",))
    ] = "uflip",
    sizes: Annotated[Any, Field("With --set aio: I/O sizes (4KiB,8KiB to 1MiB).", "SIZE,...", commas(fields.size))] = None,
    levels: Annotated[Any, Field("With --set aio: queue depths (1,2,4 to 64).", "N,...", commas(_level))] = None,
    size: fields.PartOfDevice = None,
    count: Annotated[int | None, Count("Requests per run (1,024; --quick: 256; aio: 128).")] = None,
    quick: Annotated[bool, Flag("Fewer values, shorter runs, and 1 GiB of a simulated drive.")] = False,
    state: Annotated[
        float | str,
        Field("Initial state of a simulated drive; random by default.", "SHARE", _state, kind=float, python="A text is a precondition."),
    ] = 0.1,
    precondition: fields.Precondition = None,
    ignore: Annotated[
        int | None, Count("Requests of the start-up phase that are ignored; detected by default.", parse=fields.least(0))
    ] = None,
    pause: Annotated[str, Name("Pause between runs; auto: measured by a probe.", "TIME")] = "auto",
    timeline: TimelineFile = None,
    timeline_from: TimelineFrom = None,
    timeline_to: TimelineTo = None,
    allow_write: AllowWrite = False,
    seed: Annotated[int, Count("Random seed of the places.", parse=fields.seed)] = 0,
    force: fields.Force = False,
) -> BenchOutcome:
    """Measure a device with micro-benchmarks.

    The nine of uFLIP (CIDR 2009), or with --set aio those of AIOMicrobench (Shin et al., SAC 2016).

    A simulated drive's nominal figures are measured as well, beside those that its preset cites. A real file or block device is only read,
    unless --allow-write is given; then what it holds is lost. --precondition takes the place of the state that --state describes, and
    extends over the whole drive.

    --set aio hands over sets of requests to random places at once, waits for all of a set, and hands over the next: bandwidth and latency
    over the size of a request and their number in a set, up to what the kernel allows on a real device.

    Examples::

        flashsim device bench ocz-core-60gb --quick --only granularity --out granularity
        flashsim device bench memoright-gt-32gb --quick --only order --only mix --json bench.json
        flashsim device bench mtron-msd-sata3025-16gb --quick --only locality --precondition steady
        flashsim device bench micron-p300 --set aio --quick --only write --out aio
        flashsim device bench ./disk.bin --allow-write --size 8MiB --quick --only parallelism --pause 1ms

    Examples
    --------
    >>> import flashsim as fs
    >>> provenance = fs.bench("toshiba-5400-320gb", "granularity", quick=True, count=16)
    >>> provenance.summary()["pattern"].unique().tolist()
    ['SR', 'RR', 'RW', 'SW']
    """
    if set == "aio":
        fields.refuse({"ignore": ignore, "pause": pause != "auto"}, "the set aio has no such runs; only uflip has")
    fields.refuse(
        {"precondition": precondition and state != 0.1}, option("state") + " says in which state the drive begins; take one of them"
    )
    share, begins = (0.1, state) if isinstance(state, str) else (state, precondition)
    method = Method(share, None if pause == "auto" else fields.duration(pause, "pause"), ignore, seed)
    options = bench_session.Options(only or (), size, count, quick, allow_write, force, begins, set, sizes or (), levels or ())
    drawing = timeline_writer(timeline, timeline_from, timeline_to, origin())
    with activity("runs") as progress:
        return BenchOutcome(bench_session.bench(device, options, method, progress, drawing))

"""``flashsim validate ssd`` and ``fs.validate``: presets of flash drives held against what others measured on the drives."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.calibration.validation import published, random_reads
from flashsim.apps.calibration.validation import under_load as load_study
from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, RefusedError, option
from flashsim.core.parameters import check_once
from flashsim.experiments.presentation.plots import Beside, plot_beside_published
from flashsim.experiments.presentation.tables import Table, same
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.experiments.runs.jobs import Settings
from flashsim.operations import fields
from flashsim.operations.fields import Duration, Field, Flag, Name, Number
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Outcome

_CLAIMS = ("first", "steady", "amplification", "tail", "cliff")
_DEVICE = (
    "DRIVE=PRESET for a drive of --under-load, by default the preset whose words all occur in its name; or the preset for --reads. "
    "May be repeated."
)
_SCALE = "Below 1: shorter runs, claims are not judged. Above 1: larger parts of drives, with --reads longer runs."
_claims = fields.each(fields.choice(*_CLAIMS))
#: Columns of the table, and those that only experiments fill.
_COLUMNS = ("claim", "drive", "at", "published", "simulated", "difference", "null", "inside", "rests on")


class PublishedOutcome(Outcome):
    """Published measurements of drives beside the same of their presets, fitted and predicted numbers apart."""

    def printout(self) -> Iterator[Part]:
        numbers = self.result.rows()
        columns = {"a constant" if name == "null" else name: name for name in _COLUMNS} | same(
            *(["variant"] if any(row["variant"] for row in numbers) else [])
        )
        columns["difference"] = "difference", "{:+.1%}".format
        rows = [row | {"inside": {True: "yes", False: "no"}.get(row["inside"], "-")} for row in numbers]
        scale = self.result.results.settings.scale
        if scale < published.JUDGED:
            small = f"At scale {scale:g} parts of drives are small: below scale {published.JUDGED} numbers are not judged."
            yield from (Explanation(small), "")
        yield from (Explanation(self.title), "", Table.of(rows, columns, title="numbers", digits=3), "")
        for each in self.result.judgements:
            claim = each.claim
            what = ", ".join(filter(None, [claim.title, claim.source, claim.values["unit"], claim.tolerance]))
            yield Explanation(f"{claim.id}: {each.verdict.value} ({what}). {each.note_at(1)}".rstrip(". ") + ".", "  ")
        yield Explanation("A constant: the best predictor without a simulation, see docs/explanation/verdicts.md.")
        yield next_steps("docs/explanation/ssd_validation.md shows the results at full size")

    def summary(self) -> pd.DataFrame:
        """A row a published number: both sides, the null model's, and whether it was fitted or predicted."""
        return pd.DataFrame(self.result.rows())

    def _draw(self) -> Figure:
        panels = {}
        for each in self.result.judgements:
            names, numbers = [cell.name for cell in each.cells], [float(cell.published or 0) for cell in each.cells]
            panels[each.claim.id] = Beside(names, numbers, [cell.values[0] for cell in each.cells], each.claim.limits["each"])
        return plot_beside_published(panels, "", "", share=False)


def _measures(summary: pd.DataFrame, name: Callable[[Any], str]) -> Figure:
    """A panel for each measure: its measured values beside the simulated ones, each with its name."""
    panels = {
        str(measure): Beside([*map(name, cells.itertuples())], cells["measured"].tolist(), cells["simulated"].tolist(), 0.1)
        for measure, cells in summary.groupby("measure", sort=False)
    }
    return plot_beside_published(panels, "", "", share=False)


def _table(frame: pd.DataFrame, keys: list[str], measures: Collection[str], title: str) -> Table:
    """One line per group of consecutive rows, one a measure: the keys of the group, then the entry `shown` of each row."""
    count = len(measures)
    lines = ([*frame[keys].iloc[at], *frame["shown"].iloc[at : at + count]] for at in range(0, len(frame), count))
    return Table([*keys, *measures], lines, title)


class LoadOutcome(Outcome):
    """Drives under load beside what was measured on them, and how far each measure is off."""

    def printout(self) -> Iterator[Part]:
        rows, errors = self.summary(), self.errors().rename(columns={"factor": "preset", "null_factor": "null"})
        rows["background"] = rows["background_per_s"].map("{:,.0f}".format)
        rows["shown"] = [f"{each.simulated:,.0f} / {each.measured:,.0f}" for each in rows.itertuples()]
        medians = errors.groupby("measure", sort=False)[["preset", "null"]].median().reset_index().assign(drive="median of drives")
        factors = pd.concat([errors, medians]).melt(["drive", "measure"], var_name="of", value_name="shown")
        names = [measure.removesuffix("_us").replace("_", " ") for measure in load_study.MEASURES]
        yield from (Explanation(self.title), "", _table(rows, ["drive", "background"], names, "rows"), "")
        yield from (_table(factors, ["drive", "of"], names, "errors"), "")
        few = min(self.result.samples, key=lambda row: min(row["reads"], row["writes"]))
        yield Explanation(
            f"Rows: simulated / measured, percentiles in us, simulated of {few['reads']:,} reads and {few['writes']:,} writes of the probe "
            f"(fewest: {few['drive']} at {few['background_per_s']:,.0f}). "
            "An error is a factor, the mean over a drive's rows, of which the saturated ones are one, their median. The null model is one "
            "number for all rows of a drive. A drive is predicted only on rows that nothing was fitted to."
        )

    def errors(self) -> pd.DataFrame:
        """A row a drive and measure: the error as a factor, and the null model's."""
        return pd.DataFrame(self.result.drives())

    def _draw(self) -> Figure:
        return _measures(self.summary(), lambda each: f"{each.drive} at {each.background_per_s:,.0f}")


class ReadsOutcome(Outcome):
    """Random reads of a preset beside those that were measured on the drive, and how far each measure is off."""

    def printout(self) -> Iterator[Part]:
        rows, errors, measures = self.summary(), self.errors(), random_reads.MEASURES
        rows["shown"] = [f"{each.simulated:,.0f} / {each.measured:,.0f}" for each in rows.itertuples()]
        errors["shown"] = errors["factor"].map("{:.3f}".format)
        yield from (Explanation(self.title), "", _table(rows, ["engine", "bs", "queue_depth", "processes"], measures, "rows"), "")
        yield from (_table(errors, ["engine", "bs"], measures, "errors"), "")
        yield Explanation(
            "Rows: simulated / measured, requests a second and percentiles in us. An error is a factor, the mean over rows. "
            "What the preset says was fitted is no prediction."
        )

    def errors(self) -> pd.DataFrame:
        """A row an engine, size and measure: the error as a factor."""
        return pd.DataFrame(self.result.errors())

    def _draw(self) -> Figure:
        return _measures(self.summary(), lambda each: f"{each.engine} {each.bs}, {each.processes} x {each.queue_depth}")


def _presets_by_name(value: Any, parameter: str) -> list[tuple[str, str]]:
    """Drives with their presets, of texts NAME=PRESET or of a mapping."""
    pairs = [f"{name}={fields.text(preset, parameter)}" for name, preset in value.items()] if isinstance(value, Mapping) else value
    parts = (text.rpartition("=") for text in fields.each(fields.text)(pairs, parameter))
    return [(drive, preset) for drive, _, preset in parts]


def _pairs(device: Any) -> dict[str, str]:
    check_once(option("device"), (drive for drive, _ in device or ()))
    for drive, preset in device or ():
        if not drive or not preset:
            pair = repr(f"{drive}{'=' * bool(drive)}{preset}")
            raise InvalidParameterError("device", pair, "NAME=PRESET is needed, a drive of the file and its preset")
    return dict(device or ())


def _one_preset(device: Any) -> str:
    names = [preset for drive, preset in device or () if not drive and preset]
    if len(names) != 1 or len(device) != 1:
        raise InvalidParameterError(
            "device", "none" if not device else "others", option("reads") + " needs one preset, such as samsung-980-pro-1tb"
        )
    return str(names[0])


@operation
def validate(
    *,
    under_load: Annotated[
        str | None, Name("Measurements of drives under load (CSV); each row is simulated and compared.", "FILE.csv", reads=True)
    ] = None,
    device: Annotated[
        Any,
        Field(_DEVICE, "NAME=PRESET", _presets_by_name, several=True, python="Or a mapping of drives to presets."),
    ] = None,
    reads: Annotated[
        str | None, Name("Measurements of random reads of one drive (CSV); each row is simulated and compared.", "FILE.csv", reads=True)
    ] = None,
    engine: Annotated[str | None, Name("Only the rows of this I/O engine, such as spdk.", "NAME", needs="reads")] = None,
    core_time: Annotated[Any, Duration("CPU time per request, such as 2.65us.", needs="reads")] = "0s",
    claim: Annotated[Any, Field(f"Claim to judge: {', '.join(_CLAIMS)}; all by default.", "NAME", _claims, several=True)] = None,
    scale: Annotated[float, Number(_SCALE, "F")] = 1.0,
    experiments: Annotated[bool, Flag("Also run the experiments that show why a claim differs.")] = False,
    jobs: fields.Jobs = None,
    seed: fields.Seed = 0,
    fresh: fields.Fresh = False,
) -> PublishedOutcome | LoadOutcome | ReadsOutcome:
    """Compare flash presets with published numbers.

    Fitted and predicted numbers are reported separately.

    Random writes of 4 KiB on full drives, first and in steady state; write amplification by what is in use; the 99.9th percentile of
    latencies. Simulated are parts of drives. Results are kept, so that an interrupted run goes on where it stopped.

    --under-load plays the rows of a file instead: columns ``drive``, ``used_gib``, ``background_per_s`` and ``probe_per_s`` say what six
    threads and a probe ask for, by the rules of SSD-iq's generator; ``achieved_per_s`` and ``read_p50_us``, ``read_p99_us``,
    ``read_p99.9_us`` and the same of writes what was measured. Errors of each drive come beside those of the best constant.

    --reads plays random reads of closed loops: ``engine``, ``rw``, ``bs``, ``queue_depth`` and ``processes`` are fio's, and ``iops``,
    ``p50_us`` and ``p99_us`` what was measured. The preset is the one that --device names.

    Examples::

        flashsim validate ssd --claim first --scale 0.1
        flashsim validate ssd --json ssd.json
        flashsim validate ssd --under-load measured.csv --device "My drive=micron-7450-pro-960gb" --json load.json
        flashsim validate ssd --reads reads.csv --device samsung-980-pro-1tb --engine spdk

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.validate(claim="amplification")  # doctest: +SKIP
    """
    if not published.LEAST_SCALE <= scale <= 100:
        raise InvalidParameterError("scale", scale, f"it must be at least {published.LEAST_SCALE} and at most 100")
    if under_load is not None or reads is not None:
        file = option("under-load" if under_load is not None else "reads")
        fields.refuse({"claim": claim, "experiments": experiments}, "the rows of " + file + " are judged, and no claims")
        fields.refuse({"reads": under_load and reads}, "the rows of " + file + " are judged; ask for one file at a time")
    elif device:
        raise RefusedError("device: it names presets of the drives of a file; give " + option("under-load") + " or " + option("reads"))
    settings = Settings(scale, jobs or os.cpu_count() or 1, seed, fresh)
    with activity("runs") as progress:
        if under_load is not None:
            return LoadOutcome(load_study.validate(Path(under_load), _pairs(device), settings, progress))
        if reads is not None:
            return ReadsOutcome(random_reads.validate(Path(reads), _one_preset(device), engine, core_time, settings, progress))
        return PublishedOutcome(published.validate(claim or _CLAIMS, settings, progress, experiments=experiments))

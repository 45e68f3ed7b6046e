"""``flashsim record`` and ``crash``, ``fs.record`` and ``fs.crash``: what a program asks of files, and what a power cut leaves of them."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import pyarrow.compute as pc

from flashsim.apps.programs import recorder
from flashsim.apps.programs.cutting import OUTCOMES, DriveRules, PowerCuts
from flashsim.apps.programs.images import PRINTED, snapshot
from flashsim.apps.programs.outcomes import CutReport
from flashsim.core.activity import activity
from flashsim.core.errors import RefusedError, option
from flashsim.core.processes import cores
from flashsim.core.units import SECONDS, format_size
from flashsim.device import presets
from flashsim.experiments.presentation.tables import Table, same, with_headings
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.operations import fields
from flashsim.operations.fields import Count, Duration, Field, Flag, Name, Names, Target
from flashsim.operations.operation import operation, origin
from flashsim.operations.outcome import Outcome
from traces.calls.schema import READS, SYNCS, WRITES, Recording

#: Files that are printed at most.
_FILES_SHOWN = 12
#: Of fewer bytes that the kernel counted, most may be directories and inodes, so that a share says nothing.
_LEAST_COUNTED = 256 << 10
#: Files of the system: libraries and what describes it.
_SYSTEM = r"/(usr|lib\w*|etc|bin|sbin)/"
#: Failures, cuts of which not all outcomes were tried, and their classes that were not, that are printed at most.
_SHOWN, _CUTS_SHOWN, _CLASSES_SHOWN = 20, 5, 4
#: Letters of a number that is printed to its last digit, at most.
_DIGITS = 18


class RecordOutcome(Outcome):
    """A recording of a program: its calls on files, and what the recording misses."""

    result: Recording

    def __init__(self, recording: Recording, title: str) -> None:
        super().__init__(recording, title)
        self.status = int(recording.facts["exit_code"])

    @property
    def seen_share(self) -> float | None:
        """Share of the bytes that the kernel counted as written which recorded calls explain; None where the kernel counted none."""
        kernel = self.result.facts.get("kernel_written_bytes")
        return min(1.0, self.result.facts["written_bytes"] / kernel) if kernel and kernel > 0 else None

    def calls(self) -> pd.DataFrame:
        """A row a call, by `traces.calls.schema.SCHEMA`."""
        frame: pd.DataFrame = self.result.table.to_pandas()
        return frame

    def summary(self) -> pd.DataFrame:
        """A row a file: calls that read, write and sync, and bytes that were read and written."""
        table = self.result.table
        files = table.filter(pc.and_(pc.equal(table["kind"], "file"), pc.greater_equal(table["file"], 0)))
        frame = files.select(["file", "path", "call", "result"]).to_pandas()
        frame["path"] = frame["path"].astype(str)
        of = {"reads": READS, "writes": WRITES, "syncs": SYNCS}
        for name, calls in of.items():
            frame[name] = frame["call"].isin(calls)
        moved = frame["result"].clip(lower=0).fillna(0).astype("int64")
        frame["bytes_read"], frame["bytes_written"] = moved * frame["reads"], moved * frame["writes"]
        sums = dict.fromkeys((*of, "bytes_read", "bytes_written"), "sum")
        rows = frame.groupby("file", sort=False).agg({"path": "last"} | sums)
        return rows.sort_values(["bytes_written", "bytes_read"], ascending=False).reset_index(drop=True)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: files, facts, and what is missed."""
        rows = self.summary().to_dict("records")
        return {"command": list(self.result.command), "files": rows, "missed": list(self.result.missed), **self.result.facts}

    def printout(self) -> Iterator[Part]:
        """Files, what the recording misses, and what it cost."""
        facts, rows = self.result.facts, self.summary()
        busy = rows[(rows.reads > 0) | (rows.writes > 0) | (rows.syncs > 0)]
        system = busy.path.str.match(_SYSTEM) & (busy.writes == 0)
        read, written = int(rows["bytes_read"].sum()), int(rows["bytes_written"].sum())
        yield from (self.title, f"{facts['seconds']:.2f} s; read from files: {format_size(read)}; written: {format_size(written)}", "")
        columns = same("path", "reads", "writes", "syncs", "bytes_read", "bytes_written")
        own = busy[~system]
        if len(own):
            yield with_headings(Table.of(own.head(_FILES_SHOWN).to_dict("records"), columns))
        more = [f"{len(own) - _FILES_SHOWN:,} more files"] if len(own) > _FILES_SHOWN else []
        more += [f"{system.sum():,} files of the system, which were only read"] if system.any() else []
        if more:
            yield Explanation(f"Besides {' and '.join(more)}; --json has all.")
        if (share := self.seen_share) is not None and facts["kernel_written_bytes"] >= _LEAST_COUNTED:
            kernel = format_size(facts["kernel_written_bytes"])
            yield f"Recorded writes explain {share:.0%} of {kernel} that the kernel counted as written, metadata of files included."
            folios = min(1.0, facts["written_folio_bytes"] / facts["kernel_written_bytes"])
            if folios > share + 0.01:
                yield f"They explain {folios:.0%} where the kernel counts whole folios (of several pages; ext4 since Linux 6.16)."
        for line in self.result.missed:
            yield f"not recorded: {line}"
        kept = ", and contents kept" if facts["contents"] else ""
        cost = f"Recording made the program at least {facts['cost_s']:.2f} s longer ({facts['calls_seen']:,} calls were seen{kept})."
        steps = (f"{name} takes the recording" for name in ("flashsim trace info", "flashsim advise"))
        yield from ("", Explanation(cost), next_steps(*steps))


@operation
def record(
    command: Annotated[
        Any, Names("The program and its arguments, after --.", "-- COMMAND ...", argument=True, python="A list of texts.")
    ] = None,
    *,
    out: Annotated[Any, Target("Target file of the recording.", "RUN.parquet")],
    pid: Annotated[int | None, Count("Attach to a running process until it exits or until Ctrl-C.")] = None,
    contents: Annotated[bool, Flag("Also record the written bytes.")] = False,
    calls_only: Annotated[bool, Flag("Record only system calls, without io_uring and mapped files; faster.")] = False,
    extents: Annotated[bool, Flag("Also record the extents of the files on their device at the end.")] = False,
    force: fields.Force = False,
) -> RecordOutcome:
    """Record the file accesses of a program.

    Reads, writes, syncs, renames and more of any program, unchanged, by thread, with their times.

    It needs strace. What strace cannot see (writes through mapped memory, requests of io_uring) is said. The exit code is the program's.

    Examples::

        flashsim record --out run.parquet -- python3 -c "open('shop', 'w').write('apples')"
        flashsim record --out again.parquet --contents --json run.json -- sh -c "echo pears > shop; sync shop"

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.record(["sh", "-c", "echo pears > shop"], out="run.parquet")  # doctest: +SKIP
    >>> result.summary()[["path", "writes", "bytes_written"]]  # doctest: +SKIP
    """
    if (command is None) == (pid is None):
        raise RefusedError("record: a command behind --, or " + option("pid") + "; one of them is needed")
    words: Sequence[str] = command or ()
    recording = recorder.record(words, pid, contents, extents=extents, calls_only=calls_only)
    recording.write(out, origin())
    title = f"{' '.join(words) if words else f'process {pid}'}: {recording.table.num_rows:,} calls recorded"
    return RecordOutcome(recording, title)


class PowerCutOutcome(Outcome):
    """Power cuts of a program: how many images they leave, and which of them fail.

    `with_flushes` are the same on a drive that honours flushes, where this one does not and something failed.
    """

    result: CutReport

    def __init__(self, report: CutReport, title: str, with_flushes: CutReport | None) -> None:
        super().__init__(report, title)
        self.with_flushes = with_flushes
        self.status = int(report.failed_images > 0)

    @property
    def verdict(self) -> str:
        """Outcome of the cuts, in a sentence."""
        report, other = self.result, self.with_flushes
        if not report.failed_images:
            which = "Every possible image passes" if report.is_complete else "Every image that was drawn passes"
            return f"{which}: {report.images:,} of {report.cuts:,} outcomes of cuts are distinct."
        sentence = f"{report.failed_images:,} of {report.images:,} images fail."
        if other is not None and not other.failed_images:
            return f"{sentence} It was the drive: with flushes honoured, none of {other.images:,} images fails."
        return sentence

    def summary(self) -> pd.DataFrame:
        """A row: calls that matter, outcomes of cuts, distinct images, and those that fail."""
        report = self.result
        return pd.DataFrame([{"calls": report.calls, "cuts": report.cuts, "images": report.images, "failed_images": report.failed_images}])

    def as_dict(self) -> dict[str, Any]:
        other = None if self.with_flushes is None else self.with_flushes.as_dict()
        return self.result.as_dict() | {"verdict": self.verdict, "with_flushes": other, "provenance": self.provenance}

    def printout(self) -> Iterator[Part]:
        """The verdict, and the shortest recipe of each failure."""
        yield from (self.title, self.verdict)
        if there := self.result.on_drive:
            broken = f"; {there['lost_durable']:,} lost what was durable" if there["lost_durable"] else ""
            yield f"On the simulated drive: {there['images']:,} images of {there['cuts']:,} cuts{broken}."
        for number, failure in enumerate(self.result.failures[:_SHOWN], 1):
            yield from ("", f"Failure {number}: power cut after {failure.call}", *(f"  {line}" for line in failure.recipe))
            line = (failure.output.splitlines() or ["it printed nothing"])[-1][:120]
            yield f"  the check: exit code {failure.answer.code}, {line}"
            yield f"  images that fail so: {failure.count:,}"
        if (more := len(self.result.failures) - _SHOWN) > 0:
            yield from ("", f"And {more:,} other failures; --json has all.")
        yield from self._coverage()
        yield from (f"not recorded: {line}" for line in self.result.missed)
        yield Explanation(f"The file ${PRINTED} tells a check what the program had printed by the cut, such as what it called committed.")
        yield next_steps("--device PRESET cuts the power of a drive", "docs/how-to/cut-the-power-of-a-program.md explains outcomes")

    def _coverage(self) -> Iterator[Part]:
        """The part of all outcomes that was tried, and the cuts of which the smallest part was."""
        cuts, share = self.result.coverage, self.result.share
        counted = [each for each in cuts if each.possible is not None]
        tried, possible = sum(each.tried for each in counted), _digits(sum(each.possible or 0 for each in counted))
        words = f"{tried:,} of {possible} outcomes were tried"
        if share is None:
            words += f", and of {len(cuts) - len(counted):,} of {len(cuts):,} cuts some that are too many to count"
        yield f"Coverage: {words}." if share is None else f"Coverage: {100 * share:.3g}%, {words}."
        some = sorted((each for each in cuts if each.tried != each.possible), key=lambda each: each.tried / (each.possible or math.inf))
        if some:
            yield ""
            yield f"Of {len(cuts) - len(some):,} of {len(cuts):,} cuts all outcomes were tried, of the others some, such as after"
        for each in some[:_CUTS_SHOWN]:
            number = "too many to count" if each.possible is None else _digits(each.possible)
            classes = [*each.never[:_CLASSES_SHOWN], *["..."] * (len(each.never) > _CLASSES_SHOWN)]
            never = f"; never tried: {'; '.join(classes)}" if classes else ""
            yield f"  {each.call}: {each.tried:,} of {number}{never}"


def _digits(number: int) -> str:
    return text if len(text := f"{number:,}") <= _DIGITS else f"{number:.1e}"


def _drive_of(device: str | None, cache: str | None, ignore_flush: bool, whole_pages: bool) -> DriveRules:
    flash = presets.load(device).flash if device else None
    protected = cache == "protected" or (cache is None and flash is not None and flash.keeps_acknowledged)
    return DriveRules(not ignore_flush or protected, not whole_pages, device)


def _globs(value: Any, parameter: str) -> list[str]:
    return [glob for each in fields.several(value, parameter) for glob in fields.commas(fields.text)(each, parameter)]


@operation
def crash(
    command: Annotated[Any, Names("The program and its arguments, after --.", "-- COMMAND ...", argument=True, python="A list of texts.")],
    *,
    check: Annotated[str, Name("Shell command that checks the remaining files in a folder of their own; exit code 0 passes.", "CHECK")],
    folder: Annotated[str, Name("Folder whose files are followed; the program runs in it.", "DIR")] = ".",
    device: Annotated[
        str | None, Name("Preset of a drive: determines whether its cache is lost, and its contents.", "PRESET", completes=("presets",))
    ] = None,
    cache: Annotated[
        str | None,
        Field("Whether the contents of the drive's cache survive.", "volatile|protected", fields.choice("volatile", "protected")),
    ] = None,
    ignore_flush: Annotated[bool, Flag("The drive ignores flushes.")] = False,
    whole_pages: Annotated[bool, Flag("Power cuts tear no pages.")] = False,
    outcomes: Annotated[int, Count("Maximum number of outcomes that are checked per power cut.")] = OUTCOMES,
    limit: Annotated[Any, Duration("Time limit of the check.")] = "60s",
    exclude: Annotated[
        Any, Names("Files (name or glob) that need not be durable; power cuts leave them as they are.", "FILE,...", parse=_globs)
    ] = None,
    check_server: Annotated[bool, Flag("The check is a server: it reads one folder per line and answers one line each.")] = False,
    seed: fields.Seed = 0,
    jobs: fields.Jobs = None,
) -> PowerCutOutcome:
    """Test a program's files under power cuts.

    Power is cut after each relevant call of the program, and a check runs on every state of the files that a cut can leave.

    The program is recorded with what it writes. What a cut leaves follows a journalling file system on a drive with a cache: what was
    synced is there, of all else any part may be. With a device, power is cut at events of its simulation as well, and what its sectors
    hold then is checked, too. Equal images are checked once. The exit code is 1 if an image fails.

    Examples::

        flashsim crash --check "test ! -e shop || grep -q pears shop" -- python3 careful.py
        flashsim crash --check "grep -q pears shop" --ignore-flush --json cuts.json -- python3 careful.py
        flashsim crash --check "test ! -s shop || grep -q pears shop" --exclude log -- sh -c "echo begun > log; echo pears > shop"

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.crash(["python3", "careful.py"], check="test ! -e shop || test -s shop")  # doctest: +SKIP
    >>> result.verdict  # doctest: +SKIP
    """
    words: Sequence[str] = command
    place = Path(folder).resolve()
    if not place.is_dir():
        raise RefusedError(f"folder: {folder} is not a folder")
    drive = _drive_of(device, cache, ignore_flush, whole_pages)
    before = snapshot(place)
    recording = recorder.record(words, contents=True, folder=place, before=before)
    if code := recording.facts["exit_code"]:
        raise RefusedError(f"crash: the program itself failed (exit code {code}), without any cut")
    of = recording, place, before, snapshot(place), check

    def cut(on: DriveRules) -> CutReport:
        with activity("cuts") as progress:
            return PowerCuts(*of, on, outcomes, seed, limit / SECONDS, exclude or (), check_server).run(progress, jobs or cores())

    report = cut(drive)
    with_flushes = cut(drive._replace(keeps_flushed=True)) if report.failed_images and not drive.keeps_flushed else None
    title = f"{' '.join(words)}: power cut after {report.calls:,} calls, {report.cuts:,} outcomes"
    return PowerCutOutcome(report, title, with_flushes)

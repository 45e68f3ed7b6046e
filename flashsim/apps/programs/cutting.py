"""Power is cut at every call of a recorded program that changes what would be left, and a check looks at the files that are left."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice, pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from flashsim.apps.programs.check_server import CheckServer
from flashsim.apps.programs.excluded_files import ExcludedFiles
from flashsim.apps.programs.images import LINK, ImageFolder, difference, digest, modes, paths_looked_at, watch_command
from flashsim.apps.programs.on_drive import SYNCED, DriveCuts, FilesOnDrive
from flashsim.apps.programs.outcomes import CheckAnswer, Coverage, Cut, CutReport, Failure, Outcomes, shortest
from flashsim.apps.programs.volatile_files import Remains, VolatileFiles
from flashsim.core.errors import RefusedError, option
from flashsim.core.protocols import Progress
from flashsim.core.rng import generator
from traces.calls import schema
from traces.calls.schema import COPIED, Recording
from traces.calls.syntax import escape, unescape

#: Calls before a cut that are told where none of their effects is lost.
_EFFECTS_TOLD = 2
#: Failures whose recipes are looked for at most, and of them those that fail as others do; many have one recipe.
_SEARCHES, _ALIKE = 30, 10
#: Lines of a recipe.
_LINES = 12
#: Outcomes of a cut that are looked at by default.
OUTCOMES = 32


class DriveRules(NamedTuple):
    """Rules of a drive for writes that it has acknowledged."""

    #: It honours flushes, or its cache does not lose its content.
    keeps_flushed: bool = True
    #: A cut may leave a page with some of its sectors.
    tears: bool = True
    #: A preset that is simulated besides; None for none.
    device: str | None = None


class PowerCuts:
    """All power cuts of one recording.

    `before` holds files and folders below `folder` when the program began (`flashsim.apps.programs.images.snapshot`), which the recording
    numbers in this order, and `after` the same when it had ended, which the calls have to lead to.  The shell command `check` looks at the
    files left, in a copy of the folder, for at most `limit` seconds; it passes if its exit code is 0.  Of a cut at most `outcomes` are
    looked at: all, if there are no more.  Files that globs of `exclude` match are not varied.  A check that `stays` is a `CheckServer`.
    """

    def __init__(
        self,
        recording: Recording,
        folder: Path,
        before: Mapping[str, bytes],
        after: Mapping[str, bytes],
        check: str,
        drive: DriveRules,
        outcomes: int = OUTCOMES,
        seed: int = 0,
        limit: float = 60.0,
        exclude: Sequence[str] = (),
        stays: bool = False,
    ) -> None:
        rows = recording.table.to_pylist()
        for row in rows:
            row |= {name: unescape(row[name]) for name in ("path", "other") if row[name]}
        for source, row in pairwise(rows):
            row["source"] = source
        moving = [row for row in rows if row["call"].startswith(("rename", "link")) and str(row["other"]).startswith(f"{folder}/")]
        #: Numbers of files that are renamed or linked into the folder, and the folders where they were.
        self._moved = {row["file"] for row in moving if row["file"] >= 0} | {os.path.dirname(row["path"]) for row in moving}
        is_printed = [bool(row["flags"] & schema.PRINTED) for row in rows]
        #: Numbers of the calls that matter in the recording, and the calls.
        self.numbers = [at for at, row in enumerate(rows) if is_printed[at] or _matters(row, f"{folder}/", self._moved)]
        self.rows = [rows[number] for number in self.numbers]
        self.folder, self.check, self.drive, self.outcomes, self.limit = folder, check, drive, outcomes, limit
        self.after, self.stays = after, stays
        self.draw = generator(seed, "power cuts of a program")
        numbers = {path: number for number, path in enumerate(before)}
        self.excluded = ExcludedFiles(exclude, folder, numbers, self.rows)
        parts = [{path: each for path, each in numbers.items() if (each in self.excluded.numbers) == side} for side in (False, True)]
        varied, beside = (VolatileFiles(names, {names[path]: before[path] for path in names}, drive.keeps_flushed) for names in parts)
        self.files = replace(varied, beside=beside) if exclude else varied
        self._on_drive = DriveCuts(recording.table, drive.device, drive.keeps_flushed) if drive.device else None
        self._workers = SimpleQueue[tuple[ImageFolder, CheckServer | None]]()
        #: Answers of the check by image, of those that cuts leave and of those that only recipes were tried with.
        self._answers, self._tried = dict[bytes, CheckAnswer | None](), dict[bytes, CheckAnswer]()
        self._searches = 0
        self.report = CutReport(missed=recording.missed)
        self._effects = list[int]()
        self._copy()

    def run(self, progress: Progress, jobs: int, most_failures: int = 5, recipes: bool = True) -> CutReport:
        """Check every image that a cut can leave, each once; without `recipes` failures have all that was lost.

        Raises
        ------
        RefusedError
            The calls do not lead to the files as the program left them; or the check does not pass on these, or looks at none of them.
        """
        with (
            tempfile.TemporaryDirectory(prefix="flashsim-cut-", ignore_cleanup_errors=True) as place,
            ExitStack() as stack,
            ThreadPoolExecutor(jobs) as pool,
        ):
            self._searches = 0 if recipes else _SEARCHES
            permissions = modes(self.folder)
            for number in range(jobs):
                folder = ImageFolder(Path(place), number, permissions)
                server = stack.enter_context(closing(CheckServer(self.check, folder, self.limit))) if self.stays else None
                self._workers.put((folder, server))
            self._check_looks(self._check_end(), Path(place))
            for cuts in _in_batches(chain(self._drive_cuts(self.files.freeze()), self._cuts()), 4 * jobs):
                fresh = []
                for cut in cuts:
                    self.report.cuts += 1
                    image = self._below(cut.files.image(cut.remains))
                    key = digest(image, cut.printed)
                    if key not in self._answers:
                        self._answers[key] = None
                        fresh.append((cut, image, key))
                looks = pool.map(lambda each: self._look(each[1], each[0]), fresh)
                for (cut, _, key), (code, output) in zip(fresh, looks, strict=True):
                    self._answers[key] = CheckAnswer.of(code, output)
                    if code:
                        self.report.failed_images += 1
                        self._note(cut, CheckAnswer.of(code, output), output.strip(), most_failures)
                self.report.images += len(fresh)
                progress(cuts[-1].call, len(self.rows), f"{self.report.images:,} images, {self.report.failed_images:,} fail")
        return self.report

    def _copy(self) -> None:
        """Give writes that the kernel made from one file to another the bytes of the first; note calls with effects."""
        files = self.files.freeze()
        for number, row in enumerate(self.rows):
            if row["other"] and row["call"] == "write" and row["length"] and row["content"] is None:
                row["content"] = self._copy_content(files, number)
            if self._apply(files, number, row) and row["call"] not in schema.SYNCS:
                self._effects.append(number)
        self.report.missed = [line for line in self.report.missed if not line.startswith(COPIED)]

    def _copy_content(self, files: VolatileFiles, number: int) -> bytes:
        """Bytes of a copy within the kernel: of its source as calls left it, or of its target at the end."""
        row, content = self.rows[number], b""
        source, length = row["source"], row["length"]
        if source["offset"] is not None and source["path"].startswith(f"{self.folder}/"):
            of = files.beside if files.beside is not None and source["file"] in self.excluded.numbers else files
            content = of.content(source["file"])[source["offset"] :][:length]
        if len(content) < length:
            content = _remaining_bytes(self.after.get(self._last_paths.get(row["file"], ""), b""), row, self.rows[number + 1 :])
        if len(content) < length and row["file"] not in self.excluded.numbers:
            raise RefusedError(f"crash: {self._call(number)}: copied by the kernel from {escape(source['path'])}; its bytes are lost")
        return content

    @cached_property
    def _last_paths(self) -> dict[int, str]:
        files = self.files.freeze()
        for number, row in enumerate(self.rows):
            self._apply(files, number, {**row, "content": None})
        return {file: path for each in (files, files.beside) if each is not None for path, file in each.latest.items()}

    def _check_end(self) -> tuple[dict[str, bytes], bytes]:
        """The files as the program left them, and what it had printed; the check passes."""
        files, printed = self.files.freeze(), b""
        for number, row in enumerate(self.rows):
            printed += _printed_bytes(row)
            self._apply(files, number, row)
        image, last = files.image(files.everything()), Cut(len(self.rows), files.everything(), files, printed)
        there = {path: content for path, content in (image | files.image_beside()).items() if path.startswith(f"{self.folder}/")}
        if unlike := difference(*({path: each[path] for path in each if not self.excluded.has(path)} for each in (self.after, there))):
            path, theirs, ours = unlike
            missed = [line for line in self.report.missed if escape(path) in line] or self.report.missed
            words = f"{self._short(path)}: the program left {theirs}, but by its recorded calls it is {ours}"
            raise RefusedError(f"crash: {words}; not recorded: {'; '.join(missed) or 'a call on it that is not followed'}")
        image = self._below(image)
        for _ in range(1 + self.stays):  # a server that ends with its first answer is none
            code, output = self._look(image, last)
            if code:
                raise RefusedError(f"check: it fails before any cut, on the files as they are recorded (exit code {code}): {_line(output)}")
        return self._with_excluded(image, files), printed

    def _check_looks(self, end: tuple[dict[str, bytes], bytes], place: Path) -> None:
        """Refuse a check that looks at none of the files that the program wrote; a check that strace cannot watch may look anywhere."""
        prefix, rows = f"{self.folder}/", [self.rows[number] for number in self._effects]
        names = [(name, row[name].removeprefix(prefix)) for row in rows for name in ("path", "other") if str(row[name]).startswith(prefix)]
        wrote, renamed = {path for _, path in names}, {path for name, path in names if name == "other"}
        if not wrote:
            raise RefusedError(f"crash: the program wrote no file in {escape(str(self.folder))}: name its folder with " + option("folder"))
        folder, server = self._workers.get()
        watch = watch_command(self.check, place / "calls")
        if server:
            server.close()
            with closing(CheckServer(watch, folder, self.limit)) as watched:
                code, _ = watched.look(*end)
        else:
            code, _ = folder.look(*end, watch, self.limit)
        self._workers.put((folder, server))
        if code:
            return
        looks = paths_looked_at(place / "calls", folder.root)
        if not any(path in wrote or renamed.intersection(map(str, Path(path).parents)) for path in looks):
            some = ", ".join(map(escape, sorted(wrote)[:3])) + ", ..." * (len(wrote) > 3)
            raise RefusedError(f"crash: the check opened none of the files that the program wrote: {some}")

    def _cuts(self) -> Iterator[Cut]:
        printed, files = b"", self.files
        last = files.freeze(), printed
        yield Cut(0, files.everything(), last[0], printed)
        for number, row in enumerate(self.rows):
            states = [(self._under_way(files, number, row), printed)] if row["call"] in schema.WRITES and row["flags"] & SYNCED else []
            printed += _printed_bytes(row)
            self.report.calls += self._apply(files, number, row)
            for state, output in (*states, (files.freeze(), printed)):
                # a flush that settles nothing, and a call that changes nothing, leave what there was
                if output != last[1] or not state.is_like(last[0]):
                    last = state, output
                    yield from self._outcomes(number, state, output)

    def _outcomes(self, number: int, state: VolatileFiles, printed: bytes) -> Iterator[Cut]:
        outcomes = Outcomes(state, self.draw, self.drive.tears)
        for remains in outcomes.take(self.outcomes):
            yield Cut(number, remains, state, printed)
        possible = None if outcomes.possible is None else outcomes.possible.total()
        self.report.coverage.append(Coverage(self._call(number), possible, outcomes.tried.total(), outcomes.untried_classes()))

    def _under_way(self, files: VolatileFiles, number: int, row: Mapping[str, Any]) -> VolatileFiles:
        """Files while a synchronous write is under way: all that it writes may be there or not."""
        written = files.freeze()
        self._apply(written, number, {**row, "flags": row["flags"] & ~SYNCED})
        return written

    def _drive_cuts(self, files: VolatileFiles) -> Iterator[Cut]:
        """Cuts of the simulated drive: what its sectors hold, of the effects of calls that had begun."""
        if self._on_drive is None:
            return
        there, images, lost = FilesOnDrive(files, self.rows, self.numbers, self._apply), set[bytes](), 0
        for count, moment in enumerate(self._on_drive, 1):
            remains, state, is_durable_there = there.at(moment)
            cut = Cut(max(0, there.returned - 1), remains, state, b"".join(map(_printed_bytes, self.rows[: there.returned])))
            images.add(digest(self._below(state.image(remains)), cut.printed))
            lost += not is_durable_there
            self.report.on_drive = {"cuts": count, "images": len(images), "lost_durable": lost}
            yield cut

    def _apply(self, files: VolatileFiles, number: int, row: Mapping[str, Any]) -> bool:
        """Take a call; one that only prints, to a file outside of the folder, changes nothing that is left."""
        if not _matters(row, f"{self.folder}/", self._moved):
            return False
        is_excluded = row["file"] in self.excluded.numbers
        # a folder that is renamed takes its files with it, excluded or not
        if files.beside is not None and (is_excluded or row["call"].startswith("rename")):
            files.beside.apply(number, row)
        return not is_excluded and files.apply(number, row)

    def _below(self, image: Mapping[str, bytes]) -> dict[str, bytes]:
        """Files below the folder, by paths within it, with symbolic links to such files that lead to those of the image."""
        prefix = f"{self.folder}/"
        below = {path.removeprefix(prefix): content for path, content in image.items() if path.startswith(prefix)}
        inner = [path for path, content in below.items() if path.endswith(LINK) and content.startswith(os.fsencode(prefix))]
        targets = {path: os.fsdecode(below[path]).removeprefix(prefix) for path in inner}
        return below | {path: os.fsencode(os.path.relpath(target, os.path.dirname(path[:-2]))) for path, target in targets.items()}

    def _look(self, image: Mapping[str, bytes], cut: Cut) -> tuple[int, str]:
        folder, server = self._workers.get()
        try:
            whole = self._with_excluded(image, cut.files)
            return server.look(whole, cut.printed) if server else folder.look(whole, cut.printed, self.check, self.limit)
        finally:
            self._workers.put((folder, server))

    def _with_excluded(self, image: Mapping[str, bytes], files: VolatileFiles) -> dict[str, bytes]:
        """An image with the excluded files whose folders are there."""
        places = {os.path.dirname(path.removesuffix(LINK)) for path in image} | {path[:-1] for path in image} | {""}
        return {**image, **{path: each for path, each in self._below(files.image_beside()).items() if os.path.dirname(path) in places}}

    def _note(self, cut: Cut, answer: CheckAnswer, output: str, most: int) -> None:
        """Count a failure for one that is known, or note it: one of each answer, and of more with other recipes `most` in all."""
        call, failures = self._call(cut.call), self.report.failures
        alike = [each for each in failures if each.answer == answer]
        there = next((each for each in alike if cut.remains.torn and each.call == call), None)
        if not alike or (there is None and len(failures) < most and self._searches < _ALIKE):
            failure = Failure(call, self._recipe(cut, answer), output, answer)
            there = next((each for each in alike if each.recipe == failure.recipe), None)
            if there is None:
                failures.append(failure)
                return
        (there or alike[0]).count += 1

    def _recipe(self, cut: Cut, answer: CheckAnswer) -> tuple[str, ...]:
        """The shortest recipe that fails with the same answer; after many searches what this cut lost or kept."""

        def fails(remains: Remains) -> bool:
            image = self._below(cut.files.image(remains))
            key = digest(image, cut.printed)
            known = self._answers.get(key) or self._tried.get(key)
            if known is None:
                code, output = self._look(image, cut)
                known = self._tried[key] = CheckAnswer.of(code, output)
            return known == answer

        remains, is_loss = shortest(cut, fails) if self._searches < _SEARCHES else (cut.remains, True)
        self._searches += 1
        kept, lost = cut.files.effects(remains)
        words = [f"{'lost' if is_loss else 'kept'}: {self._call(each.call)}" for each in (lost if is_loss else kept)]
        if not is_loss and not kept:
            words = ["lost: all that was not synced"]
        for page, (_, first, behind) in remains.torn.items():
            last = [each.call for each in cut.files.patches if each.page == page][remains.patches[page] - 1]
            sectors = f"sectors {first} to {behind - 1} are" if behind - first > 1 else f"sector {first} is"
            words.append(f"torn: {self._call(last)}: of page {page[1]} only {sectors} written")
        words = list(dict.fromkeys(words)) or self._around(cut)
        return tuple(words[:_LINES] + [f"and {len(words) - _LINES:,} more"] * (len(words) > _LINES))

    def _around(self, cut: Cut) -> list[str]:
        """Calls before and after a cut that loses nothing: whose effects are there, and which comes too late."""
        pending = {each.call for each in cut.files.patches} | {each.call for each in cut.files.changes}
        before = [number for number in self._effects if number <= cut.call][-_EFFECTS_TOLD:]
        after = [number for number in self._effects if number > cut.call][:1]
        words = [f"{'kept' if number in pending else 'durable'}: {self._call(number)}" for number in before]
        return words + [f"not made yet: {self._call(number)}" for number in after]

    def _short(self, path: str | None) -> str:
        return escape((path or "").removeprefix(f"{self.folder}/"))

    def _call(self, number: int) -> str:
        row = self.rows[number]
        details = [self._short(row["path"]), *([f"-> {self._short(row['other'])}"] if row["call"].startswith("rename") else [])]
        details += [f"offset {row['offset']:,}"] if row["offset"] is not None else []
        details += [f"{row['length']:,} B"] if row["length"] is not None else []
        return f"call {number + 1}: {row['call']}({', '.join(details)})"


def _printed_bytes(row: Mapping[str, Any]) -> bytes:
    return (row["content"] or b"") if row["flags"] & schema.PRINTED else b""


def _matters(row: Mapping[str, Any], folder: str, moved: set[Any]) -> bool:
    """True if a call works on files of a folder or such as are moved into it, or syncs everything."""
    below = any(str(row[name] or "").startswith(folder) for name in ("path", "other"))
    below = below or row["path"] == folder[:-1] or row["call"] in ("sync", "syncfs")
    below = below or row["file"] in moved or (row["call"] in schema.SYNCS and row["path"] in moved)
    return below and row["call"] != "mmap"


def _in_batches(cuts: Iterator[Cut], size: int) -> Iterator[list[Cut]]:
    while batch := list(islice(cuts, size)):
        yield batch


def _remaining_bytes(content: bytes, copy: Mapping[str, Any], later: Iterable[Mapping[str, Any]]) -> bytes:
    """Bytes of a copy that stand in its target's last content; none where a later call may have changed them."""
    if copy["offset"] is None:
        return b""
    place = slice(copy["offset"], copy["offset"] + copy["length"])
    return b"" if any(row["file"] == copy["file"] and _changes(row, place) for row in later) else content[place]


def _changes(row: Mapping[str, Any], place: slice) -> bool:
    if row["error"]:
        return False
    if row["call"] in schema.WRITES:
        begin = row["offset"]
        return begin is None or (begin < place.stop and place.start < begin + (row["result"] or 0))
    if row["call"] in ("truncate", "ftruncate"):
        return bool((row["length"] or 0) < place.stop)
    return bool(row["flags"] & schema.TRUNCATE) or (row["call"] == "fallocate" and row["other"] not in ("0", "FALLOC_FL_KEEP_SIZE"))


def _line(output: str) -> str:
    return (output.strip().splitlines() or ["it printed nothing"])[-1][:200]

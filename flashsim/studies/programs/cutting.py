"""Power is cut at every call of a recorded program that changes what would be left, and a check looks at the files that are left."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from flashsim.core.errors import RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.rng import generator
from flashsim.studies.programs.images import ImageFolder
from flashsim.studies.programs.on_drive import DriveCuts, FilesOnDrive
from flashsim.studies.programs.volatile_files import PAGE, Remains, VolatileFiles
from traces.calls import schema
from traces.calls.schema import Recording

#: Sectors of a page.
_SECTORS = PAGE // 512
#: Lost effects that are a short recipe, beside which none of kept ones is looked for.
_FEW = 3
#: Effects of a list too long to be read; shorter ones are told rather than that nothing is kept.
_LONG = 10
#: Failures whose recipes are looked for at most; many have one recipe.
_SEARCHES = 15


class Drive(NamedTuple):
    """Rules of a drive for writes that it has acknowledged.

    Attributes
    ----------
    keeps_flushed
        It honours flushes, or its cache does not lose its content.
    tears
        A cut may leave a page with some of its sectors.
    device
        A preset that is simulated besides; None for none.
    """

    keeps_flushed: bool = True
    tears: bool = True
    device: str | None = None


class Cut(NamedTuple):
    """A cut: calls before it, what of their effects is left, and what the program had printed."""

    call: int
    remains: Remains
    files: VolatileFiles
    printed: bytes


@dataclass(frozen=True)
class Failure:
    """A cut that the check does not pass.

    Parameters
    ----------
    call
        The call after which the power was cut, in words.
    recipe
        Calls whose effects are lost, or kept though others are lost, in words: the fewest found.
    output
        What the check printed.
    """

    call: str
    recipe: tuple[str, ...]
    output: str


@dataclass
class CutReport:
    """Results of power cuts of a program.

    Parameters
    ----------
    cuts
        Outcomes of cuts that were looked at.
    images
        Distinct states of files, and of what had been printed, that were checked.
    on_drive
        Of the cuts and the images those of the simulated drive, if there is one, and of its cuts those that lost what was durable.
    failed_images
        Images that the check does not pass.
    missed
        What the recording does not show.
    """

    calls: int = 0
    cuts: int = 0
    images: int = 0
    on_drive: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    failed_images: int = 0
    missed: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        failures = [{"call": each.call, "recipe": list(each.recipe), "output": each.output} for each in self.failures]
        counts = {"calls": self.calls, "cuts": self.cuts, "images": self.images, "failed_images": self.failed_images}
        return counts | {"on_drive": self.on_drive, "failures": failures, "missed": list(self.missed)}


class PowerCuts:
    """All power cuts of one recording.

    Parameters
    ----------
    before
        Files and folders below `folder` when the program began (`flashsim.studies.programs.images.snapshot`), which the recording
        numbers in this order.
    check
        Shell command that looks at the files left, in a copy of the folder; it passes if its exit code is 0.
    outcomes
        Outcomes of a cut that are drawn besides the regular ones.
    limit
        Seconds that a check may take.
    """

    def __init__(
        self,
        recording: Recording,
        folder: Path,
        before: Mapping[str, bytes],
        check: str,
        drive: Drive,
        outcomes: int = 4,
        seed: int = 0,
        limit: float = 60.0,
    ) -> None:
        rows = recording.table.to_pylist()
        #: Numbers of the calls that matter in the recording, and the calls.
        self.numbers = [number for number, row in enumerate(rows) if _matters(row, f"{folder}/")]
        self.rows = [rows[number] for number in self.numbers]
        self.folder, self.check, self.drive, self.outcomes, self.limit = folder, check, drive, outcomes, limit
        self.draw = generator(seed, "power cuts of a program")
        numbers = {path: number for number, path in enumerate(before)}
        self.files = VolatileFiles(numbers, {numbers[path]: content for path, content in before.items()}, drive.keeps_flushed)
        self._on_drive = DriveCuts(recording.table, drive.device, drive.keeps_flushed) if drive.device else None
        self._folders = SimpleQueue[ImageFolder]()
        #: Exit codes of the check by image, of those that cuts leave and of those that only recipes were tried with.
        self._codes, self._tried = dict[bytes, int](), dict[bytes, int]()
        self.report = CutReport(missed=recording.missed)

    def run(self, progress: Progress, jobs: int, most_failures: int = 5) -> CutReport:
        """Check every image that a cut can leave, each once.

        Raises
        ------
        RefusedError
            The check does not pass on the files as the program left them.
        """
        searches = 0
        with tempfile.TemporaryDirectory(prefix="flashsim-cut-", ignore_cleanup_errors=True) as place, ThreadPoolExecutor(jobs) as pool:
            for number in range(jobs):
                self._folders.put(ImageFolder(Path(place), number))
            self._check_end()
            for cuts in _in_batches(chain(self._drive_cuts(_frozen(self.files)), self._cuts()), 4 * jobs):
                fresh = []
                for cut in cuts:
                    self.report.cuts += 1
                    image = self._image(cut)
                    key = _digest(image, cut.printed)
                    if key not in self._codes:
                        self._codes[key] = 0
                        fresh.append((cut, image, key))
                looks = pool.map(lambda each: self._look(each[1], each[0].printed), fresh)
                for (cut, _, key), (code, output) in zip(fresh, looks, strict=True):
                    self._codes[key] = code
                    if code and len(self.report.failures) < most_failures and searches < _SEARCHES:
                        searches += 1
                        self._note(cut, output)
                    self.report.failed_images += code != 0
                self.report.images += len(fresh)
                progress(cuts[-1].call, len(self.rows), f"{self.report.images:,} images, {self.report.failed_images:,} fail")
        return self.report

    def _check_end(self) -> None:
        files, printed = _frozen(self.files), b""
        for number, row in enumerate(self.rows):
            printed += _printed(row)
            self._apply(files, number, row)
        code, output = self._look(self._below(files.image(files.everything())), printed)
        if code:
            raise RefusedError(f"check: it fails before any cut, on the files as the program left them (exit code {code}): {_line(output)}")

    def _cuts(self) -> Iterator[Cut]:
        printed, files = b"", self.files
        yield Cut(0, files.everything(), _frozen(files), printed)
        for number, row in enumerate(self.rows):
            # While a sync is under way, all that it writes may be there or not.
            states = [_frozen(files)] if row["call"] in schema.SYNCS else []
            printed += _printed(row)
            if not self._apply(files, number, row):
                continue
            self.report.calls += 1
            for state in (*states, _frozen(files)):
                for remains in _remains(state, self.draw, self.outcomes, self.drive.tears):
                    yield Cut(number, remains, state, printed)

    def _drive_cuts(self, files: VolatileFiles) -> Iterator[Cut]:
        """Cuts of the simulated drive: what its sectors hold, of the effects of calls that had begun."""
        if self._on_drive is None:
            return
        there, images, lost = FilesOnDrive(files, self.rows, self.numbers, self._apply), set[bytes](), 0
        for count, moment in enumerate(self._on_drive, 1):
            remains, state, is_durable_there = there.at(moment)
            cut = Cut(max(0, there.returned - 1), remains, state, b"".join(map(_printed, self.rows[: there.returned])))
            images.add(_digest(self._image(cut), cut.printed))
            lost += not is_durable_there
            self.report.on_drive = {"cuts": count, "images": len(images), "lost_durable": lost}
            yield cut

    def _apply(self, files: VolatileFiles, number: int, row: Mapping[str, Any]) -> bool:
        """Take a call; one that only prints, to a file outside of the folder, changes nothing that is left."""
        return _is_below(row, f"{self.folder}/") and files.apply(number, row)

    def _image(self, cut: Cut) -> dict[str, bytes]:
        return self._below(cut.files.image(cut.remains))

    def _below(self, image: Mapping[str, bytes]) -> dict[str, bytes]:
        """Files below the folder, by paths within it."""
        prefix = f"{self.folder}/"
        return {path.removeprefix(prefix): content for path, content in image.items() if path.startswith(prefix)}

    def _look(self, image: Mapping[str, bytes], printed: bytes) -> tuple[int, str]:
        """The check's exit code on an image, and its output."""
        folder = self._folders.get()
        try:
            return folder.look(image, printed, self.check, self.limit)
        finally:
            self._folders.put(folder)

    def _note(self, cut: Cut, output: str) -> None:
        """Note a failure with its shortest recipe."""
        codes = self._tried

        def fails(remains: Remains) -> bool:
            image = self._image(cut._replace(remains=remains))
            key = _digest(image, cut.printed)
            if key not in codes:
                codes[key] = self._look(image, cut.printed)[0]
            return codes[key] != 0

        remains, is_loss = shortest(cut, fails)
        kept, lost = cut.files.effects(remains)
        words = [f"{'lost' if is_loss else 'kept'}: {self._call(each.call)}" for each in (lost if is_loss else kept)]
        if not is_loss and not kept:
            words = ["lost: all that was not synced"]
        if remains.torn:
            (file, page), sectors = remains.torn
            path = next(row["path"] for row in self.rows if row["file"] == file)
            words.append(f"torn after {sectors} sectors: page {page} of {self._short(path)}")
        failure = Failure(self._call(cut.call), tuple(dict.fromkeys(words)), output.strip())
        if failure.recipe not in [each.recipe for each in self.report.failures]:
            self.report.failures.append(failure)

    def _short(self, path: str | None) -> str:
        """A path without the folder."""
        return (path or "").removeprefix(f"{self.folder}/")

    def _call(self, number: int) -> str:
        """A call in words."""
        row = self.rows[number]
        details = [self._short(row["path"]), *([f"-> {self._short(row['other'])}"] if row["call"].startswith("rename") else [])]
        details += [f"offset {row['offset']:,}"] if row["offset"] is not None else []
        details += [f"{row['length']:,} B"] if row["length"] is not None else []
        return f"call {number + 1}: {row['call']}({', '.join(details)})"


def shortest(cut: Cut, fails: Callable[[Remains], bool]) -> tuple[Remains, bool]:
    """Remains that fail with few effects lost (True), or, where many have to be lost, with few kept (False)."""
    losing = _nearer(cut.remains, cut.files.everything(), fails)
    lost = len(cut.files.effects(losing)[1])
    if lost <= _FEW:
        return losing, True
    keeping = _nearer(cut.remains, Remains(0, {}), fails)
    return (losing, True) if lost <= (len(cut.files.effects(keeping)[0]) or _LONG) else (keeping, False)


def _nearer(remains: Remains, base: Remains, fails: Callable[[Remains], bool]) -> Remains:
    """Remains made as like others as they can be while they still fail: halves of the pages, and of these halves, at once."""
    if remains.torn and fails(remains._replace(torn=None)):
        remains = remains._replace(torn=None)
    if remains.changes != base.changes and fails(remains._replace(changes=base.changes)):
        remains = remains._replace(changes=base.changes)
    pages = [each for each in sorted({*remains.patches, *base.patches}) if remains.patches.get(each, 0) != base.patches.get(each, 0)]
    parts = [pages] if pages else []
    while parts:
        part = parts.pop()
        nearer = remains._replace(patches={**remains.patches, **{page: base.patches.get(page, 0) for page in part}})
        if fails(nearer):
            remains = nearer
        elif len(part) > 1:
            parts += [part[len(part) // 2 :], part[: len(part) // 2]]
        else:
            remains = _some_patches(remains, part[0], base.patches.get(part[0], 0), fails)
    step = 1 if base.changes > remains.changes else -1
    while remains.changes != base.changes and fails(nearer := remains._replace(changes=remains.changes + step)):
        remains = nearer
    return remains


def _some_patches(remains: Remains, page: tuple[int, int], count: int, fails: Callable[[Remains], bool]) -> Remains:
    """Remains with one, two, four and so on patches of a page unlike a count, the first that fail."""
    own, step = remains.patches.get(page, 0), 1
    while step < abs(own - count):
        nearer = remains._replace(patches={**remains.patches, page: count + (step if own > count else -step)})
        if fails(nearer):
            return nearer
        step *= 2
    return remains


def _remains(files: VolatileFiles, draw: np.random.Generator, drawn: int, tears: bool) -> Iterator[Remains]:
    """Effects that a cut may leave: all, none, all but one effect, one alone, some that are drawn, and a torn page."""
    pages, changes = files.pages(), len(files.changes)
    everything = files.everything()
    yield everything
    if not pages and not changes:
        return
    yield Remains(0, {})
    if pages and changes:
        yield Remains(changes, {})
        yield Remains(0, pages)
    if changes > 1:
        yield Remains(changes - 1, pages)
    some = list(pages) if len(pages) <= drawn else [list(pages)[at] for at in draw.choice(len(pages), drawn, replace=False)]
    for page in some:
        yield Remains(changes, {**pages, page: pages[page] - 1})
        yield Remains(int(draw.integers(changes + 1)), {page: pages[page]})
        if tears:
            yield Remains(changes, pages, (page, int(draw.integers(1, _SECTORS))))
    for _ in range(drawn if len(pages) > 1 else 0):
        counts = {page: int(draw.integers(count + 1)) for page, count in pages.items()}
        yield Remains(int(draw.integers(changes + 1)), counts)


def _frozen(files: VolatileFiles) -> VolatileFiles:
    """The files as they are now; what was durable is shared."""
    frozen = copy(files)
    frozen.patches, frozen.changes = list(files.patches), list(files.changes)
    return frozen


def _printed(row: Mapping[str, Any]) -> bytes:
    """Bytes that a call writes to standard output."""
    return (row["content"] or b"") if row["flags"] & schema.PRINTED else b""


def _matters(row: Mapping[str, Any], folder: str) -> bool:
    """True if a call works on files of a folder, prints, or syncs everything."""
    return bool(row["flags"] & schema.PRINTED) or (_is_below(row, folder) and row["call"] != "mmap")


def _is_below(row: Mapping[str, Any], folder: str) -> bool:
    """True if a call is about files of a folder, or of all there are."""
    below = any(str(row[name] or "").startswith(folder) for name in ("path", "other"))
    return below or row["path"] == folder[:-1] or row["call"] in ("sync", "syncfs")


def _digest(image: Mapping[str, bytes], printed: bytes) -> bytes:
    """A digest of an image and output; Python keeps the hash of bytes with them, so that files that stay are hashed once."""
    parts = [f"{path}\0{len(content)}\0{hash(content)}" for path, content in sorted(image.items())]
    return blake2b("\0".join([str(hash(printed)), *parts]).encode(errors="surrogateescape"), digest_size=16).digest()


def _in_batches(cuts: Iterator[Cut], size: int) -> Iterator[list[Cut]]:
    while batch := list(islice(cuts, size)):
        yield batch


def _line(output: str) -> str:
    return (output.strip().splitlines() or ["it printed nothing"])[-1][:200]

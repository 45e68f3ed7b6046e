"""The contracts of SSDs that extend a memory pool, and of restart designs: no newest version is lost, nor what was committed."""

from collections import Counter
from typing import Any

import numpy as np
import simpy

from algorithms.extensions.base import DESIGNS, extension_design
from algorithms.restart.base import RESTARTS
from flashsim.core.kernel import kernel
from flashsim.core.policies import Policies
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import READ
from flashsim.core.units import NEVER
from flashsim.execution.pooled.specification import PoolSpecification
from flashsim.execution.pooled.system import DISK, SSD, ExtensionDesign
from flashsim.experiments.crashing.histories import drawn_history
from flashsim.experiments.crashing.injection import CrashReport, Injection, exhaustive, without_ssd
from flashsim.storage.extension import manager
from flashsim.storage.extension import state as at
from flashsim.storage.extension.design import DIRTY_PAGE, DROP, INVALIDATE, KEY_OF, MODIFIED, TO_DISK, of_page
from flashsim.storage.log.durable import PAGES, DurableWrite
from flashsim.testing.contract import Contract
from flashsim.testing.pools import Drawn, drawn_system

__all__ = ["ExtensionContract", "RestartContract"]

REQUESTS = 250


@kernel
def _answer(ext: at.Extension, design: Policies, function: int, page: int) -> int:
    return of_page(design[function])(ext, page)


def check_state(ext: at.Extension, design: Policies) -> None:
    """The tables of an SSD agree with each other."""
    used = np.flatnonzero(ext.frames[:, at.PAGE])
    held = ext.frames[used, at.PAGE]
    status = ext.pages[held, at.STATUS]
    assert np.array_equal(ext.pages[held, at.FRAME] - 1, used)
    assert np.count_nonzero(ext.pages[:, at.FRAME]) == len(used) == ext.numbers[at.USED] <= ext.numbers[at.FRAMES]
    assert np.count_nonzero(status & at.NEWER) == ext.numbers[at.NEWER_FRAMES]
    assert np.count_nonzero(status & (at.VALID | at.DOOMED) == 0) == ext.numbers[at.INVALID]
    assert not np.any(ext.pages[ext.pages[:, at.FRAME] == 0, at.STATUS])
    resting = set(held[status >> at.HOLD_SHIFT == 0].tolist())
    free = set(np.flatnonzero(ext.frames[:, at.PAGE] == 0).tolist())
    for partition in ext.partitions:
        for heap, root, step in ((at.CLEAN, partition[at.BEGIN], 1), (at.DIRTY, partition[at.END] - 1, -1)):
            for place in range(partition[heap]):
                key, frame = ext.heaps[root + step * place]
                page = int(ext.frames[frame, at.PAGE])
                resting.remove(page)
                assert ext.frames[frame, at.PLACE] == root + step * place and partition[at.BEGIN] <= frame < partition[at.END]
                assert (heap == at.DIRTY) == bool(ext.pages[page, at.STATUS] & at.NEWER)
                assert ext.heaps[root + step * (max(0, place - 1) // 2), at.KEY] <= key
                assert key <= _answer(ext, design, KEY_OF, page), f"the key of page {page} fell from {key}"
        frame = partition[at.FREE]
        while frame >= 0 and not ext.numbers[at.ROTATES]:
            free.remove(int(frame))
            frame = ext.frames[frame, at.PLACE]
    assert not resting and (not free or ext.numbers[at.ROTATES])


class Versions(PoolSpecification):
    """The specification, with a version of each page at each of its places: in memory, on the SSD, on disk; 0 is where all begin.

    Devices let requests take effect in the order in which they are asked for.  A write to disk has the versions of the moment in which it
    was decided, and may be asked for later; `on_its_way` is what the disk holds once all that were decided have been.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        rows = self.system.rows
        self.newest, self.in_memory, self.on_disk, self.on_its_way = (np.zeros(rows, np.int64) for _ in range(4))
        self.decided: dict[tuple[int, int], list[np.ndarray]] = {}
        self.on_ssd = np.zeros((self.system.ssd, 2), np.int64)  # a page and its version
        self.from_ssd, self.from_disk = np.zeros((2, rows), np.int64)
        self.seen: Counter[str] = Counter()
        self._from_memory = False
        self._begin_write, self._disk.write = self._disk.write, self._decide_write  # type: ignore[assignment, method-assign]

    def _decide_write(self, page: int, count: int, cleaned: int = 0) -> simpy.Event:
        versions = (self.in_memory if self._from_memory else self.from_ssd)[page : page + count].copy()
        self.decided.setdefault((page, count), []).append(versions)
        self.on_its_way[page : page + count] = versions
        return self._begin_write(page, count, cleaned)

    def _modify(self, page: int) -> None:
        self.newest[page] += 1
        self.in_memory[page] = self.newest[page]
        super()._modify(page)

    def _write_to_disk(self, page: int, count: int) -> simpy.Event:
        self._from_memory = True
        event = super()._write_to_disk(page, count)
        self._from_memory = False
        return event

    def _ask_pages(self, purpose: int, operation: int, first: int, count: int = 1, event: simpy.Event | None = None) -> simpy.Event:
        page, pages = first + FIRST_PAGE, slice(first + FIRST_PAGE, first + FIRST_PAGE + count)
        if purpose == SSD and operation == READ:
            page, version = self.on_ssd[first]
            self.from_ssd[page] = version
        elif purpose == SSD:
            page = self.ext.frames[first, at.PAGE]
            self.on_ssd[first] = page, self.in_memory[page]
        elif purpose == DISK and operation == READ:
            self.from_disk[pages] = self.on_disk[pages]
        elif purpose == DISK:
            self.on_disk[pages] = self.decided[page, count].pop(0)
        return super()._ask_pages(purpose, operation, first, count, event)

    def _on_serve(self, page: int, flags: int) -> None:
        self.seen["served"] += 1
        self.in_memory[page] = self.from_ssd[page]
        super()._on_serve(page, flags)

    def _on_fetch(self, page: int, flags: int) -> None:
        self.seen["fetched"] += 1
        self.in_memory[page] = self.from_disk[page]
        super()._on_fetch(page, flags)

    def check(self) -> None:
        """The newest version is where it must be."""
        newest, status, design = self.newest, self.ext.pages[:, at.STATUS], self.system.design
        assert len(self.memory.resident) <= self.system.memory
        resident, changed, coming = np.zeros((3, self.system.rows), bool)
        resident[list(self.memory.resident)] = True
        changed[[page for page, dirty in self.memory.resident.items() if dirty]] = True
        coming[list(self.memory.pins)] = True
        here = resident & ~coming
        assert np.array_equal(self.in_memory[here], newest[here])
        valid, newer = status & at.VALID > 0, status & at.NEWER > 0
        copies = self.on_ssd[self.ext.pages[valid, at.FRAME] - 1]
        assert np.array_equal(copies[:, 0], np.flatnonzero(valid))
        assert np.array_equal(copies[:, 1], newest[valid])
        assert not np.any(newer & ~valid) and not np.any(valid & changed & ~newer & (self.on_its_way != newest) & ~changed)
        behind = ~changed & ~newer
        assert np.array_equal(self.on_its_way[behind], newest[behind])
        assert design.write_back or not np.any(newer)
        self.seen["newer"] += int(np.count_nonzero(newer))
        self.seen["invalid"] += int(self.ext.numbers[at.INVALID])
        self.seen["twice"] += int(np.count_nonzero(here & valid))


def watch_run(design: str, seed: int, requests: int = REQUESTS) -> Versions:
    """A run of a drawn system that was looked at after every event."""
    system, _, devices = drawn_system(seed, design)
    run = Versions(system, devices, Drawn(system.pages, seed))
    for event in range(10**9):
        if len(run.devices.requests) >= requests or run.env.peek() >= NEVER:
            break
        run.env.step()
        run.check()
        if event % 20 == 0:
            check_state(run.ext, system.design.kernels)
    return run


def resting_system(
    design: str, pages: int = 40, frames: int = 8, partitions: int = 1, **parameters: int
) -> tuple[at.Extension, ExtensionDesign]:
    """An empty SSD and a design, of which nobody reads or writes a frame."""
    chosen = extension_design(design, **parameters)
    words = chosen.words(chosen.parameters, pages) if callable(chosen.words) else chosen.words
    ext = at.empty_extension(pages, frames, partitions, words)
    ext.numbers[at.FIRST_PARAMETER : at.FIRST_PARAMETER + len(chosen.parameters)] = list(chosen.parameters.values())
    ext.numbers[at.ROTATES], ext.numbers[at.AHEAD] = chosen.rotates, 2
    return ext, chosen


class ExtensionContract(Contract):
    """Properties of a design that extends a memory pool by an SSD (`algorithms.extensions.base`)."""

    FAMILY, STEPWISE = DESIGNS, True

    def test_during_a_sharp_checkpoint_no_page_becomes_newer_on_the_ssd(self) -> None:
        ext, chosen = resting_system(self.name)
        ext.numbers[at.CHECKPOINT] = 1
        answer = manager.ask_on_evict(ext, chosen.kernels, FIRST_PAGE, DIRTY_PAGE)
        assert answer & TO_DISK, "a page that is newer than on disk does not go there"

    def test_a_copy_that_is_not_the_newest_is_dropped_or_invalidated(self) -> None:
        ext, chosen = resting_system(self.name)
        answer = _answer(ext, chosen.kernels, MODIFIED, FIRST_PAGE)
        assert answer in (DROP, INVALIDATE), f"on_modify answers {answer}"

    def test_no_newest_version_is_lost(self) -> None:
        """Three drawn systems, looked at after every event: every page's newest version is in memory, on the SSD or on disk."""
        seen: Counter[str] = Counter()
        for seed in range(3):
            seen.update(watch_run(self.name, seed).seen)
        member = DESIGNS.load(self.name)
        assert seen["fetched"], "no page is read from disk"
        assert seen["served"] or not member.SSD, "no page is read from the SSD"
        assert bool(seen["newer"]) == member.WRITE_BACK, f"WRITE_BACK is {member.WRITE_BACK}, but {seen['newer']} pages were newer"


def safe(name: str, histories: int, seed: int = 0, **options: Any) -> CrashReport:
    """The crashes of some histories, of which none loses or resurrects data."""
    report = exhaustive(name, histories, seed, limit=5.0, **options)
    for violation in report.violations:
        raise AssertionError(f"a crash after event {violation.event} of history {violation.history.seed}: {violation.problems}")
    return report


class RestartContract(Contract):
    """Properties of a restart design (`algorithms.restart.base`)."""

    FAMILY, STEPWISE = RESTARTS, True

    def test_no_crash_loses_or_resurrects_data(self) -> None:
        """A history of each extension and kind of checkpoints: thousands of crash points, many of them in recovery or after restarts."""
        report = safe(self.name, 6)
        assert report.points > 2000 and report.in_recovery > 500

    def test_no_crash_loses_data_on_a_disk_that_tears_pages(self) -> None:
        """The first record of a change since a page's last write began has an image of the page."""
        report = safe(self.name, 3, tears=True)
        assert report.points > 500 and report.in_recovery > 200

    def test_histories_that_found_faults_find_none(self) -> None:
        """Faults that the first histories let pass, such as checkpoints that forget pages newer on the SSD after a restart."""
        for seed, extension in ((7, "dw"), (49, "lc"), (3014, "dw")):
            safe(self.name, 1, seed, extension=extension, checkpoints="fuzzy")

    def test_recovery_writes_no_page_before_the_records_that_changed_it(self) -> None:
        """Write-ahead holds of compensations too, with pages that leave memory in the midst of undo."""
        pages = compensations = 0
        for seed in range(6):
            injection = Injection(drawn_history(seed, self.name), CrashReport(self.name, ()))
            for _, _, durable in injection.points(injection.history.build()):
                before = durable.end
                for step in injection.recovery(durable).run():
                    if isinstance(step, DurableWrite):
                        newest = max((version.lsn for _, version in step.items), default=0) if step.target == PAGES else 0
                        assert newest < durable.end, f"history {seed}: {step} comes before record {newest}"
                        durable.apply(step)
                        pages, compensations = pages + (newest > 0), compensations + (newest >= before)
        assert pages > 100 and compensations > 10

    def test_the_loss_of_the_ssd_loses_no_data(self) -> None:
        """Checkpoints keep the log of what the disk lacks, so that every page may be discarded from the SSD (Do 2012, property 4.2)."""
        assert safe(self.name, 4, inject=without_ssd).points > 500

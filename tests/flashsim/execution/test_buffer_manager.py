"""Pages through a buffer pool: what is read is what was written, no change is lost, and never more pages than frames."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.replacement.base import REPLACEMENT, replacement_policy
from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, RefusedError
from flashsim.core.replacement import DIRTY, FIRST_PAGE, FLAGS, NEVER_AGAIN, PINNED, RESIDENT, WRITES, ReplacementPolicy
from flashsim.device.device import Device
from flashsim.device.file import RealDevice
from flashsim.execution.backend import drive
from flashsim.execution.buffer_manager import BufferManager, Fixed
from flashsim.execution.drivers import needed_size, run_strands, simulate, trace_only, unbounded_volume
from flashsim.execution.file_access import FileAccess, Group
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Algorithm, Cpu, Read, Sleep, Spawn, Wait, Write
from flashsim.execution.run import Run
from flashsim.storage.content import ColumnContent, token_file
from flashsim.storage.heap_file import File, HeapFile, tuple_file
from flashsim.storage.layout import Layout
from flashsim.storage.pool.buffer_pool import BufferPool
from flashsim.storage.pool.simulation import simulation
from flashsim.storage.rows import FixedRows, Tuples
from tests.contract.drivers import run_on_file
from tests.tiers import examples

POLICIES = [*(name for name in REPLACEMENT.names() if not REPLACEMENT.load(name).FUTURE), "plain lirs"]
PAGES, ROWS = 7, 3


def numbers_file(name: str, pages: int = PAGES) -> HeapFile:
    """Pages of a few numbers each."""
    layout = Layout(FixedRows("number", {"number": 8}), 512)
    file = tuple_file(name, layout, Tuples({"number": np.zeros(pages * layout.room // 20, np.int64)}))
    file.pages, file.first_rows = pages, np.arange(pages + 1) * ROWS
    file.loaded = Tuples({"number": np.arange(pages * ROWS)})
    return file


def policy_of(name: str) -> ReplacementPolicy:
    """A policy, or one that has its plain form alone."""
    return replace(replacement_policy(name[6:]), kernels=None) if name.startswith("plain ") else replacement_policy(name)


def manager_of(files: list[HeapFile], frames: int, policy: str = "lru", **told: Any) -> BufferManager:
    return BufferManager(BufferPool(policy_of(policy), frames, files), **told)


class Stored(FileAccess):
    """A driver's backend that keeps what is durable, and lets no time pass."""

    def __init__(self, files: list[HeapFile]) -> None:
        super().__init__(unbounded_volume(), ColumnContent())
        self.runs = [Run("stored")]
        for file in files:
            self.volume.add(file)

    def issue(self, groups: Sequence[Group]) -> None:
        """In no time."""

    def cpu(self, request: Cpu) -> None:
        """In no time."""

    def phase_ends(self) -> None:
        """Nothing."""

    def pages(self, file: File) -> list[list[int]]:
        found = self.content.read(file, np.array([0]), np.array([file.pages]))
        name = file.layout.row_format.columns[-1]
        return [part.tolist() for part in np.split(found.columns[name], found.pages[1:-1])]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("fix"), st.integers(0, 1), st.lists(st.integers(0, PAGES - 1), max_size=4)),
        st.tuples(st.sampled_from(["unfix", "change", "look"]), st.integers(0, 30), st.integers(0, 2)),
        st.tuples(st.just("flush"), st.integers(0, 2), st.integers(0, PAGES - 1)),
        st.tuples(st.just("forget"), st.integers(0, 1), st.integers(0, PAGES - 1)),
    ),
    max_size=60,
)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(30))
@given(STEPS, st.integers(1, 6), st.sampled_from([1, 3]))
def test_no_change_is_lost(policy: str, steps: list[tuple[str, int, Any]], frames: int, depth: int) -> None:
    """Whatever is done in whatever order: a dictionary of pages tells what is seen, and what is stored in the end."""
    files = [numbers_file("a"), numbers_file("b")]
    backend, manager = Stored(files), manager_of(files, frames, policy, depth=depth)
    truth = {(file, page): [ROWS * page + row for row in range(ROWS)] for file in range(2) for page in range(PAGES)}
    held: list[tuple[Fixed, int, list[int]]] = []

    def fixed_by_any(*pages: tuple[int, int]) -> set[tuple[int, int]]:
        return {(file, page) for _, file, own in held for page in own} | set(pages)

    def algorithm() -> Algorithm:
        for number, (what, which, told) in enumerate(steps):
            if what == "fix":
                if len(fixed_by_any(*((which, page) for page in told))) > frames:
                    with pytest.raises(InvalidParameterError, match="frames are not fixed"):
                        yield from manager.fix(files[which], np.array(told, np.int64))
                else:
                    fixed = yield from manager.fix(files[which], np.array(told, np.int64))
                    held.append((fixed, which, told))
            elif what == "flush":
                yield from manager.flush(*((None, None) if which == 2 else (files[which], np.array([told]))))
            elif what == "forget":
                page = manager.pool.numbers_of(files[which], np.array([told]))
                if (which, told) in fixed_by_any() or page in manager.pool.dirty_pages():
                    with pytest.raises(InvalidParameterError, match="it is fixed|it has changes that are not written"):
                        manager.forget(files[which], np.array([told]))
                else:
                    manager.forget(files[which], np.array([told]))
                    assert not manager.pool.resident(page)
            elif held:
                fixed, file, own = held[which % len(held)]
                if what == "unfix":
                    manager.unfix(fixed)
                    held.remove((fixed, file, own))
                    with pytest.raises(InvalidParameterError, match="they were given up"):
                        manager.unfix(fixed)
                    continue
                seen = manager.look(fixed)
                assert [part.tolist() for part in np.split(seen.columns["number"], seen.pages[1:-1])][: len(own)] == [
                    truth[file, page] for page in own
                ]
                if what == "change" and len(set(own)) == len(own):
                    values = np.arange(len(own) * told) + 1000 * number
                    manager.change(fixed, Tuples({"number": values}, np.arange(len(own) + 1) * told))
                    truth.update({(file, page): values[i * told : (i + 1) * told].tolist() for i, page in enumerate(own)})
            flags = manager.pool.state.pages[:, FLAGS]
            assert np.count_nonzero(flags & RESIDENT) == manager.pool.used_frames <= frames
            assert np.count_nonzero(flags & PINNED) == len(fixed_by_any())
            assert not np.any((flags & (PINNED | DIRTY) > 0) & (flags & RESIDENT == 0)), "a page that is held or dirty is there"
        yield from manager.flush()

    drive(algorithm(), backend)
    assert {(number, page): rows for number, file in enumerate(files) for page, rows in enumerate(backend.pages(file))} == truth
    assert not len(manager.pool.dirty_pages())


def asked_for(algorithm: Algorithm, backend: Stored) -> list[tuple[str, list[int]]]:
    """Run an algorithm that reads and writes single pages; returns which, request by request."""
    asked = []

    def noted() -> Algorithm:
        answer = None
        while True:
            try:
                request = algorithm.send(answer)
            except StopIteration:
                return
            assert isinstance(request, Read | Write)
            asked.append((type(request).__name__, request.starts.tolist()))
            answer = yield request

    drive(noted(), backend)
    return asked


REFERENCES = st.lists(st.tuples(st.integers(0, 11), st.booleans()), max_size=80)


def next_uses_of(pages: list[int], writes: list[bool]) -> list[int]:
    """Which reference asks for each page next, the first being 1, with the sign of a later write."""
    found, coming = [], dict[int, int]()
    for number in range(len(pages), 0, -1):
        next_use = coming.get(pages[number - 1], NEVER_AGAIN)
        found.append(next_use)
        coming[pages[number - 1]] = number | WRITES if writes[number - 1] or next_use < 0 else number
    return found[::-1]


@pytest.mark.parametrize("policy", [*REPLACEMENT.names(), "plain lru", "plain opt"])
@settings(max_examples=examples(30))
@given(REFERENCES, st.integers(1, 8), st.sampled_from([1, 2, 5]), st.integers(1, 30))
def test_references_read_and_write_what_the_simulation_counts(
    policy: str, references: list[tuple[int, bool]], frames: int, depth: int, batch: int
) -> None:
    """Misses are reads and write-backs are writes, page by page; in the end each page holds the number of its last change."""
    file = token_file("tokens", 12, 512)
    backend, manager = Stored([file]), manager_of([file], frames, policy, depth=depth)
    pages = np.array([page for page, _ in references], np.int64)
    writes = np.array([write for _, write in references], np.uint8)
    next_uses = np.array(next_uses_of(pages.tolist(), writes.tolist()), np.int32)

    def algorithm() -> Algorithm:
        for begin in range(0, len(pages), batch):
            part = slice(begin, begin + batch)
            yield from manager.refer(pages[part], writes[part], next_uses[part])

    asked = asked_for(algorithm(), backend)
    first = {page: FIRST_PAGE + number for number, page in enumerate(dict.fromkeys(pages.tolist()))}
    alone = simulation(policy_of(policy), frames)
    alone.refer(np.array([first[page] for page in pages.tolist()], np.int32), writes, next_uses)
    assert manager.pool.counts == alone.counts
    for kind, count in (("Read", alone.counts.misses), ("Write", alone.counts.write_backs)):
        assert sum(len(own) for each, own in asked if each == kind) == count
    drive(manager.flush(), backend)
    last = dict.fromkeys(range(12), 0) | {page: int(np.cumsum(writes)[row]) for row, (page, write) in enumerate(references) if write}
    assert backend.pages(file) == [[last[page]] for page in range(12)]


def test_pages_leave_and_enter_in_the_order_of_the_references() -> None:
    """With a depth of 1; otherwise those of a group leave first, and none of them has entered in it."""
    file = token_file("tokens", 9, 512)
    pages, writes = np.array([0, 1, 2, 3, 0, 4, 5, 6]), np.array([1, 1, 0, 0, 0, 0, 0, 0], np.uint8)

    def asked(depth: int) -> list[tuple[str, list[int]]]:
        return asked_for(manager_of([file], 2, depth=depth).refer(pages, writes), Stored([file]))

    assert asked(1) == [("Read", [0, 1]), ("Write", [0]), ("Read", [2]), ("Write", [1]), ("Read", [3, 0, 4, 5, 6])]
    assert asked(3) == [("Read", [0, 1]), ("Write", [0, 1]), ("Read", [2, 3]), ("Read", [0, 4]), ("Read", [5, 6])]


def everywhere(make: Callable[[], Algorithm], files: list[HeapFile], folder: Path) -> list[Run]:
    """Runs in virtual time, as a trace, and on a real file."""
    runs = simulate(make(), files, [Machine([Device.open("ocz-core-60gb")])])
    runs.append(trace_only(make(), files))
    with RealDevice(folder / "device", needed_size(files), allow_write=True, replace=True, buffered=True) as device:
        runs.append(run_on_file(make(), files, device))
    return runs


@pytest.mark.parametrize("depth", [1, 8])
def test_every_driver(depth: int, tmp_path: Path) -> None:
    """In virtual time, on a real file and as a trace: what is read through a small pool is what was written through it."""
    rng = np.random.default_rng(3)
    pages, writes = rng.integers(0, 200, 1000), (rng.random(1000) < 0.4).astype(np.uint8)
    pools: list[BufferPool] = []

    def make() -> Algorithm:
        file, numbers = files
        manager = manager_of([file], 20, depth=depth)
        pools.append(manager.pool)
        for begin in range(0, len(pages), 300):
            yield from manager.refer(pages[begin : begin + 300], writes[begin : begin + 300])
        yield from manager.flush()
        yield from manager.refer(np.arange(200))  # which are checked as they are read
        content = manager_of([numbers], 3, depth=depth)
        for page in (0, 1, 2, 3, 4, 0):
            fixed = yield from content.fix(numbers, np.array([page]))
            seen = content.look(fixed).columns["number"]
            assert seen.tolist() == (
                [7, page] if page == 0 and content.pool.counts.references > 5 else [3 * page, 3 * page + 1, 3 * page + 2]
            )
            content.change(fixed, Tuples({"number": np.array([7, page])}, np.array([0, 2])))
            content.unfix(fixed)
        yield from content.flush()

    files = [token_file("tokens", 200, 512), numbers_file("numbers", 8)]
    runs = everywhere(make, files, tmp_path)
    counts, dirty = pools[0].counts, 0
    assert all(pool.counts == counts for pool in pools) and counts.write_backs > 100
    flushed = {run.total().pages_written for run in runs}
    assert len(flushed) == 1 and {run.total().pages_read for run in runs} == {counts.misses + 6}
    dirty = flushed.pop() - counts.write_backs
    assert 0 < dirty - 6 <= 20
    assert runs[0].total().io_time > 0


def test_strands_share_a_pool(tmp_path: Path) -> None:
    """Each changes its own pages, all of them others' too, through fewer frames than they have pages; nothing is lost."""
    file = numbers_file("numbers", 12)

    def strand(manager: BufferManager, number: int) -> Algorithm:
        for turn in range(20):
            fixed = yield from manager.fix(file, np.array([(turn * 5 + number) % 12]))
            changed = False
            while not changed:  # as long as somebody else does meanwhile
                seen = manager.look(fixed)
                with suppress(InvalidParameterError):
                    manager.change(fixed, Tuples({"number": seen.columns["number"] + 1}, seen.pages))
                    changed = True
            manager.unfix(fixed)

    def make() -> Algorithm:
        manager = manager_of([file], 3, shared=True)
        strands = []
        for number in range(3):
            strands.append((yield Spawn(strand(manager, number))))
        yield Wait(strands)  # type: ignore[arg-type]
        yield from manager.flush()
        assert manager.pool.counts.misses > 12
        for page in range(12):
            fixed = yield from manager.fix(file, np.array([page]))
            times = sum((turn * 5 + number) % 12 == page for turn in range(20) for number in range(3))
            assert manager.look(fixed).columns["number"].tolist() == [ROWS * page + row + times for row in range(ROWS)]
            manager.unfix(fixed)

    trace_only(make(), [file])
    run_strands(make(), [file], Machine([Device.open("ocz-core-60gb")]))
    with RealDevice(tmp_path / "device", needed_size([file]), allow_write=True, replace=True, buffered=True) as device:
        run_on_file(make(), [file], device)


STRAND = st.lists(st.tuples(st.sampled_from(["change", "look", "flush"]), st.integers(0, PAGES - 1), st.integers(0, 3)), max_size=8)


@settings(max_examples=examples(25))
@given(st.lists(STRAND, min_size=2, max_size=4), st.integers(4, 6), st.sampled_from([1, 3]))
def test_no_change_is_lost_between_strands(strands: list[list[tuple[str, int, int]]], frames: int, depth: int) -> None:
    """While one strand's pages are written or read, others change theirs, which may be the same."""
    file = numbers_file("numbers")
    truth = {page: [ROWS * page + row for row in range(ROWS)] for page in range(PAGES)}

    def strand(manager: BufferManager, number: int, steps: list[tuple[str, int, int]]) -> Algorithm:
        for turn, (what, page, pause) in enumerate(steps):
            if what == "flush":
                yield from manager.flush()
                continue
            fixed = yield from manager.fix(file, np.array([page]))
            yield Sleep(pause * 50_000)
            assert manager.look(fixed).columns["number"].tolist() == truth[page]
            if what == "change":
                truth[page] = [1000 * number + turn]
                manager.change(fixed, Tuples({"number": np.array(truth[page])}, np.array([0, 1])))
            yield Sleep(pause * 50_000)
            manager.unfix(fixed)

    def algorithm() -> Algorithm:
        manager, begun = manager_of([file], frames, depth=depth, shared=True), []
        for number, steps in enumerate(strands):
            begun.append((yield Spawn(strand(manager, number, steps))))
        yield Wait(begun)  # type: ignore[arg-type]
        yield from manager.flush()
        stored = yield Read(file, np.array([0]), np.array([PAGES]))
        assert isinstance(stored, Tuples)
        assert [part.tolist() for part in np.split(stored.columns["number"], stored.pages[1:-1])] == list(truth.values())

    run_strands(algorithm(), [file], Machine([Device.open("ocz-core-60gb")]))


def test_two_that_hold_a_page_do_not_lose_each_other_s_change() -> None:
    file = numbers_file("numbers")
    manager, page = manager_of([file], 2), np.array([4])

    def algorithm() -> Algorithm:
        one = yield from manager.fix(file, page)
        other = yield from manager.fix(file, page)
        first = Tuples({"number": np.array([1])}, np.array([0, 1]))
        manager.change(one, first)
        with pytest.raises(InvalidParameterError, match="change: page 4 of numbers, but somebody else has changed it"):
            manager.change(other, first)
        assert manager.look(other).columns["number"].tolist() == [1]
        manager.change(other, first)
        with pytest.raises(InvalidParameterError, match="no lower log sequence number"):
            manager.change(other, first, np.array([2]))
        manager.change(other, first, np.array([40]))
        assert manager.pool.lsns_of(page).tolist() == other.lsns.tolist() == [40]

    drive(algorithm(), Stored([file]))


def test_what_is_refused() -> None:
    file, tokens = numbers_file("numbers"), token_file("tokens", 5, 512)
    manager, backend = manager_of([file], 2), Stored([file, tokens])

    def refused(algorithm: Generator[Any, Any, Any], told: str, kind: type[FlashsimError] = InvalidParameterError) -> None:
        with pytest.raises(kind, match=told):
            drive(algorithm, backend)

    refused(manager.fix(file, np.array([PAGES])), f"fix: page {PAGES} of numbers, but it has {PAGES} pages, from 0")
    refused(manager.fix(file, np.array([-1])), "fix: page -1 of numbers")
    refused(manager.fix(tokens, np.array([0])), "file: tokens, but it does not belong to the buffer pool")
    refused(manager.fix(file, np.array([0, 1, 2, 0])), "fix: 3 pages, but 2 of 2 frames are not fixed")
    manager.pool.fix(np.array([0, 1]))
    refused(manager.fix(file, np.array([2])), "fix: 1 pages, but 0 of 2 frames are not fixed")
    with pytest.raises(InvalidParameterError, match="forget: page 1 of numbers, but it is fixed"):
        manager.forget(file, np.array([1]))
    with pytest.raises(InvalidParameterError, match="depth: 0"):
        manager_of([file], 2, depth=0)
    with pytest.raises(InvalidParameterError, match="size: 0 pages"):
        manager_of([file], 0)
    with pytest.raises(InvalidParameterError, match="unfix: page 3 of numbers, but it is not fixed"):
        manager.pool.unfix(np.array([0, 3]))
    manager.pool.unfix(np.array([0, 1]))
    with pytest.raises(InvalidParameterError, match="unfix: page 0 of numbers, but it is not fixed"):
        manager.pool.unfix(np.array([0]))
    begun = manager.fix(file, np.array([2]))
    next(begun)
    refused(manager.flush(), "another strand's pages are on their way", RefusedError)


def test_a_device_that_lost_a_write_is_noticed() -> None:
    file = token_file("tokens", 5, 512)
    manager = manager_of([file], 1)
    backend = Stored([file])
    drive(manager.refer(np.array([3, 0]), np.array([1, 0], np.uint8)), backend)
    backend.content = ColumnContent()
    with pytest.raises(DamagedFileError, match="page 3 of tokens was written after change 1, but holds page 3 as after change 0"):
        drive(manager.refer(np.array([3])), backend)

"""Every design that extends a memory pool by an SSD: no newest version is ever lost, and frames and heaps are what they should be."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import simpy

from algorithms.extensions.base import DESIGNS
from flashsim.core.kernel import compiled
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import READ
from flashsim.core.units import NEVER
from flashsim.execution.pooled.specification import PoolSpecification
from flashsim.execution.pooled.system import DISK, SSD
from flashsim.storage.extension import state as at
from flashsim.storage.extension.design import (
    KEY_OF,
    of_page,
)
from tests.property.test_pooled_equality import Drawn, drawn_system

REQUESTS = 250


def check_state(ext: at.Extension, design: Any) -> None:
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
                assert key <= of_page(design[KEY_OF])(ext, page) if not compiled() else True
        frame = partition[at.FREE]
        while frame >= 0 and not ext.numbers[at.ROTATES]:
            free.remove(int(frame))
            frame = ext.frames[frame, at.PLACE]
    assert not resting and (not free or ext.numbers[at.ROTATES])


class Versions(PoolSpecification):
    """The specification, with a version of each page at each of its places: in memory, on the SSD, on disk; 0 is where all begin.

    Devices let requests take effect in the order in which they are asked for.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        rows = self.system.rows
        self.newest, self.in_memory, self.on_disk = (np.zeros(rows, np.int64) for _ in range(3))
        self.on_ssd = np.zeros((self.system.ssd, 2), np.int64)  # a page and its version
        self.from_ssd, self.from_disk = np.zeros((2, rows), np.int64)
        self.seen: Counter[str] = Counter()
        self._from_memory = False

    def _modify(self, page: int) -> None:
        self.newest[page] += 1
        self.in_memory[page] = self.newest[page]
        super()._modify(page)

    def _write_to_disk(self, page: int, count: int) -> simpy.Event:
        self._from_memory = True
        event = super()._write_to_disk(page, count)
        self._from_memory = False
        return event

    def _ask_pages(self, purpose: int, operation: int, first: int, count: int = 1) -> simpy.Event:
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
            self.on_disk[pages] = self.in_memory[pages] if self._from_memory else self.from_ssd[pages]
        return super()._ask_pages(purpose, operation, first, count)

    def _served(self, page: int, flags: int) -> None:
        self.seen["served"] += 1
        self.in_memory[page] = self.from_ssd[page]
        super()._served(page, flags)

    def _fetched(self, page: int, flags: int) -> None:
        self.seen["fetched"] += 1
        self.in_memory[page] = self.from_disk[page]
        super()._fetched(page, flags)

    def check(self) -> None:
        """The newest version is where it must be."""
        newest, status, design = self.newest, self.ext.pages[:, at.STATUS], self.system.design
        assert len(self.memory.resident) <= self.system.memory
        resident, changed, coming = np.zeros((3, self.system.rows), bool)
        resident[list(self.memory.resident)] = True
        changed[[page for page, dirty in self.memory.resident.items() if dirty]] = True
        coming[list(self.reading)] = True
        here = resident & ~coming
        assert np.array_equal(self.in_memory[here], newest[here])
        valid, newer = status & at.VALID > 0, status & at.NEWER > 0
        copies = self.on_ssd[self.ext.pages[valid, at.FRAME] - 1]
        assert np.array_equal(copies[:, 0], np.flatnonzero(valid))
        assert np.array_equal(copies[:, 1], newest[valid])
        assert not np.any(newer & ~valid) and not np.any(valid & changed & ~newer & (self.on_disk != newest) & ~changed)
        behind = ~changed & ~newer
        assert np.array_equal(self.on_disk[behind], newest[behind])
        assert design.write_back or not np.any(newer)
        self.seen["newer"] += int(np.count_nonzero(newer))
        self.seen["invalid"] += int(self.ext.numbers[at.INVALID])
        self.seen["twice"] += int(np.count_nonzero(here & valid))


def watched(design: str, seed: int) -> Versions:
    """A run of a drawn system that was looked at after every event."""
    system, _, devices = drawn_system(seed, design)
    run = Versions(system, devices, Drawn(system.pages, seed))
    for event in range(10**9):
        if len(run.devices.asked) >= REQUESTS or run.env.peek() >= NEVER:
            break
        run.env.step()
        run.check()
        if event % 20 == 0:
            check_state(run.ext, system.design.kernels)
    return run


@pytest.mark.parametrize("design", DESIGNS.names())
def test_no_newest_version_is_lost(design: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(6):
        seen.update(watched(design, seed).seen)
    member = DESIGNS.load(design)
    assert seen["fetched"] and (seen["served"] or not member.SSD)
    assert bool(seen["newer"]) == member.WRITE_BACK
    if design == "exclusive":
        assert not seen["twice"]
    if design in ("none", "cw", "dw", "lc", "lazy", "exclusive", "rotating", "face"):
        assert not seen["invalid"]  # a frame whose copy is not the newest any more is free
    if design in ("tac", "inclusive"):
        assert seen["invalid"]

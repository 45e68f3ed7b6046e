"""Every design that extends a memory pool by an SSD, and where each of them puts pages."""

from __future__ import annotations

import re
from collections import Counter, deque
from pathlib import Path

import numpy as np
import pytest

from algorithms.extensions.base import DESIGNS, extension_design
from flashsim.core.errors import FlashsimError, InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.core.replacement import FIRST_PAGE
from flashsim.execution.pooled.system import ExtensionDesign
from flashsim.storage.extension import manager
from flashsim.storage.extension import state as at
from flashsim.storage.extension.design import CHECKPOINTED, DIRTY_PAGE, FOR_UPDATE, SEQUENTIAL, TO_DISK, TO_SSD
from flashsim.storage.extension.manager import change, insert, remove, root_of
from flashsim.testing.contracts.extensions import ExtensionContract, check_state, resting_system, watch_run
from tests.contract.members import each_of


@each_of(DESIGNS)
class TestExtensions(ExtensionContract):
    """Every member."""


def test_what_pages_of_frames_hold_by_design() -> None:
    """A frame whose copy is not the newest any more is free, but with TAC and inclusive; exclusive has no page twice."""
    for design in ("cw", "lc", "exclusive", "face", "tac", "inclusive"):
        seen = sum((watch_run(design, seed).seen for seed in range(2)), Counter())
        assert bool(seen["invalid"]) == (design in ("tac", "inclusive")), design
        assert design != "exclusive" or not seen["twice"]


@pytest.mark.parametrize("requests", [200, pytest.param(600, marks=pytest.mark.deep)])
def test_a_frame_is_not_taken_from_a_scan_that_is_about_to_read_it(requests: int) -> None:
    assert watch_run("lc", 10, requests).seen["newer"]


def put(ext: at.Extension, design: ExtensionDesign, page: int, newer: int = 0) -> int:
    """Write a page to the SSD; its frame, or -1."""
    frame = int(manager.admit(ext, design.kernels, FIRST_PAGE + page, newer))
    if frame >= 0:
        manager.let_go(ext, design.kernels, FIRST_PAGE + page)
    return frame


def held_by(ext: at.Extension) -> list[int]:
    """The pages in frames, 0 and up, or -1."""
    return [int(page) - FIRST_PAGE if page else -1 for page in ext.frames[:, at.PAGE]]


@pytest.mark.parametrize(
    ("design", "flags", "actions"),
    [
        ("none", DIRTY_PAGE, TO_DISK), ("none", 0, 0),
        ("cw", DIRTY_PAGE, TO_DISK), ("cw", 0, TO_SSD), ("cw", SEQUENTIAL, 0), ("cw", DIRTY_PAGE | CHECKPOINTED, TO_DISK),
        ("dw", DIRTY_PAGE, TO_DISK | TO_SSD), ("dw", 0, TO_SSD), ("dw", DIRTY_PAGE | SEQUENTIAL, TO_DISK),
        ("dw", DIRTY_PAGE | CHECKPOINTED, TO_DISK | TO_SSD),
        ("lc", DIRTY_PAGE, TO_SSD), ("lc", 0, TO_SSD), ("lc", DIRTY_PAGE | SEQUENTIAL, TO_DISK), ("lc", SEQUENTIAL, 0),
        ("lc", DIRTY_PAGE | CHECKPOINTED, TO_DISK),
        ("tac", DIRTY_PAGE, TO_DISK), ("tac", 0, 0),
        ("inclusive", DIRTY_PAGE, TO_DISK | TO_SSD), ("exclusive", DIRTY_PAGE, TO_SSD), ("lazy", DIRTY_PAGE | SEQUENTIAL, TO_SSD),
        ("rotating", SEQUENTIAL, TO_SSD), ("face", DIRTY_PAGE, TO_SSD), ("face", DIRTY_PAGE | CHECKPOINTED, TO_DISK),
        ("face", 0, TO_SSD), ("face:clean=0", 0, 0), ("face:clean=0", DIRTY_PAGE, TO_SSD),
    ],
)  # fmt: skip
def test_where_pages_go_that_leave_memory(design: str, flags: int, actions: int) -> None:
    ext, chosen = resting_system(design)
    assert manager.ask_on_evict(ext, chosen.kernels, FIRST_PAGE, flags) == actions


def test_the_reference_has_every_design_with_its_parameters() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "pools.md"
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|(.*)\|$", page.read_text(encoding="utf-8").partition("## Devices")[0], re.MULTILINE)
    told = {name: re.findall(r"`(\w+)`", parameters) for name, parameters in rows}
    assert told == {name: list(DESIGNS.load(name).PARAMETERS) for name in DESIGNS.names()}


def test_while_the_ssd_is_filled_pages_of_scans_are_taken() -> None:
    for name in ("cw", "dw", "lc"):
        ext, chosen = resting_system(name)
        ext.numbers[at.FILL] = 2
        for page in (0, 1):
            assert manager.ask_on_evict(ext, chosen.kernels, FIRST_PAGE + page, SEQUENTIAL) == TO_SSD
            put(ext, chosen, page)
        assert manager.ask_on_evict(ext, chosen.kernels, FIRST_PAGE + 2, SEQUENTIAL) == 0


def test_tac_takes_a_page_whose_extent_is_warmer_than_the_coldest() -> None:
    ext, tac = resting_system("tac", frames=2, extent=2)

    def miss(page: int, flags: int = 0) -> bool:
        wanted = bool(manager.apply_on_fetch(ext, tac.kernels, FIRST_PAGE + page, flags) & TO_SSD)
        if wanted:
            put(ext, tac, page)
        return wanted

    assert miss(0) and miss(2)  # there is room
    assert not miss(4) and held_by(ext) == [0, 2]  # as warm as the coldest
    assert not miss(4, FOR_UPDATE) and ext.words[:4].tolist() == [1, 1, 2, 0]  # it is warmer, but is modified first
    assert miss(4) and held_by(ext) in ([4, 2], [0, 4])
    manager.apply_on_modify(ext, tac.kernels, FIRST_PAGE + 4)
    assert manager.frame_of(ext, FIRST_PAGE + 4) == -1 and ext.numbers[at.INVALID] == 1 and 4 in held_by(ext)
    assert manager.ask_on_evict(ext, tac.kernels, FIRST_PAGE + 4, DIRTY_PAGE) == TO_DISK | TO_SSD
    check_state(ext, tac.kernels)


def test_tac_halves_temperatures_and_counts_costs() -> None:
    ext, tac = resting_system("tac", frames=4, extent=2, aging=5, random=900, sequential=0)
    for page, flags in ((0, 0), (0, 0), (2, 0), (4, SEQUENTIAL)):
        manager.apply_on_fetch(ext, tac.kernels, FIRST_PAGE + page, flags)
        put(ext, tac, page)
    assert ext.words[:3].tolist() == [1800, 900, 0]
    manager.apply_on_serve(ext, tac.kernels, FIRST_PAGE, 0)
    assert ext.words[:3].tolist() == [1350, 450, 0]
    check_state(ext, tac.kernels)
    assert manager.least(ext, tac.kernels, FIRST_PAGE) == FIRST_PAGE + 4


def test_how_often_tac_loses_a_write() -> None:
    ext, tac = resting_system("tac", pages=20_000, lost=30)
    lost = [not manager.apply_on_fetch(ext, tac.kernels, FIRST_PAGE + page, FOR_UPDATE) for page in range(20_000)]
    assert abs(np.mean(lost) - 0.3) < 4 * (0.3 * 0.7 / 20_000) ** 0.5


@pytest.mark.parametrize("design", ["rotating", "face"])
def test_frames_are_taken_in_rotation(design: str) -> None:
    ext, chosen = resting_system(design, frames=3)
    assert [put(ext, chosen, page) for page in range(4)] == [0, 1, 2, 0]
    manager.apply_on_modify(ext, chosen.kernels, FIRST_PAGE + 2)
    assert held_by(ext) == [3, 1, -1]
    manager.hold(ext, FIRST_PAGE + 1)
    assert put(ext, chosen, 4, newer=1) == 2  # the one that is read is passed over
    manager.let_go(ext, chosen.kernels, FIRST_PAGE + 1)
    assert [put(ext, chosen, page) for page in (5, 6)] == [0, 1]
    assert put(ext, chosen, 7) == -1 and manager.due(ext, chosen.kernels) == FIRST_PAGE + 4  # to be cleaned first
    check_state(ext, chosen.kernels)
    manager.hold(ext, FIRST_PAGE + 4)
    manager.note_cleaning(ext, FIRST_PAGE + 4)
    manager.let_go(ext, chosen.kernels, FIRST_PAGE + 4)
    manager.apply_on_serve(ext, chosen.kernels, FIRST_PAGE + 4, 0)
    assert put(ext, chosen, 7) == (0 if design == "face" else 2)  # a second chance
    assert manager.due(ext, chosen.kernels) == -1
    check_state(ext, chosen.kernels)


class Queued:
    """FaCE's queue, entry by entry: [page, whether it is its newest version here, was read since, is newer than on disk]."""

    def __init__(self, frames: int) -> None:
        self.frames, self.flushed = frames, 0
        self.entries: deque[list[int]] = deque()

    def find(self, page: int) -> list[int] | None:
        return next((entry for entry in self.entries if entry[0] == page and entry[1]), None)

    def modify(self, page: int) -> None:
        if entry := self.find(page):
            entry[1] = 0

    def put(self, page: int, newer: int) -> None:
        while len(self.entries) == self.frames:
            entry = self.entries.popleft()
            if entry[1] and entry[2]:
                entry[2] = 0
                self.entries.append(entry)
            else:
                self.flushed += entry[1] and entry[3]
        self.entries.append([page, 1, 0, newer])


def test_face_beside_a_queue() -> None:
    ext, face = resting_system("face", pages=30, frames=7)
    queue, flushed, random = Queued(7), 0, np.random.default_rng(7)
    for _ in range(3000):
        page = int(random.integers(30))
        if random.random() < 0.3:  # read from the SSD
            if entry := queue.find(page):
                manager.apply_on_serve(ext, face.kernels, FIRST_PAGE + page, 0)
                entry[2] = 1
            continue
        newer = int(random.integers(2))
        if newer:
            manager.apply_on_modify(ext, face.kernels, FIRST_PAGE + page)
            queue.modify(page)
        if not queue.find(page):  # what the SSD holds as it is is not queued again
            queue.put(page, newer)
            while put(ext, face, page, newer) < 0:
                if (old := manager.due(ext, face.kernels)) >= 0:  # its turn: it is written to disk first
                    manager.hold(ext, old)
                    manager.note_cleaning(ext, old)
                    manager.let_go(ext, face.kernels, old)
                    flushed += 1
        assert {page for page in range(30) if manager.frame_of(ext, FIRST_PAGE + page) >= 0} == {
            entry[0] for entry in queue.entries if entry[1]
        }
    check_state(ext, face.kernels)
    assert 0 < queue.flushed == flushed


def test_a_page_that_leaves_the_ssd_for_memory_is_newer_there() -> None:
    ext, chosen = resting_system("exclusive")
    put(ext, chosen, 3, newer=1)
    put(ext, chosen, 4)
    assert manager.apply_on_serve(ext, chosen.kernels, FIRST_PAGE + 3, 0)
    assert not manager.apply_on_serve(ext, chosen.kernels, FIRST_PAGE + 4, 0)
    assert held_by(ext) == [-1] * 8


def test_heaps_beside_a_dictionary() -> None:
    draw = np.random.default_rng(3)
    ext = at.empty_extension(1, 40, 3)
    keys: list[list[dict[int, int]]] = [[{}, {}] for _ in range(3)]
    for _ in range(3000):
        number, heap = int(draw.integers(3)), int(draw.integers(2))
        begin, end = ext.partitions[number, [at.BEGIN, at.END]].tolist()
        frame, key, mine = int(draw.integers(begin, end)), int(draw.integers(100)), keys[number][heap]
        if frame in mine:
            if draw.random() < 0.5:
                change(ext, number, (at.CLEAN, at.DIRTY)[heap], frame, key)
                mine[frame] = key
            else:
                remove(ext, number, (at.CLEAN, at.DIRTY)[heap], frame)
                del mine[frame]
        elif frame not in keys[number][1 - heap]:
            insert(ext, number, (at.CLEAN, at.DIRTY)[heap], frame, key)
            mine[frame] = key
        root = root_of(ext, number, (at.CLEAN, at.DIRTY)[heap])
        assert (root == -1) == (not mine) and (root == -1 or mine[root] == min(mine.values()))


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ("taq", UnknownNameError, "did you mean tac?"),
        ("tac:extend=3", UnknownNameError, "did you mean extent?"),
        ("tac:extent=0", InvalidParameterError, "extent of tac: 0, but it must be a whole number from 1"),
        ("tac:lost=101", InvalidParameterError, "from 0 to 100"),
        ("tac:extent", InvalidParameterError, "NAME=NUMBER"),
        ("lc:extent=3", UnknownNameError, "extent"),
        ("absent.py", MissingFileError, "no file"),
    ],
)
def test_bad_designs_are_named(asked: str, error: type[FlashsimError], told: str) -> None:
    with pytest.raises(error) as raised:
        extension_design(asked)
    assert told in str(raised.value) and "\n" not in str(raised.value)


def test_files_that_are_no_design_are_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    refusals = (("", "does not define"), ("TITLE = 1\nimport absent_module\n", "absent_module"), ("served = 1\n", "called on_serve now"))
    for text, told in refusals:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FlashsimError, match=told):
            extension_design(str(path))


def test_a_design_with_a_former_name_is_refused_with_the_new(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("from flashsim.core.draws import mixed")
    with pytest.raises(FlashsimError, match="mixed is called mix_bits now"):
        DESIGNS.load(str(file))

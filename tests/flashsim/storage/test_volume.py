"""Volumes: pages of different files never share bytes, and every extent is found where it was put."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import CapacityError, FlashsimError, InvalidParameterError, UnknownNameError
from flashsim.core.units import GIB, NEVER
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout
from flashsim.storage.placement import PLACEMENTS
from flashsim.storage.placement.ext3 import BLOCK, COMMIT, JOURNAL, MAPPED
from flashsim.storage.volume import Volume
from flashsim.testing.contracts.storage import LAYOUT, PAGE, RELATION, PlacementContract, base_file, places_of
from tests.contract.members import each_of


@each_of(PLACEMENTS)
class TestPlacements(PlacementContract):
    """Every member."""


def test_temporary_files_are_on_a_second_disk() -> None:
    volume, file = Volume([NEVER] * 2, "two-disks"), File("t", LAYOUT)
    volume.extend(file, 3)
    assert {device for device, _ in places_of(volume, file)} == {1}


def test_packed_files_follow_each_other_in_order_of_writing() -> None:
    volume = Volume([NEVER])
    first, second = File("a", LAYOUT), File("b", LAYOUT)
    for file in (first, second, first):
        volume.extend(file, 2)
    assert [offset // PAGE for _, offset in places_of(volume, first)] == [0, 1, 4, 5]
    assert [offset // PAGE for _, offset in places_of(volume, second)] == [2, 3]


def test_spread_files_keep_together() -> None:
    volume = Volume([NEVER], "spread")
    first, second = File("a", LAYOUT, expected_pages=10), File("b", LAYOUT, expected_pages=10)
    for file in (first, second) * 5:
        volume.extend(file, 2)
    assert np.diff([offset for _, offset in places_of(volume, first)]).tolist() == [PAGE] * 9


def test_dropped_pages_are_used_again() -> None:
    volume = Volume([20 * PAGE])
    for _ in range(10):
        file = File("t", LAYOUT)
        volume.extend(file, 20)
        assert volume.drop(file) == [(0, 0, 20 * PAGE)]


def test_the_lock_byte_page_is_skipped() -> None:
    page_size = 65536
    lock_page = GIB // page_size
    file = base_file(lock_page + 10, page_size)
    volume = Volume([NEVER])
    extents = volume.add(file)
    assert extents.offsets.tolist() == [page_size, GIB + page_size]
    assert int(extents.lengths.sum()) == file.pages * page_size


def test_a_full_device_and_a_wrong_placement_are_refused() -> None:
    with pytest.raises(CapacityError, match="device"):
        Volume([10 * PAGE]).add(base_file(10))
    with pytest.raises(UnknownNameError):
        Volume([1], "anywhere")
    with pytest.raises(InvalidParameterError):
        Volume([1], "two-disks")


def test_ext3_leaves_a_hole_before_every_four_mebibytes() -> None:
    page_size, pages = 8192, 1200
    volume = Volume([NEVER], "ext3")
    file = File("t", Layout(RELATION, page_size))
    for _ in range(pages // 50):
        volume.extend(file, 50)
    extents = volume.locate(file, np.zeros(1, np.int64), np.array([pages]))
    assert extents.lengths.tolist() == [MAPPED, MAPPED, pages * page_size - 2 * MAPPED]
    assert np.diff(extents.offsets).tolist() == [MAPPED + BLOCK] * 2
    (whole,) = volume.drop(file)
    assert whole == (0, JOURNAL, pages * page_size + 3 * BLOCK)


@pytest.mark.parametrize("page_size", [2048, 8192, 32768])
def test_ext3_on_a_miniature_has_holes_and_commits_as_much_more_often(page_size: int) -> None:
    scale = 6 / 64
    volume = Volume([NEVER], "ext3", scale)
    file, pages = File("t", Layout(RELATION, page_size)), 16 * MAPPED // page_size
    volume.extend(file, pages)
    extents = volume.locate(file, np.zeros(1, np.int64), np.array([pages]))
    assert set(extents.lengths[:-1].tolist()) == {MAPPED * scale}
    assert extents.lengths.sum() == pages * page_size and set(np.diff(extents.offsets).tolist()) == {MAPPED * scale + BLOCK}
    assert (pages * page_size >= COMMIT * scale) == bool(volume.metadata_due())


def test_ext3_gives_whole_blocks() -> None:
    """Pages of half a block: a file goes on in its last block, and no other file shares it."""
    volume = Volume([NEVER], "ext3")
    files = [File(f"t{number}", Layout(RELATION, 2048)) for number in range(2)]
    taken: dict[int, int] = {}
    for step in range(60):
        file = files[step % 2]
        had = file.pages
        volume.extend(file, 1 + step % 5 * 700)
        extents = volume.locate(file, np.array([had]), np.array([file.pages - had]))
        for offset, length in zip(extents.offsets.tolist(), extents.lengths.tolist(), strict=True):
            for place in range(offset, offset + length, 2048):
                assert taken.setdefault(place // BLOCK, step % 2) == step % 2
    whole = [volume.locate(file, np.zeros(1, np.int64), np.array([file.pages])) for file in files]
    for file, extents in zip(files, whole, strict=True):
        assert extents.lengths.sum() == file.pages * 2048
        assert np.all(extents.offsets % BLOCK == 0)
        places = np.concatenate([np.arange(o, o + n, 2048) for o, n in zip(extents.offsets, extents.lengths, strict=True)])
        assert len(np.unique(places)) == file.pages


def test_ext3_writes_its_metadata_after_so_much_data_and_when_asked() -> None:
    page_size, batch = 8192, 512
    volume = Volume([NEVER], "ext3")
    volume.add(base_file(10, page_size))
    (first,) = volume.metadata_due(now=True)
    assert len(first.offsets) == 2 and volume.metadata_due(now=True) == []
    file, due = File("t", Layout(RELATION, page_size)), []
    while not due:
        volume.extend(file, batch)
        due += volume.metadata_due()
    written = file.pages * page_size
    assert COMMIT <= written < COMMIT + batch * page_size
    holes = -(-written // MAPPED)
    assert due[0].lengths.tolist() == [(holes + 2) * BLOCK] + [BLOCK] * holes
    assert due[0].offsets[0] == first.offsets[0] + first.lengths[0]  # the journal goes on
    pages = set(volume.locate(file, np.arange(file.pages), np.ones(file.pages, np.int64)).offsets.tolist())
    assert {int(offset) + BLOCK for offset in due[0].offsets[1:]} <= pages  # each lies before the data that it maps
    volume.extend(file, 1)
    volume.drop(file)
    assert volume.metadata_due(now=True) == []


def test_ext3_keeps_room_for_the_lock_byte_page() -> None:
    page_size = 65536
    lock_page = GIB // page_size
    file = base_file(lock_page + 10, page_size)
    volume = Volume([NEVER], "ext3")
    extents = volume.add(file)
    assert int(extents.lengths.sum()) == file.pages * page_size
    gaps = np.diff(extents.offsets) - extents.lengths[:-1]
    assert sorted(set(gaps.tolist())) == [BLOCK, BLOCK + page_size]


def test_interleaved_files_take_turns_window_by_window() -> None:
    """Two files grow by a page each in turn: windows of 8, 16, 32 blocks alternate, each file's first behind its indirect block."""
    volume = Volume([NEVER], "ext3-interleaved")
    layout = Layout(RELATION, BLOCK)
    files = [File("a", layout), File("b", layout)]
    for _ in range(56):
        for file in files:
            volume.extend(file, 1)
    begins = []
    for file in files:
        extents = volume.locate(file, np.zeros(1, np.int64), np.array([file.pages]))
        assert (extents.lengths // BLOCK).tolist() == [8, 16, 32]
        begins.append(((extents.offsets - JOURNAL) // BLOCK).tolist())
    assert begins == [[1, 18, 50], [10, 34, 82]]


def test_interleaved_files_come_back_to_the_rest_of_their_window() -> None:
    """A write longer than a window takes windows of 1,024 blocks, each behind its indirect block; other files go on behind the last."""
    volume = Volume([NEVER], "ext3-interleaved")
    files = [File(name, Layout(RELATION, BLOCK)) for name in "ab"]
    for file in (*files, files[0]):
        volume.extend(file, 1500)
    places = [volume.locate(file, np.zeros(1, np.int64), np.array([file.pages])) for file in files]
    assert [(extents.lengths // BLOCK).tolist() for extents in places] == [[1024, 1024, 952], [1024, 476]]
    assert [((extents.offsets - JOURNAL) // BLOCK).tolist() for extents in places] == [[1, 1026, 4101], [2051, 3076]]
    assert sum(length for _, _, length in volume.drop(files[0])) == (1024 + 1024 + 1024 + 3) * BLOCK


def test_interleaved_is_ext3_for_base_relations_and_a_file_that_grows_alone() -> None:
    for page_size in (2048, 8192, 32768):
        places = []
        for placement in ("ext3", "ext3-interleaved"):
            volume, file = Volume([NEVER], placement, 6 / 64), File("t", Layout(RELATION, page_size))
            base = volume.add(base_file(3000, page_size))
            for count in (1, 2, 700, 3, 1500):
                volume.extend(file, count)
            places.append([*base.offsets, *volume.locate(file, np.zeros(1, np.int64), np.array([file.pages])).offsets])
        assert places[0] == places[1]


def test_a_placement_with_a_former_name_is_refused_with_the_new(tmp_path: Path) -> None:
    file, base = tmp_path / "own.py", "flashsim.storage.placement.base"
    file.write_text(f"from {base} import FileRuns\nclass FileSystem(FileRuns):\n    def reserved(self, file, pages): ...")
    with pytest.raises(FlashsimError, match="defines reserved, which is called reserved_pages now"):
        PLACEMENTS.load(str(file))

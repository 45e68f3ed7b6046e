"""The contract of placements: no two pages share a place, each is found where it was put, and a full device is refused."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flashsim.core.errors import CapacityError
from flashsim.core.units import GIB, MIB, NEVER
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.layout import Layout
from flashsim.storage.placement.base import PLACEMENTS
from flashsim.storage.relation import Relation
from flashsim.storage.volume import Volume
from flashsim.testing.contract import Contract, examples

PAGE = 512


class _NoRecords:
    names = ("key",)
    rows = 0

    def key(self, column: str) -> pa.Array:
        return pa.array([], pa.int64())

    def record_sizes(self) -> int:
        return 8


RELATION = Relation("r", "key", np.zeros(0, np.int64), _NoRecords())  # type: ignore[arg-type]
LAYOUT = Layout(RELATION, PAGE)


def base_file(pages: int, page_size: int = PAGE) -> HeapFile:
    """A base relation's file of so many pages."""
    return HeapFile("base", Layout(RELATION, page_size), temporary=False, pages=pages, first_rows=np.zeros(pages + 1, np.int64))


def places_of(volume: Volume, file: File) -> list[tuple[int, int]]:
    """(device, offset) of every page, asked for together, one by one, and as one long extent."""
    numbers, one = np.arange(file.pages), np.ones(1, np.int64)
    if not file.pages:
        return []
    extents = volume.locate(file, numbers, np.ones(file.pages, np.int64))
    assert (extents.lengths == file.page_size).all()
    alone = [volume.locate(file, np.array([page]), one) for page in range(file.pages)]
    assert [each.offsets.tolist() for each in alone] == [[offset] for offset in extents.offsets.tolist()]
    assert all(each.device == extents.device and each.lengths.tolist() == [file.page_size] for each in alone)
    whole = volume.locate(file, np.zeros(1, np.int64), np.array([file.pages]))
    covered = [range(*run, file.page_size) for run in zip(whole.offsets, whole.offsets + whole.lengths, strict=True)]
    assert [offset for run in covered for offset in run] == extents.offsets.tolist()
    return [(extents.device, offset) for offset in extents.offsets.tolist()]


class PlacementContract(Contract):
    """Properties of a placement (`flashsim.storage.placement.base`)."""

    FAMILY = PLACEMENTS

    def volume(self, capacity: int) -> Volume:
        return Volume([capacity] * PLACEMENTS.load(self.name).DEVICE_MAP.devices, self.name)

    @examples(60)
    @given(
        base_pages=st.integers(0, 50),
        turns=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 7)), max_size=40),
        expected=st.integers(0, 20),
    )
    @example(base_pages=1, turns=[(0, 2), (0, 0), (1, 2), (2, 2)], expected=0)
    def test_no_two_pages_share_a_place(self, base_pages: int, turns: list[tuple[int, int]], expected: int) -> None:
        """A relation and five temporary files that grow by some pages in turn, or are dropped and begin anew; pages are sectors."""
        volume, base = self.volume(NEVER), base_file(base_pages)
        volume.add(base)
        files = [File(f"t{index}", LAYOUT, expected_pages=expected) for index in range(5)]
        wanted = [0] * 5
        for index, count in turns:
            wanted[index] = wanted[index] + count if count else 0
            if count:
                volume.extend(files[index], count)
                continue
            freed = volume.drop(files[index])
            live = [place for file in (base, *files) for place in places_of(volume, file)]
            for device, offset, length in freed:
                inside = [at for on, at in live if on == device and offset - PAGE < at < offset + length]
                assert not inside, f"{length} B at {offset} are given back, but a page lies at {inside[:1]}"
        assert [file.pages for file in files] == wanted, f"files have {[file.pages for file in files]} pages, and {wanted} were asked for"
        places = [place for file in (base, *files) for place in places_of(volume, file)]
        assert len(set(places)) == len(places), "two pages share a place"
        for _, offset in places:
            assert offset >= 0 and offset % PAGE == 0, f"a page of {PAGE} B lies at byte {offset}"

    def test_a_file_lies_on_a_device_that_there_is(self) -> None:
        member = PLACEMENTS.load(self.name).DEVICE_MAP
        for file in (base_file(1), File("t", LAYOUT)):
            assert 0 <= member.device(file) < member.devices, f"{file.name} lies on device {member.device(file)} of {member.devices}"

    def test_a_full_device_is_refused(self) -> None:
        """Files of 32 MiB, until a device of one GiB has no room."""
        volume, files = self.volume(GIB), [File(f"t{number}", Layout(RELATION, 8192)) for number in range(40)]
        with pytest.raises(CapacityError, match="device"):
            for file in files:
                volume.extend(file, 32 * MIB // 8192)
                extents = volume.locate(file, np.zeros(1, np.int64), np.array([file.pages]))
                assert (extents.offsets + extents.lengths <= GIB).all(), "a page lies behind the end of its device"

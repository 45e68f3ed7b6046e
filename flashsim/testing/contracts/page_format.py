"""The contract of formats of page traces: files are recognised and read as what they say, damage is refused by name."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.transactions import References
from flashsim.testing.contract import Contract, examples
from flashsim.testing.contracts.format import FOREIGN, PACKERS, folder, is_refused, is_text
from traces.format.base import formats
from traces.page_format.base import PAGE_FORMATS, PageTraceFormat, load_page_format

__all__ = ["PageTraceContract"]

#: References that stand in for the example of a format which is written and brings none.
_WRITTEN = References(np.array([7, -2, 7], np.int64), np.array([False, True, False]))

#: Pages, and which references write; None where nothing says so.
_Listed = tuple[list[int], list[bool] | None]


def list_references(batches: Iterable[References]) -> _Listed:
    """All references of some batches."""
    parts = list(batches)
    assert all(part.pages.dtype == np.int64 for part in parts), "ids of pages are not int64"
    writes = [flag for part in parts if part.writes is not None for flag in part.writes.tolist()]
    return [page for part in parts for page in part.pages.tolist()], writes or None


def page_example(name: str) -> tuple[bytes, _Listed]:
    """A file of the format, and its references: its example, or some that it writes."""
    member = load_page_format(name)
    if example := member.EXAMPLE:
        return example.content, (list(example.pages), None if example.writes is None else list(example.writes))
    with folder() as place:
        member.write(iter([_WRITTEN]), place / "written")
        return (place / "written").read_bytes(), list_references([_WRITTEN])


class PageTraceContract(Contract):
    """Properties of a format of page traces (`traces.page_format.base`)."""

    FAMILY = PAGE_FORMATS

    @property
    def format(self) -> PageTraceFormat:
        return load_page_format(self.name)

    def read(self, path: Path) -> _Listed:
        return list_references(self.format.references(path))

    def test_its_files_are_recognised_and_no_others(self) -> None:
        """Files of formats with another name are not taken for its own, unless the format is generic."""
        others: list[tuple[str, Any]] = [(name, PAGE_FORMATS.load(name).EXAMPLE) for name in PAGE_FORMATS.names()]
        others += [(name, member.EXAMPLE) for name, member in formats().items()]
        with folder() as place:
            (place / "own").write_bytes(page_example(self.name)[0])
            assert self.format.recognise(place / "own") and self.format.TITLE, "it does not recognise its own example"
            for name, other in others:
                if other and name != self.name and not self.format.GENERIC:
                    (place / "other").write_bytes(other.content)
                    assert not self.format.recognise(place / "other"), f"it takes a file of {name} for its own"

    def test_references_are_what_the_example_says(self) -> None:
        data, wanted = page_example(self.name)
        with folder() as place:
            (place / "own").write_bytes(data)
            for _ in range(2):
                found = self.read(place / "own")
                assert found == wanted, f"it reads {found}, and its example has {wanted}"

    def test_packed_files_are_read_and_damaged_ones_refused(self) -> None:
        data, wanted = page_example(self.name)
        with folder() as place:
            path = place / "packed"
            for ending, pack in PACKERS.items():
                path.write_bytes(packed := pack(data))
                if not self.format.recognise(path):
                    pytest.skip("it does not unpack its files")
                assert self.read(path) == wanted, f"other references from a file that {ending} packed"
                assert is_refused(path, packed[:-5], self.read), f"a damaged file that {ending} packed is read"

    def test_a_damaged_line_is_named(self) -> None:
        data, _ = page_example(self.name)
        if not is_text(data):
            pytest.skip("its files are no text")
        with folder() as place:
            for damage in (b"what is this?\n", b"\xff\xfe\x00\n"):
                (place / "damaged").write_bytes(data + data.splitlines(keepends=True)[-1] + damage)
                with pytest.raises(DamagedFileError, match=f"damaged, line {len(data.splitlines()) + 2}:"):
                    self.read(place / "damaged")

    @examples(60)
    @given(where=st.floats(0, 1), size=st.integers(0, 20), foreign=FOREIGN)
    @example(where=0.98, size=4, foreign=b"\xff\xff\xff\x7f")
    def test_damage_anywhere_is_read_as_references_or_refused_by_name(self, where: float, size: int, foreign: bytes) -> None:
        data, _ = page_example(self.name)
        at = int(where * len(data))
        with folder() as place:
            for read in (self.format.recognise, lambda path: list_references(islice(self.format.references(path), 2))):
                is_refused(place / "damaged", data[:at] + foreign + data[at + size :], read)

    def test_a_file_that_is_cut_short_gives_no_wrong_reference(self) -> None:
        data, (wanted, _) = page_example(self.name)
        with folder() as place:
            for keep in range(0, len(data), max(1, len(data) // 100)):
                (place / "cut").write_bytes(data[:keep])
                try:
                    found = self.read(place / "cut")[0]
                except DamagedFileError:
                    continue
                sure = found[:-1]
                assert len(found) <= len(wanted) and sure == wanted[: len(sure)], f"other references from its first {keep} bytes"

    def test_what_is_written_comes_back(self) -> None:
        random = np.random.default_rng(1)
        batches = [References(random.integers(-(2**63), 2**63 - 1, 300), random.random(300) < 0.5) for _ in range(3)]
        with folder() as place:
            try:
                self.format.write(iter(batches), place / "written")
            except InvalidParameterError as problem:
                pytest.skip(str(problem))
            assert self.format.recognise(place / "written"), "it does not recognise what it wrote"
            pages, writes = self.read(place / "written")
        wanted = list_references(batches)
        assert pages == wanted[0] and writes in (None, wanted[1]), "other references come back"

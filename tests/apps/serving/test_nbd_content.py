"""Content in memory and in a file, against a plain array of bytes."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.apps.serving.content import CHUNK, Content, FileContent, MemoryContent
from flashsim.core.errors import CapacityError, MissingFileError, RefusedError

SIZE = 5 * CHUNK
places = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(sorted).map(tuple)
steps = st.lists(st.tuples(st.sampled_from(["write", "clear", "read"]), places, st.integers(1, 255)), max_size=12)


def assert_as_bytes(content: Content, todo: list[tuple[str, tuple[int, int], int]]) -> None:
    expected = bytearray(SIZE)
    for what, (begin, end), value in todo:
        if begin == end:
            continue
        if what == "write":
            content.write(begin, bytes([value]) * (end - begin))
            expected[begin:end] = bytes([value]) * (end - begin)
        elif what == "clear":
            content.clear(begin, end - begin)
            expected[begin:end] = bytes(end - begin)
        assert content.read(begin, end - begin) == expected[begin:end]
    assert content.read(0, SIZE) == expected


@given(steps)
def test_memory_holds_what_was_written(todo: list[tuple[str, tuple[int, int], int]]) -> None:
    with closing(MemoryContent(SIZE)) as content:
        assert_as_bytes(content, todo)
        content.clear(0, SIZE)
        assert content.size == 0


@given(todo=steps, punches=st.booleans())
def test_a_file_holds_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, todo: list[tuple[str, tuple[int, int], int]], punches: bool
) -> None:
    path = tmp_path_factory.mktemp("content") / "drive.img"
    with pytest.MonkeyPatch.context() as patch, closing(FileContent(path, SIZE)) as content:
        if not punches:
            patch.setattr("flashsim.apps.serving.content._punch", lambda *_: False)
        assert_as_bytes(content, todo)
        assert path.read_bytes() == content.read(0, SIZE)


def test_memory_is_limited() -> None:
    content = MemoryContent(2 * CHUNK)
    content.write(CHUNK - 1, b"ab")
    with pytest.raises(OSError, match="No space left"):
        content.write(2 * CHUNK, b"c")
    content.write(0, bytes(2 * CHUNK))
    assert content.size == 2 * CHUNK
    content.clear(0, 1 << 50)
    content.write(9 * CHUNK, b"d")
    assert content.read(9 * CHUNK, 2) == b"d\0"


def test_a_file_stays_and_may_be_shorter_than_the_drive(tmp_path: Path) -> None:
    path = tmp_path / "drive.img"
    path.write_bytes(b"kept" * 1024)
    with closing(FileContent(path, SIZE, read_only=True)) as content:
        assert content.read(0, 4) == b"kept" and content.read(4094, 4) == b"pt\0\0" and content.read(SIZE - 8, 8) == bytes(8)
    with pytest.raises(
        RefusedError, match="has 4 KiB: it was not made for this drive, which holds .*; add --force to take and overwrite it"
    ):
        FileContent(path, SIZE)
    assert path.stat().st_size == 4096
    with closing(FileContent(path, SIZE, force=True)) as content:
        content.write(3 * CHUNK, b"more")
        assert [extent[0] for extent in content.extents()] == [0, 3 * CHUNK]
    with closing(FileContent(path, SIZE)) as content:
        assert content.read(3 * CHUNK, 4) == b"more"


def test_a_file_of_the_drive_s_length_that_was_made_elsewhere_is_refused(tmp_path: Path) -> None:
    """Without --force; a file system that keeps no attributes lets its length do."""
    path, own = tmp_path / "theirs.img", tmp_path / "own.img"
    path.write_bytes(b"kept" * (SIZE // 4))
    with closing(FileContent(own, SIZE)):
        pass
    if not os.listxattr(own):
        pytest.skip("the file system keeps no extended attributes")
    for _ in range(2):
        with pytest.raises(RefusedError, match="it was not made for this drive.*; add --force to take and overwrite it"):
            FileContent(path, SIZE)
        with closing(FileContent(path, SIZE, read_only=True)) as content:
            assert content.read(0, 4) == b"kept"
    assert path.read_bytes() == b"kept" * (SIZE // 4) and not os.listxattr(path)
    for each in (own, path):
        with closing(FileContent(each, SIZE, force=each == path)):
            pass
        with closing(FileContent(each, SIZE)):
            pass


def test_files_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "drive.img"
    with pytest.raises(MissingFileError):
        FileContent(path, SIZE, read_only=True)
    with pytest.raises(MissingFileError):
        FileContent(tmp_path / "no" / "drive.img", SIZE)
    with pytest.raises(RefusedError, match="not a regular file"):
        FileContent(tmp_path, SIZE)
    path.write_bytes(bytes(SIZE + 1))
    with pytest.raises(CapacityError):
        FileContent(path, SIZE)
    assert path.stat().st_size == SIZE + 1
    os.truncate(path, SIZE)
    with closing(FileContent(path, SIZE, force=True)), pytest.raises(RefusedError, match="served already"):
        FileContent(path, SIZE)
    with closing(FileContent(path, SIZE, read_only=True)), closing(FileContent(path, SIZE, read_only=True)):
        pass

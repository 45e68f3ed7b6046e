"""What a power cut leaves of files: synced bytes always, of all else any part, names in the order of the journal."""

from __future__ import annotations

from typing import Any

import pytest

from flashsim.apps.programs.volatile_files import PAGE, Remains, Tear, VolatileFiles
from traces.calls import schema


def files(**contents: bytes) -> VolatileFiles:
    return VolatileFiles({f"/{name}": number for number, name in enumerate(contents)}, dict(enumerate(contents.values())))


def call(name: str, file: int, path: str, **more: Any) -> dict[str, Any]:
    base = {
        "call": name,
        "file": file,
        "path": path,
        "kind": "file",
        "error": None,
        "flags": 0,
        "offset": None,
        "length": None,
        "other": None,
    }
    return base | {"content": None} | more


def play(state: VolatileFiles, *calls: dict[str, Any]) -> VolatileFiles:
    for number, each in enumerate(calls):
        state.apply(number, each)
    return state


def write(file: int, path: str, offset: int, content: bytes, flags: int = 0) -> dict[str, Any]:
    return call("pwrite64", file, path, offset=offset, content=content, flags=flags)


CREATE_B = call("openat", 1, "/b", flags=schema.CREATE | schema.TRUNCATE)


def test_all_and_nothing_and_a_part_may_be_left() -> None:
    state = play(files(a=b"old old"), write(0, "/a", 0, b"new"), write(0, "/a", PAGE - 2, b"12345"))
    assert state.image(Remains(0, {})) == {"/a": b"old old"}
    assert state.image(state.everything()) == {"/a": b"new old".ljust(PAGE - 2, b"\0") + b"12345"}
    assert state.image(Remains(0, {(0, 0): 1})) == {"/a": b"new old"}
    assert state.image(Remains(0, {(0, 1): 1})) == {"/a": b"old old".ljust(PAGE, b"\0") + b"345"}


def test_a_page_has_what_was_written_to_it_before() -> None:
    state = play(files(a=bytes(8)), write(0, "/a", 0, b"11"), write(0, "/a", 4, b"22"), write(0, "/a", 1, b"33"))
    images = [state.image(Remains(0, {(0, 0): count}))["/a"] for count in range(4)]
    assert images == [bytes(8), b"11\0\0\0\0\0\0", b"11\0\x0022\0\0", b"133\x0022\0\0"]


def test_what_is_synced_stays_with_the_journal_so_far() -> None:
    state = play(files(a=b"old"), write(0, "/a", 0, b"newer"), CREATE_B, write(1, "/b", 0, b"b"), call("fsync", 0, "/a"))
    assert state.image(Remains(0, {})) == {"/a": b"newer", "/b": b""}
    state.apply(9, call("sync", -1, ""))
    assert state.image(Remains(0, {})) == {"/a": b"newer", "/b": b"b"} and not state.patches and not state.changes


@pytest.mark.parametrize("flag", [schema.SYNC, schema.DSYNC])
def test_a_synchronous_write_is_durable(flag: int) -> None:
    assert play(files(a=b"old"), write(0, "/a", 0, b"new", flag)).image(Remains(0, {})) == {"/a": b"new"}


def test_a_rename_may_be_there_before_the_bytes() -> None:
    state = play(files(a=b"old"), CREATE_B, write(1, "/b", 0, b"new"), call("rename", 1, "/b", other="/a"))
    assert state.image(Remains(2, {})) == {"/a": b""} and state.image(Remains(1, {(1, 0): 1})) == {"/a": b"old", "/b": b"new"}
    folder = play(VolatileFiles({"/d/x": 0}, {0: b"x"}), call("rename", -1, "/d", other="/e"))
    assert folder.image(folder.everything()) == {"/e/x": b"x"}


def test_bytes_behind_a_truncation_need_it() -> None:
    state = play(files(a=b"old old"), call("ftruncate", 0, "/a", length=0), write(0, "/a", 0, b"n"))
    assert state.image(Remains(0, {(0, 0): 1})) == {"/a": b"old old"}
    assert state.image(Remains(1, {})) == {"/a": b""} and state.image(state.everything()) == {"/a": b"n"}


def test_a_torn_page_has_some_of_its_sectors() -> None:
    state = play(files(a=b"o" * PAGE), write(0, "/a", 0, b"n" * PAGE))
    assert state.image(Remains(0, {(0, 0): 1}, {(0, 0): Tear(0, 0, 3)})) == {"/a": b"n" * 1536 + b"o" * (PAGE - 1536)}
    assert state.image(Remains(0, {(0, 0): 1}, {(0, 0): Tear(0, 3, 8)})) == {"/a": b"o" * 1536 + b"n" * (PAGE - 1536)}
    assert state.image(Remains(0, {(0, 0): 1}, {(0, 0): Tear(0, 7, 8)})) == {"/a": b"o" * (PAGE - 512) + b"n" * 512}


def test_a_drive_that_ignores_flushes_keeps_what_has_left_its_cache() -> None:
    state = files(a=b"")
    state.keeps_flushed, state.cache = False, 3 * PAGE
    for number in range(5):
        state.apply(2 * number, write(0, "/a", number * PAGE, bytes([number]) * PAGE))
        state.apply(2 * number + 1, call("fsync", 0, "/a"))
    assert state.image(Remains(0, {})) == {"/a": b"\0" * PAGE + b"\1" * PAGE} and len(state.patches) == 3


def test_folders_come_and_go_and_fallocate_makes_room() -> None:
    state = play(
        files(a=b"12345"),
        call("mkdir", -1, "/in"),
        call("openat", 1, "/in/b", flags=schema.CREATE),
        call("fallocate", 1, "/in/b", offset=0, length=3, other="0"),
        call("fallocate", 0, "/a", offset=0, length=3, other="0"),
        call("fallocate", 0, "/a", offset=0, length=9, other="FALLOC_FL_KEEP_SIZE"),
        call("rename", 1, "/in", other="/out"),
        call("unlink", 1, "/out/b"),
        call("rmdir", -1, "/out"),
    )
    images = [state.image(Remains(changes, {})) for changes in (1, 4, 5, 6, 7)]
    assert images == [
        {"/a": b"12345", "/in/": b""},
        {"/a": b"12345", "/in/": b"", "/in/b": bytes(3)},
        {"/a": b"12345", "/out/": b"", "/out/b": bytes(3)},
        {"/a": b"12345", "/out/": b""},
        {"/a": b"12345"},
    ]


def test_what_was_written_before_a_truncation_does_not_come_back() -> None:
    state = play(files(a=b"old"), write(0, "/a", 0, b"written"), call("ftruncate", 0, "/a", length=2), CREATE_B, call("fsync", 1, "/b"))
    assert state.image(Remains(0, {})) == {"/a": b"ol", "/b": b""}
    state.apply(9, call("fsync", 0, "/a"))
    assert state.image(Remains(0, {})) == {"/a": b"wr", "/b": b""}


def test_a_sync_commits_names_of_others_only_if_its_file_has_changed() -> None:
    for name, flags, offset, changes in (
        ("fsync", 0, 0, 1),
        ("fsync", 0, 2, 0),
        ("fdatasync", schema.DATA_ONLY, 0, 1),
        ("fdatasync", schema.DATA_ONLY, 2, 0),
    ):
        state = play(files(a=b"old"), write(0, "/a", offset, b"new"[:3]), CREATE_B, call(name, 0, "/a", flags=flags))
        assert len(state.changes) == changes and not state.patches, name
        state = play(state, CREATE_B | {"path": "/c", "file": 2}, call("fsync", 0, "/a"))
        assert len(state.changes) == changes + 1
    state = play(files(a=b"old"), call("ftruncate", 0, "/a", length=1), call("fsync", 5, "/"))
    assert len(state.changes) == 1
    rename = call("rename", 0, "/a", other="/v")
    for sync, is_left in (
        (call("fdatasync", 0, "/v", flags=schema.DATA_ONLY), True),  # as on ext4, which this was tried on
        (write(0, "/v", 0, b"O", schema.DSYNC), True),
        (call("fsync", 0, "/v"), False),
        (call("fsync", 1, "/v"), False),
        (call("fdatasync", 5, "/", flags=schema.DATA_ONLY), False),
    ):
        assert bool(play(files(a=b"old", v=b"other"), rename, sync).changes) == is_left


def test_holes_exchanges_links_of_one_file_and_symbolic_links() -> None:
    old = VolatileFiles({"/a": 0, "/d/": 1, "/d/b": 2, "/same": 0}, {0: b"12345", 2: b"b"})
    hole = call("fallocate", 0, "/a", offset=1, length=2, other="FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE")
    state = play(
        old,
        write(0, "/a", 0, b"new"),
        hole,
        call("renameat2", 0, "/a", other="/d", flags=schema.EXCHANGE),
        call("rename", 0, "/d", other="/same"),
        call("symlink", -1, "/new", other="same"),
        call("rename", 9, "/new", other="/same"),
    )
    first = {"/a": b"12345", "/d/": b"", "/d/b": b"b", "/same": b"12345"}
    holed = first | {"/a": b"1\0\x0045", "/same": b"1\0\x0045"}
    exchanged = {"/d": b"1\0\x0045", "/a/": b"", "/a/b": b"b", "/same": b"1\0\x0045"}
    linked = {path: content for path, content in exchanged.items() if path != "/same"} | {"/same//": b"same"}
    images = [state.image(Remains(count, {})) for count in (0, 1, 2, 3, 5)]
    assert images == [first, holed, exchanged, exchanged, linked]
    assert state.image(Remains(1, {(0, 0): 1}))["/a"] == b"n\0\x0045"
    state.apply(9, call("fsync", 2, "/a"))
    assert state.image(state.everything()) == linked | {"/d": b"n\0\x0045"}

"""Calls of a program as requests to a device: what is in memory is not read, and what is dirty is written once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.errors import DamagedFileError, FlashsimError, FlashsimWarning
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE
from flashsim.core.units import MILLISECONDS, SECONDS
from tests.tiers import examples
from traces.calls import schema
from traces.calls.device_requests import DeviceRequests
from traces.calls.page_cache import PAGE, HostPageCache, HostSettings, ReadAhead
from traces.calls.schema import Recording, table_of
from traces.calls.volume import JOURNAL, METADATA, RecordedVolume
from traces.format.base import read_trace, recognise

FILES = JOURNAL + METADATA


def call(name: str, file: int = 0, offset: int | None = None, length: int | None = None, time: int = 0, **more: Any) -> dict[str, Any]:
    row = {"time": time, "duration": 10, "process": 1, "thread": 1, "call": name, "kind": "file", "file": file, "path": f"/{file}"}
    return row | {"offset": offset, "length": length, "result": length or 0, "flags": 0} | more


def requests(*calls: dict[str, Any], extents: Any = None, **options: Any) -> list[dict[str, Any]]:
    host = DeviceRequests(table_of(calls), HostSettings(**options), extents)
    return [row for batch in host.batches() for row in batch.to_pylist()]


def moved(found: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names or ("operation", "offset", "length")) for row in found]


def test_direct_requests_equal_the_calls_and_so_do_all_without_memory() -> None:
    calls = [call("pread64", 0, 8192, 4096), call("pwrite64", 0, 0, 12288, 50), call("pread64", 1, 512, 1024, 90)]
    expected = [(READ, FILES + 8192, 4096), (WRITE, FILES, 12288), (READ, FILES + 12288 + 512, 1024)]
    direct = [each | {"flags": schema.DIRECT} for each in calls]
    assert moved(requests(*direct, journal=False)) == expected == moved(requests(*calls, memory=0, journal=False))
    assert moved(requests(*calls, memory=0, journal=False), "dependency", "think", "arrival") == [(-1, 0, 0), (0, 40, 50), (1, 30, 90)]


def test_a_sync_writes_what_is_dirty_and_commits_what_changed() -> None:
    append = [call("pwrite64", 0, 0, 5000), call("fsync", time=100), call("fsync", time=200)]
    found = requests(*append)
    assert moved(found[:5]) == [(WRITE, FILES, 8192), (WRITE, 0, 16384), (FLUSH, 0, 0), (WRITE, 16384, 4096), (FLUSH, 0, 0)]
    assert moved(found[:5], "dependency", "think", "flags") == [
        (-1, 0, 0), (0, 0, 0), (1, 0, 0), (2, 0, FORCE_UNIT_ACCESS), (3, 90, 0)
    ]  # fmt: skip
    assert [row["label"] for row in found] == ["/0", "journal", "journal", "journal", "", "metadata"]
    overwrite = [call("pread64", 0, 0, 4096), call("pwrite64", 0, 0, 4096, 50), call("fdatasync", 0, time=90, flags=schema.DATA_ONLY)]
    assert moved(requests(*overwrite)[:3]) == [(READ, FILES, 4096), (WRITE, FILES, 4096), (FLUSH, 0, 0)]
    assert moved(requests(*overwrite[:2], overwrite[2] | {"flags": 0}))[2] == (WRITE, 0, 8192)  # times of the file


def test_processes_begin_where_they_were_made_and_are_waited_for() -> None:
    def of_process(number: int, name: str, time: int, **more: Any) -> dict[str, Any]:
        return call(name, 0, 0, 4096, time, flags=schema.DIRECT, process=number, thread=number, **more)

    def lineage(name: str, time: int, child: int) -> dict[str, Any]:
        return call(name, -1, time=time, kind="other", result=child)

    found = requests(
        of_process(1, "pread64", 0),
        lineage("vfork", 20, 2),
        lineage("wait4", 25, 2),
        of_process(2, "pread64", 30),
        of_process(2, "pread64", 50),
        lineage("clone", 70, 3),
        of_process(3, "pread64", 80),
        of_process(1, "pread64", 120),  # later than its child, for which it waits next
        lineage("waitid", 140, 3),
        of_process(1, "pread64", 160),
        lineage("fork", 180, 4),
        lineage("fork", 190, 5) | {"process": 4, "thread": 4},  # a shell below the shell, which waits and ends
        lineage("wait4", 195, 5) | {"process": 4, "thread": 4},
        of_process(5, "pread64", 200),
        lineage("wait4", 220, 4),
        of_process(1, "pread64", 230),
        journal=False,
    )
    assert moved(found, "dependency", "think") == [(-1, 0), (0, 20), (1, 10), (2, 20), (2, 60), (4, 30), (5, 30), (6, 20)]


def test_a_part_of_a_page_that_the_file_has_is_read_first() -> None:
    known = call("pread64", 0, 0, 4 * PAGE)
    found = requests(known, call("pwrite64", 0, PAGE + 1, 10, 50), memory=64 * PAGE, read_ahead=0, journal=False, warm=False)
    assert moved(found) == [(READ, FILES, 4 * PAGE), (WRITE, FILES + PAGE, PAGE)]
    fresh = requests(call("pwrite64", 0, 3 * PAGE + 1, 10), known | {"time": 50}, journal=False)
    assert moved(fresh)[0] == (READ, FILES + 3 * PAGE, PAGE)
    assert [row["operation"] for row in requests(known, warm=True, journal=False)] == []


def test_reading_in_order_doubles_the_window_and_reading_at_random_reads_what_is_asked_for() -> None:
    in_order = [call("read", 0, page * PAGE, PAGE, page * 20 * MILLISECONDS) for page in range(64)]
    found = requests(*in_order)
    assert moved(found, "operation", "length", "tag")[:3] == [(READ, 4 * PAGE, 0), (READ, 8 * PAGE, 1), (READ, 4 * PAGE, 4)]
    assert sum(row["length"] for row in found) == 64 * PAGE
    at_random = [call("pread64", 0, 7 * PAGE * (page * 5 % 11 + 1), PAGE, page) for page in range(11)]
    assert [row["length"] for row in requests(*at_random)] == [PAGE] * 11
    at_once = [each | {"time": each["time"] // 20000} for each in in_order]
    assert [row["dependency"] for row in requests(*at_once)][:4] == [-1, 0, 0, 1]
    window = ReadAhead(32)
    ends = [(0, sum(window.missing(0, 1)))]
    ends += [(page, sum(window.next_window())) for page in range(1, 130) if page == window.mark]
    # the counters of a loop device after each read of a page, Linux 6.18
    kernel = [(1, 12), (4, 16), (12, 24), (16, 32), (24, 48), (32, 64), (48, 96), (64, 128), (96, 160), (128, 192)]
    assert ends == [(0, 4), *kernel]


def test_pages_that_were_dirty_for_long_are_written_in_the_background() -> None:
    calls = [call("pwrite64", 0, 0, PAGE), call("pread64", 1, 0, PAGE, 40 * SECONDS)]
    found = requests(*calls)
    written = [row for row in found if row["label"] == "/0"]
    assert moved(written, "operation", "arrival", "dependency") == [(WRITE, 30 * SECONDS, -1)]
    assert found[0]["label"] == "journal" and found[0]["arrival"] == 5 * SECONDS
    assert moved(requests(*calls, journal=False), "operation") == [(WRITE,), (READ,)]


def test_a_writer_waits_where_too_much_is_dirty() -> None:
    calls = [call("pwrite64", 0, page * PAGE, PAGE, page * 10) for page in range(100)]
    found = requests(*calls, memory=100 * PAGE, journal=False)
    assert sum(row["length"] for row in found) == 100 * PAGE and max(row["length"] for row in found) <= 11 * PAGE
    assert {row["dependency"] for row in found} == {-1}
    at_once = requests(call("pwrite64", 0, 0, 100 * PAGE), memory=100 * PAGE, background=0.2, journal=False)
    assert [row["dependency"] for row in at_once] == [-1, 0, 1, 2, 3]


def test_files_that_are_no_more_are_never_written_and_their_place_is_used_again() -> None:
    calls = [call("openat", 0, flags=schema.CREATE), call("pwrite64", 0, 0, PAGE, 10), call("unlink", 0, time=20)]
    assert requests(*calls, journal=False) == []
    synced = [call("pwrite64", 0, 0, PAGE), call("fsync", time=10), call("unlink", 0, time=20), call("pwrite64", 1, 0, PAGE, 30)]
    assert [offset for _, offset, length in moved(requests(*synced, journal=False)) if length] == [FILES] * 2
    renamed = [
        call("openat", 1),
        call("pwrite64", 1, 0, PAGE),
        call("rename", 0, time=20, other="/1"),
        call("sync", -1, time=30, kind="other"),
    ]
    assert moved(requests(*renamed, journal=False)) == [(FLUSH, 0, 0)]


def test_files_lie_where_their_extents_say() -> None:
    extents = {"/0": [(0, 10 * PAGE, PAGE), (PAGE, 4 * PAGE, PAGE)]}
    found = requests(call("pread64", 0, 0, 3 * PAGE, flags=schema.DIRECT), journal=False, extents=extents)
    assert moved(found) == [(READ, 10 * PAGE, PAGE), (READ, 4 * PAGE, PAGE), (READ, FILES + 2 * PAGE, PAGE)]
    volume = RecordedVolume({0: PAGE, 1: 3 * PAGE, 2: PAGE})
    places = [next(volume.places(file, 0, 1))[0] for file in (0, 1, 2)]
    volume.release(0)
    volume.release(1)
    assert places == [FILES, FILES + PAGE, FILES + 4 * PAGE] and next(volume.places(1, 0, 1))[0] == FILES


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pread64", "pwrite64", "pwrite64", "fsync", "fdatasync", "sync"]),
        st.integers(0, 2),
        st.integers(0, 40 * PAGE),
        st.integers(1, 6 * PAGE),
        st.integers(0, 3 * SECONDS),
        st.integers(1, 3),
    ),
    max_size=60,
)


@settings(max_examples=examples(150), deadline=None)
@given(steps=_STEPS, frames=st.sampled_from([24, 40, 1 << 12]), ahead=st.sampled_from([0, 8, 32]))
def test_what_is_read_is_in_memory_or_from_the_device_and_what_is_dirty_is_written_once(
    steps: list[tuple[str, int, int, int, int, int]], frames: int, ahead: int
) -> None:
    calls, time, reach = [], 0, dict.fromkeys(range(3), 0)
    for name, file, offset, length, wait, thread in steps:
        time += wait
        data = name in ("pread64", "pwrite64")
        reach[file] = max(reach[file], offset + length)
        calls.append(call(name, file if name != "sync" else -1, offset if data else None, length if data else None, time, thread=thread))
    host = DeviceRequests(table_of(calls), HostSettings(memory=frames * PAGE, read_ahead=ahead * PAGE, limit=0.4, background=0.2))
    places = {
        next(host.volume.places(file, page * PAGE, 1))[0]: (file, page) for file in range(3) for page in range(-(-reach[file] // PAGE))
    }

    def pages(operation: int, begin: int) -> list[tuple[int, int]]:
        rows = [row for row in host.requests.rows[begin:] if row.operation == operation and row.label not in ("journal", "metadata", "")]
        return [places[place] for row in rows for place in range(row.offset, row.offset + row.length, PAGE)]

    for number, row in enumerate(host._calls):
        begin = len(host.requests.rows)
        dirty = {(file, page) for file, each in host.cache.dirty.items() if file >= 0 for page in each}
        touched = {(row.file, page) for page in range((row.offset or 0) // PAGE, -(-row.reach // PAGE))} if row.length else set()
        missing = {page for page in touched if page not in host.cache}
        host.take(number, row)
        came, written = pages(READ, begin), pages(WRITE, begin)
        left = {(file, page) for file, each in host.cache.dirty.items() if file >= 0 for page in each}
        if row.call == "pread64":
            assert missing <= set(came)
        assert dirty | (touched if row.call == "pwrite64" else set()) == left | set(written)
        if row.call != "pwrite64":
            assert len(written) == len(set(written)) and not left & set(written)
        if row.call in ("fsync", "fdatasync"):
            assert row.file not in host.cache.dirty
        assert row.call != "sync" or not left
        assert host.cache.dirty_pages == sum(len(each) for each in host.cache.dirty.values())
        assert len(host.cache._inactive) + len(host.cache._active) <= frames
    host.finish(time)
    assert not host.cache.dirty and all(row.dependency < number and row.think >= 0 for number, row in enumerate(host.requests.rows))


def test_lists_of_pages_keep_what_was_used_twice() -> None:
    cache = HostPageCache(4)
    for page in (1, 1, 2, 2, 3, 4, 5, 6, 7):
        cache.access((0, page))
    assert [(0, page) in cache for page in range(1, 8)] == [True, True, False, False, False, True, True]


def test_recordings_are_traces_with_options_and_say_what_they_lack(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    Recording(table_of([call("pread64", 0, 0, PAGE), call("pread64", 0, PAGE, PAGE, 50)]), missed=["writes through memory"]).write(path, {})
    assert recognise(path) == "calls"
    with pytest.warns(FlashsimWarning, match="does not have writes through memory"):
        assert pa.Table.from_batches(read_trace(path)).num_rows == 1
    with pytest.raises(FlashsimError, match="memery"):
        list(read_trace(path, "calls:memery=1GiB"))
    with pytest.warns(FlashsimWarning):
        assert pa.Table.from_batches(read_trace(path, "calls:memory=0B")).num_rows == 2
    Recording(table_of([call("pread64", 0, -5, PAGE)])).write(path, {})
    with pytest.raises(DamagedFileError, match="call 0: its offset"):
        list(read_trace(path))


def test_syncs_write_as_many_blocks_as_ext4_does() -> None:
    """Held against the counters of a loop device under ext4 of Linux 6.18: bytes and flushes of each sync, where a commit flushes twice."""
    path = {"path": "/d/p1"}
    steps = [
        (call("openat", 0, flags=schema.CREATE, **path), None),
        (call("pwrite64", 0, 0, 8192, **path), None),
        (call("fdatasync", 0, **path), (40, 2)),
        (call("fdatasync", 1, path="/d"), (0, 0)),
        (call("fsync", 0, **path), (0, 1)),
        (call("pwrite64", 0, 0, 4096, **path), None),
        (call("fdatasync", 0, flags=schema.DATA_ONLY, **path), (4, 1)),
        (call("pwrite64", 0, 0, 4096, **path), None),
        (call("fsync", 0, **path), (16, 2)),
        (call("pwrite64", 0, 8192, 100, **path), None),
        (call("fdatasync", 0, flags=schema.DATA_ONLY, **path), (24, 2)),
        (call("pwrite64", 0, 8292, 100, **path), None),
        (call("fdatasync", 0, flags=schema.DATA_ONLY, **path), (16, 2)),
        (call("openat", 2, path="/d/p2", flags=schema.CREATE), None),
        (call("fdatasync", 1, path="/d", flags=schema.DATA_ONLY), (28, 2)),
        (call("rename", 2, path="/d/p2", other="/d/p3"), None),
        (call("fsync", 1, path="/d"), (20, 2)),
    ]
    found = requests(*(step | {"time": number} for number, (step, _) in enumerate(steps)))
    for number, (_, counts) in enumerate(steps):
        rows = [row for row in found if row["tag"] == number]
        flushes = sum((row["operation"] == FLUSH) + (row["flags"] == FORCE_UNIT_ACCESS) for row in rows)
        assert counts is None or (sum(row["length"] for row in rows) // 1024, flushes) == counts, number


def test_files_that_are_opened_as_they_are_do_not_grow() -> None:
    """A segment of a log that was there before takes a flush a commit, and a new one changes its inode and blocks."""
    for flags, labels in ((0, {"/0", ""}), (schema.CREATE, {"/0", "journal"}), (schema.APPEND, {"/0", "journal"})):
        opened = call("openat", flags=flags)
        found = requests(opened, call("pwrite64", 0, 40 * PAGE, 2 * PAGE, 1), call("fdatasync", time=2, flags=schema.DATA_ONLY))
        assert {row["label"] for row in found if row["tag"] == 2} == labels

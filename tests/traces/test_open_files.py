"""Recorded programs: which file a descriptor stands for, and where it writes, through links, other programs, threads and appended bytes."""

from __future__ import annotations

from traces.calls import schema
from traces.calls.handlers import MAPPED
from traces.calls.processes import OpenFile, Process
from traces.calls.strace import StraceReader

from .test_calls import coded, named, opened, places, rows, wrote

_FORK = "1 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = {} <0.000000100>"
_THREAD = "1 clone3({{flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, stack_size=0x7000}}, 88) = {} <0.000000100>"
_AT = f"AT_FDCWD<{coded('/d')}>"


def _missed(*lines: str, step: int = 1) -> dict[str, set[str]]:
    reader = StraceReader(first=Process(0, "/d"))
    list(reader.rows(f"{line.split(' ', 1)[0]} 0.{step:09} {line.split(' ', 1)[1]}" for line in lines))
    return reader.missed


def test_threads_of_a_running_process_share_its_descriptors() -> None:
    first = Process(7, "/d", {3: OpenFile(-2, 100, schema.DSYNC)})
    lines = [f"{thread} 0.000000001 {wrote(3, 'a', 10).split(' ', 1)[1]}" for thread in (8, 7, 8)]
    found = list(StraceReader(first=first, threads=(7, 8)).rows(lines))
    assert [(row["process"], row["offset"], row["flags"]) for row in found] == [(7, each, schema.DSYNC) for each in (100, 110, 120)]


def test_a_child_without_calls_takes_no_thread_of_another() -> None:
    found = rows(opened(3, "a"), _FORK.format(2), _THREAD.format(3), wrote(3, "a", 5, process=3), wrote(3, "a", 1))
    assert [(row["process"], row["offset"]) for row in found if row["call"] == "write"] == [(1, 0), (1, 5)]


def test_descriptors_end_with_the_program_and_by_calls_that_are_not_recorded() -> None:
    run = '2 execve("", [], 0x7ffd) = 0 <0.000000001>'
    pipe = f'2 write({named(3, "pipe:[7]")}, "", 1000) = 1000 <0.000000001>'
    found = rows(opened(3, "log", "O_WRONLY|O_CREAT|O_CLOEXEC"), wrote(3, "log", 6), _FORK.format(2), run, pipe, wrote(3, "log", 3))
    assert places(found) == [("write", 0, 0, 6), ("write", -1, None, 1000), ("write", 0, 6, 3)]
    found = rows(opened(3, "log"), _FORK.format(2), pipe, wrote(3, "log", 3), wrote(3, "other", 2))
    assert places(found) == [("write", -1, None, 1000), ("write", 0, 0, 3), ("write", 1, None, 2)]
    kept = rows(opened(3, "log"), wrote(3, "log", 6), run.replace("2", "1", 1), wrote(3, "log", 3))
    assert places(kept) == [("write", 0, 0, 6), ("write", 0, 6, 3)]
    swept = _missed(opened(3, "log"), "1 close_range(3, 5, 0) = 0 <0.000000001>", wrote(3, "log", 3))
    assert swept == {"where in its file a read or write began": {"/d/log"}}


def test_appended_bytes_go_to_the_end_wherever_the_call_says() -> None:
    start = opened(3, "a", "O_RDWR|O_CREAT|O_TRUNC|O_APPEND"), wrote(3, "a", 10)
    found = rows(*start, f'1 pwrite64({named(3, "/d/a")}, "", 2, 0) = 2 <0.000000001>', wrote(3, "a", 3))
    assert places(found) == [("write", 0, 0, 10), ("pwrite64", 0, 10, 2), ("write", 0, 12, 3)]
    vector = f'1 pwritev2({named(3, "/d/a")}, [{{iov_base="", iov_len=2}}], 1, 0, RWF_APPEND) = 2 <0.000000001>'
    found = rows(opened(3, "a", "O_RDWR|O_CREAT|O_TRUNC"), wrote(3, "a", 10), vector, wrote(3, "a", 3))
    assert places(found) == [("write", 0, 0, 10), ("pwritev2", 0, 10, 2), ("write", 0, 10, 3)]
    for flags in ("RWF_NOAPPEND", "0x20 /* RWF_??? */"):
        found = rows(*start, vector.replace("RWF_APPEND", flags))
        assert places(found) == [("write", 0, 0, 10), ("pwritev2", 0, 0, 2)]


def test_calls_at_the_same_time_have_no_known_order() -> None:
    start = opened(3, "a", "O_WRONLY|O_CREAT|O_TRUNC|O_APPEND"), _FORK.format(2)
    together = f'1 write({named(3, "/d/a")}, "", 5 <unfinished ...>', "1 <... write resumed>) = 5 <0.000000002>"
    (where,) = _missed(*start, together[0], wrote(3, "a", 3, process=2), together[1]).values()
    assert where == {"/d/a"}
    assert not _missed(*start, *together, wrote(3, "a", 3, process=2), step=10)


def test_files_without_names_and_behind_links_are_themselves() -> None:
    unnamed = '1 openat({0}, "{1}", O_RDWR|O_TMPFILE, 0600) = {2}<{3}>(deleted) <0.000000001>'
    lines = [unnamed.format(_AT, coded("."), number, coded(f"/d/#{number}")) for number in (3, 4)]
    link = f'1 linkat({_AT}, "{coded("/proc/self/fd/4")}", {_AT}, "{coded("b")}", AT_SYMLINK_FOLLOW) = 0 <0.000000001>'
    found = rows(*lines, wrote(3, "#3", 5), wrote(4, "#4", 7), link, opened(5, "b", "O_RDWR"), wrote(5, "b", 1))
    assert places(found) == [("write", 0, 0, 5), ("write", 1, 0, 7), ("write", 1, 0, 1)]
    status = f'1 newfstatat({_AT}, "{coded("link")}", {{st_mode=S_IFLNK|0777, st_size=4}}, AT_SYMLINK_NOFOLLOW) = 0 <0.000000001>'
    through = f'1 openat({_AT}, "{coded("link")}", O_WRONLY|O_APPEND) = {named(4, "/d/a")} <0.000000001>'
    found = rows(opened(3, "a", "O_RDWR|O_CREAT|O_TRUNC"), wrote(3, "a", 16), through, status, wrote(4, "a", 6))
    assert places(found) == [("write", 0, 0, 16), ("write", 0, 16, 6)]
    inside = f'1 openat({_AT}, "{coded("now/a")}", O_WRONLY|O_CREAT) = {named(3, "/d/v1/a")} <0.000000001>'
    moved = f'1 rename("{coded("now/a")}", "{coded("now/b")}") = 0 <0.000000001>'
    assert places(rows(inside, wrote(3, "v1/a", 2), moved, wrote(3, "v1/b", 2))) == [("write", 0, 0, 2), ("write", 0, 2, 2)]


def test_memory_that_may_be_written_later_is_said() -> None:
    start = opened(3, "a"), f"1 mmap(NULL, 8192, PROT_READ, MAP_SHARED, {named(3, '/d/a')}, 0) = 0x7f0000 <0.000000001>"
    change = "1 mprotect(0x7f1000, 4096, PROT_READ|PROT_WRITE) = 0 <0.000000001>"
    assert _missed(*start) == {} and _missed(*start, change) == {MAPPED: {"/d/a"}}
    other = "1 mmap(0x7f1000, 4096, PROT_READ, MAP_PRIVATE|MAP_FIXED|MAP_ANONYMOUS, -1, 0) = 0x7f1000 <0.000000001>"
    assert _missed(*start, other, change) == {}
    moved = "1 mremap(0x7f0000, 8192, 16384, MREMAP_MAYMOVE) = 0x9f0000 <0.000000001>"
    assert _missed(*start, moved, change.replace("0x7f1000", "0x9f3000")) == {MAPPED: {"/d/a"}}
    shared = "1 mmap(NULL, 1, PROT_READ|PROT_WRITE, MAP_SHARED, {}, 0) = 0x7f0000 <0.000000001>"
    assert _missed(shared.format(named(3, "/dev/shm/d/a"))) == {MAPPED: {"/dev/shm/d/a"}}
    assert _missed(shared.format(named(3, "/dev/shm/a"))) == {}  # memory that processes share


def test_another_thread_that_runs_a_program_becomes_the_process() -> None:
    found = rows(
        opened(3, "a"),
        _THREAD.format(2),
        wrote(3, "a", 1, process=2),
        '2 execve("", [], 0x7ffd <pid changed to 1 ...>',
        "1 +++ superseded by execve in pid 2 +++",
        "1 <... execve resumed>) = 0 <0.000000001>",
        wrote(3, "a", 2),
    )
    assert places(found) == [("write", 0, 0, 1), ("write", 0, 1, 2)]


def test_calls_of_32_bits_and_files_by_descriptors_are_the_same_calls() -> None:
    there, took = named(3, "/d/a"), "<0.000000001>"
    seek = f"1 _llseek({there}, 2, [2], SEEK_SET) = 0 {took}"
    sizes = f"1 ftruncate64({there}, 9) = 0 {took}", f'1 truncate("{coded("/proc/self/fd/3")}", 8) = 0 {took}'
    found = rows(opened(3, "a"), seek, wrote(3, "a", 5), *sizes)
    assert [(row["call"], row["file"], row.get("offset"), row["length"]) for row in found[1:]] == [
        ("write", 0, 2, 5),
        ("ftruncate", 0, None, 9),
        ("truncate", 0, None, 8),
    ]


def test_what_cannot_be_followed_is_said() -> None:
    took = "<0.000000001>"
    found = rows(opened(3, "a"), wrote(3, "a", 5), _FORK.format(2), wrote(9, "a", 1, process=2), wrote(3, "a", 5))
    assert [place for _, _, place, _ in places(found)] == [0, None, None]  # a descriptor came by a socket, and moves with this one
    block = f"{{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes={named(3, '/d/a')}, aio_buf=0, aio_nbytes=10, aio_offset=0}}"
    ended = f"1 io_getevents(0x7f, 1, 1, [{{data=0, obj=0x5, res=RES, res2=0}}], NULL) = 1 {took}"
    submit = opened(3, "a"), f"1 io_submit(0x7f, 1, [{block}]) = 1 {took}"
    assert [bool(_missed(*submit, ended.replace("RES", result))) for result in ("10", "4", "-27")] == [False, True, True]
    assert _missed(f'1 chroot("{coded("/d")}") = 0 {took}') and _missed(f"1 clone(flags=CLONE_UNTRACED) = 2 {took}")


def test_standard_output_that_is_opened_again_is_printed_to() -> None:
    reader = StraceReader(output="pipe:[7]")
    lines = (f'1 0.000000001 write({named(5, where)}, "", 3) = 3 <0.000000001>' for where in ("pipe:[7]", "pipe:[8]"))
    assert [bool(row["flags"] & schema.PRINTED) for row in reader.rows(lines)] == [True, False]


def test_a_read_that_never_returned_is_there() -> None:
    found = rows(opened(3, "a"), f"1 read({named(3, '/d/a')},  <unfinished ...>")
    assert [(row["call"], row["result"]) for row in found[1:]] == [("read", None)]

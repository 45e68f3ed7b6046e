"""Recorded system calls: lines of strace become rows, with the place in the file of every byte, through forks, copies and renames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flashsim.core.errors import DamagedFileError, MissingFileError
from traces.calls import schema
from traces.calls.processes import Process
from traces.calls.schema import Recording, table_of
from traces.calls.strace import StraceReader
from traces.format.perf_trace import recording_of


def coded(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def named(number: int, path: str) -> str:
    return f"{number}<{coded(path)}>"


def rows(*lines: str, **how: Any) -> list[dict[str, Any]]:
    numbered = [f"{line.split(' ', 1)[0]} 0.{min(number, 1):09} {line.split(' ', 1)[1]}\n" for number, line in enumerate(lines)]
    return list(StraceReader(first=Process(0, "/d"), **how).rows(numbered))


def opened(number: int, path: str, flags: str = "O_RDWR|O_CREAT", process: int = 1) -> str:
    return f'{process} openat(AT_FDCWD<{coded("/d")}>, "{coded(path)}", {flags}, 0644) = {named(number, "/d/" + path)} <0.000000010>'


def wrote(number: int, path: str, count: int, process: int = 1) -> str:
    return f'{process} write({named(number, "/d/" + path)}, ""..., {count}) = {count} <0.000000005>'


def places(found: list[dict[str, Any]], *calls: str) -> list[tuple[Any, ...]]:
    return [(row["call"], row["file"], row["offset"], row["result"]) for row in found if row["call"] in (calls or schema.WRITES)]


def test_reads_and_writes_go_on_from_one_another() -> None:
    found = rows(
        opened(3, "a"),
        wrote(3, "a", 10),
        f"1 lseek({named(3, '/d/a')}, 4, SEEK_SET) = 4 <0.000000001>",
        f'1 read({named(3, "/d/a")}, "", 3) = 3 <0.000000001>',
        f'1 pwrite64({named(3, "/d/a")}, "", 7, 100) = 7 <0.000000001>',
        wrote(3, "a", 2),
        f"1 dup({named(3, '/d/a')}) = {named(4, '/d/a')} <0.000000001>",
        wrote(4, "a", 5),
        wrote(3, "a", 1),
    )
    assert places(found, "write", "read", "pwrite64") == [
        ("write", 0, 0, 10),
        ("read", 0, 4, 3),
        ("pwrite64", 0, 100, 7),
        ("write", 0, 7, 2),
        ("write", 0, 9, 5),
        ("write", 0, 14, 1),
    ]
    assert [row["time"] for row in found] == [0, 1, 3, 4, 5, 7, 8] and found[1]["duration"] == 5


def test_appended_bytes_are_at_the_end_that_is_known() -> None:
    flags = "O_WRONLY|O_CREAT|O_APPEND"
    found = rows(opened(3, "log", flags + "|O_TRUNC"), wrote(3, "log", 10), wrote(3, "log", 4))
    assert places(found) == [("write", 0, 0, 10), ("write", 0, 10, 4)]
    reader = StraceReader(first=Process(0, "/d"))
    lines = [f"1 5.00000000{number} {line.split(' ', 1)[1]}" for number, line in enumerate((opened(3, "log", flags), wrote(3, "log", 10)))]
    assert [row.get("offset") for row in reader.rows(lines)] == [None, None] and "/d/log" in reader.missed[
        "where in its file a read or write began"
    ]
    told = f"1 fstat({named(3, '/d/log')}, {{st_mode=S_IFREG|0644, st_size=77, ...}}) = 0 <0.000000001>"
    assert places(rows(opened(3, "log", flags), told, wrote(3, "log", 10), wrote(3, "log", 1))) == [
        ("write", 0, 77, 10),
        ("write", 0, 87, 1),
    ]


def test_children_share_open_files_and_have_descriptors_of_their_own() -> None:
    found = rows(
        opened(3, "a"),
        "1 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>",
        wrote(3, "a", 10, process=2),
        opened(4, "b", process=2),
        "1 <... clone resumed>, child_tidptr=0x7f) = 2 <0.000000100>",
        wrote(3, "a", 1),
        opened(4, "c"),
        wrote(4, "b", 3, process=2),
        wrote(4, "c", 2),
        "1 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, stack_size=0x7000}, 88) = 3 <0.000000100>",
        opened(5, "d", process=3),
        wrote(5, "d", 6),
        "2 +++ exited with 0 +++",
    )
    assert places(found) == [("write", 0, 0, 10), ("write", 0, 10, 1), ("write", 1, 0, 3), ("write", 2, 0, 2), ("write", 3, 0, 6)]
    assert [(row["process"], row["thread"]) for row in found if row["call"] == "openat"] == [(1, 1), (2, 2), (1, 1), (1, 3)]


def test_processes_that_are_made_and_waited_for_are_rows() -> None:
    found = rows(
        "1 vfork( <unfinished ...>",
        opened(3, "a", process=2),
        "1 <... vfork resumed>) = 2 <0.000000100>",
        "1 wait4(-1, [{WIFSTOPPED(s) && WSTOPSIG(s) == SIGTSTP}], WSTOPPED, NULL) = 2 <0.000000001>",
        "1 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 2 <0.000000001>",
        "1 wait4(-1, 0x7ffe, WNOHANG, NULL) = 0 <0.000000001>",
        "1 waitid(P_PID, 2, {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=2, si_uid=0, si_status=0, ...}, WEXITED, NULL) = 0 <0.000000001>",
        "1 wait4(-1, 0x7ffe, 0, NULL) = -1 ECHILD (No child processes) <0.000000001>",
    )
    assert [(row["time"], row["call"], row["result"]) for row in found if row["call"] != "openat"] == [
        (0, "vfork", 2), (4, "wait4", 2), (6, "waitid", 2)
    ]  # fmt: skip


def test_a_renamed_file_is_the_same_file() -> None:
    found = rows(
        opened(3, "new"),
        f'1 rename("{coded("new")}", "{coded("/d/old")}") = 0 <0.000000001>',
        wrote(3, "old", 1),
        opened(4, "old", "O_RDWR"),
        wrote(4, "old", 2),
        f'1 unlink("{coded("old")}") = 0 <0.000000001>',
        opened(5, "old"),
        wrote(5, "old", 3),
    )
    assert places(found) == [("write", 0, 0, 1), ("write", 0, 0, 2), ("write", 1, 0, 3)]
    (renamed,) = [row for row in found if row["call"] == "rename"]
    assert (renamed["path"], renamed["other"], renamed["file"]) == ("/d/new", "/d/old", 0)


def test_calls_that_strace_shows_in_two_parts_and_vectors_and_contents() -> None:
    found = rows(
        opened(3, "a"),
        f"1 pwritev({named(3, '/d/a')}, "
        f'[{{iov_base="{coded("ab")}", iov_len=2}}, {{iov_base="{coded("c,)")}", iov_len=3}}], 2, 8 <unfinished ...>',
        "1 <... pwritev resumed>) = 5 <0.000000009>",
        f'1 pwrite64({named(3, "/d/a")}, "{coded("x")}", 1, 0) = -1 ENOSPC (No space left on device) <0.000000001>',
        contents=True,
    )
    assert (found[1]["content"], found[1]["offset"], found[1]["length"], found[1]["duration"]) == (b"abc,)", 8, 5, 9)
    assert (found[2]["result"], found[2]["error"]) == (-1, "ENOSPC")


def test_what_is_not_seen_is_said() -> None:
    reader = StraceReader()
    lines = [
        f"1 5.000000000 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, {named(3, '/d/a')}, 0) = 0x7f <0.000000001>",
        "1 5.000000001 io_uring_setup(8, {flags=0}) = 4 <0.000000001>",
        f"1 5.000000002 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, {named(3, '/d/b')}, 0) = 0x7f <0.000000001>",
    ]
    assert [row["flags"] for row in reader.rows(lines)] == [schema.SHARED, 0]
    assert sorted(map(len, reader.missed.values())) == [1, 1] and any("io_uring" in what for what in reader.missed)


def test_a_line_of_something_else_is_refused() -> None:
    with pytest.raises(DamagedFileError, match="line 2"):
        list(StraceReader().rows(["1 5.000000000 +++ exited with 0 +++\n", "something else\n"]))


def test_files_are_read_as_they_were_written_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    table = table_of(
        [{"time": 0, "process": 1, "thread": 1, "call": "write", "kind": "file", "file": 0, "flags": 0, "content": b"\x00\xff"}]
    )
    Recording(table, ["a", "b"], ["nothing"], {"seconds": 1.5}).write(path, {})
    again = Recording.read(path)
    assert again.table.equals(table) and (again.command, again.missed, again.facts) == (["a", "b"], ["nothing"], {"seconds": 1.5})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedFileError, match="cannot be read as a recording"):
        Recording.read(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DamagedFileError, match="not a recording of a program"):
        Recording.read(path)
    with pytest.raises(MissingFileError):
        Recording.read(tmp_path / "nowhere.parquet")


def test_what_perf_lost_is_said_and_threads_and_forks_are_followed() -> None:
    lines = [
        "     1.000 ( 0.010 ms): shop/7 openat(dfd: CWD, filename: 0xe7, flags: RDWR|CLOEXEC)                     = 3",
        "     1.020 ( 0.010 ms): shop/7 write(fd: 3</a>, buf: 0x7ffd, count: 100)                             = 100",
        "LOST 12 events!",
        "     1.100 ( 0.010 ms): shop/7 clone(clone_flags: CHILD_CLEARTID|CHILD_SETTID|0x11)                  = 8 (shop)",
        "     1.200 ( 0.010 ms): shop/8 write(fd: 3, buf: 0x7ffd, count: 5)                                   = 5",
    ]
    recording = recording_of(lines, Path("run.txt"))
    found = [(row["process"], row["path"], row["offset"], row["result"]) for row in recording.table.to_pylist()]
    assert found == [(7, "/a", 0, 100), (7, None, None, 8), (8, "/a", 100, 5)]
    assert recording.missed == ["calls that perf lost: LOST 12 events!"]
    with pytest.raises(DamagedFileError, match="run.txt, line 2: it is not a line of perf trace: 'no line'"):
        recording_of([lines[0], "no line"], Path("run.txt"))

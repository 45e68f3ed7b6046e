"""What a simulated drive holds after a power cut is what the law of files allows; a drive that ignores flushes breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from flashsim.apps.programs.on_drive import DriveCuts, FilesOnDrive, ProgramRequests
from flashsim.apps.programs.volatile_files import PAGE, Remains, VolatileFiles
from flashsim.core.rng import generator
from traces.calls import schema
from traces.calls.schema import table_of

#: Drives with a volatile write buffer, with none, and a disk that writes behind.
DRIVES = ("intel-x25e-64gb", "ocz-core-60gb", "dell-7200-500gb")


def call(name: str, file: int, path: str, **more: Any) -> dict[str, Any]:
    plain = {"call": name, "file": file, "path": path, "kind": "file", "flags": 0, "result": 0, "duration": 1000, "process": 1, "thread": 1}
    return dict.fromkeys(schema.SCHEMA.names) | plain | more


def write(file: int, path: str, offset: int, content: bytes) -> dict[str, Any]:
    return call("pwrite64", file, path, offset=offset, length=len(content), result=len(content), content=content)


def timed(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each | {"time": 10_000 * number} for number, each in enumerate(calls)]


def drawn(seed: int, count: int = 40) -> list[dict[str, Any]]:
    """Calls of a program that makes files, writes, syncs, renames and removes them."""
    draw, calls = generator(seed, "calls"), list[dict[str, Any]]()
    files, made = dict[int, str](), 0
    for _ in range(count):
        kind = draw.choice(["create", "write", "write", "write", "fsync", "fdatasync", "folder", "sync", "rename", "unlink", "truncate"])
        if kind == "create" or not files:
            files[made] = f"/d/{made}"
            calls.append(call("openat", made, files[made], flags=schema.CREATE))
            made += 1
            continue
        file = int(draw.choice(list(files)))
        path = files[file]
        if kind == "write":
            calls.append(write(file, path, int(draw.integers(3 * PAGE)), bytes([len(calls)]) * int(draw.integers(1, 2 * PAGE))))
        elif kind in ("fsync", "fdatasync"):
            calls.append(call(kind, file, path, flags=schema.DATA_ONLY * (kind == "fdatasync")))
        elif kind == "folder":
            calls.append(call("fsync", 1000, "/d"))
        elif kind == "sync":
            calls.append(call("sync", -1, "", kind="other"))
        elif kind == "rename":
            files[file] = f"/d/{file}-{len(calls)}"
            calls.append(call("rename", file, path, other=files[file]))
        elif kind == "unlink":
            calls.append(call("unlink", file, files.pop(file)))
        else:
            calls.append(call("ftruncate", file, path, length=int(draw.integers(2 * PAGE))))
    return timed(calls)


def cuts(calls: list[dict[str, Any]], device: str, keeps_flushed: bool = True) -> list[tuple[Remains, VolatileFiles, bool]]:
    """What is left at each moment of a drive, by the law of one that honours flushes."""
    there = FilesOnDrive(VolatileFiles({}, {}), calls, range(len(calls)), VolatileFiles.apply)
    return [there.at(moment) for moment in DriveCuts(table_of(calls), device, keeps_flushed)]


@pytest.mark.parametrize("device", DRIVES)
def test_no_cut_of_a_drive_loses_what_is_durable(device: str) -> None:
    found = [each for seed in range(5) for each in cuts(drawn(seed), device)]
    assert all(is_there for _, _, is_there in found)
    assert len({str(files.image(remains)) for remains, files, _ in found}) > 40


def test_a_drive_that_ignores_flushes_loses_it() -> None:
    found = [each for seed in range(3) for each in cuts(drawn(seed), DRIVES[0], keeps_flushed=False)]
    assert not all(is_there for _, _, is_there in found)


def test_a_page_is_there_once_its_request_is_and_a_name_with_its_transaction() -> None:
    calls = timed([
        call("openat", 0, "/d/a", flags=schema.CREATE),
        write(0, "/d/a", 0, b"a" * PAGE),
        call("fsync", 0, "/d/a"),
        write(0, "/d/a", 0, b"b" * PAGE),
        call("fdatasync", 0, "/d/a", flags=schema.DATA_ONLY),
    ])  # fmt: skip
    images = [files.image(remains).get("/d/a") for remains, files, _ in cuts(calls, DRIVES[0])]
    known = [image for number, image in enumerate(images) if number == 0 or image != images[number - 1]]
    assert known == [None, b"a" * PAGE, b"b" * PAGE]


def test_requests_are_known_by_the_pages_and_transactions_that_they_write() -> None:
    direct = {"flags": schema.DIRECT}
    program = ProgramRequests(table_of(timed([
        call("openat", 0, "/d/a", flags=schema.CREATE),
        write(0, "/d/a", 0, bytes(3 * PAGE)),
        call("fsync", 0, "/d/a"),
        write(0, "/d/a", PAGE, bytes(PAGE)) | direct,
    ])))  # fmt: skip
    rows = program.requests.rows
    assert [(rows[number].tag, page) for number, page in program.pages.items()] == [(2, (0, 0)), (3, (0, 1))]
    ((first, behind),) = program.transactions[:1]
    assert {row.label for row in rows[first:behind]} == {"journal"}

"""A served drive under a clock of the test's own: simulated times against the bare drive, and what requests do to the content."""

from __future__ import annotations

import errno
import math
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashsim.apps.serving.content import FileContent, MemoryContent
from flashsim.apps.serving.drive import ServedDrive, ServedRequest
from flashsim.apps.serving.protocol import EIO, ClientRequest, CommandFlag, Export, NbdCommand
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import FORCE_UNIT_ACCESS, OPERATIONS, READ, REQUEST, TRIM, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import NEVER
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, key_tuples
from flashsim.testing.disks import small_drive
from flashsim.testing.flash_drives import PAGE, drive
from tests.apps.serving import nbd_client as nbd

START = 10**15


def device(kind: str, **changes: Any) -> Device:
    parameters = drive(**changes) if kind == "ssd" else small_drive(**changes)
    return Device(Preset("tests", kind, "a drive of the tests", parameters, {}))


def served_drive(kind: str, scale: float = 1, **changes: Any) -> ServedDrive:
    simulated = device(kind, **changes)
    export = Export("tests", "", simulated.capacity, trim=kind == "ssd")
    return ServedDrive(simulated, export, MemoryContent(1 << 20), scale, START)


def requests_of(seed: int, capacity: int, count: int) -> list[tuple[int, ClientRequest]]:
    """Arrivals (ns from the start, ascending) and random requests."""
    random = generator(seed, "requests")
    at = np.cumsum(random.choice([0, 1, 7, 50, 400, 20_000], count))
    found = []
    for arrival in at.tolist():
        command = int(
            random.choice(
                [NbdCommand.READ, NbdCommand.WRITE, NbdCommand.FLUSH, NbdCommand.TRIM, NbdCommand.WRITE_ZEROES],
                p=[0.4, 0.4, 0.1, 0.05, 0.05],
            )
        )
        length = 0 if command == NbdCommand.FLUSH else 512 * int(random.integers(1, 9))
        offset = 512 * int(random.integers(0, (capacity - length) // 512)) if length else 0
        data = bytes(length) if command == NbdCommand.WRITE else b""
        forced = (
            command in (NbdCommand.READ, NbdCommand.WRITE, NbdCommand.FLUSH) and random.random() < 0.2
        )  # a forced trim is two requests of the drive
        found.append((arrival, ClientRequest(command, int(forced), 0, offset, length, data)))
    return found


def run(served: ServedDrive, asked: list[tuple[int, ClientRequest]], scale: float, oversleep: int, seed: int = 0) -> list[ServedRequest]:
    """Every request taken when it comes, and the drive stepped up to `oversleep` ns late."""
    random = generator(seed, "sleep")
    done: list[ServedRequest] = []
    now = START
    todo = [(START + math.ceil(arrival * scale), request) for arrival, request in asked]
    while todo or served.outstanding:
        due = served.next()
        if todo and (todo[0][0] <= due or due < now):
            now = max(now, todo[0][0])
            while todo and todo[0][0] <= now:
                served.take(todo.pop(0)[1], 3, now)
        else:
            assert due < NEVER
            now = max(now, due) + int(random.integers(0, oversleep + 1))
            if todo:
                now = max(min(now, todo[0][0]), due)
        for finished in served.step(now):
            assert finished.due is not None and finished.due <= now
            done.append(finished)
    return done


@pytest.mark.parametrize("kind", ["ssd", "hdd"])
@pytest.mark.parametrize("scale, oversleep", [(1, 0), (3, 0), (0.5, 0), (1, 1000), (40, 3000)])
def test_simulated_times_are_those_of_the_bare_drive(kind: str, scale: float, oversleep: int) -> None:
    """However late the drive is stepped, provided that requests are taken when they come."""
    for seed in range(4):
        served, bare = served_drive(kind, scale), device(kind)
        asked = [
            (at, request) for at, request in requests_of(seed, bare.capacity, 60) if kind == "ssd" or request.command != NbdCommand.TRIM
        ]
        done = sorted(run(served, asked, scale, oversleep, seed), key=lambda each: each.number)
        assert [each.number for each in done] == list(range(len(asked)))
        requests = np.array([(0, e.operation, 0, 3, e.flags, e.offset, e.length, 0, -1, 0) for e in done], REQUEST)
        expected = bare.serve(requests, np.array([each.submitted for each in done]))
        for name in ("submitted", "started", "completed"):
            assert [getattr(each, name) for each in done] == expected[name].tolist(), f"seed {seed}"
        for (at, _), each in zip(asked, done, strict=True):
            assert abs(each.submitted - at) <= 1 + (oversleep > 0) * oversleep / scale
            assert each.due == START + math.ceil(each.completed * scale)


def test_requests_that_come_together_run_together_without_imposed_latency() -> None:
    served, bare = served_drive("ssd", 0), device("ssd")
    for page in range(8):
        served.take(ClientRequest(NbdCommand.READ, 0, page, page * PAGE, PAGE), 1, START)
    done = served.step(START)
    expected = bare.serve(make_requests(READ, np.arange(8) * PAGE, PAGE))
    assert sorted(each.completed for each in done) == sorted(expected["completed"].tolist())
    assert all(each.due is None for each in done) and served.next() == NEVER and not served.outstanding


def test_nothing_is_done_before_it_is_due() -> None:
    served = served_drive("hdd")
    served.take(ClientRequest(NbdCommand.READ, 0, 7, 0, 512), 1, START + 50)
    assert served.next() == 0
    assert served.step(START + 50) == []
    due = served.next()
    assert due > START + 50
    assert served.step(due - 1) == []
    (done,) = served.step(due)
    assert (done.cookie, done.stream, done.due, done.submitted) == (7, 1, due, 50)
    assert served.next() == NEVER


def test_requests_take_effect_in_order_of_arrival() -> None:
    served = served_drive("ssd")
    first, second = bytes([1]) * 1024, bytes([2]) * 512
    served.take(ClientRequest(nbd.WRITE, 0, 0, 0, 1024, first), 1, START)
    early = served.take(ClientRequest(nbd.READ, 0, 1, 0, 1024), 2, START)
    served.take(ClientRequest(nbd.WRITE, 0, 2, 512, 512, second), 1, START)
    late = served.take(ClientRequest(nbd.READ, 0, 3, 0, 1024), 2, START)
    served.take(ClientRequest(nbd.TRIM, 0, 4, 0, 512), 2, START)
    last = served.take(ClientRequest(nbd.READ, 0, 5, 0, 1024), 2, START)
    assert early.data == first and late.data == first[:512] + second and last.data == bytes(512) + second
    assert len(served.finish()) == 6 and served.outstanding == 0


@pytest.mark.parametrize("kind, flags, operation", [("ssd", 0, TRIM), ("ssd", nbd.NO_HOLE, WRITE), ("hdd", 0, WRITE)])
def test_zeroes_are_trims_where_the_drive_has_them(kind: str, flags: int, operation: int) -> None:
    served = served_drive(kind)
    served.content.write(0, b"x" * 4096)
    taken = served.take(ClientRequest(nbd.WRITE_ZEROES, flags, 0, 0, 4096), 1, START)
    assert OPERATIONS[taken.operation] == OPERATIONS[operation]
    assert served.content.read(0, 4096) == bytes(4096)


def test_a_forced_trim_ends_with_a_flush() -> None:
    buffered = {"write_buffer": 4 * PAGE}
    served, bare = served_drive("ssd", **buffered), device("ssd", **buffered)
    for page in range(3):
        served.take(ClientRequest(nbd.WRITE, 0, page, page * PAGE, PAGE, bytes(PAGE)), 1, START)
    served.take(ClientRequest(nbd.TRIM, nbd.FUA, 9, 0, PAGE), 1, START)
    *_, trim = served.finish()
    requests = make_requests([1, 1, 1, 2, 3], [0, PAGE, 2 * PAGE, 0, 0], [PAGE, PAGE, PAGE, PAGE, 0])
    requests["dependency"][4] = 3
    expected = bare.serve(requests)
    assert (trim.cookie, trim.flags) == (9, FORCE_UNIT_ACCESS)
    assert (trim.submitted, trim.started, trim.completed) == (0, expected["started"][3], expected["completed"][4])
    assert expected["completed"][4] > expected["completed"][3]


def test_content_in_a_file_is_durable_once_a_flush_or_a_forced_write_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    simulated = device("ssd")
    with closing(FileContent(tmp_path / "drive.img", simulated.capacity)) as content:
        served = ServedDrive(simulated, Export("tests", "", simulated.capacity), content, 0, START)
        monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
        for command, flags, length, syncs in (
            (NbdCommand.WRITE, 0, 512, 0),
            (NbdCommand.FLUSH, 0, 0, 1),
            (NbdCommand.WRITE, CommandFlag.FUA, 512, 2),
            (NbdCommand.READ, CommandFlag.FUA, 512, 2),
        ):
            data = bytes(length) if command == NbdCommand.WRITE else b""
            assert served.take(ClientRequest(command, flags, 0, 0, length, data), 0, START).error == 0
            assert synced == [content.path.stat().st_ino] * syncs

        def fails(file: int) -> None:
            raise OSError(errno.EIO, "the disk is gone")

        monkeypatch.setattr(os, "fsync", fails)
        assert served.take(ClientRequest(NbdCommand.FLUSH, 0, 0, 0, 0, b""), 0, START).error == EIO


def test_what_is_refused_never_reaches_the_drive() -> None:
    served = served_drive("ssd")
    errors = [
        served.take(request, 1, START).error
        for _, request in [(0, ClientRequest(nbd.READ, 0, 0, 1, 512)), (0, ClientRequest(77, 0, 0, 0, 0))]
    ]
    full = ServedDrive(device("ssd"), served.export, MemoryContent(0), 1, START).take(
        ClientRequest(nbd.WRITE, 0, 0, 0, 512, bytes(512)), 1, START
    )
    assert errors == [nbd.INVALID, nbd.INVALID] and full.error == nbd.NO_SPACE
    assert served.refused == 2 and not served.outstanding and served.next() == NEVER


def test_a_minipage_is_read_by_its_sectors_alone() -> None:
    """Row ids of digests on PAX pages: a request a page, as long as its sectors, from whose bytes they are decoded."""
    layout, digests = Layout(FixedRows("digest", {"key": 8, "row": 4}), 8192, "pax"), key_tuples(np.arange(2000) * 7, np.arange(2000) + 5)
    digests.pages = layout.pack(digests)
    pages, ((begin, length),) = layout.encode(digests), layout.parts(("row",))
    served, bare, found = served_drive("ssd", 0), device("ssd"), np.zeros_like(pages)
    requests = [make_requests(WRITE, np.arange(len(pages)) * 8192, 8192)]
    for number, page in enumerate(pages):
        served.take(ClientRequest(nbd.WRITE, 0, number, number * 8192, 8192, page.tobytes()), 1, START)
    served.finish()
    for number in range(len(pages)):
        taken = served.take(ClientRequest(nbd.READ, 0, number, number * 8192 + begin, length), 1, START)
        found[number, begin : begin + length] = np.frombuffer(taken.data, np.uint8)
    assert 0 < length < 8192 // 2 and np.array_equal(layout.decode(found, ("row",)).rows, digests.rows)
    done = sorted(served.finish(), key=lambda each: each.number)
    requests.append(make_requests(READ, np.arange(len(pages)) * 8192 + begin, length))
    expected = [bare.serve(batch, np.full(len(batch), bare.now))["completed"] for batch in requests]
    assert [each.completed for each in done] == expected[1].tolist()


def test_a_worn_drive_refuses_writes_and_reads_go_on() -> None:
    served = served_drive("ssd", 0, endurance=5, spare_blocks=1, blocks_per_plane=9)
    errors = []
    for number in range(2000):
        served.take(ClientRequest(nbd.WRITE, 0, number, number * 7 % 40 * PAGE, PAGE, bytes(PAGE)), 1, START)
        errors += [each.error for each in served.step(START)]
        if served.read_only_because:
            break
    assert errors[-1] == nbd.IO and set(errors[:-1]) == {0}
    assert "no spare block" in served.read_only_because
    assert served.take(ClientRequest(nbd.WRITE, 0, 0, 0, PAGE, bytes(PAGE)), 1, START).error == nbd.PERMISSION
    served.take(ClientRequest(nbd.READ, 0, 0, 0, PAGE), 1, START)
    assert [each.error for each in served.step(START)] == [0]


@pytest.mark.parametrize("scale", [-1, math.nan, math.inf])
def test_time_scales_that_are_refused(scale: float) -> None:
    with pytest.raises(InvalidParameterError, match="time scale"):
        served_drive("ssd", scale)

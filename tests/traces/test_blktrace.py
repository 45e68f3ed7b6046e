"""blktrace's binary streams: what blkparse prints of ours, and streams as other machines write them."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.errors import DamagedFileError, FlashsimError, FlashsimWarning, InvalidParameterError
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, TRIM, WRITE
from tests.tiers import examples
from traces.file.schema import SCHEMA, make_batch
from traces.format import read_trace, recognise
from traces.format.base import load_writable

_NAMES = ("magic", "sequence", "time", "sector", "bytes", "action", "pid", "device", "cpu", "error", "pdu_len")
_KINDS = ("u4", "u4", "u8", "u8", "u4", "u4", "u4", "u4", "u4", "u2", "u2")
LITTLE, BIG = (np.dtype([(name, order + kind) for name, kind in zip(_NAMES, _KINDS, strict=True)]) for order in "<>")
#: Actions with their categories, of reads and writes: queue, issue, complete; and a merge.
_Q, _D, _C, _M = (1, 1 << 4), (7, 1 << 6), (8, 1 << 7), (2, 1 << 4)


def records(*events: tuple[int, tuple[int, int], int, int, int], dtype: np.dtype[Any] = LITTLE, cpu: int = 0) -> np.ndarray[Any, Any]:
    """Records of (time, action, operation, sector, bytes)."""
    made = np.zeros(len(events), dtype)
    for number, (time, (action, category), operation, sector, size) in enumerate(events):
        kind = (category | (2 if operation == WRITE else 1)) << 16 | action
        made[number] = (0x65617407, number + 1, time, sector, size, kind, 7, 8 << 20, cpu, 0, 0)
    return made


def table(path: Path, name: str | None = None) -> pa.Table:
    return pa.Table.from_batches(list(read_trace(path, name)), SCHEMA)


def workload(count: int) -> dict[str, Any]:
    """Requests of all kinds on three devices, many open at once, some at one time, the last without completion."""
    rng = np.random.default_rng(4)
    operation = rng.choice([READ, WRITE, TRIM, FLUSH], count, p=[0.5, 0.4, 0.05, 0.05])
    arrival = np.cumsum(rng.integers(0, 3, count) * 700)
    arrival -= arrival[0]
    started = np.maximum.accumulate(arrival + rng.integers(0, 2, count) * 250)
    flush = operation == FLUSH
    took = np.where(flush, 5000, rng.integers(0, 10**6, count))  # flushes have one extent, and complete in turn
    return {
        "operation": operation,
        "offset": np.where(flush, 0, rng.integers(0, 1 << 40, count) * 512),
        "length": np.where(flush, 0, rng.integers(1, 2048, count) * 512),
        "flags": np.where(operation == WRITE, rng.integers(0, 2, count) * FORCE_UNIT_ACCESS, 0),
        "device": rng.integers(0, 3, count),
        "arrival": arrival,
        "started": started,
        "completed": pa.array(started + took, mask=np.arange(count) == count - 1),
    }


def test_blkparse_prints_the_requests_that_we_wrote(tmp_path: Path) -> None:
    if not shutil.which("blkparse"):
        pytest.skip("blkparse is not installed")
    batch = make_batch(workload(2000))
    for name, place in (("blktrace", "our.blktrace.0"), ("blkparse", "our.txt")):
        load_writable(name).write(iter([batch.slice(0, 700), batch.slice(700)]), tmp_path / place)
    done = subprocess.run(["blkparse", "-i", "our.blktrace.0"], cwd=tmp_path, capture_output=True, text=True, check=True)
    printed = [line for line in done.stdout.splitlines() if re.match(r" *\d+,\d+ ", line)]
    assert "Skips: 0 forward" in done.stdout
    # blkparse sorts events of one time by their sequence on a processor, as they stand in the file
    assert printed == (tmp_path / "our.txt").read_text().splitlines()
    (tmp_path / "theirs.txt").write_text(done.stdout)
    assert recognise(tmp_path / "theirs.txt") == "blkparse"
    read = [table(tmp_path / place) for place in ("our.blktrace.0", "our.txt", "theirs.txt")]
    compared = ["operation", "offset", "length", "flags", "device", "arrival", "started", "completed", "label"]
    assert read[0].equals(read[1]) and read[0].equals(read[2])
    wanted = pa.Table.from_batches([batch]).select(compared[:-1])
    keys = [("started", "ascending"), ("device", "ascending"), ("offset", "ascending"), ("length", "ascending"), ("arrival", "ascending")]
    assert read[0].select(compared[:-1]).sort_by(keys).equals(wanted.sort_by(keys))


def test_blkparse_counts_the_bytes_of_reads_and_writes(tmp_path: Path) -> None:
    if not shutil.which("blkparse"):
        pytest.skip("blkparse is not installed")
    columns = {"operation": [READ, WRITE, WRITE], "offset": [0, 8192, 1 << 20], "length": [4096, 65536, 1 << 20], "arrival": [0, 10, 20]}
    columns |= {"started": [5, 15, 25], "completed": [100, 200, 300]}
    load_writable("blktrace").write(iter([make_batch(columns)]), tmp_path / "a.blktrace.0")
    shown = subprocess.run(["blkparse", "-i", "a"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    for what in (
        r"Reads Queued: +1, +4KiB",
        r"Writes Queued: +2, +1088KiB",
        r"Writes Completed: +2, +1088KiB",
        r"Read Dispatches: +1, +4KiB",
    ):
        assert re.search(what, shown), shown


def test_merged_requests_arrive_with_their_issue(tmp_path: Path) -> None:
    path = tmp_path / "a"
    queue = [(10, _Q, READ, 0, 4096), (20, _Q, READ, 8, 4096), (21, _M, READ, 8, 4096), (30, _D, READ, 0, 8192), (90, _C, READ, 0, 8192)]
    records(*queue, (95, _Q, WRITE, 64, 512), (99, _D, WRITE, 64, 512)).tofile(path)
    found = table(path).to_pydict()
    assert (found["arrival"], found["started"], found["completed"]) == ([30, 95], [30, 99], [90, None])
    records(*(event for event in queue if event[1] != _D)).tofile(path)  # a driver without a queue of its own
    with pytest.warns(FlashsimWarning, match="1 completions are of no whole request"):
        assert table(path).to_pydict()["started"] == [None, None]


def test_equal_extents_complete_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "a"
    events = [(time, action, READ, 8, 512) for time, action in ((1, _Q), (2, _Q), (3, _D), (4, _D), (5, _C), (6, _C), (7, _C))]
    records(*events).tofile(path)
    with pytest.warns(FlashsimWarning, match="1 completions are of no whole request"):
        found = table(path).to_pydict()
    assert (found["arrival"], found["started"], found["completed"]) == ([1, 2], [3, 4], [5, 6])


@pytest.mark.parametrize("dtype", [LITTLE, BIG], ids=["little", "big"])
def test_byte_orders_payloads_and_other_records(dtype: np.dtype[Any], tmp_path: Path) -> None:
    made = records((5, _D, WRITE, 8, 1024), (6, _D, READ, 0, 36), (7, _D, READ, 16, 512), (9, _C, WRITE, 8, 1024), dtype=dtype)
    made["action"][1] |= 1 << 9 + 16  # a command that bypasses the file system
    made["pdu_len"] = [8, 16, 0, 3]
    made["action"][3] |= 1 << 8  # the payload begins with a control group
    process = records((0, (0, 1 << 10), READ, 0, 0), dtype=dtype)  # a note: the name of a process
    process["pdu_len"] = 5
    payloads = [b"12345678", bytes(16), b"", b"abc"]
    content = process.tobytes() + b"fio\0\0" + b"".join(row.tobytes() + payload for row, payload in zip(made, payloads, strict=True))
    path = tmp_path / "a"
    path.write_bytes(content)
    found = table(path).to_pydict()
    assert recognise(path) == "blktrace"
    assert (found["operation"], found["offset"], found["length"]) == ([WRITE, READ], [4096, 8192], [1024, 512])
    assert (found["arrival"], found["completed"], found["label"]) == ([5, 7], [9, None], ["8,0", "8,0"])


def test_the_files_of_all_processors_are_one_trace(tmp_path: Path) -> None:
    every = [
        (time, action, READ, 8 * number, 4096) for number in range(300) for time, action in ((10 * number, _D), (10 * number + 35, _C))
    ]
    parts: list[list[tuple[int, tuple[int, int], int, int, int]]] = [[], [], []]
    for event in sorted(every):
        parts[event[0] * 7 % 3].append(event)
    whole = tmp_path / "whole"
    records(*sorted(every)).tofile(whole)
    for number, part in enumerate(parts):
        records(*part, cpu=number).tofile(tmp_path / f"sda.blktrace.{number}")
    (tmp_path / "sda.blktrace.3").touch()
    (tmp_path / "sdb.blktrace.0").write_bytes(whole.read_bytes()[:48])
    assert table(tmp_path / "sda.blktrace.1").equals(table(whole))
    assert table(whole).column("completed").null_count == 0
    if shutil.which("blkparse"):
        shown = subprocess.run(["blkparse", "-q", "-i", "sda"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        (tmp_path / "shown").write_text(shown)
        assert table(tmp_path / "shown").equals(table(whole))


def test_damaged_records_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    good = records(*((number, _D, READ, 8 * number, 512) for number in range(10)))
    for field, value, message in (
        ("magic", 0x65617405, "record 4 at byte 192: version 5, but 7 is read"),
        ("magic", 0x12345678, "record 4 at byte 192: no record begins there"),
        ("time", 1 << 63, "record 4 at byte 192: its time or sector is too large"),
        ("sector", 1 << 60, "record 4 at byte 192: its time or sector is too large"),
        ("pdu_len", 700, "record 4 at byte 192: its payload is longer than the file"),
    ):
        bad = good.copy()
        bad[field][4] = value
        bad.tofile(path)
        with pytest.raises(DamagedFileError, match=message):
            table(path)


def test_a_file_that_ends_within_a_record_is_refused(tmp_path: Path) -> None:
    """Cut by any number of bytes: how many are left over is said, and where they begin."""
    path = tmp_path / "a"
    load_writable("blktrace").write(iter([make_batch(workload(8))]), path)
    data = path.read_bytes()
    for keep in (*range(4, 97), *range(97, len(data), 47)):
        path.write_bytes(data[:keep])
        if keep % 48:
            message = f"is cut short in record {keep // 48} at byte {keep // 48 * 48}: {keep % 48} bytes are left over"
            with pytest.raises(DamagedFileError, match=message):
                table(path)
        else:
            assert table(path).num_rows


@settings(max_examples=examples(150))
@given(at=st.integers(0, 48 * 24 - 1), value=st.integers(0, 255), more=st.binary(max_size=60))
def test_foreign_bytes_are_read_or_refused_in_one_line(at: int, value: int, more: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("foreign", numbered=True) / "a"
    load_writable("blktrace").write(iter([make_batch(workload(8))]), path)
    data = bytearray(path.read_bytes())
    data[at : at + 1 + len(more)] = bytes([value]) + more
    path.write_bytes(bytes(data))
    found, refusal = None, f"one line about {path}"
    warnings.simplefilter("ignore", FlashsimWarning)
    try:
        found = table(path)
    except FlashsimError as problem:
        refusal = str(problem)
    assert "\n" not in refusal and str(path) in refusal
    assert found is None or all(value >= 0 for name in ("offset", "length", "arrival") for value in found.column(name).to_pylist())


def test_times_that_go_back_far_are_refused(tmp_path: Path) -> None:
    first = {"offset": np.arange(1 << 16) * 512, "length": np.full(1 << 16, 512), "arrival": np.arange(1 << 16)}
    back = {name: values[:100] if name != "arrival" else values[50:150] for name, values in first.items()}
    late = {name: values[:100] if name != "arrival" else values[:100] + (1 << 15) for name, values in first.items()}
    write = load_writable("blktrace").write
    write(iter([make_batch(columns) for columns in (first, late)]), tmp_path / "a")
    assert table(tmp_path / "a").column("arrival").to_pylist() == sorted([*first["arrival"].tolist(), *late["arrival"].tolist()])
    with pytest.raises(InvalidParameterError, match="go back by at most 65536 requests"):
        write(iter([make_batch(columns) for columns in (first, first, back)]), tmp_path / "b")

"""Writes that are no system calls, of io_uring and through mapped files, are recorded: files come out of their recordings byte for byte."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import flashsim as fs
from flashsim.apps.programs import notices, recorder
from flashsim.apps.programs.images import snapshot
from tests.apps.programs.test_record import files_of

pytestmark = pytest.mark.skipif(
    not shutil.which("strace") or not notices.is_possible(), reason="strace, or notices of calls, are not there"
)

MAPPED = """
import mmap, os
file = os.open("store", os.O_RDWR | os.O_CREAT)
os.pwrite(file, b"a" * 10_000, 0)
memory = mmap.mmap(file, 10_000)
memory[5] = 66
memory.flush()
memory[9_999] = 67
os.fsync(file)
os.rename("store", "other")
memory[4_096:4_100] = b"last"
"""
#: A program of random writes in all ways, by two processes, with syncs and renames between.
DRAWN = """
import mmap, os, random, sys
draw = random.Random(int(sys.argv[1]))
for child in range(2):
    if os.fork() == 0:
        names = [f"{child}{each}" for each in range(3)]
        files = [os.open(name, os.O_RDWR | os.O_CREAT) for name in names]
        sizes = [draw.randrange(1, 60_000) for _ in files]
        for file, size in zip(files, sizes):
            os.ftruncate(file, size)
        maps = [mmap.mmap(file, size) for file, size in zip(files, sizes)]
        for _ in range(60):
            each = draw.randrange(3)
            place, data = draw.randrange(sizes[each]), draw.randbytes(draw.choice([1, 100, 5_000]))
            data = data[: sizes[each] - place]
            kind = draw.randrange(7)
            if kind < 3:
                maps[each][place : place + len(data)] = data
            elif kind == 3:
                os.pwrite(files[each], data, place)
            elif kind == 4:
                maps[each].flush()
            elif kind == 5:
                os.fsync(files[each])
            else:
                new = f"{names[each]}x"
                os.rename(names[each], new)
                names[each] = new
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""
ENGINES = ["--ioengine=io_uring", "--ioengine=io_uring --registerfiles=1 --fixedbufs=1", "--ioengine=libaio", "--ioengine=mmap"]


def fio(engine: str, *more: str) -> list[str]:
    words = "--name=w --filename=data --size=256k --bs=4k --rw=randwrite --iodepth=8 --fallocate=none --fsync=16"
    return ["fio", *words.split(), *engine.split(), *more]


def test_writes_through_a_mapped_file_are_there_at_each_sync(here: Path) -> None:
    recording = recorder.record([sys.executable, "-c", MAPPED], contents=True, folder=here, before={})
    assert files_of(recording, here, {}) == snapshot(here) and snapshot(here)[f"{here}/other"][4_096:4_100] == b"last"
    calls = [row["call"] for row in recording.table.to_pylist() if row["call"] in ("pwrite64", "msync", "fdatasync", "fsync", "rename")]
    assert calls == ["pwrite64", "pwrite64", "fdatasync", "msync", "pwrite64", "fsync", "rename", "pwrite64"] and not recording.missed


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
@pytest.mark.parametrize(
    "engine", [pytest.param(engine, marks=[pytest.mark.deep] if number else []) for number, engine in enumerate(ENGINES)]
)
def test_requests_of_rings_and_others_make_the_file_again(engine: str, here: Path) -> None:
    recording = recorder.record(fio(engine), contents=True, folder=here, before={})
    rebuilt = files_of(recording, here, {})
    assert rebuilt[f"{here}/data"] == Path("data").read_bytes() and len(set(rebuilt[f"{here}/data"])) > 200
    assert not [line for line in recording.missed if "uring" in line or "mmap" in line]


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_a_ring_that_the_kernel_polls_is_named(here: Path) -> None:
    recording = recorder.record(fio(ENGINES[0], "--sqthread_poll=1"), folder=here)
    assert any("polls" in line for line in recording.missed)


def test_calls_alone_are_recorded_if_that_is_asked_for(here: Path) -> None:
    recording = fs.record([sys.executable, "-c", MAPPED], out="run.parquet", calls_only=True).result
    assert [row["call"] for row in recording.table.to_pylist()].count("pwrite64") == 1
    assert any("mmap" in line for line in recording.missed)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.deep] if seed else []) for seed in range(30)])
def test_files_of_programs_that_write_in_all_ways_come_out_of_the_recording(seed: int, here: Path) -> None:
    recording = recorder.record([sys.executable, "-c", DRAWN, str(seed)], contents=True, folder=here, before={})
    assert files_of(recording, here, {}) == snapshot(here) and len(snapshot(here)) == 6
    assert not recording.missed

"""The independent second engine: fio replays the trace as its I/O log, and its own logs tell what each request took.

fio's latency logs give the time of a completion in whole ms and the latency in ns, in the order of completion; that is the order in which
an observer is told of the requests, and the precision of the times.  Flushes are replayed, but stand in no log.  With ``timed`` one request
is outstanding at a time.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from flashsim.core.errors import FlashsimError, InvalidParameterError, option
from flashsim.core.protocols import Progress
from flashsim.core.request import OPERATIONS, READ, WRITE, Integers
from flashsim.core.units import GIB, KIB, MIB, MILLISECONDS, format_size
from flashsim.device.batch import HUGE_PAGE
from flashsim.device.file import RealDevice
from traces.file.schema import Batches, column, make_batch
from traces.format.base import load_writable
from traces.replay.base import Observer, replay_records

TITLE = "the program fio, if it is installed"
PACES = ("asap", "timed")

#: fio keeps memory for as many requests as may be outstanding, each as large as the largest: so much at most.
_MEMORY = 4 * GIB
_BLOCK = 4 * MIB
#: Bytes of a line of the I/O log, at most, whose names of files are paths.
_LONGEST_LINE = 16 * KIB
#: fio's memory lies on huge pages, as that of the engine of our own (`aligned_buffer`): all that is allocated is one piece that grows by
#: huge pages, and the first of them, which may be a rest of small ones, is left out (``iomem_align`` says by how much).
_HUGE_PAGES = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0"
#: A line of a latency log: ms, ns, direction (0 read, 1 write), bytes, and where.
_LOG = {"at": pa.int64(), "latency": pa.int64(), "operation": pa.int64(), "length": pa.int64(), "offset": pa.int64()}


def check() -> None:
    if not shutil.which("fio"):
        raise FlashsimError("engine: fio is not installed, or not on PATH; take " + option("engine") + " builtin")


def replay(batches: Batches, device: RealDevice, pace: str, depth: int, observe: Observer, progress: Progress | None = None) -> str:
    if len(set(device.beside.values())) > 1:
        raise InvalidParameterError("engine", "fio", "it replays on one device; several are for builtin")
    with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
        place = Path(folder)
        target = place / "target"  # a name without the blanks and colons that fio would divide names at
        target.symlink_to(device.path.absolute())
        expected = _Expected()
        log = load_writable("fio-iolog" if pace == "timed" else "fio-iolog-v2")
        log.write(expected.as_one_file(batches, str(target), pace == "timed"), place / "iolog")
        _cut_last_line(place / "iolog")
        report = _run(place, _options(device, pace, depth, expected))
        expected.compare(report["jobs"][0])
        count = 0
        for batch, at, latency in _log(place / "log_lat.1.log"):
            started = np.maximum(at - latency, 0)  # the log's ms may cut off more than the latency
            observe(*replay_records(batch, count, started, started, started + latency))
            count += batch.num_rows
            if progress:
                progress(count, 0)
        return f"{report['fio version']}{', through the page cache' if device.buffered else ''}"


class _Expected:
    """Bytes that fio shall move by each operation, and the longest request, counted while its log is written."""

    def __init__(self) -> None:
        self.bytes, self.longest, self.writes = np.zeros(len(OPERATIONS), np.int64), 1, False

    def as_one_file(self, batches: Batches, target: str, timed: bool) -> Batches:
        """The batches as requests of one file, with times from 0 on or none."""
        origin: int | None = None
        first = 0
        for batch in batches:
            columns = {name: column(batch, name) for name in ("operation", "offset", "length")}
            np.add.at(self.bytes, columns["operation"], columns["length"])
            self.longest = max(self.longest, int(columns["length"].max()))
            self.writes |= bool(np.any(columns["operation"] == WRITE))
            if timed:
                arrival = column(batch, "arrival")
                origin = int(arrival[0]) if origin is None else origin
                columns["arrival"] = arrival - origin
            yield make_batch(columns, first, target)
            first += batch.num_rows

    def compare(self, job: dict[str, Any]) -> None:
        for kind, name in ((READ, "read"), (WRITE, "write")):
            moved, expected = job[name]["io_bytes"], int(self.bytes[kind])
            if moved != expected:
                raise FlashsimError(f"engine: fio moved {format_size(moved)} by {name}s, but the trace says {format_size(expected)}")


def _cut_last_line(log: Path) -> None:
    """Take away the line that closes the file.

    fio takes no more completions once it has looked for another request and found none: the last ones would be missing in what it says.
    With ``io_size`` it knows after the last request that this was all, provided that no other line follows.
    """
    with log.open("r+b") as file:
        tail = max(0, file.seek(0, os.SEEK_END) - _LONGEST_LINE)
        file.seek(tail)
        file.truncate(tail + file.read().rstrip(b"\n").rindex(b"\n") + 1)


def _options(device: RealDevice, pace: str, depth: int, expected: _Expected) -> list[str]:
    """Queues of fio are for ``asap`` alone.

    Until the next request is due, fio sleeps and takes no completions, so that their times would be late by ms.  If it is told not to
    (``iodepth_batch_complete_min=0``), it waits for each request before it submits another, and is as good as without a queue.
    """
    depth = depth if pace == "asap" else 1
    if depth * expected.longest > _MEMORY:
        raise InvalidParameterError("depth", depth, f"fio would need {format_size(depth * expected.longest)} of memory")
    options = [f"--direct={int(not device.buffered)}", f"--ioengine={'psync' if depth == 1 else 'libaio'}", f"--iodepth={depth}"]
    options += [f"--iomem_align={HUGE_PAGE}", f"--io_size={max(1, int(expected.bytes[[READ, WRITE]].sum()))}"]
    return options + ["--replay_no_stall=1"] * (pace == "asap") + ["--readonly"] * (not expected.writes)


def _run(place: Path, options: list[str]) -> dict[str, Any]:
    command = ["fio", "--name=replay", f"--read_iolog={place / 'iolog'}", "--allow_file_create=0", "--fallocate=none", *options]
    command += [f"--write_lat_log={place / 'log'}", "--log_offset=1", "--output-format=json", f"--output={place / 'report.json'}"]
    environment = {**os.environ, "GLIBC_TUNABLES": ":".join(filter(None, [os.environ.get("GLIBC_TUNABLES"), _HUGE_PAGES]))}
    process = subprocess.run(command, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    text = (place / "report.json").read_text(encoding="utf-8") if (place / "report.json").exists() else ""
    try:
        report: dict[str, Any] | None = json.loads(text[text.index("{") :])
    except ValueError:
        report = None
    if process.returncode or report is None or report["jobs"][0]["error"]:
        lines = [line for line in (process.stderr + process.stdout + text.partition("{")[0]).splitlines() if line.strip()]
        raise FlashsimError(f"engine: fio failed: {lines[0] if lines else f'exit code {process.returncode}'}")
    return report


def _log(path: Path) -> Iterator[tuple[pa.RecordBatch, Integers, Integers]]:
    """The requests of a latency log, when each completed, and its latency, ns.

    It is mapped: Arrow's readers go on for a moment after they are closed, and would read from the file that has their descriptor then.
    """
    options = {
        "read_options": pyarrow.csv.ReadOptions(column_names=[*_LOG, "priority"], block_size=_BLOCK),
        "convert_options": pyarrow.csv.ConvertOptions(column_types=_LOG, include_columns=list(_LOG)),
    }
    try:
        with pa.memory_map(str(path)) as file, pyarrow.csv.open_csv(file, **options) as lines:
            for part in lines:
                columns = {name: column(part, name) for name in _LOG}
                at, latency = columns.pop("at") * MILLISECONDS, columns.pop("latency")
                yield make_batch(columns), at, latency
    except (OSError, pa.ArrowException) as problem:
        raise FlashsimError(f"engine: fio left no latency log that can be read: {problem}".split("\n", 1)[0]) from problem

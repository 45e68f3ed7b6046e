"""N-Hash's partition phase beside the traditional one on a real file, and both traces replayed there."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow.parquet as pq
import pytest

from algorithms.files import temporary_files
from algorithms.hashing.buckets import partition
from algorithms.partitioning.base import PartitionBuffers, PartitionParameters, bucket_layouts
from flashsim.core.request import WRITE
from flashsim.core.units import SECONDS
from flashsim.device.file import RealDevice
from flashsim.execution.drivers import needed_size, trace_only
from flashsim.execution.requests import Algorithm
from flashsim.experiments.replaying.device_report import DeviceReport
from flashsim.experiments.replaying.real import RealSettings, replay_on
from flashsim.experiments.replaying.survey import survey
from flashsim.experiments.runs.joining import lay_out
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.source.base import load_pair, open_source
from tests.contract.drivers import run_on_file
from traces.file.recording import ParquetRecorder

METHODS = ("traditional", "n-hash")


def orders(scale: float) -> HeapFile:
    return lay_out(
        load_pair(open_source(f"do2009:customer@{scale}"), open_source(f"do2009:orders@{scale}"), "c_custkey", "o_custkey")[1], 8192
    )


def partitioned(file: HeapFile, method: str, buffers: PartitionBuffers) -> Algorithm:
    """The partition phase alone."""
    parameters = PartitionParameters(method)
    (layout,) = bucket_layouts([file], buffers, parameters)
    buckets = temporary_files("partitioned", "bucket", buffers.buckets, layout, -(-file.pages // buffers.buckets))
    yield from partition(file, buckets, 0, buffers, parameters)


def run(file: HeapFile, method: str, buffers: PartitionBuffers, place: Path) -> int:
    """How long it takes on a real file, ns; its trace is written beside."""
    with (
        RealDevice(place, needed_size([file]), allow_write=True, replace=True) as device,
        ParquetRecorder(place.with_suffix(".parquet")) as to,
    ):
        return run_on_file(partitioned(file, method, buffers), [file], device, sink=to).total().total_time


def replayed(place: Path) -> DeviceReport:
    trace, report = place.with_suffix(".parquet"), DeviceReport()
    replay_on(trace, place, RealSettings("think", allow_write=True, replace=True), survey(trace), report.add)
    return report


def test_a_replay_hands_sets_over_at_once(tmp_path: Path) -> None:
    """As many requests are outstanding as when it was recorded, and a set's requests are submitted in one moment."""
    file, buffers, place = orders(0.01), PartitionBuffers(4, 8, 16), tmp_path / "disk"
    run(file, "n-hash", buffers, place)
    trace = pq.read_table(place.with_suffix(".parquet")).to_pandas()
    sizes = trace[trace["operation"] == WRITE].groupby("dependency").size()
    told = replayed(place).outstanding.as_dict()
    assert told is not None and told["max"] == sizes.max() > 10
    without: list[int] = []

    class Sizes:
        def record(self, requests: np.ndarray, *_: object) -> None:
            without.extend([len(requests)] if requests["operation"][0] == WRITE else [])

        def close(self) -> None:
            """Nothing to do."""

    trace_only(partitioned(file, "n-hash", buffers), [file], Sizes())  # type: ignore[arg-type]
    assert sizes.tolist() == without


@pytest.mark.deep
def test_a_replay_keeps_what_sets_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five pairs of runs by turns, each replayed at once: the ratio of the replays' times is within 15 % of that of the runs'."""
    if os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
        pytest.skip(f"the machine is busy: {os.getloadavg()[0]:.1f} on average")
    file, buffers, place = orders(0.5), PartitionBuffers(64, 2, 128), tmp_path / "disk"
    run(file, METHODS[0], buffers, place)  # the file system has given the file its room then
    ratios = []
    for number in range(5):
        times = {}
        for method in METHODS[:: 1 if number % 2 else -1]:
            times[method] = run(file, method, buffers, place), replayed(place).duration
        ratios.append(np.divide(times[METHODS[0]], times[METHODS[1]]))
        with capsys.disabled():
            print({method: [f"{time / SECONDS:.2f} s" for time in both] for method, both in times.items()}, ratios[-1].round(2))
    runs, replays = (np.array(ratios)[:, column] for column in (0, 1))
    with capsys.disabled():
        print(f"run {median(runs):.2f} ({runs.min():.2f} to {runs.max():.2f}), replayed {median(replays):.2f}", os.getloadavg())
    assert median(runs) > 1
    assert median(replays / runs) == pytest.approx(1, rel=0.15)

"""Writing interrupts the reading of an executed hash join as often as the detailed cost model says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flashsim.apps.papers.do2009.other_runs import PLACES, bytes_needed, places
from flashsim.apps.papers.do2009.runs import Setup, lay_out_setup
from flashsim.core.request import READ, WRITE, Completions, Requests
from flashsim.device import presets
from flashsim.experiments.formulas.drives import drive_of
from flashsim.experiments.runs.joining import JoinSetting, simulate_join
from flashsim.storage.heap_file import heap_file
from models.allocation.buffers import GraceAllocation
from models.join_costs.base import Sizes
from models.ssd_joins import bursts_a_write, detailed_cost

SCALE = 0.05


class Operations:
    """What was asked for, in order."""

    def __init__(self) -> None:
        self.all: list[int] = []

    def record(self, requests: Requests, completions: Completions, label: str) -> None:
        """Keep the operations."""
        self.all += requests["operation"].tolist()


def executed_and_told(memory: int, input: int) -> tuple[float, float]:
    """Bursts a write while the paper's relations are partitioned, executed and told."""
    files, setting = lay_out_setup(Setup("grace-hash", memory), SCALE, 2009)
    r, s = sorted(file.pages for file in files)
    buckets = math.ceil(1.2 * r / (0.95 * setting.memory))
    table, output = math.ceil(1.2 * r / buckets), (setting.memory - input) // buckets
    sink, allocation = Operations(), GraceAllocation(buckets, output, input, setting.memory - table, table)
    simulate_join(
        JoinSetting("grace-hash", setting.memory, placement="packed", cpu=None), files, ["nvme-tlc-1tb"], allocation=allocation, sink=sink
    )
    asked = np.array(sink.all)
    writes = np.flatnonzero(asked == WRITE)
    bursts = int((asked[writes - 1] == READ).sum())
    return bursts / len(writes), bursts_a_write(Sizes(r, s, r, s, setting.memory), 8192, buckets, input, output)


@pytest.mark.parametrize("memory", [100, 300, 500])
@pytest.mark.parametrize("input", [16, 64, 160])
def test_bursts_are_as_many_as_executed(memory: int, input: int) -> None:
    """Within a fifth, with two to ten buckets: how far levels drift apart by chance is known on the average only."""
    executed, told = executed_and_told(memory, input)
    assert told == pytest.approx(executed, rel=0.2)


@pytest.mark.parametrize("memory, input, output", [(100, 60, 58), (100, 160, 48), (300, 192, 432)])
def test_a_disk_partitions_as_fast_as_told(memory: int, input: int, output: int) -> None:
    """On all disks with the room, the mean over places within a tenth: with fast media, writing behind hides the arm's moves."""
    files, setting = lay_out_setup(Setup("grace-hash", memory), SCALE, 2009)
    r, s = sorted(file.pages for file in files)
    buckets = (setting.memory - input) // output
    sizes = Sizes(r, s, *sorted(heap_file(file.relation, 8192).pages for file in files), setting.memory)
    table = math.ceil(1.2 * r / buckets)
    allocation = GraceAllocation(buckets, output, setting.memory - buckets * output, setting.memory - table, table)
    disks = [name for name in presets.names() if presets.load(name).kind == "hdd" and presets.load(name).capacity > bytes_needed(files)]
    drives = [drive for name in disks for drive in places(name, files, 2009)]
    joined = JoinSetting("grace-hash", setting.memory, placement="packed", cpu=None)
    runs = simulate_join(joined, files, drives, allocation=allocation).runs
    assert len(disks) >= 8
    for index, name in enumerate(disks):
        executed = np.mean([run.phases[0].io_time / 1e9 for run in runs[PLACES * index :][:PLACES]])
        drive = drive_of(presets.load(name), 8192, 2 * (r + s) * 8192)
        told = detailed_cost("grace-hash", sizes, drive, allocation).phases[0].seconds(drive)
        assert told == pytest.approx(executed, rel=0.1), name


def test_a_single_stream_interrupts_with_every_write() -> None:
    assert bursts_a_write(Sizes(1000, 9000, 1000, 9000, 100), 8192, 1, 16, 16) == 1


def test_bursts_lie_between_one_a_round_and_one_a_write() -> None:
    sizes = Sizes(10_000, 90_000, 10_000, 90_000, 2_000)
    told = [bursts_a_write(sizes, 8192, 8, input, 100) for input in (1, 16, 64, 256, 800)]
    assert told == sorted(told, reverse=True)
    assert told[0] == pytest.approx(1, abs=0.01) and told[-1] == pytest.approx(1 / 8)

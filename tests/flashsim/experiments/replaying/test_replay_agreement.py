"""The engine of our own and fio take the same time for the same work on a real file, within 15 %."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from flashsim.core.request import READ, WRITE
from flashsim.core.units import GIB, KIB, MIB, MICROSECONDS
from flashsim.device.batch import aligned_buffer
from flashsim.device.file import RealDevice
from flashsim.experiments.replaying.device_report import DeviceReport
from traces.file.schema import make_batch
from traces.replay.base import load_engine
from traces.replay.builtin import fill

pytestmark = [pytest.mark.deep, pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")]

SIZE = 256 * MIB
TOTAL = 400 * MIB
#: Each engine runs so often, in turns, so that both meet the same conditions.
RUNS = 9


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealDevice]:
    """A file that was written all over."""
    folder = tmp_path_factory.mktemp("agreement")
    if shutil.disk_usage(folder).free < GIB:
        pytest.skip("too little room")
    with RealDevice(folder / "file", SIZE, allow_write=True) as made:
        data = aligned_buffer(MIB)
        fill(data)
        for begin in range(0, SIZE, MIB):
            made.write(np.array([begin]), data, np.array([MIB]))
        made.flush()
        yield made
        made.remove_if_new()


def runs(device: RealDevice, batch: pa.RecordBatch, depth: int) -> dict[str, list[DeviceReport]]:
    """The reports of both engines."""
    reports: dict[str, list[DeviceReport]] = {"builtin": [], "fio": []}
    for _ in range(RUNS):
        for name, done in reports.items():
            done.append(DeviceReport())
            load_engine(name).replay(iter([batch]), device, "asap", depth, done[-1].add)
    wanted = batch.num_rows, int(batch.column("length").to_numpy().sum())
    assert {(told["requests"], told["bytes"]) for done in reports.values() for told in (each.as_dict({}) for each in done)} == {wanted}
    return reports


def random_requests(block: int, count: int, writes: float = 0.0) -> pa.RecordBatch:
    """Requests of whole blocks at random places."""
    random = np.random.default_rng(1)
    operation = np.where(random.random(count) < writes, WRITE, READ)
    return make_batch({"operation": operation, "offset": random.integers(0, SIZE // block, count) * block, "length": np.full(count, block)})


@pytest.mark.parametrize("block", [16 * KIB, 256 * KIB])
def test_a_request_takes_as_long(block: int, device: RealDevice) -> None:
    """The median, which other programs on the machine move little as long as they leave a processor free."""
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        pytest.skip("other programs keep all processors busy, and who gets one decides these times")
    reports = runs(device, random_requests(block, 1000), 1)
    medians = {name: np.array([one.times[READ]["service"].percentile(50) for one in done]) for name, done in reports.items()}
    assert np.median(medians["builtin"] / medians["fio"]) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("depth, block, writes", [(1, MIB, 0.0), (1, 256 * KIB, 0.3), (4, 256 * KIB, 0.0)])
def test_the_whole_takes_as_long(depth: int, block: int, writes: float, device: RealDevice) -> None:
    """What counts is the median over pairs of runs, one after the other: single runs of either engine lie up to 1.7 times apart."""
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        pytest.skip("other programs keep all processors busy, and who gets one decides these times")
    reports = runs(device, random_requests(block, TOTAL // block, writes), depth)
    ratios = [builtin.duration / fio.duration for builtin, fio in zip(reports["builtin"], reports["fio"], strict=True)]
    assert np.median(ratios) == pytest.approx(1, rel=0.15)


def test_deep_queues_of_small_requests_cost_little_more(device: RealDevice) -> None:
    """Where a device serves tens of thousands of requests a second, Python's share of each shows beside fio: it is a few microseconds."""
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        pytest.skip("other programs keep all processors busy, and who gets one decides these times")
    count = TOTAL // (32 * KIB)
    reports = runs(device, random_requests(32 * KIB, count), 16)
    more = [(builtin.duration - fio.duration) / count for builtin, fio in zip(reports["builtin"], reports["fio"], strict=True)]
    assert np.median(more) < 15 * MICROSECONDS

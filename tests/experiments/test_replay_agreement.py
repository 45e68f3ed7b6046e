"""The engine of our own and fio take the same time for the same work on a real file, within 15 %."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from experiments.device_report import DeviceReport
from flashsim.core.request import READ, WRITE
from flashsim.core.units import GIB, KIB, MIB
from flashsim.device.file import RealDevice, aligned_buffer
from traces.replay.base import load_engine
from traces.replay.builtin import fill
from traces.schema import make_batch

SIZE = 256 * MIB
#: Each engine runs so often, in turns; its fastest run counts, as other work on the machine only adds time.
RUNS = 5


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
@pytest.mark.parametrize("depth, block, writes", [(1, 16 * KIB, 0.0), (1, 64 * KIB, 0.3), (8, 64 * KIB, 0.0), (32, 16 * KIB, 0.3)])
def test_both_engines_take_the_same_time_and_move_the_same_bytes(depth: int, block: int, writes: float, tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < 4 * GIB:
        pytest.skip("too little room")
    random = np.random.default_rng(1)
    count = 10_000
    operation = np.where(random.random(count) < writes, WRITE, READ)
    offset = random.integers(0, SIZE // block, count) * block
    batch = make_batch({"operation": operation, "offset": offset, "length": np.full(count, block)})
    times: dict[str, list[int]] = {"builtin": [], "fio": []}
    with RealDevice(tmp_path / "file", SIZE, allow_write=True) as device:
        data = aligned_buffer(MIB)
        fill(data)
        for begin in range(0, SIZE, MIB):
            device.write(np.array([begin]), data, np.array([MIB]))
        device.flush()
        for _ in range(RUNS):
            for name in times:
                report = DeviceReport()
                load_engine(name).replay(iter([batch]), device, "asap", depth, report.add)
                told = report.as_dict({})
                times[name].append(report.duration)
                assert (told["requests"], told["bytes"]) == (count, count * block)
        device.remove_if_made()
    print({name: [round(each / 1e6) for each in every] for name, every in times.items()})
    assert min(times["builtin"]) == pytest.approx(min(times["fio"]), rel=0.15)

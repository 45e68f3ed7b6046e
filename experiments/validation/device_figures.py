"""What the cost formula needs to know of a preset, as the preset shows it when it is measured: seek, latency, and transfer of a page."""

from dataclasses import replace

import numpy as np

from experiments.runs.nominal import disk_of
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import KIB, MIB, MILLISECONDS, SECONDS
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from models.disk import Disk

#: Sizes of a join's I/O blocks; requests of each; and where they go.
_SIZES = (8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, MIB)
_COUNT = 24
#: Writes of a call.
_TOGETHER = 256
_AREA = 64 * MIB


def disk_shown_by(preset: Preset, page_size: int) -> Disk:
    """The figures of a disk as its preset has them; of a flash drive the latency and rate that single requests of several sizes show.

    A flash drive's request of ``size`` bytes is taken to last ``latency + size / rate``; both are fitted to the relative errors, reads and
    writes with one latency and a rate each, which is what the formula has.  What writes take besides that are handed over at once is the
    rest of a call of many.
    """
    if preset.kind == "hdd":
        return disk_of(preset, page_size)
    device = Device(preset)
    area = min(_AREA, device.capacity // MIB * MIB)
    device.load(0, area)
    random = generator(0, "device figures")
    rows, times = [], []
    for operation in (READ, WRITE):
        for size in _SIZES:
            offsets = random.integers(0, area // size, _COUNT) * size
            completions = device.serve(make_requests(operation, offsets, size, serial=True))
            rows.append([1.0, size * (operation == READ), size * (operation == WRITE)])
            times.append(float(np.median(completions["completed"] - completions["submitted"])))
    weights = 1 / np.array(times)
    (latency, read, write), *_ = np.linalg.lstsq(np.array(rows) * weights[:, None], np.ones(len(times)), rcond=None)
    shown = Disk.from_rates(0.0, max(0.0, latency) / MILLISECONDS, page_size, SECONDS / read, SECONDS / write)
    together = device.serve(make_requests(WRITE, np.arange(_TOGETHER) * _SIZES[0], _SIZES[0]))
    lasted = int(together["completed"].max() - together["submitted"].min())
    return replace(shown, together_ms=max(0.0, (lasted - latency) / _TOGETHER - write * _SIZES[0]) / MILLISECONDS)

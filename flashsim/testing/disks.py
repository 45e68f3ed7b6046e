"""Random small drives and workloads, full of events that fall on one nanosecond; shared by the tests of the hard disk."""

from __future__ import annotations

from typing import Any

import numpy as np

from flashsim.core.host_queue import one_command_each
from flashsim.core.model import DeviceModel
from flashsim.core.parameters import build
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, TRIM, WRITE, Completions, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.hdd.parameters import HddParameters

SECTOR = 512


def small_drive(**changes: Any) -> HddParameters:
    """A drive of two zones whose times are round: a sector passes in 100 ns, and crosses the link in 200 ns."""
    values = {
        "capacity": "512KiB", "sector_size": 512, "rotation": 3000, "heads": 2, "zones": [(12, 30), (20, 15)], "seek_single": 400,
        "seek_average": 1200, "seek_full": 2400, "head_switch": 200, "write_settle": 100, "link_rate": 2_560_000_000, "overhead": 100,
        "read_ahead": "16KiB", "write_behind": "16KiB", "queue_depth": 1,
    }  # fmt: skip
    return build(HddParameters, values | changes)


def random_drive(seed: int) -> HddParameters:
    """A drive that differs from `small_drive` in anything that a rule depends on."""
    draw = generator(seed, "drive")
    heads = int(draw.integers(1, 4))
    zones = [(int(draw.integers(2, 20)), int(draw.integers(4, 60))) for _ in range(draw.integers(1, 4))]
    sectors = sum(cylinders * per_track for cylinders, per_track in zones) * heads
    single = int(draw.choice([1, 100, 400, 777]))
    return small_drive(
        capacity=SECTOR * int(sectors - draw.integers(0, 8)),
        rotation=int(draw.choice([3000, 6000, 5999, 11_111])),
        heads=heads,
        zones=zones,
        seek_single=single,
        seek_average=3 * single,
        seek_full=6 * single,
        head_switch=int(draw.choice([0, 200, 333])),
        write_settle=int(draw.choice([0, 100, 1500])),
        link_rate=int(draw.choice([512_000_000, 2_560_000_000, 5_120_000_000, 51_200_000_000])),
        overhead=int(draw.choice([1, 100, 200, 3000])),
        read_ahead=SECTOR * int(draw.choice([0, 1, 8, 40, 200])),
        write_behind=SECTOR * int(draw.choice([0, 1, 8, 40, 200])),
        queue_depth=int(draw.choice([1, 2, 3, 8, 64])),
    )


def random_workload(seed: int, capacity: int, count: int) -> tuple[Requests, np.ndarray[Any, Any]]:
    """Requests of all kinds, sequential, local and random, and their arrival times, ascending.

    Streams of reads and of writes go on from one another's end; others land near by or anywhere.  Arrivals come alone, in bursts of the
    same nanosecond, or after pauses; some requests wait for another, with or without think time.
    """
    draw = generator(seed, "workload")
    requests = make_requests(READ, np.zeros(count, np.int64), SECTOR)
    weights = draw.dirichlet([2, 2, 0.3, 0.1])  # read, write, flush, trim
    sequential, local = draw.uniform(0, 1), draw.uniform(0, 1)
    sectors = capacity // SECTOR
    longest = int(draw.choice([1, 4, 16, 60, min(1024, sectors)]))
    ends = [0, 0]
    for row in requests:
        row["operation"] = operation = (READ, WRITE, FLUSH, TRIM)[draw.choice(4, p=weights)]
        length = int(draw.integers(1, min(longest, sectors) + 1))
        which = int(operation == WRITE)
        if draw.random() < sequential:
            first = ends[which]
        elif draw.random() < local:
            first = ends[int(draw.integers(2))] + int(draw.integers(-20, 20))
        else:
            first = int(draw.integers(sectors))
        first = max(0, min(first, sectors - length))
        ends[which] = first + length if first + length < sectors else 0
        row["offset"], row["length"] = first * SECTOR, length * SECTOR
        row["flags"] = FORCE_UNIT_ACCESS if operation == WRITE and draw.random() < 0.1 else 0
        row["tag"] = draw.integers(1000)
    gap = int(draw.choice([0, 100, 3000, 20_000]))
    arrivals = np.cumsum(np.where(draw.random(count) < 0.5, 0, draw.integers(0, gap // 100 + 1, count) * 100))
    dependent = draw.random(count) < draw.choice([0.0, 0.5, 1.0])
    back = draw.integers(1, 4, count)
    requests["dependency"] = np.where(dependent, np.arange(count) - back, -1).clip(-1)
    requests["think"] = np.where(draw.random(count) < 0.5, 0, draw.integers(0, 50, count) * 100)
    return requests, arrivals


def serve(model: DeviceModel, requests: Requests, at: Any = 0) -> Completions:
    """All completions of requests that are not split, in order of completion."""
    model.submit(requests, one_command_each(requests), at)
    return model.advance(every=True)

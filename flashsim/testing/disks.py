"""Random small drives and workloads, full of events that fall on one nanosecond; shared by the tests of the hard disk."""

from __future__ import annotations

from typing import Any

import numpy as np

from flashsim.core.host_queue import one_command_each
from flashsim.core.model import DeviceModel
from flashsim.core.parameters import build
from flashsim.core.request import COMPLETION, FLUSH, FORCE_UNIT_ACCESS, READ, TRIM, WRITE, Completions, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.device.block_layer import split
from flashsim.device.striped import Striping
from flashsim.device.striped.engine import StripedEngine
from flashsim.device.striped.specification import StripedSpecification
from flashsim.hdd.description import BOUNDS, HEAD_ORDERS, SPARING
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.scheduler.base import FAMILY
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.hdd.state.disk import FIELDS

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


def random_zones(draw: np.random.Generator, heads: int, sparing: str) -> dict[str, Any]:
    """Zones with skews, offsets, empty space, spares, cylinders left out, slips and defects, by one scheme of sparing."""
    spare_most = {"none": 0, "end": 0, "track": 2, "tracks": 2 * heads}.get(sparing, 8)
    zones, slips, defects = [], [], []
    for number in range(int(draw.integers(1, 4))):
        cylinders, slots, spares = int(draw.integers(4, 20)), int(draw.integers(12, 60)), int(draw.integers(0, spare_most + 1))
        skews = draw.choice([0.0, 1.0, 3.0, 2.25, 5.9], 3)
        empty, left_out = int(draw.choice([0, 0, 5, slots])), int(draw.choice([0, 0, 1, 7]))
        zones.append((cylinders, slots, *skews.tolist(), empty, spares, left_out))
        places = cylinders * heads * (1 if sparing == "tracks" else slots)
        bad = draw.choice(places - spares - 1, min(3, spares if sparing != "tracks" else spares // 2), replace=False).tolist()
        if sparing not in ("none", "track"):
            slips += [(number, place) for place in bad[:2]]
        if sparing in ("tracks", "zone") and spares > len(bad) and bad[2:]:
            defects.append((number, bad[2], places - 1))
    return {
        "zones": zones,
        "sparing": sparing,
        "sparing_range": int(draw.integers(1, 4)),
        "slips": slips,
        "defects": defects,
        "capacity": 0,
    }


def deep_drive(seed: int) -> HddParameters:
    """A drive that differs from `small_drive` in anything at all: most seeds switch on about half of what there is."""
    draw = generator(seed, "deep drive")
    heads = int(draw.integers(1, 4))
    single = int(draw.choice([1, 100, 400]))
    values: dict[str, Any] = {
        "rotation": int(draw.choice([3000, 6000, 5999, 11_111])), "heads": heads, "seek_single": single, "seek_average": 3 * single,
        "seek_full": 6 * single, "head_switch": int(draw.choice([0, 200, 333])), "overhead": int(draw.choice([1, 100, 200])),
        "write_settle": int(draw.choice([-150, 0, 100, 1400])), "head_order": str(draw.choice(HEAD_ORDERS)),
        "read_ahead": SECTOR * int(draw.choice([0, 1, 8, 40, 200])), "write_behind": SECTOR * int(draw.choice([0, 1, 8, 40, 200])),
        "queue_depth": int(draw.choice([1, 2, 3, 8])), "scheduler": str(draw.choice(FAMILY.names())),
    }  # fmt: skip
    plain = draw.random() < 0.3
    values |= {"zones": [(20, 30), (20, 15)], "capacity": 0} if plain else random_zones(draw, heads, SPARING[seed % len(SPARING)])
    chosen: dict[str, Any] = {
        "seek_formula": [(10, 0.0001, 0.00005, 0.0002, 0.00001)], "seek_table": [(1, 0.0001), (4, 0.00015), (12, 0.0008)],
        "seek_first": [(0.00012,), (0.0001,), (0.0003,)], "bus_read": 70, "bus_write": 330, "bulk_transfer": 120, "write_move": 900,
        "hold_reads": False, "read_start": float(draw.choice([0.3, 0.75, 1.0])), "read_start_least": int(draw.integers(1, 20)),
        "write_start": float(draw.choice([0.0, 0.3, 0.75])), "write_start_most": int(draw.integers(1, 20)),
        "read_ahead_least": min(values["read_ahead"], SECTOR * int(draw.integers(1, 30))), "read_ahead_bound": str(draw.choice(BOUNDS)),
        "read_ahead_on_hit": False, "read_ahead_again": True, "segments": int(draw.integers(2, 5)),
        "segment_size": SECTOR * int(draw.integers(4, 80)), "keep_read": True, "next_hits": False, "partial_hits": True,
        "hits_while_writing": False, "read_preceding": True, "own_write_segment": False, "read_written": True, "extra_disconnect": True,
    }  # fmt: skip
    share = draw.choice([0.1, 0.5, 0.9])
    values |= {name: value for name, value in chosen.items() if draw.random() < share}
    works = [name for name in FIELDS if name.startswith(("read_hit", "read_miss", "write_hit", "write_miss", "extra_"))]
    works += [name for name in FIELDS if name.startswith(("data_", "reselect_", "disconnect_", "complete_"))]
    works.remove("extra_disconnect")
    values |= {name: int(draw.choice([0, 100, 130, 700])) for name in works if draw.random() < share}
    if draw.random() < 0.4:
        values["command_size"] = SECTOR * int(draw.choice([1, 8, 40]))
    return small_drive(**values)


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


def array_of(kind: type[HddEngine] | type[HddSpecification], drive: HddParameters, striping: Striping) -> DeviceModel:
    """Fresh drives of one kind, striped."""
    array = StripedEngine if kind is HddEngine else StripedSpecification
    drives: list[Any] = [kind(drive) for _ in range(striping.drives)]
    return array(drives, drive, striping)


def serve(model: DeviceModel, requests: Requests, at: Any = 0) -> Completions:
    """All completions of requests that are not split, in order of completion."""
    model.submit(requests, one_command_each(requests), at)
    return model.advance(every=True)


def serve_in_pieces(model: DeviceModel, requests: Requests, arrivals: np.ndarray[Any, Any], maximum: int, seed: int) -> Completions:
    """The same completions as in one go, though submitted in parts and advanced in steps of random length.

    A part ends before a request that waits for nothing, and is submitted before its first arrival.
    """
    draw = generator(seed, "pieces")
    cuts = [row for row in range(1, len(requests)) if _separable(requests, arrivals, row) and draw.random() < 0.3]
    found = []
    for first, end in zip([0, *cuts], [*cuts, len(requests)], strict=True):
        part = requests[first:end].copy()
        part["dependency"] = np.where(part["dependency"] >= 0, part["dependency"] - first, -1)
        while first and model.now < arrivals[first] - 1:
            found.append(model.advance(min(int(arrivals[first]) - 1, model.now + int(draw.integers(0, 4000)))))
        model.submit(part, split(part, maximum), arrivals[first:end])
    while model.outstanding:
        found.append(model.advance(model.now + int(draw.integers(0, 20_000)), every=bool(draw.random() < 0.5)))
    return np.concatenate(found) if found else np.empty(0, COMPLETION)


def _separable(requests: Requests, arrivals: np.ndarray[Any, Any], row: int) -> bool:
    later = requests["dependency"][row:]
    return bool(arrivals[row] > arrivals[row - 1] and ((later < 0) | (later >= row)).all())

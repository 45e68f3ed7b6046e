"""Random disks with all that a disk may have, arrays of them, and a model advanced step by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from flashsim.core.model import DeviceModel
from flashsim.core.request import COMPLETION, Completions, Requests
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
from flashsim.testing.disks import SECTOR, small_drive


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


def array_of(kind: type[HddEngine] | type[HddSpecification], drive: HddParameters, striping: Striping) -> DeviceModel:
    """Fresh drives of one kind, striped."""
    array = StripedEngine if kind is HddEngine else StripedSpecification
    drives: list[Any] = [kind(drive) for _ in range(striping.drives)]
    return array(drives, drive, striping)


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

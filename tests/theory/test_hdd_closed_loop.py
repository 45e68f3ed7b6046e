"""A closed loop of random reads takes the mean seek, half a revolution, the controller's work, and the data's own way, on every disk."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flashsim.core.request import READ, REQUEST
from flashsim.core.units import SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.seek import random_distances, seek_curve

DISKS = [name for name in presets.names() if presets.load(name).kind == "hdd"]
COUNT = 20_000
#: Of a mean over so many requests, whose times spread by a third of it: three standard errors.
TOLERANCE = 3 / 3 / math.sqrt(COUNT)


def measured(name: str, size: int) -> float:
    """The mean time, ns, of reads of `size` bytes at random multiples of it, each sent when the one before is done."""
    device = Device(presets.load(name))
    requests = np.zeros(COUNT, REQUEST)
    requests["operation"], requests["length"] = READ, size
    requests["offset"] = np.random.default_rng(1994).integers(0, device.capacity // size, COUNT) * size
    requests["dependency"] = np.arange(-1, COUNT - 1)
    done = device.serve(requests, 0)
    return float((done["completed"] - done["submitted"]).mean())


def first_sight(disk: HddParameters) -> float:
    """The mean seek between random sectors, half a revolution and the controller's work, ns."""
    sectors_a_cylinder = np.concatenate([np.full(int(zone[0]), float(zone[1])) for zone in disk.zones])
    return float(random_distances(sectors_a_cylinder) @ seek_curve(disk)) + disk.rotation / 2 + disk.overhead


def transfer(disk: HddParameters, size: int) -> float:
    """How long data take from the moment that their first sector comes by until their last has crossed the link, ns, on average.

    A sector crosses when it has passed the head and the one before has crossed; between two tracks the skew passes.
    """
    count, crossing = size // disk.sector_size, max(disk.sector_size * SECONDS / disk.link_rate, disk.bus_read, disk.bulk_transfer)
    total, starts = 0.0, 0
    for zone in disk.zones:
        cylinders, sectors = int(zone[0]), int(zone[1])
        passing = disk.rotation / sectors
        skew = zone[2] * passing if len(zone) > 2 else disk.head_switch
        period = np.arange(0, sectors * count, count) % sectors  # where reads begin on a track
        place = np.arange(count)
        passed = (place + 1) * passing + skew * (period[:, None] + place >= sectors)
        weight = cylinders * sectors / len(period)
        total += weight * np.max(passed + (count - place) * crossing, axis=1).sum()
        starts += cylinders * sectors
    return total / starts


@pytest.mark.parametrize("size", [512, 4096])
@pytest.mark.parametrize("name", DISKS)
def test_random_reads_take_what_the_parts_of_the_drive_add_up_to(name: str, size: int) -> None:
    disk = presets.load(name).disk
    assert disk is not None
    assert measured(name, size) == pytest.approx(first_sight(disk) + transfer(disk, size), rel=TOLERANCE)


def test_only_the_data_s_own_way_takes_the_oldest_disks_beyond_first_sight() -> None:
    """The figures of docs/explanation/hdd_validation.md: 4 KiB are a seventh of the C2200A's track, and its bus is slower still."""
    excess = {}
    for name in DISKS:
        disk = presets.load(name).disk
        assert disk is not None
        excess[name] = transfer(disk, 4096) / first_sight(disk)
    assert excess.pop("hp-c2200a") == pytest.approx(0.16, abs=0.005)
    assert excess.pop("hp-97560") == pytest.approx(0.076, abs=0.005)
    assert max(excess.values()) < 0.02

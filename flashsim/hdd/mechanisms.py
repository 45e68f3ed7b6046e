"""Mechanisms of a hard disk, and the changes that make each ideal."""

import numpy as np

from flashsim.core.mechanisms import DeviceMechanism
from flashsim.core.units import MILLISECONDS
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.seek import mean_seek, seek_curve


def mechanisms_of(disk: HddParameters) -> list[DeviceMechanism]:
    """The mechanisms that a disk has."""
    mean = disk.seek_average or mean_seek(seek_curve(disk), np.ones(disk.cylinders))
    at_mean = {"seek_table": ((1, mean / MILLISECONDS),), "seek_formula": (), "seek_first": ()}
    every = [
        (True, DeviceMechanism("seeks", "lengths of seeks", "seeks are not as long as the mean seek", at_mean)),
        (
            disk.read_ahead > 0,
            DeviceMechanism("read_ahead", "read-ahead", "the disk reads beyond requests", {"read_ahead": 0, "read_ahead_least": 0}),
        ),
        (disk.write_behind > 0, DeviceMechanism("write_behind", "write-behind", "the disk acknowledges writes early", {"write_behind": 0})),
    ]
    return [mechanism for has, mechanism in every if has]

"""Real drives, as DiskSim's validation files describe and measured them: how far the model's response times lie from theirs.

Distances are root mean squares between sorted response times (Ruemmler and Wilkes's demerit figure), in ms.  DiskSim's own are 0.090,
0.306 and 0.349.  Nothing is fitted: all parameters are as the files give them.  Only the rotation of the C2247A can be followed request by
request.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from flashsim.apps.calibration.validation import closed_loop
from flashsim.device import presets
from flashsim.hdd.diskspecs import drive

#: Sectors that a drive has, and the largest distance of all requests, of reads, of writes, and of the means (a share).
DRIVES = {
    "hp_c2247a": (2_054_864, 0.11, 0.2, 0.2, 0.01),
    "hp_c3323a": (2_056_008, 0.306, 0.4, 0.4, 0.01),
    "barracuda": (4_217_670, 0.349, 0.6, 0.7, 0.04),
}


def groups_of(name: str, folder: Path) -> pd.DataFrame:
    """The comparison of a drive's trace, by group."""
    imported = drive.read(folder / f"{name}.parv")
    preset = presets.from_document(imported.document(name), folder / f"{name}.toml")
    return closed_loop.compare(closed_loop.run(preset, folder / f"{name}.trace"))


@pytest.mark.parametrize("name", DRIVES)
def test_response_times_are_those_measured(name: str, test_data: Path) -> None:
    _, most, reads, writes, mean = DRIVES[name]
    groups = groups_of(name, test_data / "disksim")
    assert groups.loc["all", "demerit"] <= most
    assert groups.loc["reads", "demerit"] <= reads
    assert groups.loc["writes", "demerit"] <= writes
    assert abs(groups.loc["all", "mean_error"]) <= mean


def test_the_platter_is_followed_request_by_request(test_data: Path) -> None:
    """A random phase would leave a median error of some milliseconds."""
    assert groups_of("hp_c2247a", test_data / "disksim").loc["all", "median_error"] <= 0.1


@pytest.mark.parametrize("name", DRIVES)
def test_layouts_hold_as_many_sectors_as_the_drives(name: str, test_data: Path) -> None:
    """The C2247A's capacity is that of its data sheet; the others' files total more than they declare."""
    values = drive.read(test_data / "disksim" / f"{name}.parv").values
    assert values["capacity"] == f"{512 * DRIVES[name][0]}B"

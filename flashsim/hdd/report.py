"""What both models of a drive tell about themselves: counters, and what a power cut took."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flashsim.core.model import PowerCut
from flashsim.core.request import Integers
from flashsim.hdd.state import disk

#: Names of a drive's counters.
COUNTERS = disk.COUNTERS.names or ()

#: A received write: its request, that one's tag, its address and length.
Unsettled = tuple[int, int, int, int]


@dataclass(frozen=True)
class HddPowerCut(PowerCut):
    """What a power cut left behind.

    A command never tears: one that is not wholly on the media is lost wholly.

    Attributes
    ----------
    vanished
        Ids of requests that had been acknowledged and of which a command was still only in the write-behind segment, ascending.
    extents
        Bytes (offset, length) of those commands, in the order written, shape (n, 2); of an array ascending, joined where they touch.
    tags
        Of the requests whose these commands are, shape (n,); of an array nothing.
    """

    vanished: Integers
    extents: Integers
    tags: Integers = field(default_factory=lambda: np.zeros(0, np.int64))


def power_cut(at: int, lost: Iterable[int], unsettled: Iterable[Unsettled]) -> HddPowerCut:
    """A `HddPowerCut`; `unsettled` are received writes that are not wholly on the media."""
    unfinished = set(lost)
    gone = [entry for entry in unsettled if entry[0] not in unfinished]
    return HddPowerCut(
        int(at),
        np.array(sorted(unfinished), np.int64),
        np.array(sorted({entry[0] for entry in gone}), np.int64),
        np.array([entry[2:] for entry in gone], np.int64).reshape(-1, 2),
        np.array([entry[1] for entry in gone], np.int64),
    )


def statistics(counters: Mapping[str, int]) -> dict[str, Any]:
    seeks, waits = counters["seeks"], counters["waits"]
    return {
        **counters,
        "mean_seek": counters["seek_time"] / seeks if seeks else 0.0,
        "mean_seek_cylinders": counters["seek_cylinders"] / seeks if seeks else 0.0,
        "mean_wait": counters["wait_time"] / waits if waits else 0.0,
    }

"""What both models of a drive tell about themselves: counters, and what a power cut took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flashsim.core.model import PowerCut
from flashsim.core.request import Integers
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.striping import merge

#: Counters of a drive, in the order of the columns in `hdd.terms`; times in ns, distances in cylinders.  Seeks are those to the start
#: of a stream (a read miss, a destage), settling included; the waits are for the first sector of such a stream.
COUNTERS = (
    "reads", "writes", "flushes", "read_bytes", "written_bytes", "read_hits", "seeks", "seek_time", "seek_cylinders",
    "waits", "wait_time", "link_time", "destages",
)  # fmt: skip


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
    """

    vanished: Integers
    extents: Integers


def power_cut(at: int, lost: Iterable[int], unsettled: Iterable[tuple[int, int, int]], parameters: HddParameters) -> HddPowerCut:
    """A `HddPowerCut`; `unsettled` are (request, address, length) of received writes that are not wholly on the media."""
    unfinished = set(lost)
    gone = [entry for entry in unsettled if entry[0] not in unfinished]
    extents = np.array([entry[1:] for entry in gone], np.int64).reshape(-1, 2)
    return HddPowerCut(
        int(at),
        np.array(sorted(unfinished), np.int64),
        np.array(sorted({request for request, _, _ in gone}), np.int64),
        merge(extents, parameters) if parameters.drives > 1 else extents,
    )


def statistics(counters: Mapping[str, int]) -> dict[str, Any]:
    """The counters and the means that reports need."""
    seeks, waits = counters["seeks"], counters["waits"]
    return {
        **counters,
        "mean_seek": counters["seek_time"] / seeks if seeks else 0.0,
        "mean_seek_cylinders": counters["seek_cylinders"] / seeks if seeks else 0.0,
        "mean_wait": counters["wait_time"] / waits if waits else 0.0,
    }

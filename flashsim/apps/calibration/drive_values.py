"""Values of a flash drive that figures tell, and the drive that has such values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flashsim.core.units import GB, MB, SECONDS
from flashsim.ssd.parameters import SsdParameters

#: Parameters that are fitted: the parameter of a preset that rests on each, bounds, and figures that tell it.
PARAMETERS = {
    "read overhead": ("read_latency", 50.0, 1e9, "random reads of 4 KiB at the largest queue depth"),
    "read die time": ("read", 500.0, 1e9, "random reads of 4 KiB at depth 1 and at several depths"),
    "read submission": ("read_submission", 50.0, 1e9, "random reads of 4 KiB at depth 1, beside those at the largest queue depth"),
    "read spread": ("read_pages", 0.1, 5.0, "percentiles of random reads of 4 KiB at depth 1"),
    "link read rate": ("link_read_rate", 0.1 * MB, 200.0 * GB, "reads in order of 128 KiB or more"),
    "channel rate": ("channel_rate", 1.0 * MB, 20.0 * GB, "random reads of 64 KiB or more at depth 1"),
    "write overhead": ("write_latency", 50.0, 1e9, "random writes of 4 KiB with free blocks at the largest queue depth"),
    "write submission": ("write_submission", 50.0, 1e9, "random writes of 4 KiB at depth 1, beside those at the largest queue depth"),
    "write die time": ("program", 500.0, 1e9, "the rate of random writes in the steady state"),
    "cache write time": ("slc_program", 500.0, 1e9, "the rate of writes into the empty SLC cache"),
    "link write rate": ("link_write_rate", 0.1 * MB, 200.0 * GB, "writes in order with free blocks"),
    "erase": ("erase", 10_000.0, 1e9, "the 99th percentile of steady writes"),
    "spare share": ("blocks_per_plane", 0.02, 5.0, "write amplification, or steady rates at several shares of the capacity in use"),
    "block pages": ("pages_per_block", 8.0, 8192.0, "the 99th percentile of steady writes at several rates"),
}
#: Values by `PARAMETERS`: ns, bytes a second, shares and numbers.
Values = Mapping[str, float]


@dataclass(frozen=True)
class DriveStructure:
    """Counts of a drive: channels, dies of a package, and bytes of the write buffer."""

    channels: int
    dies: int
    buffer: int


def drive_with(base: SsdParameters, structure: DriveStructure, values: Values, *, exact: bool = False) -> SsdParameters:
    """A drive like another one with these values.

    Its spare flash is as told by a smaller or larger capacity; with `exact`, by blocks and their pages, and the capacity stays.
    """
    rates: dict[str, Any] = {
        name.replace(" ", "_"): max(1, round(values[name])) for name in ("link read rate", "link write rate", "channel rate")
    }
    transfer = base.unit_size * SECONDS // rates["channel_rate"] + 1
    read, program = (max(1, round(values[f"{kind} die time"]) - transfer) for kind in ("read", "write"))
    times: dict[str, Any] = {"read": read, "program": program, "erase": round(values["erase"])}
    spread = {"read": values["read spread"], "program": 1.0}
    times |= {
        f"{kind}_pages": tuple(
            max(1, round(times[kind] * (each / getattr(base, kind)) ** power)) for each in getattr(base, f"{kind}_pages")
        )
        for kind, power in spread.items()
    }
    times |= {f"{kind}_submission": round(values[f"{kind} submission"]) for kind in ("read", "write")}
    times |= {"slc_program": max(1, round(values["cache write time"]) - transfer)} if base.slc_cache else {}
    times["read_latency"] = read + transfer + max(1, round(values["read overhead"]))
    times["write_latency"] = program + transfer + max(1, round(values["write overhead"]))
    pools = structure.channels * base.packages_per_channel * structure.dies * base.planes_per_die
    line, reserve, capacity = base.group // base.units, base.gc_reserve + base.spare_blocks + base.own_slc_blocks, base.capacity
    needed = base.logical_pages * (1 + values["spare share"])
    pages = max(2, line, round(values["block pages"] / line) * line)
    if exact:
        choices = np.arange(max(line, int(0.8 * pages) // line * line), int(1.25 * pages) + 1, line)
        units = pools * base.units * choices
        misses = np.abs(np.maximum(2, np.round(needed / units)) * units / needed - 1)
        near = np.abs(np.log(choices / pages)) / 50  # of choices that are about as good, one with blocks as they were
        pages = int(choices[np.argmin(misses + near)])
    blocks = max(2, round(needed / (pools * pages * base.units)))
    if not exact:
        capacity = int(pools * blocks * pages * base.units / (1 + values["spare share"])) * base.unit_size
    return replace(
        base, **rates, **times, channels=structure.channels, dies_per_package=structure.dies, write_buffer=structure.buffer,
        power_protected=base.power_protected and structure.buffer > 0, pages_per_block=pages, blocks_per_plane=blocks + reserve,
        capacity=capacity,
    )  # fmt: skip


def parameters_of(flash: SsdParameters) -> list[str]:
    """Parameters that can be fitted: a drive without an SLC cache, submission times or pages with times of their own has none for these."""
    return [name for name, (field, *_) in PARAMETERS.items() if getattr(flash, "slc_cache" if field == "slc_program" else field)]


def values_of(flash: SsdParameters) -> dict[str, float]:
    """Values of a drive that `drive_with` changes."""
    transfer = flash.unit_size * SECONDS // flash.channel_rate + 1
    return {
        "read overhead": flash.read_latency - flash.read - transfer, "read die time": flash.read + transfer,
        "link read rate": flash.link_read_rate, "channel rate": flash.channel_rate,
        "read submission": flash.read_submission, "write submission": flash.write_submission, "read spread": 1.0,
        "write overhead": flash.write_latency - flash.program - transfer, "write die time": flash.program + transfer,
        "cache write time": (flash.slc_program or flash.program) + transfer, "link write rate": flash.link_write_rate,
        "erase": flash.erase, "spare share": flash.effective_overprovisioning,
        "block pages": flash.pages_per_block,
    }  # fmt: skip

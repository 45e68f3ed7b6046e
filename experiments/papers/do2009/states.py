"""The states of the drives that a run is repeated on, in the place of the paper's three runs; the paper does not tell its drives' history.

Of both drives: where on it the volume begins.  Of the flash drive also: it is full, and random pages were written again since.
"""

from __future__ import annotations

from collections.abc import Mapping

from experiments.runs.joining import DriveInUse
from flashsim.core.rng import generator

#: The volume begins within the first so many blocks of 4 KiB: 64 MiB hold any alignment to the flash drive's superblocks.
_STARTS = 16_384
#: Random pages written before a run: some tens of log blocks are in use, or none.
_OVERWRITES = 256


def states(devices: Mapping[str, str], count: int, seed: int) -> dict[str, list[DriveInUse]]:
    """So many states of each machine's drive, drawn under a seed."""
    found: dict[str, list[DriveInUse]] = {machine: [] for machine in devices}
    for number in range(count):
        draw = generator(seed, "state", number)
        start, overwrites = int(draw.integers(_STARTS)) * 4096, int(draw.integers(_OVERWRITES))
        for machine, preset in devices.items():
            found[machine].append(DriveInUse(preset, {}, True, start, overwrites if machine == "SSD" else 0, seed + number))
    return found

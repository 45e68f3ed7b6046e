"""The prices of the CPU preset ``hexacore-2016``, solved from the rows of table 1 that may calibrate, and from nothing else.

``python -m flashsim.apps.papers.shin2016.cpu_fit`` prints the preset's file.  No device is simulated.  Total less read and
write seconds of the rows of 5 and 200 MB, the mean of three drives, are four numbers: of N-Hash and of the original method.  They give
three prices, by least squares: of a tuple, of a request to the drive, and of a call, which hands over all requests of a psync together.
"""

from collections.abc import Mapping
from statistics import fmean

import numpy as np

from flashsim.apps.papers.shin2016.runs import CPU, DEVICES, N_HASH, TRADITIONAL, TUPLES
from flashsim.apps.papers.shin2016.table1 import CALIBRATION, published
from flashsim.core.units import SECONDS
from flashsim.execution.cpu import DEFAULT, CpuModel
from flashsim.execution.requests import HOST, Work

#: Commands to the drive, of at most 128 KiB, and calls of the runs that calibrate, counted by these runs.
COUNTED: Mapping[tuple[str, int], tuple[int, int]] = {
    (N_HASH, 5): (559_806, 4108),
    (TRADITIONAL, 5): (286_034, 271_006),
    (N_HASH, 200): (33_658, 174),
    (TRADITIONAL, 200): (33_522, 330),
}
#: Work on every tuple, which is read from a page, hashed and copied.  The sum of the prices is known, and is divided equally.
_EVERY_TUPLE = (Work.READ_TUPLE, Work.HASH, Work.WRITE_TUPLE)
#: "In a hexacore 3.2GHz Linux machine" (section 2.4).
_CORES = 6


def host_seconds(method: str, memory: int) -> float:
    """Published total less read and write seconds, the mean of the drives."""
    total, read, write = ([published(drive, method, what)[memory] for drive in DEVICES] for what in ("total", "read", "write"))
    return fmean(all - reads - writes for all, reads, writes in zip(total, read, write, strict=True))


def fitted() -> tuple[CpuModel, list[str]]:
    """The preset, its prices rounded, and what is said above them."""
    counts = np.array([[TUPLES, *COUNTED[cell]] for cell in COUNTED], np.float64)
    seconds = np.array([host_seconds(*cell) for cell in COUNTED])
    prices = np.linalg.lstsq(counts, seconds * SECONDS, rcond=None)[0]
    per_tuple, per_request, per_call = (float(f"{price:.3g}") for price in prices)
    third = float(f"{per_tuple / len(_EVERY_TUPLE):.3g}")
    source = f"fitted: shin2016, table 1, rows of {' and '.join(map(str, CALIBRATION))} MB"
    sources = {f"user.{kind}": f"{source}: a third of {per_tuple:g} ns a tuple" for kind in _EVERY_TUPLE}
    sources |= {f"user.{kind}": "estimate: as much; the paper's program does none" for kind in Work if kind not in _EVERY_TUPLE}
    sources |= {f"user.{Work.PAGE}": "in the price of a call", f"user.{DEFAULT}": "estimate: as much"}
    sources |= {f"kernel.{kind}.{part}": source for kind in ("hdd", "ssd") for part in ("per_request", "per_byte", "per_call")}
    kernel = [dict.fromkeys(("hdd", "ssd"), price) for price in (per_request, 0.0, per_call)]
    user: dict[str, float] = dict.fromkeys([*Work, DEFAULT], third) | {Work.PAGE: 0.0}
    model = CpuModel(CPU, user, kernel[0], kernel[1], sources, cores={HOST: _CORES}, per_call=kernel[2])
    cells = zip(COUNTED, seconds, counts @ prices / SECONDS, strict=True)
    return model, [*_COMMENTS, *(f"  {method} {memory} MB: {value:.3f}, {ours:.3f}" for (method, memory), value, ours in cells)]


_COMMENTS = (
    "The machine of Shin et al. (SAC 2016): six cores of 3.2 GHz under Linux; their program is a single thread.",
    "",
    "Printed by python -m flashsim.apps.papers.shin2016.cpu_fit, whose beginning says how every price was fitted, and to",
    "which cells.",
    "Whatever rests on these prices is fitted. Seconds beside those of reads and writes, published and as fitted:",
)

if __name__ == "__main__":
    model, comments = fitted()
    print(model.as_toml(comments), end="")

"""The cells of a calibration: which requests are sent, how large, how many at once and in which order."""

from dataclasses import dataclass

import numpy as np

from flashsim.core.errors import CapacityError
from flashsim.core.request import OPERATIONS, READ, SECTOR, WRITE, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import KIB, MIB, format_size

#: The least area that a device can be measured in: some hundred requests of the largest size.
LEAST_AREA = 64 * MIB
#: Requests of one at a time are sent in chains of so many at most, and of so many bytes; each is a sample of its own.
_CHAIN, _CHAIN_BYTES = 8, MIB


@dataclass(frozen=True)
class CalibrationCell:
    """One kind of work.

    Parameters
    ----------
    operation
        READ or WRITE.
    sizes
        Bytes of a request; of several sizes a batch has each as often, in random order.
    depth
        Requests that are submitted at once and then waited for, all of them (a batch); 1: each waits for the one before it.
    sequential
        Whether requests follow one another in the address space, or lie at random places.
    held_out
        Whether the fit must not see it: it judges the prediction.
    """

    operation: int
    sizes: tuple[int, ...]
    depth: int = 1
    sequential: bool = False
    held_out: bool = False

    @property
    def name(self) -> str:
        """For people, such as ``random read 4 KiB x 16``."""
        sizes = " + ".join(format_size(size) for size in self.sizes)
        return f"{'sequential' if self.sequential else 'random'} {OPERATIONS[self.operation]} {sizes} x {self.depth}"

    @property
    def batch_bytes(self) -> float:
        return float(np.mean(self.sizes)) * self.depth

    @property
    def chain(self) -> int:
        if self.depth > 1:
            return 1
        return _CHAIN if len(self.sizes) > 1 else max(1, min(_CHAIN, _CHAIN_BYTES // self.sizes[0]))

    def requests(self, area: int, seed: int, *visit: int) -> Requests:
        """One call's requests within the first `area` bytes: a batch, or a chain of `chain` requests each waiting for the one before."""
        random = generator(seed, "calibration", self.name, *visit)
        count = self.depth * self.chain
        lengths = random.permutation(np.resize(np.array(self.sizes, np.int64), count))
        if self.sequential:
            first = int(random.integers(0, (area - int(lengths.sum())) // max(self.sizes) + 1)) * max(self.sizes)
            offsets = first + np.cumsum(lengths) - lengths
        else:
            offsets = random.integers(0, area // lengths) * lengths
        return make_requests(self.operation, offsets, lengths, serial=self.depth == 1)


#: Sizes and depths that the fit sees: (size, depths).  The product is at most 8 MiB, so that a batch takes no seconds.
_FITTED = (
    (4 * KIB, (1, 4, 16, 64)),
    (16 * KIB, (1, 8, 64)),
    (64 * KIB, (1, 4, 16)),
    (256 * KIB, (1, 8)),
    (MIB, (1, 8)),
    (4 * MIB, (1,)),
)
#: One at a time: several at once would be merged by the operating system, which is not the device's doing.
_SEQUENTIAL = (4 * KIB, 64 * KIB, MIB)
#: A page, and blocks as a join's.
_MIX = (8 * KIB, 32 * KIB, 64 * KIB, 256 * KIB)
#: What the prediction is judged by: other sizes, other depths, and the mix.
_HELD_OUT = (
    ((8 * KIB,), (1, 8)),
    ((32 * KIB,), (1, 32)),
    ((128 * KIB,), (1, 4)),
    ((512 * KIB,), (2,)),
    (_MIX, (1, 8)),
)


def cells(least: int, write: bool) -> list[CalibrationCell]:
    """All cells of a device whose requests are multiples of `least` bytes."""
    found = []
    for operation in (READ, WRITE) if write else (READ,):
        if least < 4 * KIB and operation == READ:  # such writes are a matter of the flash page's size, which is assumed
            found.append(CalibrationCell(operation, (least,)))
        found += [CalibrationCell(operation, (size,), depth) for size, depths in _FITTED for depth in depths]
        found += [CalibrationCell(operation, (size,), sequential=True) for size in _SEQUENTIAL]
        found += [CalibrationCell(operation, sizes, depth, held_out=True) for sizes, depths in _HELD_OUT for depth in depths]
    return found


def check_area(size: int, name: str) -> int:
    """The bytes that are measured, whole multiples of the largest request."""
    largest = max(size for size, _ in _FITTED)
    if size < LEAST_AREA:
        raise CapacityError(f"size: {format_size(size // SECTOR * SECTOR)} of {name}, but a calibration needs {format_size(LEAST_AREA)}")
    return size // largest * largest

"""Footprint of a trace on a device, in all and over time: as disjoint ranges, or in constant memory, exact at first and then estimated.

`Touched` keeps a bit a sector in areas of 16 MiB, made as they are touched.  Where they would take more than 128 MiB (half a tebibyte
of touched areas) it gives up the bitmap for a sketch that was kept from the begin: HyperLogLog, which remembers of many hashed pages of
4 KiB only the rarest pattern in each of m registers.  Its standard error is 1.04 / sqrt(m) (Flajolet, Fusy, Gandouet, Meunier:
HyperLogLog, 2007); the estimator is that of Ertl, New cardinality estimation algorithms for HyperLogLog sketches, 2017, algorithm 6,
which needs no corrections for small counts.  Sketches of parts merge into that of the whole: the larger of each two registers.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import SECTOR, Integers
from flashsim.core.units import KIB, MIB, MILLISECONDS

Registers = npt.NDArray[np.uint8]

_WINDOWS = 128
_PLACES = 128
_WINDOW_SKETCH = 1 << 12
#: The shortest windows: of 2**20 ns, or of one request; the smallest places: of 1 MiB.
_SHORTEST = {"ns": MILLISECONDS.bit_length(), "requests": 0}
_SMALLEST = 20

#: Unit that a sketch counts.
PAGE = 4 * KIB
_PAGE_SHIFT = 12

_AREA_SHIFT = 24
_AREA_BYTES = (1 << _AREA_SHIFT) // SECTOR // 8
_MOST_AREAS = 128 * MIB // _AREA_BYTES
_BITS_OF_BYTE = np.array([bin(byte).count("1") for byte in range(256)], np.int64)
#: Bits of the second half of a page's hash, of which the first 1 is looked for.
_HASH_BITS = 32
_LOW = 0xFFFFFFFF


class Footprint:
    """The union of byte ranges seen, as disjoint sorted ranges."""

    def __init__(self) -> None:
        self.ranges = np.zeros((0, 2), np.int64)

    def add(self, offset: Integers, length: Integers) -> None:
        ranges = np.concatenate([self.ranges, np.stack([offset, offset + length], axis=1)])
        ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
        if len(ranges):
            reach = np.maximum.accumulate(ranges[:, 1])
            begins = np.flatnonzero(np.concatenate([[True], ranges[1:, 0] > reach[:-1]]))
            self.ranges = np.stack([ranges[begins, 0], reach[np.append(begins[1:], len(ranges)) - 1]], axis=1)

    @property
    def size(self) -> int:
        return int((self.ranges[:, 1] - self.ranges[:, 0]).sum())


class Touched:
    """The distinct bytes of all devices that were touched, in whole sectors.

    Examples
    --------
    >>> touched = Touched()
    >>> touched.add(np.array([0, 0]), np.array([0, 4096]), np.array([8192, 8192]))
    >>> touched.size, touched.exact
    (12288, True)
    """

    _SKETCH = 1 << 16

    def __init__(self, most_areas: int = _MOST_AREAS) -> None:
        self._areas = np.full((4 * most_areas, 2), -1)  # an open hash table: area, row of the bitmap
        self._bitmap = np.zeros((most_areas, _AREA_BYTES), np.uint8)  # memory that the system gives as rows are written
        self._used = self._bits = 0
        self.exact = True
        self.registers = np.zeros((1, self._SKETCH), np.uint8)

    def add(self, device: Integers, offset: Integers, length: Integers) -> None:
        sketch(np.zeros(len(offset), np.int64), device, offset, length, self.registers)
        if self.exact:
            self.exact, self._used, new = _mark(device, offset, length, self._areas, self._bitmap, self._used, _BITS_OF_BYTE)
            self._bits += new
            if not self.exact:
                self._bitmap = self._bitmap[:0].copy()

    @property
    def size(self) -> int:
        """Bytes that were touched; in pages of 4 KiB where they are estimated."""
        return self._bits * SECTOR if self.exact else round(estimate(self.registers[0]) * PAGE)

    @property
    def error(self) -> float:
        """The relative standard error of `size`."""
        return 0.0 if self.exact else standard_error(self._SKETCH)


@lean_kernel
def _mark(
    device: Integers, offset: Integers, length: Integers, areas: Integers, bitmap: Registers, used: int, bits_of_byte: Integers
) -> tuple[bool, int, int]:
    """Mark the sectors of requests; return whether there were rows for all of them, the rows in use, and the sectors newly marked."""
    new = 0
    for row in range(offset.shape[0]):
        if length[row] <= 0:
            continue
        sector, end = offset[row] // SECTOR, -(-(offset[row] + length[row]) // SECTOR)
        while sector < end:
            area = device[row] << 40 | sector >> (_AREA_SHIFT - 9)
            place = ((area & 0xFFFFF) * 0x27D4EB2F ^ (area >> 20) * 0x9E3779) % areas.shape[0]
            while areas[place, 0] >= 0 and areas[place, 0] != area:
                place = (place + 1) % areas.shape[0]
            if areas[place, 0] < 0:
                if used == bitmap.shape[0]:
                    return False, used, new
                areas[place, 0], areas[place, 1] = area, used
                used += 1
            within = sector & (_AREA_BYTES * 8 - 1)
            stop = min(_AREA_BYTES * 8, within + end - sector)
            sector += stop - within
            marked = bitmap[areas[place, 1]]
            while within < stop:
                byte, bit = within >> 3, within & 7
                count = min(8 - bit, stop - within)
                before = int(marked[byte])
                after = before | ((1 << count) - 1) << bit
                marked[byte] = after
                new += bits_of_byte[after ^ before]
                within += count
    return True, used, new


def standard_error(size: int) -> float:
    """The relative standard error of the estimate from `size` registers."""
    return 1.04 / math.sqrt(size)


@inlined_kernel
def _mix(value: int) -> int:
    """32 bits of which each depends on all given."""
    value = ((value ^ value >> 16) * 0x45D9F3B) & _LOW
    value = ((value ^ value >> 16) * 0x45D9F3B) & _LOW
    return value ^ value >> 16


@lean_kernel
def sketch(which: Integers, device: Integers, offset: Integers, length: Integers, sketches: Registers) -> None:
    """Take the pages of 4 KiB that byte ranges touch into the sketches whose numbers are `which`, shape (n,) each.

    `sketches` have shape (sketches, registers), a power of two of registers; empty ones are zero.
    """
    for row in range(offset.shape[0]):
        if length[row] <= 0:
            continue
        registers = sketches[which[row]]
        end = (offset[row] + length[row] + PAGE - 1) >> _PAGE_SHIFT
        for page in range(offset[row] >> _PAGE_SHIFT, end):
            high = _mix((page >> 32) + (device[row] << 16) + 1)
            place = _mix((page & _LOW) ^ high) & (registers.shape[0] - 1)
            rest = _mix(_mix((page & _LOW) ^ 0x9E3779B9) ^ high)
            zeros = 1
            while zeros <= _HASH_BITS and rest & 1 == 0:
                rest >>= 1
                zeros += 1
            registers[place] = max(int(registers[place]), zeros)


def estimate(registers: Registers) -> float:
    """The number of distinct pages in a sketch, shape (m,) (Ertl 2017, algorithm 6)."""
    size = len(registers)
    counts = np.bincount(registers, minlength=_HASH_BITS + 2).tolist()
    total = size * _tau(1 - counts[_HASH_BITS + 1] / size)
    for zeros in range(_HASH_BITS, 0, -1):
        total = 0.5 * (total + counts[zeros])
    total += size * _sigma(counts[0] / size)
    return 0.0 if math.isinf(total) else size * size / (2 * math.log(2) * total)


def _sigma(share: float) -> float:
    if share == 1:
        return math.inf
    power, total, weight = share, share, 1.0
    while True:
        power *= power
        before, total, weight = total, total + power * weight, 2 * weight
        if total == before:
            return total


def _tau(share: float) -> float:
    if share in (0, 1):
        return 0.0
    power, total, weight = share, 1 - share, 1.0
    while True:
        power, weight = math.sqrt(power), 0.5 * weight
        before, total = total, total - (1 - power) ** 2 * weight
        if total == before:
            return total / 3


class OverTime:
    """Course of a trace over time, in constant memory: at most 128 windows, which are joined in pairs as the trace grows longer.

    Time is that of arrivals (`unit` is ``"ns"``), or, where the first request has none, the number of the request (``"requests"``).  A
    window knows how many requests and bytes it had, its working set (the distinct pages of 4 KiB, by a sketch), and
    where on the device its requests began.
    """

    def __init__(self) -> None:
        self.unit = ""
        self._shift, self._place_shift = 0, _SMALLEST
        self._begin = self._reach = self._last = 0
        self._requests, self._bytes = np.zeros(_WINDOWS, np.int64), np.zeros(_WINDOWS, np.int64)
        self._sketches = np.zeros((_WINDOWS, _WINDOW_SKETCH), np.uint8)
        self._heat = np.zeros((_WINDOWS, _PLACES), np.int64)

    def add(self, first: int, arrival: Any, device: Integers, offset: Integers, length: Integers) -> None:
        """Take requests, shape (n,), of which the first has the number `first`; `arrival` is a column that may have nulls.

        What has no length touches no place.  A request without time, in a trace that has times, counts with the latest before it; one
        before the first, with the first.
        """
        if not len(offset):
            return
        if not self.unit:
            self.unit = "ns" if arrival[0].is_valid else "requests"
            self._begin = self._last = arrival[0].as_py() if self.unit == "ns" else first
            self._shift = _SHORTEST[self.unit]
        if self.unit == "ns":
            times = arrival.fill_null(0).to_numpy(zero_copy_only=False)
            if arrival.null_count:
                known = np.where(arrival.is_valid().to_numpy(zero_copy_only=False), times, 0)
                times = np.where(known > 0, known, np.maximum(self._last, np.maximum.accumulate(known)))
            self._last = max(self._last, int(times.max()))
        else:
            times = np.arange(first, first + len(offset))
        since = np.maximum(times - self._begin, 0)
        self._reach = max(self._reach, int(since.max()))
        touching = length > 0
        self._widen(int(offset.max(where=touching, initial=0)))
        window, place = since >> self._shift, offset >> self._place_shift
        self._requests += np.bincount(window, minlength=_WINDOWS)
        self._bytes += np.bincount(window, length, _WINDOWS).astype(np.int64)
        spot = (window * _PLACES + place)[touching]
        self._heat += np.bincount(spot, minlength=self._heat.size).reshape(self._heat.shape)
        sketch(window, device, offset, length, self._sketches)

    def _widen(self, offset: int) -> None:
        while self._reach >> self._shift >= _WINDOWS:
            for counts in (self._requests, self._bytes, self._heat):
                counts[: _WINDOWS // 2] = counts[::2] + counts[1::2]
                counts[_WINDOWS // 2 :] = 0
            self._sketches[: _WINDOWS // 2] = np.maximum(self._sketches[::2], self._sketches[1::2])
            self._sketches[_WINDOWS // 2 :] = 0
            self._shift += 1
        while offset >> self._place_shift >= _PLACES:
            self._heat[:, : _PLACES // 2] = self._heat[:, ::2] + self._heat[:, 1::2]
            self._heat[:, _PLACES // 2 :] = 0
            self._place_shift += 1

    def as_dict(self) -> dict[str, Any]:
        """The windows, as in `traces.summary.information.describe`; empty of a trace without requests."""
        if not self.unit:
            return {}
        used = (self._reach >> self._shift) + 1
        until = np.maximum.accumulate(self._sketches[:used], axis=0)
        places = int(np.flatnonzero(self._heat.any(axis=0)).max(initial=0)) + 1
        return {
            "unit": self.unit,
            "length": 1 << self._shift,
            "requests": self._requests[:used].tolist(),
            "bytes": self._bytes[:used].tolist(),
            "working_set": [_bytes(registers) for registers in self._sketches[:used]],
            "footprint": [_bytes(registers) for registers in until],
            "standard_error": standard_error(_WINDOW_SKETCH),
            "place": 1 << self._place_shift,
            "places": self._heat[:used, :places].tolist(),
        }


def _bytes(registers: Registers) -> int:
    return round(estimate(registers)) * PAGE

"""How a trace goes over time, in constant memory: at most 128 windows, which are joined in pairs as the trace grows longer.

Time is that of arrivals, or, where the first request has none, the number of the request.  A window knows how many requests and bytes it
had, its working set (the distinct pages of 4 KiB, by a sketch: `traces.distinct`), and where on the device its requests began.
"""

from typing import Any

import numpy as np

from flashsim.core.request import Integers
from flashsim.core.units import MILLISECONDS
from traces import distinct

_WINDOWS = 128
_PLACES = 128
_SKETCH = 1 << 12
#: The shortest windows: of 2**20 ns, or of one request; the smallest places: of 1 MiB.
_SHORTEST = {"ns": MILLISECONDS.bit_length(), "requests": 0}
_SMALLEST = 20


class OverTime:
    """Windows of a trace; `unit` is ``"ns"`` or ``"requests"``."""

    def __init__(self) -> None:
        self.unit = ""
        self._shift, self._place_shift = 0, _SMALLEST
        self._begin = self._reach = self._last = 0
        self._requests, self._bytes = np.zeros(_WINDOWS, np.int64), np.zeros(_WINDOWS, np.int64)
        self._sketches = distinct.new_sketches(_WINDOWS, _SKETCH)
        self._heat = np.zeros((_WINDOWS, _PLACES), np.int64)

    def add(self, first: int, arrival: Any, device: Integers, offset: Integers, length: Integers) -> None:
        """Take requests, shape (n,), of which the first has the number `first`; `arrival` is a column that may have nulls.

        What has no length touches no place.

        A request without time, in a trace that has times, counts with the latest before it; one before the first, with the first.
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
        distinct.sketch(window, device, offset, length, self._sketches)

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
        """What `traces.information.describe` says of the windows; empty of a trace without requests."""
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
            "by_length": self._by_length(used),
            "standard_error": distinct.standard_error(_SKETCH),
            "place": 1 << self._place_shift,
            "places": self._heat[:used, :places].tolist(),
        }

    def _by_length(self, used: int) -> dict[str, list[int]]:
        """The working set in windows of each length: ``length``, the ``mean`` of those that are over, and the ``most``."""
        told: dict[str, list[int]] = {"length": [], "mean": [], "most": []}
        sketches, length = self._sketches[:used], 1 << self._shift
        while True:
            sizes = [_bytes(registers) for registers in sketches]
            over = sizes[: max(1, (self._reach + 1) // length)]
            for name, value in (("length", length), ("mean", round(sum(over) / len(over))), ("most", max(sizes))):
                told[name].append(value)
            if len(sketches) == 1:
                return told
            odd = distinct.new_sketches(len(sketches) % 2, _SKETCH)
            pairs = np.concatenate([sketches, odd])
            sketches, length = np.maximum(pairs[::2], pairs[1::2]), 2 * length


def _bytes(registers: distinct.Registers) -> int:
    return round(distinct.estimate(registers)) * distinct.PAGE

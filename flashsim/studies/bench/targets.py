"""What a benchmark runs on: a simulated drive in virtual time, or a real file or block device."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

import numpy as np

from flashsim.core.errors import CapacityError
from flashsim.core.request import COMPLETION, READ, SECTOR, WRITE, Completions, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.core.spans import Spans
from flashsim.core.units import KIB, MIB, SECONDS, format_size
from flashsim.device.aio import in_sets
from flashsim.device.batch import aligned_buffer
from flashsim.device.device import Device
from flashsim.device.file import RealDevice

#: Requests of the random state: uFLIP writes sizes up to an erase block of its time.
_STATE_UNIT, _STATE_LARGEST = 4 * KIB, 128 * KIB
#: Random writes that are served at a time.
_STATE_BATCH = 1 << 14
#: Bytes that one call reads or writes at most.
_CALL = 16 * MIB


class Target(Protocol):
    """A device under test."""

    name: str
    size: int
    least: int
    buffer: int  # bytes that it is known to acknowledge before they are on flash

    def enforce_state(self, share: float, seed: int) -> str:
        """Bring the area into a known state; say which, in one sentence."""

    def serve(self, requests: Requests, pause: int) -> Completions:
        """Pause for so many ns, then serve the requests; their completions in order."""

    def measure(self, requests: Requests, pause: int) -> Completions:
        """The same for requests that are measured: they are drawn, where something is."""

    def together(self, requests: Requests, level: int, pause: int) -> Completions:
        """Measure requests of one length and operation of which `level` are handed over at once, and the next ones when these are done."""


class Watching(Protocol):
    """Takes what a simulated drive does, such as a timeline (`flashsim.studies.presentation.timeline`)."""

    def add_spans(self, spans: Spans) -> None:
        """Take what parts of the drive did."""

    def add_requests(self, requests: Requests, completions: Completions) -> None:
        """Take requests that have completed, after their spans."""


class SimulatedTarget:
    """A simulated drive.

    Parameters
    ----------
    size
        Bytes of it that are used.
    timeline
        Where what is measured is drawn, and nothing else.
    enforced
        Brings the drive into its state in another way than by random writes, given a seed, and says what it is.
    """

    def __init__(self, device: Device, size: int, timeline: Watching | None = None, enforced: Callable[[int], str] | None = None) -> None:
        if size > device.capacity:
            raise CapacityError(f"size: {format_size(size)}, but {device.name} holds {format_size(device.capacity)}")
        self.device, self.name, self.size, self.least, self.timeline = device, device.name, size, SECTOR, timeline
        self.enforced = enforced
        self.buffer = device.preset.flash.write_buffer if device.preset.flash else 0

    def enforce_state(self, share: float, seed: int) -> str:
        """Load the whole area in no time, then write `share` of it at random, unless told otherwise; a disk has no state."""
        if self.enforced:
            return self.enforced(seed)
        if self.device.kind == "hdd":
            return "none: a disk's times do not depend on what was written before"
        self.device.load(0, self.size)
        for requests in random_state(self.size, int(share * self.size), _STATE_UNIT, seed):
            self.device.serve(requests)
        return f"the whole area ({format_size(self.size)}) loaded in order, then {share:.0%} of it written at random places and sizes"

    def serve(self, requests: Requests, pause: int) -> Completions:
        return self.device.serve(requests, self.device.now + pause)

    def measure(self, requests: Requests, pause: int) -> Completions:
        return self._drawn(requests, lambda: self.serve(requests, pause))

    def together(self, requests: Requests, level: int, pause: int) -> Completions:
        """Serve the requests in sets, and draw what happens; what is written behind goes on between sets."""
        return self._drawn(requests, lambda: self._in_sets(requests, level, self.device.now + pause))

    def _in_sets(self, requests: Requests, level: int, at: int) -> Completions:
        if level == 1:
            requests["dependency"] = np.arange(len(requests)) - 1
            return self.device.serve(requests, at, settle=False)
        found = []
        for begin in range(0, len(requests), level):
            found.append(self.device.serve(requests[begin : begin + level], at, settle=False))
            at = self.device.now
        return np.concatenate(found)

    def _drawn(self, requests: Requests, serve: Callable[[], Completions]) -> Completions:
        if self.timeline is None:
            return serve()
        self.device.record_spans(True)
        completions = serve()
        self.timeline.add_spans(self.device.spans())
        self.device.record_spans(False)
        self.timeline.add_requests(requests, completions)
        return completions


class RealTarget:
    """A real file or block device, past the page cache."""

    def __init__(self, device: RealDevice, size: int) -> None:
        self.device, self.name, self.size = device, str(device.path), size
        self.least, self.buffer = device.alignment, 0

    def enforce_state(self, share: float, seed: int) -> str:
        """Write the whole area in order, so that no part of a file is a hole, then as many bytes at random places and sizes, and flush."""
        offsets = np.arange(0, self.size, _STATE_LARGEST)
        self.serve(make_requests(WRITE, offsets, np.minimum(_STATE_LARGEST, self.size - offsets), serial=True), 0)
        for requests in random_state(self.size, self.size, max(_STATE_UNIT, self.least), seed):
            self.serve(requests, 0)
        self.device.flush()
        return f"the whole area ({format_size(self.size)}) written in order, then as many bytes at random places and sizes"

    def measure(self, requests: Requests, pause: int) -> Completions:
        """Serve the requests: of a real device there is nothing to draw."""
        return self.serve(requests, pause)

    def together(self, requests: Requests, level: int, pause: int) -> Completions:
        """Serve the requests by the kernel's asynchronous interface; all use the same memory."""
        time.sleep(pause / SECONDS)
        operation, length = int(requests["operation"][0]), int(requests["length"][0])
        memory = aligned_buffer(length)
        memory[:] = generator(0, "content").integers(0, 256, length, np.uint8)  # some drives compress zeros
        batch = self.device.prepare(operation, requests["offset"], requests["length"], memory)
        completions = np.zeros(len(requests), COMPLETION)
        completions["submitted"], completions["completed"] = self.device.serve(batch, partial(in_sets, level=level), level)
        return completions

    def serve(self, requests: Requests, pause: int) -> Completions:
        time.sleep(pause / SECONDS)
        completions = np.zeros(len(requests), COMPLETION)
        streams = [np.flatnonzero(requests["stream"] == stream) for stream in np.unique(requests["stream"])]
        with ThreadPoolExecutor(len(streams)) as pool:
            for rows, found in zip(streams, pool.map(lambda rows: self._stream(requests[rows]), streams), strict=True):
                completions[rows] = found
        return completions

    def _stream(self, requests: Requests) -> Completions:
        found = []
        begin = 0
        while begin < len(requests):
            time.sleep(int(requests["think"][begin]) / SECONDS)
            end = self._together(requests, begin)
            part = requests[begin:end]
            if part["operation"][0] == READ:
                found.append(self.device.read(part["offset"], part["length"])[1])
            else:
                found.append(self.device.write(part["offset"], np.zeros(int(part["length"].sum()), np.uint8), part["length"]))
            begin = end
        return np.concatenate(found)

    @staticmethod
    def _together(requests: Requests, begin: int) -> int:
        """The end of the requests that one call may serve: of one operation, without a pause, and not too large."""
        same = (requests["operation"][begin:] == requests["operation"][begin]) & (np.cumsum(requests["length"][begin:]) <= _CALL)
        same[1:] &= requests["think"][begin + 1 :] == 0
        same[0] = True
        return begin + (len(same) if same.all() else int(np.argmin(same)))


def random_state(size: int, total: int, unit: int, seed: int) -> Iterator[Requests]:
    """Batches of synchronous writes of random sizes (4 to 128 KiB) at random places, at least `total` bytes together."""
    random = generator(seed, "random state")
    while total > 0:
        lengths = random.integers(1, _STATE_LARGEST // unit + 1, _STATE_BATCH) * unit
        lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), total)) + 1]
        places = (size - lengths) // unit
        offsets = random.integers(0, places + 1) * unit
        yield make_requests(WRITE, offsets, lengths, serial=True)
        total -= int(lengths.sum())

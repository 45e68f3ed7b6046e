"""The engine of our own: plain calls, Linux asynchronous I/O or threads, with the time of each request."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import heapify, heappop, heappush
from time import perf_counter_ns

import numpy as np
import pyarrow as pa

from flashsim.core import rng, units
from flashsim.core.protocols import Progress
from flashsim.core.request import WRITE, Integers
from flashsim.device.aio import AT_ONCE, Queue, call_next, closed_loop, wait_until
from flashsim.device.batch import Batch, Bytes, aligned_buffer
from flashsim.device.file import RealDevice
from traces.file.schema import Batches, column
from traces.replay.base import BACK, Observer, replay_records

TITLE = "one process, past the page cache, a batch submitted at once and waited for"
PACES = ("asap", "timed", "think")

#: Interval of progress messages, ns.
_TELL = 100 * units.MILLISECONDS
#: Halves of memory are whole multiples of it, so that the whole lies on huge pages (`aligned_buffer`).
_UNIT = units.MIB


def check() -> None:
    """Nothing: this engine runs everywhere."""


def replay(batches: Batches, device: RealDevice, pace: str, depth: int, observe: Observer, progress: Progress | None = None) -> str:
    """See `traces.replay.base.Engine`.

    Batches of the trace are served one after another, each until all its requests have completed, and the next one is read meanwhile.
    What is written is random.
    """
    run = _ReplayRun(device, pace, depth, observe, progress)
    for batch in _ahead(batches):
        run.window(batch)
    how = "plain calls" if pace == "asap" and depth == 1 else device.queue.TITLE
    return f"{how}{', through the page cache' if device.buffered else ''}"


class _ReplayRun:
    """A replay under way."""

    def __init__(self, device: RealDevice, pace: str, depth: int, observe: Observer, progress: Progress | None) -> None:
        self.device, self.pace, self.depth, self.observe, self.progress = device, pace, depth, observe, progress
        self._memory, self._half = aligned_buffer(0), 0
        self._completed, self._next_tell = 0, 0
        self._begin: int | None = None  # ns of the device's clock
        self._origin = 0  # arrival of the first request in the trace
        self._last = np.zeros(0, np.int64)  # completion times of the last requests

    def window(self, batch: pa.RecordBatch) -> None:
        operation, offset, length = (column(batch, name) for name in ("operation", "offset", "length"))
        self._make_room(int(length.max()))
        places = np.where(operation == WRITE, self._half, 0)
        work = self.device.prepare(operation, offset, length, self._memory, places, column(batch, "device"))
        arrivals = batch.column("arrival")
        if self._begin is None:
            self._begin = self.device.now
            self._origin = int(arrivals[0].as_py() or 0)
        zero = self.device.opened + self._begin  # of the system's clock
        due = np.where(arrivals.is_valid(), arrivals.fill_null(0), self._origin) - self._origin + zero
        loop = partial(self._loop(batch, due, zero), look=partial(self._look, work))
        submitted, completed = self.device.serve(work, loop, self.depth if self.pace == "asap" else 1)
        submitted, completed = submitted - self._begin, completed - self._begin
        arrival = submitted if self.pace == "asap" else np.minimum(due - zero, submitted)
        self.observe(*replay_records(batch, self._completed, arrival, submitted, completed))
        self._completed += len(completed)
        self._last = np.concatenate([self._last, completed])[-BACK:]

    def _loop(self, batch: pa.RecordBatch, due: Integers, zero: int) -> Callable[..., None]:
        if self.pace == "asap":
            return partial(closed_loop, depth=self.depth)
        if self.pace == "timed":
            return partial(submit_when_due, due=due)
        dependency, think = column(batch, "dependency"), column(batch, "think")
        before = (dependency >= 0) & (dependency < self._completed)
        due[before] = self._last[dependency[before] - (self._completed - len(self._last))] + think[before] + zero
        within = np.where(dependency >= self._completed, dependency - self._completed, -1)
        return partial(thinking, dependency=within, think=think, due=due)

    def _look(self, work: Batch) -> None:
        if self.progress and perf_counter_ns() >= self._next_tell:
            self._next_tell = perf_counter_ns() + _TELL
            self.progress(self._completed + work.completed, 0)

    def _make_room(self, longest: int) -> None:
        """Memory whose first half takes what is read, and whose second half holds what is written."""
        if longest > self._half:
            self._half = -(-longest // _UNIT) * _UNIT
            self._memory = aligned_buffer(2 * self._half)
            fill(self._memory[self._half :])


def fill(memory: Bytes) -> None:
    """Random bytes, the same ones every MiB."""
    pattern = rng.generator(0, "replayed bytes").integers(0, 256, min(len(memory), units.MIB), np.uint8)
    memory[:] = np.resize(pattern, len(memory))


def _ahead(batches: Batches) -> Iterator[pa.RecordBatch]:
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def submit_when_due(to: Queue, batch: Batch, due: Integers, look: Callable[[], None]) -> None:
    """Submit each request when it is due, or as soon as the queue has room for it.

    `due` is ns of `time.perf_counter_ns`, ascending, shape (n,); `look` is called after each wait.
    """
    while batch.completed < len(batch):
        ready = int(np.searchsorted(due, perf_counter_ns(), "right")) - batch.submitted
        room = min(AT_ONCE, to.depth - batch.outstanding)
        if min(ready, room) > 0:
            to.submit(batch, min(ready, room))
            to.reap(batch, 0, 0)
        elif room > 0 and batch.submitted < len(batch):
            wait_until(to, batch, int(due[batch.submitted]))
        else:
            to.reap(batch, 1)
        look()


def thinking(to: Queue, batch: Batch, dependency: Integers, think: Integers, due: Integers, look: Callable[[], None]) -> None:
    """Submit each request so long after the one it waits for has completed; those that are due at once by one call.

    `dependency`, shape (n,), is which request of the batch, an earlier one, each waits for (-1: none), and `think` ns from that completion
    on.  `due`, ns of `time.perf_counter_ns`, is when those that wait for none are due, or at once if that is over; it is filled in for the
    others.  `look` is called after each wait.
    """
    count = len(batch)
    by_awaited = np.argsort(dependency, kind="stable")
    begins = np.searchsorted(dependency[by_awaited], np.arange(count + 1)).tolist()
    waiting, thinks = by_awaited.tolist(), think.tolist()
    np.maximum(due, perf_counter_ns(), out=due)
    coming = [(int(due[row]), row) for row in waiting[: begins[0]]]
    heapify(coming)
    completed = 0
    while completed < count:
        rows: list[int] = []
        now, room = perf_counter_ns(), to.depth - batch.outstanding
        while coming and len(rows) < room and coming[0][0] <= now:
            rows.append(heappop(coming)[1])
        if len(rows) == 1 and not coming and not batch.outstanding:  # as whoever waits for every request does
            batch.put_next(rows)
            call_next(batch, rows[0], batch.call(rows[0]))
        elif rows:
            batch.put_next(rows)
            before = batch.submitted
            to.submit(batch, len(rows))
            for row in rows[batch.submitted - before :]:
                heappush(coming, (int(due[row]), row))
        elif coming and room:
            wait_until(to, batch, coming[0][0])
        else:
            to.reap(batch, 1)
        for row, at in batch.completions_since(completed):
            for child in waiting[begins[row] : begins[row + 1]]:
                due[child] = at + thinks[child]
                heappush(coming, (at + thinks[child], child))
            completed += 1
        look()

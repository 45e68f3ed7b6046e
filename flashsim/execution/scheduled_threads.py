"""A host side of threads that each issue requests by a schedule of their own: an open load, as long as their slots last.

Background threads have exponential gaps and mostly write; a probe thread has even gaps, and its latencies are counted.  A thread whose
slots are all taken drops nothing: it issues what it missed as slots become free, and forgets its schedule only when it is far behind.  A
latency runs from issue.  These are the rules of the generator of SSD-iq (Haas, Lee, Bonnet and Leis, VLDB 2025).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import types

from flashsim.core.draws import mix_bits
from flashsim.core.errors import InvalidParameterError
from flashsim.core.groups import group_type
from flashsim.core.kernel import inlined_kernel, kernel_of, lean_kernel
from flashsim.core.records import MATRIX, VECTOR
from flashsim.core.request import READ, WRITE, Integers
from flashsim.core.state_table import State, state_of
from flashsim.core.units import KIB, MICROSECONDS, NEVER, SECONDS
from flashsim.execution.compiled_loop import ACT, HostSide, issue

THREADS, WRITES, PAGE = 6, 0.99, 4 * KIB  #: Background threads, writes among their requests, and bytes of a request.
#: Requests of a thread that are outstanding at most, and how far behind its schedule a thread forgets it.
SLOTS, FORGETS = 64, 5 * SECONDS
#: Whole microseconds that latencies are counted in; the last are all longer ones.
BINS = 20_000
_RANGE = 1 << 32
# Numbers of the load, the last of which are requests of all threads that completed, and columns of a thread.
_SEED, _PAGES, COMPLETED = range(3)
_NEXT, _GAP, _EVEN, _WRITES, _QUEUE, _FREE, _REQUESTS = range(7)
# What is drawn for a request.
_PAUSE, _PAGE, _OPERATION = range(3)


class ThreadTables(NamedTuple):
    """Tables of the threads' function."""

    numbers: Integers
    threads: Integers  #: A row a thread.
    free: Integers  #: The free slots of each thread, of which the first `_FREE` are in use, shape (threads, SLOTS).
    slots: Integers  #: Issue and operation of the request in each slot, shape (threads * SLOTS, 2).
    latencies: Integers  #: Latencies of the probe, us, of reads and of writes, shape (2, BINS).


_STATE = types.Tuple((group_type((VECTOR, MATRIX, MATRIX, MATRIX, MATRIX), ThreadTables),))
_tables_of = state_of(_STATE)


@dataclass(frozen=True)
class ScheduledThreads:
    """Background threads and a probe, the last thread; rates out of bounds are refused."""

    #: Requests a second of all background threads, and of the probe.
    background: float
    probe: float
    probe_write_share: float = 0.5  #: Writes among the probe's requests.
    seed: int = 0  #: Random seed: each draw is a function of the thread and the number of its request.

    def __post_init__(self) -> None:
        if not 0 <= self.background <= SECONDS or not 0 < self.probe <= SECONDS:
            bound = f"the rates must be from 0, and of the probe above 0, to {SECONDS:,}"
            raise InvalidParameterError("requests a second", f"{self.background:g} and {self.probe:g}", bound)

    def tables(self, pages: int, start: int = 0, queues: int = 1) -> ThreadTables:
        """The threads as kernels take them, which begin their schedules at `start` and count what completes."""
        count, threads = THREADS + 1, np.zeros((THREADS + 1, 7), np.int64)
        rates = [self.background / THREADS] * THREADS + [self.probe]
        threads[:, _GAP] = [round(SECONDS / rate) if rate else 0 for rate in rates]
        threads[:, _WRITES] = [round(share * _RANGE) for share in [WRITES] * THREADS + [self.probe_write_share]]
        threads[:, _QUEUE], threads[:, _FREE], threads[-1, _EVEN] = np.arange(count) % queues, SLOTS, 1
        slots, latencies = np.zeros((count * SLOTS, 2), np.int64), np.zeros((2, BINS), np.int64)
        tables = ThreadTables(np.array([self.seed, pages, 0]), threads, np.tile(np.arange(SLOTS), (count, 1)), slots, latencies)
        for thread in range(count):
            threads[thread, _NEXT] = start + int(gap(tables, thread)) if threads[thread, _GAP] else NEVER
        return tables

    def side(self, tables: ThreadTables) -> HostSide:
        return HostSide(act, (tables,), _STATE, int(tables.threads[:, _NEXT].min()), len(tables.slots), PAGE)


def forget_counts(tables: ThreadTables) -> None:
    """Count anew, from now on."""
    tables.numbers[COMPLETED] = tables.latencies[:] = 0


def percentile(tables: ThreadTables, operation: int, share: float) -> int:
    """The shortest whole us within which a share of the probe's reads or writes completed."""
    below = np.cumsum(tables.latencies[operation])
    return int(np.searchsorted(below, math.ceil(share * below[-1])))


@lean_kernel
def _draw(tables: ThreadTables, thread: int, what: int) -> int:
    """32 bits for one of the things that are drawn for a thread's next request."""
    return mix_bits(mix_bits(mix_bits(int(tables.numbers[_SEED])) + int(thread)) + 4 * int(tables.threads[thread, _REQUESTS]) + what)


@lean_kernel
def gap(tables: ThreadTables, thread: int) -> int:
    """Time from a thread's last request by its schedule to the next, ns."""
    mean = tables.threads[thread, _GAP]
    if tables.threads[thread, _EVEN]:
        return int(mean)
    return int(-math.log((_draw(tables, thread, _PAUSE) + 1) / _RANGE) * mean)


@lean_kernel
def place_and_operation(tables: ThreadTables, thread: int) -> tuple[int, int]:
    page = (_draw(tables, thread, _PAGE) * int(tables.numbers[_PAGES])) >> 32
    operation = WRITE if _draw(tables, thread, _OPERATION) < tables.threads[thread, _WRITES] else READ
    return page * PAGE, operation


@inlined_kernel
def _issue_due(tables: ThreadTables, outbox: Integers, thread: int, now: int) -> None:
    threads = tables.threads
    while threads[thread, _FREE] > 0 and threads[thread, _NEXT] <= now:
        if now - threads[thread, _NEXT] > FORGETS:
            threads[thread, _NEXT] = now
        threads[thread, _FREE] -= 1
        tag = thread * SLOTS + tables.free[thread, threads[thread, _FREE]]
        offset, operation = place_and_operation(tables, thread)
        tables.slots[tag, 0], tables.slots[tag, 1] = now, operation
        issue(outbox, 0, operation, offset, PAGE, tag, threads[thread, _QUEUE])
        threads[thread, _REQUESTS] += 1
        threads[thread, _NEXT] += gap(tables, thread)


@kernel_of(ACT)
def act(state: State, outbox: Integers, now: int, device: int, tag: int) -> int:
    """A request completed, whose slot is free again, or it is time for the next ones."""
    tables = _tables_of(state)[0]
    threads, count = tables.threads, tables.threads.shape[0]
    if device >= 0:
        thread = tag // SLOTS
        tables.free[thread, threads[thread, _FREE]] = tag % SLOTS
        threads[thread, _FREE] += 1
        tables.numbers[COMPLETED] += 1
        if thread == count - 1:
            latency = min((now - tables.slots[tag, 0]) // MICROSECONDS, BINS - 1)
            tables.latencies[tables.slots[tag, 1], latency] += 1
        _issue_due(tables, outbox, thread, now)
    else:
        for thread in range(count):
            _issue_due(tables, outbox, thread, now)
    due = NEVER
    for thread in range(count):
        if threads[thread, _FREE] > 0:
            due = min(due, threads[thread, _NEXT])
    return int(due)

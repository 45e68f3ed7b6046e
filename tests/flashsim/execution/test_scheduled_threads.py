"""Threads with schedules agree with the generator's rules in plain Python, on a device of constant times of service."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from typing import Any, cast

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import READ, WRITE
from flashsim.core.state_table import StateTable
from flashsim.core.units import MICROSECONDS, NEVER, SECONDS
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.execution import scheduled_threads
from flashsim.execution.compiled_loop import CompiledLoop
from flashsim.execution.scheduled_threads import (
    BINS,
    COMPLETED,
    FORGETS,
    SLOTS,
    THREADS,
    ScheduledThreads,
    ThreadTables,
    forget_counts,
    percentile,
)
from tests.cases import with_each

#: Times of service of a read and of a write.
TIMES = 50_300, 90_700


class Reference:
    """The rules, request by request: who may issue does, and whoever was full before issues what it missed when a slot is free again."""

    def __init__(
        self, load: ScheduledThreads, servers: int, seconds: float, warm_up: int = 0, times: tuple[int, int] = TIMES, forgets: int = FORGETS
    ) -> None:
        tables = load.tables(1000)  # for draws alone
        count = THREADS + 1
        rates = [load.background / THREADS] * THREADS + [load.probe]
        self.outstanding, self.issued = [0] * count, [0] * count
        self.latencies, self.completed, self.outstanding_most = Counter[tuple[int, int]](), 0, 0

        def gap(thread: int) -> int:
            tables.threads[thread, scheduled_threads._REQUESTS] = self.issued[thread]
            return int(scheduled_threads.gap(tables, thread)) if thread < THREADS else round(SECONDS / rates[-1])

        following = [gap(thread) if rates[thread] else NEVER for thread in range(count)]
        waiting, busy = deque[tuple[int, int, int]](), list[tuple[int, int, int, int, int]]()
        number = now = 0

        def issue(thread: int) -> None:
            while self.outstanding[thread] < SLOTS and following[thread] <= now:
                if now - following[thread] > forgets:
                    following[thread] = now
                tables.threads[thread, scheduled_threads._REQUESTS] = self.issued[thread]
                _, operation = scheduled_threads.place_and_operation(tables, thread)
                waiting.append((thread, int(operation), now))
                self.outstanding[thread] += 1
                self.issued[thread] += 1
                following[thread] += gap(thread)

        while True:
            while waiting and len(busy) < servers:
                thread, operation, begin = waiting.popleft()
                heapq.heappush(busy, (now + times[operation], number, thread, operation, begin))
                number += 1
            self.outstanding_most = max(self.outstanding_most, *self.outstanding)
            dues = [following[thread] for thread in range(count) if self.outstanding[thread] < SLOTS]
            now = min([*dues, *(entry[0] for entry in busy[:1])])
            if now > seconds * SECONDS:
                return
            while busy and busy[0][0] == now:
                _, _, thread, operation, begin = heapq.heappop(busy)
                self.outstanding[thread] -= 1
                if now >= warm_up:
                    self.completed += 1
                    if thread == THREADS:
                        self.latencies[operation, min((now - begin) // MICROSECONDS, BINS - 1)] += 1
                issue(thread)
            for thread in range(count):
                issue(thread)


def play(load: ScheduledThreads, servers: int, seconds: float, warm_up: int = 0, times: tuple[int, int] = TIMES) -> ThreadTables:
    tables = load.tables(1000)
    loop = CompiledLoop([StationEngine(StationParameters(*times, servers=servers))], load.side(tables))
    if warm_up:
        loop.run(until=warm_up - 1)
        forget_counts(tables)
    loop.run(until=round(seconds * SECONDS))
    return tables


@with_each(("background", "probe", "servers", "warm_up"), [
    (15_000, 10_000, 8, 0), (75_000, 10_000, 8, 10_000_000), (120_000, 10_000, 2, 0), (0, 3_333, 1, 0), (495_000, 10_000, 40, 0),
])  # fmt: skip
def test_the_generators_rules_in_plain_python(background: int, probe: int, servers: int, warm_up: int) -> None:
    """Below saturation and above it, where the threads' slots are all taken and the probe misses its schedule."""
    load = ScheduledThreads(background, probe, seed=background)
    tables, reference = play(load, servers, 0.05, warm_up), Reference(load, servers, 0.05, warm_up)
    counted = {(int(row), int(bin_)): int(tables.latencies[row, bin_]) for row, bin_ in np.argwhere(tables.latencies)}
    assert counted == dict(reference.latencies) and tables.numbers[COMPLETED] == reference.completed > 100
    assert tables.threads[:, scheduled_threads._REQUESTS].tolist() == reference.issued
    assert (reference.outstanding_most == SLOTS) == (background > 100_000 or background / 90_000 > servers)


def test_a_load_below_saturation_is_what_was_asked_for() -> None:
    tables = play(ScheduledThreads(60_000, 10_000, seed=1), 20, 2.0)
    assert tables.numbers[COMPLETED] == pytest.approx(2 * 70_000, rel=0.01)
    assert tables.latencies.sum() == pytest.approx(20_000, abs=2)
    assert tables.latencies[READ].sum() == pytest.approx(10_000, rel=0.03)
    assert percentile(tables, READ, 0.5) == 50 and percentile(tables, WRITE, 0.5) == 90  # whole microseconds


def test_a_thread_far_behind_forgets_its_schedule() -> None:
    """A slot that is free after three seconds takes what was missed first; one after ten, with more than five missed, what is due then."""
    load = ScheduledThreads(0, 1000)
    tables, outbox, gap = load.tables(1000), np.zeros((100, 6), np.int64), SECONDS // 1000
    state, probe = StateTable(scheduled_threads._STATE).crossing((tables,)), tables.threads[-1]
    first, act = 6 * SLOTS, cast(Any, scheduled_threads.act)
    assert act(state, outbox, SECONDS, -1, 0) == NEVER and probe[scheduled_threads._NEXT] == (SLOTS + 1) * gap
    act(state, outbox, 3 * SECONDS, 0, first)
    assert probe[scheduled_threads._NEXT] == (SLOTS + 2) * gap
    act(state, outbox, 10 * SECONDS, 0, first)
    assert probe[scheduled_threads._NEXT] == 10 * SECONDS + gap and outbox[0, 0] == SLOTS + 2


def test_latencies_are_cut_where_the_histogram_ends() -> None:
    load = ScheduledThreads(0, 1000, probe_write_share=0.0, seed=3)
    tables = load.tables(1000)
    CompiledLoop([StationEngine(StationParameters(30_000_000, 1, servers=100))], load.side(tables)).run(until=SECONDS)
    assert percentile(tables, READ, 0.5) == percentile(tables, READ, 0.999) == BINS - 1 == 19_999


def test_rates_out_of_bounds_are_refused() -> None:
    for background, probe in ((-1, 10), (10, 0), (float("nan"), 10), (10, float("inf"))):
        with pytest.raises(InvalidParameterError, match="requests a second"):
            ScheduledThreads(background, probe)

"""When requests are submitted: at their times, or so long after those that they wait for."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from time import perf_counter_ns

import numpy as np

from flashsim.core.request import Integers
from flashsim.device.aio import AT_ONCE, Queue, call_next, wait_until
from flashsim.device.batch import Batch


def timed(to: Queue, batch: Batch, due: Integers, look: Callable[[], None]) -> None:
    """Submit each request when it is due, or as soon as the queue has room for it.

    Parameters
    ----------
    due
        ns of `time.perf_counter_ns`, ascending, shape (n,).
    look
        Is called after each wait.
    """
    count = len(batch)
    while batch.completed < count:
        ready = int(np.searchsorted(due, perf_counter_ns(), "right")) - batch.submitted
        room = min(AT_ONCE, to.depth - batch.outstanding)
        if min(ready, room) > 0:
            to.submit(batch, min(ready, room))
            to.reap(batch, 0, 0)
        elif room > 0 and batch.submitted < count:
            wait_until(to, batch, int(due[batch.submitted]))
        else:
            to.reap(batch, 1)
        look()


def thinking(to: Queue, batch: Batch, dependency: Integers, think: Integers, due: Integers, look: Callable[[], None]) -> None:
    """Submit each request so long after the one it waits for has completed; those that are due at once by one call.

    Parameters
    ----------
    dependency
        Which request of the batch, an earlier one, each waits for; -1: none.  Shape (n,).
    think
        ns from that completion on, shape (n,).
    due
        When those that wait for none are due, ns of `time.perf_counter_ns`, or at once if that is over; filled in for the others.
        Shape (n,).
    look
        Is called after each wait.
    """
    count = len(batch)
    by_awaited = np.argsort(dependency, kind="stable")
    begins = np.searchsorted(dependency[by_awaited], np.arange(count + 1)).tolist()
    waiting, thinks = by_awaited.tolist(), think.tolist()
    np.maximum(due, perf_counter_ns(), out=due)
    coming = [(int(due[row]), row) for row in waiting[: begins[0]]]
    heapify(coming)
    done = 0
    while done < count:
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
        for row, at in batch.completions_since(done):
            for child in waiting[begins[row] : begins[row + 1]]:
                due[child] = at + thinks[child]
                heappush(coming, (at + thinks[child], child))
            done += 1
        look()

"""Spans of a made-up drive: requests that pass through the controller, a channel and a die, and garbage collection in between."""

from __future__ import annotations

import numpy as np

from flashsim.core.request import COMPLETION, READ, WRITE, Completions, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.core.spans import COMMAND, ERASE, GC, HOST, MOVE, PROGRAM, SPAN, TRANSFER, Spans
from flashsim.core.spans import READ as READ_CELLS

DIES, CHANNELS = 4, 2


def made_up(count: int, seed: int, first: int = 0) -> tuple[Requests, Completions, Spans]:
    """Requests (ids from `first`), their completions, and all spans in order of their end; every server holds one operation at a time."""
    random = generator(seed, "spans")
    free = np.zeros(DIES + CHANNELS + 2, np.int64)
    spans, completions = [], np.zeros(count, COMPLETION)
    requests = make_requests(np.where(random.random(count) < 0.5, READ, WRITE), np.arange(count) * 4096, 4096)
    submitted = 0

    def hold(server: int, kind: int, cause: int, request: int, since: int, length: int) -> int:
        begin = max(since, int(free[server]))
        free[server] = begin + length
        spans.append((server, kind, cause, request, -1 if kind == ERASE else 7, begin, begin + length, -1, 1, -1))
        return begin + length

    for row in range(count):
        submitted += int(random.integers(0, 400))
        die = int(random.integers(DIES))
        if random.random() < 0.2:
            for kind, length in ((MOVE, 700), (MOVE, 700), (ERASE, 2001)):
                hold(die, kind, GC, -1, submitted, length)
        number = first + row
        started = hold(DIES + CHANNELS + 1, COMMAND, HOST, number, submitted, 11) - 11
        first_step, then = (READ_CELLS, TRANSFER) if requests["operation"][row] == READ else (TRANSFER, PROGRAM)
        done = hold(die if first_step != TRANSFER else DIES + die % CHANNELS, first_step, HOST, number, started + 11, 300)
        done = hold(die if then != TRANSFER else DIES + die % CHANNELS, then, HOST, number, done, 503)
        completions[row] = (number, 0, submitted, started, done)
    every = np.array(spans, SPAN)
    return requests, completions, every[np.argsort(every["end"], kind="stable")]

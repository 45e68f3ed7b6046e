"""What the compiled form of a system of pools works on."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import types

from flashsim.core.array_types import MATRIX, VECTOR
from flashsim.core.policies import Policies
from flashsim.core.replacement import POOL, Numbers, PoolState, rows_of
from flashsim.core.request import Integers
from flashsim.core.state_table import state_of
from flashsim.core.units import NEVER
from flashsim.execution.pooled import columns as at
from flashsim.execution.pooled.system import COUNTED, PoolSystem
from flashsim.storage.extension.state import EXTENSION, PAGE_COLUMNS, Extension


class Tables(NamedTuple):
    """The state of a system."""

    memory: PoolState
    ext: Extension
    numbers: Integers
    #: Addresses of the memory pool's policy, and of the design.
    policy: Policies
    design: Policies
    #: Shape (clients, 10).
    clients: Integers
    #: Pages that each client holds while it reads them, and 1 above bit 32 if from the SSD, shape (clients, most).
    held: Integers
    #: Shape (cleaners, 4), and a ring of those that sleep.
    cleaners: Integers
    sleeping: Integers
    #: A ring of who goes on: clients, cleaners behind them, and the checkpointer.
    ready: Integers
    #: A heap of clients that think, shape (clients, 2).
    thinkers: Integers
    #: By number as in that ring: the request after whose completion each goes on, or went on last.
    causes: Integers
    #: Shape (requests, 5).
    slots: Integers
    #: References of transactions that run and that are to come, and where each of the latter begins and the last one ends.
    references: Integers
    bounds: Integers
    #: Of what kind each transaction is that runs or is to come.
    kinds: Integers
    #: What happened in each interval, shape (intervals, counted).
    series: Integers
    #: Transactions that ended in each interval, by their kind, shape (intervals, kinds).
    by_kind: Integers
    #: When the last transaction of each kind so far ended.
    ended: Integers
    #: Requests from one on, shape (n, 7).
    asked: Integers


TABLES_TYPE = types.NamedTuple(
    (
        POOL, EXTENSION, VECTOR, VECTOR, VECTOR, MATRIX, MATRIX, MATRIX, VECTOR, VECTOR, MATRIX, VECTOR, MATRIX, MATRIX, VECTOR, VECTOR,
        MATRIX, MATRIX, VECTOR, MATRIX,
    ),
    Tables,
)  # fmt: skip
STATE_TYPE = types.Tuple((TABLES_TYPE,))
tables_of = state_of(STATE_TYPE)


def tables(system: PoolSystem, devices: Mapping[int, int], log_room: int, intervals: int, asked: int, kinds: int = 1) -> Tables:
    """A system at time 0.

    Parameters
    ----------
    devices
        Its devices' numbers in the loop, by what they are for.
    log_room
        Bytes of the log's device.
    intervals
        Of which is told what happened in them.
    asked
        How many requests are kept.
    kinds
        Of transactions.
    """
    most_cleanings = system.most_cleanings
    cleaners = most_cleanings if system.ssd else 0
    everybody = system.clients + cleaners + 1
    numbers = np.zeros(at.SYSTEM_NUMBERS, np.int64)
    numbers[:at.LOG_ROOM] = [
        system.clients, system.think, system.page_size, system.expansion, system.throttle, system.limit, system.slack, system.group,
        most_cleanings, system.checkpoint, system.sharp, system.log_bytes, system.work > 0, system.chunk, system.read_ahead,
        system.interval, system.most_going_out, system.expands_below, system.trimming,
    ]  # fmt: skip
    numbers[at.LOG_ROOM] = log_room
    for purpose, place in enumerate((at.DISK_NUMBER, at.SSD_NUMBER, at.LOG_NUMBER, at.CPU_NUMBER)):
        numbers[place] = devices.get(purpose, -1)
    numbers[at.GOAL], numbers[at.INTERVAL_ENDS] = NEVER, system.interval
    numbers[at.CAUSE], numbers[at.HAND_OUT_AT] = -1, NEVER
    numbers[at.CHECKPOINTS_AT] = system.checkpoint or NEVER
    numbers[at.LOW] = 1024 + 16 * system.clients
    held = max(system.expansion, system.read_ahead)
    ready = np.zeros(2 * everybody, np.int64)
    # The checkpointer has its number behind all cleaners that there could be.
    ready[: system.clients + cleaners] = np.arange(system.clients + cleaners)
    numbers[at.READY_LAST] = system.clients + cleaners
    thinkers = np.zeros((system.clients, 2), np.int64)
    if system.think:
        thinkers[:, 0], thinkers[:, 1] = system.think, np.arange(system.clients)
        numbers[at.THINKING] = system.clients
        ready[:cleaners] = system.clients + np.arange(cleaners)
        numbers[at.READY_LAST] = cleaners
    slots = np.zeros((system.most_requests, 5), np.int64)
    slots[:, at.WHO] = np.arange(1, len(slots) + 1)
    own, others = _pages_of(system.rows, system.policy.row)
    return Tables(
        system.policy.state(system.memory, system.pages, table=own), system.extension(others), numbers,
        system.policy.kernels, system.design.kernels, np.zeros((system.clients, 10), np.int64), np.zeros((system.clients, held), np.int64),
        np.zeros((most_cleanings, 4), np.int64), np.zeros(most_cleanings, np.int64), ready, thinkers,
        np.full(system.clients + most_cleanings + 1, -1), slots, np.zeros((0, 3), np.int64),
        np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros((intervals, len(COUNTED)), np.int64),
        np.zeros((intervals, kinds), np.int64), np.zeros(kinds, np.int64), np.zeros((asked, 7), np.int64),
    )  # fmt: skip


def _pages_of(rows: int, own: int) -> tuple[Numbers, Numbers]:
    """Tables of pages for the memory pool and for the SSD, whose rows are one: what is known of a page is in one line of a cache.

    The SSD's begins where its columns do in the first row.
    """
    columns = 1 << (own + PAGE_COLUMNS - 1).bit_length()
    room = rows_of(rows + 1, columns).reshape(-1)
    shifted = room[columns - PAGE_COLUMNS :][: rows * columns]
    return room[: rows * columns].reshape(rows, columns), shifted.reshape(rows, columns)

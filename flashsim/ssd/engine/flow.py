"""What is under way in the engine, and how long it takes: its tables (`flashsim.ssd.engine.operations`) as kernels take them."""

from typing import NamedTuple

from numba import types

from flashsim.core.array_types import MATRIX, VECTOR
from flashsim.core.request import Integers
from flashsim.ssd.state.flash import BLOCKS


class Flow(NamedTuple):
    """Operations in progress, and what they queue and wait for."""

    #: The engine's scalars.
    engine: Integers
    #: Pending events in a heap, a row with time and key for each.
    heap: Integers
    #: What the parts did (`flashsim.ssd.engine.span_log`).
    log: Integers
    #: Shape (capacity, OPERATION_COLUMNS).
    operations: Integers
    #: Dies, channels, the link and the controller, shape (n, SERVER_COLUMNS).
    servers: Integers
    #: What the next erase of each block waits for, shape (GATE_ROWS, blocks), in Fortran order.
    gates: Integers


class Times(NamedTuple):
    """How long things take, and how often they happened."""

    #: Durations and limits (`flashsim.ssd.state.timing`).
    timing: Integers
    #: How long so many sectors take on the host link, out of the drive and into it, shape (2, sectors of a page + 1).
    links: Integers
    #: `flashsim.ssd.state.drive_state.COUNTERS`.
    counters: Integers


FLOW = types.NamedTuple((VECTOR, MATRIX, MATRIX, MATRIX, MATRIX, BLOCKS), Flow)
TIMES = types.NamedTuple((VECTOR, MATRIX, VECTOR), Times)

"""The engine's record of what its parts did, a row a hold (`flashsim.core.spans`)."""

import numpy as np

from flashsim.core import spans as span_kinds
from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
from flashsim.core.spans import HOST, SPAN, Spans
from flashsim.ssd.engine.flow import Flow
from flashsim.ssd.engine.operations import COMMAND_KIND, REQUEST, SINCE
from flashsim.ssd.state.flash_array import CAUSE, ERASE_BLOCK, FETCH_PAGE, KIND, LOGICAL, MOVE_PAGE, READ_PAGE
from flashsim.ssd.state.geometry import DIES

SPAN_COLUMNS = 7
# Row 0 of the log: how many rows it has, and whether anything is to be recorded.
USED, RECORDING = range(2)

_READ, _PROGRAM, _ERASE = span_kinds.READ, span_kinds.PROGRAM, span_kinds.ERASE
_MOVE, _FETCH, _TRANSFER, _COMMAND = span_kinds.MOVE, span_kinds.FETCH, span_kinds.TRANSFER, span_kinds.COMMAND


@inlined_kernel
def kind_of_span(control: Integers, operations: Integers, server: int, row: int) -> int:
    kind = operations[row, KIND]
    if kind == COMMAND_KIND:
        return _COMMAND
    if server >= control[DIES]:
        return _TRANSFER
    if kind == READ_PAGE:
        return _READ
    if kind == FETCH_PAGE:
        return _FETCH
    if kind == MOVE_PAGE:
        return _MOVE
    return _ERASE if kind == ERASE_BLOCK else _PROGRAM


@inlined_kernel
def note_span(flow: Flow, control: Integers, server: int, row: int, now: int) -> None:
    """An operation gives up a server that it has held since SINCE, if only for a nanosecond (it may be interrupted at once)."""
    if flow.log[0, RECORDING] == 0 or flow.servers[server, SINCE] == now:
        return
    at = flow.log[0, USED] + 1
    flow.log[0, USED] = at
    command = flow.operations[row, KIND] == COMMAND_KIND
    flow.log[at, 0] = server
    flow.log[at, 1] = kind_of_span(control, flow.operations, server, row)
    flow.log[at, 2] = HOST if command else flow.operations[row, CAUSE]
    flow.log[at, 3] = flow.operations[row, REQUEST]
    flow.log[at, 4] = -1 if command else flow.operations[row, LOGICAL]
    flow.log[at, 5] = flow.servers[server, SINCE]
    flow.log[at, 6] = now


@inlined_kernel
def is_full(log: Integers, control: Integers) -> bool:
    """Whether one more event could need more rows than there are: it may free one part of each kind, and interrupt every die."""
    return log[0, RECORDING] != 0 and log[0, USED] + control[DIES] + 5 > log.shape[0]


def empty_log(rows: int) -> Integers:
    return np.zeros((rows + 1, SPAN_COLUMNS), np.int64)


def taken_spans(log: Integers) -> Spans:
    """What the log holds, in order of the ends, dtype SPAN; the log is empty then."""
    used = int(log[0, USED])
    spans = np.empty(used, SPAN)
    for column, name in enumerate(SPAN.names or ()):
        spans[name] = log[1 : used + 1, column]
    log[0, USED] = 0
    return spans

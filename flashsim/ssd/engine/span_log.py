"""The engine's log of spans (`flashsim.core.spans`)."""

import numpy as np

from flashsim.core import spans as span_kinds
from flashsim.core.kernel import inlined_kernel
from flashsim.core.records import RecordArray
from flashsim.core.spans import HOST, SPAN, Spans
from flashsim.ssd.engine.flow import Flow
from flashsim.ssd.engine.operations import COMMAND_KIND
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, MOVE_PAGE, READ_PAGE

_READ, _PROGRAM, _ERASE = span_kinds.READ, span_kinds.PROGRAM, span_kinds.ERASE
_MOVE, _FETCH, _TRANSFER, _COMMAND = span_kinds.MOVE, span_kinds.FETCH, span_kinds.TRANSFER, span_kinds.COMMAND


@inlined_kernel
def kind_of_span(control: RecordArray, operations: RecordArray, server: int, row: int) -> int:
    kind = operations[row].kind
    if kind == COMMAND_KIND:
        return _COMMAND
    if server >= control.dies:
        return _TRANSFER
    if kind == READ_PAGE:
        return _READ
    if kind == FETCH_PAGE:
        return _FETCH
    if kind == MOVE_PAGE:
        return _MOVE
    return _ERASE if kind == ERASE_BLOCK else _PROGRAM


@inlined_kernel
def note_span(flow: Flow, control: RecordArray, server: int, row: int, now: int) -> None:
    """An operation gives up a server that it has held for a while, if only for a nanosecond (it may be interrupted at once)."""
    if flow.engine.recording == 0 or flow.servers[server].since == now:
        return
    span, operation = flow.log[flow.engine.spans], flow.operations[row]
    flow.engine.spans += 1
    command = operation.kind == COMMAND_KIND
    span.server = server
    span.kind = kind_of_span(control, flow.operations, server, row)
    span.cause = HOST if command else operation.cause
    span.request = operation.request
    span.page = -1 if command else operation.logical
    span.begin = flow.servers[server].since
    span.end = now


@inlined_kernel
def is_full(flow: Flow, control: RecordArray) -> bool:
    """Whether one more event could need more rows than there are: it may free one part of each kind, and interrupt every die."""
    return flow.engine.recording != 0 and flow.engine.spans + control.dies + 4 > flow.log.shape[0]


def taken_spans(flow: Flow) -> Spans:
    """What the log holds, in order of the ends, dtype SPAN; the log is empty then."""
    spans = np.array(flow.log[: flow.engine.spans], SPAN)
    flow.engine.spans = 0
    return spans

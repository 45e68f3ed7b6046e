"""A join's memory in steps: what its buffers and its hash table hold at each request.

A join runs for this once more, without a device.  What its buffers hold is read as a debugger reads it, from the local variables of the
generators that are under way; so joins declare nothing for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import GeneratorType
from typing import Any

from algorithms.files import Output
from algorithms.hashing.buckets import Resident, keep, meet
from algorithms.hashing.table import nested_blocks
from algorithms.partitioning.base import scan
from flashsim.apps.watching.steps import Frame, Shape, Steps, label, legend
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.execution.drivers import run
from flashsim.execution.requests import Algorithm, Phase, Read, Request, Write, rewrite
from flashsim.storage.heap_file import HeapFile
from models.allocation.buffers import Allocation, NestedLoopsAllocation, exact

#: Pages of a memory at most: smaller squares could not be told apart.
MOST_PAGES = 512
_SIDE, _ACROSS, _LEFT = 15, 48, 100
#: Requests that are shown; of more every second, third and so on.
_MOST_SHOWN = 400


@dataclass(frozen=True)
class Memory:
    """What a join's memory holds when a request is made, in pages, of output by bucket; and how many have been made, with this one."""

    phase: str
    request: str
    requests: int
    input: int
    outputs: tuple[int, ...]
    table: int

    @property
    def used_buffers(self) -> int:
        return self.input + sum(self.outputs) + self.table


def memory_by_request(algorithm: Callable[[], Algorithm], files: Sequence[HeapFile], fudge: float) -> tuple[list[Memory], int]:
    """What a serial join holds at each of its requests, and how many requests the driver has counted.

    A join without input, output buffers or hash table of the kinds that are known here is a RefusedError.
    """
    moments: list[Memory] = []
    watched, phase, requests = algorithm(), "", 0
    last: Read | None = None

    def note(request: Request) -> Request:
        nonlocal phase, requests, last
        if isinstance(request, Phase):
            phase = request.name
        if isinstance(request, Read | Write):
            requests += len(request.counts)
            last = request if isinstance(request, Read) else last
            moments.append(_moment(watched, phase, request, requests, last, fudge))
        return request

    total = run(lambda: rewrite(watched, note), files)[0].total().requests
    if total and not any(each.outputs or each.table for each in moments):
        raise RefusedError("join: its buffers cannot be watched; those of bnl, grace-hash, hybrid-hash and simple-hash can")
    return moments, total


def _under_way(algorithm: Any) -> Iterator[GeneratorType[Any, Any, Any]]:
    """The generators that are under way, the outermost first; `rewrite` asks the one that it is given by itself."""
    while isinstance(algorithm, GeneratorType) and algorithm.gi_frame is not None:
        yield algorithm
        algorithm = algorithm.gi_frame.f_locals["algorithm"] if algorithm.gi_code is rewrite.__code__ else algorithm.gi_yieldfrom


def _moment(algorithm: Algorithm, phase: str, request: Read | Write, requests: int, last: Read | None, fudge: float) -> Memory:
    held, table = int(last.counts.sum()) if last else 0, 0
    outputs: tuple[int, ...] = ()
    for each in _under_way(algorithm):
        own = each.gi_frame.f_locals  # type: ignore[union-attr]  # it is under way
        if each.gi_code is scan.__code__ and isinstance(own["output"], Output):
            outputs = tuple(own["output"].pages_in_use)
        if each.gi_code in (keep.__code__, meet.__code__):
            resident: Resident = own["resident"]
            table = math.ceil(resident.pages * exact(fudge))
        if each.gi_code is nested_blocks.__code__ and "end" in own:
            table = math.ceil((own["end"] - own["first"]) * exact(fudge))
            held = held if last and last.file is own["s"] else 0  # a chunk of R is read into the place of its table
    pages, verb = int(request.counts.sum()), "read" if isinstance(request, Read) else "write"
    text = f"{verb} {pages} page{'s' * (pages > 1)} of {request.file.name}"
    return Memory(phase, text, requests, held, outputs, table)


def memory_in_steps(
    title: str, algorithm: Callable[[], Algorithm], files: Sequence[HeapFile], memory: int, allocation: Allocation, fudge: float
) -> Steps:
    """A join's memory, one square per page, at its requests; of more than fit a picture, every second, third and so on.

    A memory too large to be drawn is an InvalidParameterError.
    """
    if memory > MOST_PAGES:
        raise InvalidParameterError("memory", f"{memory} pages", f"at most {MOST_PAGES} can be drawn; join in less, or on larger pages")
    moments, total = memory_by_request(algorithm, files, fudge)
    shown = moments[:: max(1, -(-len(moments) // _MOST_SHOWN))]
    if moments and shown[-1] is not moments[-1]:
        shown.append(moments[-1])
    room = {name: getattr(allocation, name, 0) for name in ("input", "output", "workspace", "phase2_input", "phase2_workspace")}
    if isinstance(allocation, NestedLoopsAllocation):
        room |= {"input": allocation.inner, "workspace": allocation.outer}
    drawings = [_squares(each, room, memory) for each in shown]
    frames = [
        Frame(f"{each.phase}: {each.request}. Request {each.requests} of {total}; {each.used_buffers} of {memory} pages in use", shapes)
        for each, (shapes, _) in zip(shown, drawings, strict=True)
    ]
    height = max((bottom for _, bottom in drawings), default=0.0)
    return Steps(title, (_LEFT + _ACROSS * _SIDE + 10, height + 6), frames or [Frame("no request", [])], len(frames) // 2)


def _squares(moment: Memory, room: dict[str, int], memory: int) -> tuple[list[Shape], float]:
    second = not moment.outputs and moment.table and room["phase2_workspace"] and moment.phase == "join"
    names = ("phase2_input", "phase2_workspace") if second else ("input", "workspace")
    groups = [("input", "input", moment.input, room[names[0]])]
    groups += [(f"bucket {number}", "output", pages, room["output"]) for number, pages in enumerate(moment.outputs)]
    groups.append(("hash table", "table", moment.table, room[names[1]]))
    shapes, y = legend({"input": "input", "output": "output buffers", "table": "hash table", "free": "free"}, 8, 6), 30.0
    for name, kind, used, planned in groups:
        for page in range(max(used, min(planned, memory))):
            x, down = _LEFT + page % _ACROSS * _SIDE, y + page // _ACROSS * _SIDE
            text = f"{name}: {used} of {planned} pages in use"
            shapes.append(Shape(x, down, _SIDE - 3, _SIDE - 3, kind if page < used else "free", text))
        shapes.append(label(4, y + 10, f"{name} {used}"))
        y += max(1, -(-max(used, min(planned, memory)) // _ACROSS)) * _SIDE + 3
    return shapes, y

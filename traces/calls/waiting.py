"""Requests as they are made: each waits for the one that its thread waited for, or for another, and has a time to think.

A thread begins where the one was that made it.  One that has waited for the end of a process goes on where that, or it itself, was later,
as a request waits for one other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa

from traces.calls.processes import BIRTHS, WAITS
from traces.calls.schema import Call
from traces.file.schema import make_batch

#: Most requests from one that a request waits for to that request (`traces.file.recording`).
_BACK = 1 << 15


@dataclass
class Strand:
    """A thread, as its requests wait for each other."""

    #: Number of the request that it waited for last; -1: none.
    last: int = -1
    #: When it went on after that, as recorded, ns.
    since: int = 0

    def wait(self, number: int, end: int) -> None:
        self.last, self.since = max(self.last, number), end


class Strands:
    """All threads of a program."""

    def __init__(self) -> None:
        self._threads = defaultdict[int, dict[int, Strand]](dict)
        #: Threads that were made and have not called, and processes for which a thread waited last.
        self._made, self._ended = dict[int, Strand](), dict[int, int]()

    def at(self, call: Call) -> Strand:
        threads, thread = self._threads[call.process], call.thread
        if thread in self._made or thread not in threads:
            threads[thread] = self._made.pop(thread, Strand())
        strand = self._gone_on(thread, threads[thread])
        if call.result and call.call in BIRTHS:
            self._made[call.result] = replace(strand)
        elif call.result and call.call in WAITS:
            self._ended[thread] = call.result
        return strand

    def _gone_on(self, thread: int, strand: Strand) -> Strand:
        """A thread that goes on where a process ended for which it waited."""
        if thread in self._ended:
            ended = self._threads.pop(self._ended.pop(thread), {})
            latest = max([strand, *(self._gone_on(*each) for each in ended.items())], key=lambda each: each.since)
            strand.last, strand.since = latest.last, latest.since
        return strand

    @property
    def latest(self) -> Strand | None:
        """The thread that waited for the last request; None if there is no thread."""
        return max((each for threads in self._threads.values() for each in threads.values()), key=lambda each: each.last, default=None)


class Request(NamedTuple):
    """A request, with columns of `traces.file.schema.SCHEMA`; `tag` is the number of the call that caused it, -1 for none."""

    operation: int
    offset: int
    length: int
    flags: int
    tag: int
    dependency: int
    think: int
    arrival: int
    label: str


class Requests:
    """Requests, and the latest of them that were not handed out; `call` is the number of the call that causes what is added."""

    def __init__(self) -> None:
        self.rows: list[Request] = []
        self.count = 0
        self.call = -1
        self._latest = 0

    def add(
        self, operation: int, place: tuple[int, int], strand: Strand, time: int, label: str = "", after: int = -1, flags: int = 0
    ) -> int:
        """Add a request to a place, which comes after another one, or after the last that its thread waited for; return its number."""
        dependency, think = (after, 0) if after >= 0 else (strand.last, max(0, time - strand.since))
        if dependency < 0:
            think = 0
        elif self.count - dependency > _BACK:
            dependency, think = self.count - 1, max(0, time - self._latest)
        self._latest = max(self._latest, time)
        self.rows.append(Request(operation, *place, flags, self.call, dependency, think, self._latest, label))
        self.count += 1
        return self.count - 1

    def batch(self) -> pa.RecordBatch:
        columns: dict[str, Any] = {name: list(values) for name, values in zip(Request._fields, zip(*self.rows, strict=True), strict=True)}
        labels = pa.array(columns.pop("label"), pa.string()).dictionary_encode()
        first, self.rows = self.count - len(self.rows), []
        return make_batch(columns, first, labels)

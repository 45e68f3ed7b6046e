"""Basis of every specification in SimPy: the host's queues, which `core.host` compiles, and the face of a device behind them.

Order of events that fall on one nanosecond: what follows without delay (SimPy's own priorities 0 and 1), at its end the dispatch of
commands, then arrivals by request id, then device operations by operation id.  SimPy's plain ``timeout`` would break ties by the order of
creation instead, so every delay is made by `delay` with its own priority.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from flashsim.core.errors import check_least
from flashsim.core.host import NO_BOUND, Slots
from flashsim.core.host_queue import check_arrivals, check_commands
from flashsim.core.model import DeviceModel, check_until
from flashsim.core.request import COMPLETION, READ, Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER

#: Immediate follow-ups use SimPy's priorities URGENT (0) and NORMAL (1); commands are dispatched after them.
DISPATCH = 2
#: Priorities of the two kinds of primary events.
ARRIVALS = 3
OPERATIONS = 1 << 60


def delay(env: simpy.Environment, duration: int, priority: int) -> simpy.Event:
    """An event `duration` ns from now that is ordered among events of its nanosecond by `priority`."""
    event = env.event()
    event._ok, event._value = True, None
    env.schedule(event, priority=priority, delay=duration)  # type: ignore[arg-type]
    return event


def follow(event: simpy.Event, call: Callable[[], None]) -> None:
    """Call a function when an event happens, after those that wait for it already."""
    assert event.callbacks is not None
    event.callbacks.append(lambda _: call())


@dataclass(eq=False)
class SubmissionQueue:
    """Requests that wait for their dispatch, first come, first served."""

    waiting: deque[HostRequest] = field(default_factory=deque)
    dispatched: int = 0  # commands of the first one that waits
    in_flight: int = 0


@dataclass
class HostRequest:
    """One request of the host, and its life."""

    queue: SubmissionQueue
    id: int
    tag: int
    operation: int
    flags: int
    think: int
    commands: list[tuple[int, int]]  # (offset, length), bytes
    pending: int = 0
    dependents: list[HostRequest] = field(default_factory=list)
    submitted: int = 0
    arrived: int = 0
    started: int = -1
    completed: int = -1


class SpecifiedHost:
    """Queues requests and hands their commands to `admit(request, offset, length)`; `open` are those that have not completed, by id.

    Each of the submission queues has at most `depth` commands in flight.  A read, and any other request, is on its way to the device for as
    many nanoseconds as `submission` tells.  Commands of all queues hold `slots` from their dispatch until they complete: the next waits,
    and those behind it, until it finds as many as it takes.
    """

    def __init__(
        self,
        env: simpy.Environment,
        depth: int,
        admit: Callable[[HostRequest, int, int], None],
        queues: int = 1,
        submission: tuple[int, int] = (0, 0),
        slots: Slots = NO_BOUND,
    ) -> None:
        check_least(1, depth=depth, queues=queues)
        self.depth = depth
        self.admit = admit
        self.submission, self.slots = submission, slots
        self._next_id = 0
        self._begin(env, queues)

    def _begin(self, env: simpy.Environment, queues: int) -> None:
        self.env = env
        self.queues = [SubmissionQueue() for _ in range(queues)]
        self.turns = deque(self.queues)  # in the order of their turns
        self.completed: list[HostRequest] = []
        self.open: dict[int, HostRequest] = {}
        self.slots_taken = 0

    def clear(self, env: simpy.Environment) -> None:
        """Forget all requests, and go on in another environment; ids go on too."""
        self._begin(env, len(self.queues))

    @property
    def unfinished_requests(self) -> Integers:
        """The ids of requests that have not completed, ascending."""
        return np.array(sorted(self.open), np.int64)

    def append(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take new requests, as `core.host_queue.HostQueue.append` does."""
        check_arrivals(requests, at, self.env.now)  # type: ignore[arg-type]
        check_commands(commands, len(requests))
        arrivals = np.broadcast_to(np.asarray(at), len(requests))
        parts: list[list[tuple[int, int]]] = [[] for _ in requests]
        for command in commands:
            parts[command["request"]].append((int(command["offset"]), int(command["length"])))
        entries: list[HostRequest] = []
        for row, extents, arrival in zip(requests, parts, arrivals, strict=True):
            queue = self.queues[row["stream"] % len(self.queues)]
            tag, operation, flags, think = (int(row[name]) for name in ("tag", "operation", "flags", "think"))
            request = HostRequest(queue, self._next_id, tag, operation, flags, think, extents)
            request.pending = len(extents)
            self._next_id += 1
            entries.append(request)
            if row["dependency"] >= 0:
                entries[row["dependency"]].dependents.append(request)
            else:
                self._arrive_after(request, int(arrival) - int(self.env.now))
        self.open.update((request.id, request) for request in entries)
        return np.array([request.id for request in entries], np.int64)

    def _arrive_after(self, request: HostRequest, duration: int) -> None:
        """Submit a request `duration` ns from now: it arrives after its way to the device."""
        request.submitted = int(self.env.now) + duration
        event = delay(self.env, duration + self.submission[request.operation != READ], ARRIVALS + request.id)
        follow(event, lambda: self._arrive(request))

    def _arrive(self, request: HostRequest) -> None:
        request.arrived = int(self.env.now)
        request.queue.waiting.append(request)
        self._dispatch()

    def _dispatch(self) -> None:
        while able := [queue for queue in self.turns if queue.waiting and queue.in_flight < self.depth]:
            queue = min(able, key=lambda queue: (queue.waiting[0].arrived, queue.waiting[0].id)) if self.slots.by_arrival else able[0]
            request = queue.waiting[0]
            taken = self.slots.count_for(request.operation, request.commands[queue.dispatched][1])
            if self.slots_taken + taken > self.slots.number > 0:
                return
            self.slots_taken += taken
            self.turns.rotate(-1 - self.turns.index(queue))
            if queue.dispatched == 0:
                request.started = int(self.env.now)
            offset, length = request.commands[queue.dispatched]
            queue.dispatched += 1
            queue.in_flight += 1
            if queue.dispatched == len(request.commands):
                queue.dispatched = 0
                queue.waiting.popleft()
            self.admit(request, offset, length)

    def command_done(self, request: HostRequest, slots: int = 0) -> None:
        """Account for a command that completes now and held so many slots.

        Once all else that follows from the event has happened, what waits is admitted.
        """
        request.queue.in_flight -= 1
        self.slots_taken -= slots
        request.pending -= 1
        if request.pending == 0:
            request.completed = int(self.env.now)
            self.completed.append(request)
            del self.open[request.id]
            for dependent in request.dependents:
                self._arrive_after(dependent, dependent.think)
        follow(delay(self.env, 0, DISPATCH), self._dispatch)

    def collect(self) -> Completions:
        """The requests that completed since the last call, in order of completion, dtype COMPLETION."""
        completions = np.array([(r.id, r.tag, r.submitted, r.started, r.completed) for r in self.completed], COMPLETION)
        self.completed.clear()
        return completions


class SpecifiedDevice(DeviceModel):
    """The part of `core.model.DeviceModel` that all specifications share, over a host and parameters that have a capacity."""

    parameters: Any
    env: simpy.Environment
    host: SpecifiedHost

    @property
    def capacity(self) -> int:
        return int(self.parameters.capacity)

    @property
    def now(self) -> int:
        return int(self.env.now)

    @property
    def outstanding(self) -> int:
        return len(self.host.open)

    @property
    def next_event(self) -> int:
        return int(min(self.env.peek(), NEVER))

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        return self.host.append(requests, commands, at)

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        check_until(until, self.now)
        wait = NEVER if every else wait
        while len(self.host.completed) < wait and (until != NEVER or self.host.open) and self.next_event <= until:
            self._step()
        if self.now < until < NEVER and len(self.host.completed) < wait:
            self.env.run(int(until))
        return self.host.collect()

    def _step(self) -> None:
        self.env.step()

"""Sessions inside a drive: extents are read from flash into the drive's memory, its cores work on them, results wait for the host.

A session reads on while one of the extents that it was granted is free, and a step begins when its extent is in memory, a core is free,
the session has fewer at work than its threads, and its results will have room.  Free cores go to the sessions in turn.  Everything else,
the host's requests among it, is the drive's: reads of flash, the bus, the link and the controller.

Order within a nanosecond: the drive's events, each followed at once by what it lets begin; then ends of steps, in the order in which they
began; then sessions whose host was silent for too long.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.host_queue import one_command_each
from flashsim.core.model import DeviceModel
from flashsim.core.request import IN_MEMORY, INTERNAL, READ, SECTOR, WRITE, Commands, Completions, Integers, Requests, make_requests
from flashsim.core.spans import HOST, SPAN, STEP, Spans, SpanSource
from flashsim.core.units import NEVER
from flashsim.device import engines, presets
from flashsim.device.smart.inside import Inside
from flashsim.device.smart.protocol import TRANSITIONS, Answer, Event, Grant, State, Status, Task, Verb, grant_of

#: What follows from the completion of a request; of a command of the protocol its answer.
Reaction = Callable[[], Answer | None]


@dataclass(eq=False)
class Session:
    """A program at work in the drive, and what it holds there."""

    number: int
    task: Task
    grant: Grant
    state: State = State.RUNNING
    next_step: int = 0  # to be read
    ended: int = 0  # steps that a core has worked on
    reading: int = 0  # extents on their way into memory
    ready: deque[int] = field(default_factory=deque)  # steps whose extents wait for a core
    at_work: int = 0
    writing: int = 0  # extents whose output is on its way to flash
    results: int = 0  # bytes that wait for the host
    promised: int = 0  # bytes of steps at work, and of answers under way
    commands: int = 0  # of its host, under way
    silent_since: int = 0

    def happens(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state, event]

    @property
    def live(self) -> bool:
        return self.state is not State.CLOSING

    @property
    def free_extents(self) -> int:
        return self.grant.extents - self.reading - len(self.ready) - self.at_work - self.writing

    @property
    def reads_on(self) -> bool:
        """True if an extent is to be read, and the memory for it is free."""
        running = self.state is State.RUNNING and self.next_step < len(self.task.steps.offsets)
        return running and self.task.steps.lengths[self.next_step] > 0 and self.free_extents > 0

    @property
    def reads_nothing(self) -> bool:
        """True if the next step has no extent, and all steps before it have ended."""
        running = self.state is State.RUNNING and self.ended == self.next_step < len(self.task.steps.offsets)
        return running and self.task.steps.lengths[self.next_step] == 0

    @property
    def may_work(self) -> bool:
        if not self.ready or self.at_work >= self.grant.threads:
            return False
        return self.results + self.promised + int(self.task.steps.results[self.ready[0]]) <= self.grant.room


@dataclass(eq=False)
class SessionCommand:
    """A command of the protocol under way."""

    verb: Verb
    number: int = -1  # of the session
    session: Session | None = None  # if the drive had it when the command came
    task: Task | None = None
    results: int = 0  # bytes on their way to the host
    request: int = -1  # number of the request that it is to the drive


class SmartDrive:
    """A flash drive that runs programs: a drive's model with a bus of its memory, the engine or the specification, and sessions over it."""

    def __init__(self, model: DeviceModel, inside: Inside) -> None:
        self.model, self.inside = model, inside
        self.sessions: dict[int, Session] = {}
        self.free_memory = inside.memory
        #: Time in which cores were at work, all together.
        self.core_busy_ns = 0
        self._turns: deque[Session] = deque()
        self._next_session = self._begun = 0
        self._reactions: dict[int, Reaction] = {}  # by number of the request
        self._works: list[tuple[int, int, Session, int, int, int]] = []  # end, number, session, step, begin, core
        self._idle_cores = list(range(inside.cores))  # a heap
        self._steps: list[tuple[int, ...]] | None = None  # spans of steps, if they are recorded

    @classmethod
    def of(cls, preset: presets.Preset, model: str = "engine") -> SmartDrive:
        """A fresh drive of a preset, whose model is ``"engine"`` or ``"specification"``."""
        if preset.inside is None:
            raise RefusedError(f"device: {preset.name} has no [inside] to run programs in; samsung-smart-400gb has")
        kind, _ = engines.classes_of(preset, model)
        engines.finish(preset, model)
        return cls(kind(preset.parameters), preset.inside)

    @property
    def now(self) -> int:
        return self.model.now

    def record_spans(self, on: bool) -> None:
        """Begin or stop to record what the parts of the drive do; see `flashsim.core.spans.SpanSource`."""
        cast(SpanSource, self.model).record_spans(on)
        self._steps = [] if on else None

    def spans(self) -> Spans:
        """Holds that ended since the last call: of the drive's parts, and of its cores, whose page is the step."""
        steps, drive = np.array(self._steps or [], SPAN), self.model.parameters  # type: ignore[attr-defined]
        steps["server"] += drive.dies + drive.channels + 3  # cores come after all other servers
        self._steps = None if self._steps is None else []
        return np.concatenate([cast(SpanSource, self.model).spans(), steps])

    def statistics(self) -> dict[str, Any]:
        """The drive's counters since it was made, and the busy time of its cores."""
        return self.model.statistics() | {"core_busy_ns": self.core_busy_ns}

    @property
    def busy(self) -> bool:
        """True if commands or steps are under way, or requests of the host."""
        return bool(self._works or self.model.outstanding)

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        return self.model.submit(requests, commands, at)

    def open(self, task: Task) -> int:
        """Send OPEN now; return the command's number, which its `Answer` bears.  Of parameters the drive takes what its memory holds."""
        return self._send(SessionCommand(Verb.OPEN, task=task), WRITE, max(min(task.parameters, self.inside.memory), 1))

    def get(self, session: int, most: int) -> int:
        """Send GET now, for at most so many bytes of results, one or more; return the command's number."""
        if most < 1:
            raise InvalidParameterError("most", most, "GET brings at least 1 B if there is any")
        command = SessionCommand(Verb.GET, session, self.sessions.get(session))
        if command.session and command.session.live:
            command.results = min(most, command.session.results)
            command.session.results -= command.results
            command.session.promised += command.results
        return self._send(command, READ, max(command.results, 1))

    def close(self, session: int) -> int:
        """Send CLOSE now; return the command's number."""
        return self._send(SessionCommand(Verb.CLOSE, session, self.sessions.get(session)), WRITE, 1)

    def _send(self, command: SessionCommand, operation: int, size: int) -> int:
        if command.session:
            command.session.commands += 1
        length = -(-min(size, self.model.capacity) // SECTOR) * SECTOR
        (command.request,) = self._submit(operation, 0, length, [partial(self._answer, command)], IN_MEMORY)
        return command.request

    def _submit(self, operation: int, offsets: Any, lengths: Any, reactions: Sequence[Reaction], flags: int = INTERNAL) -> list[int]:
        """Submit requests now, each with the reaction to its completion; return their numbers."""
        requests = make_requests(operation, offsets, lengths)
        requests["flags"] = flags
        numbers: list[int] = self.model.submit(requests, one_command_each(requests), self.now).tolist()
        for number, reaction in zip(numbers, reactions, strict=True):
            self._expect(number, reaction)
        return numbers

    def _expect(self, number: int, reaction: Reaction) -> None:
        self._reactions[number] = reaction

    def advance(self, until: int = NEVER) -> tuple[Completions, list[Answer]]:
        """Let time pass up to the earlier of `until` and the next thing that the host notices.

        Return completions of the host's own requests, dtype COMPLETION, and answers to commands of the protocol.
        """
        while True:
            bound = min(until, self._works[0][0] if self._works else NEVER, *(at for at, _ in self._silences()))
            completions = self.model.advance(bound)
            reactions = [self._reactions.pop(number, None) for number in completions["id"].tolist()]
            answers = [answer for reaction in reactions if reaction and (answer := reaction())]
            own = completions[[reaction is None for reaction in reactions]]
            if not len(completions):
                if self.now < bound or bound == NEVER:
                    return completions, []
                ending = [work for work in self._works if work[0] <= self.now]
                for _ in ending:
                    self._end_first()
                if not ending and not self._end_silence() and bound == until:
                    return completions, []
            self._go_on()
            if len(own) or answers:
                return own, answers

    def _finish_read(self, session: Session, step: int) -> None:
        session.reading -= 1
        if session.state is State.RUNNING:
            session.ready.append(step)
        self._forget_if_drained(session)

    def _finish_write(self, session: Session) -> None:
        session.writing -= 1
        self._step_is_done(session)
        self._forget_if_drained(session)

    def _answer(self, command: SessionCommand) -> Answer:
        """A command of the protocol has passed the link."""
        if command.task is not None:
            status, session = self._open(command.task)
            return Answer(command.request, command.verb, session, status, 0, self.now)
        known, status, results = command.session, Status.NO_SESSION, 0
        if known:
            known.commands -= 1
            known.silent_since = self.now
            known.promised -= command.results
            if known.live and command.verb is Verb.CLOSE:
                status = Status.DONE
                self._stop(known, Event.CLOSE)
            elif known.state is State.FAILED:
                status = Status.PROGRAM_FAILED
            elif known.live:
                status = Status.MORE if known.state is State.RUNNING or known.results > 0 else Status.DONE
                results = command.results
            self._forget_if_drained(known)
        return Answer(command.request, command.verb, command.number, status, results, self.now)

    def _open(self, task: Task) -> tuple[Status, int]:
        grant = grant_of(task, self.inside, self.model.capacity, len(self.sessions), self.free_memory)
        if isinstance(grant, Status):
            return grant, -1
        self.free_memory -= grant.memory
        session = Session(self._next_session, task, grant, silent_since=self.now)
        self._next_session += 1
        self.sessions[session.number] = session
        self._turns.append(session)
        if not len(task.steps.offsets):
            session.happens(Event.LAST_STEP)
        return Status.DONE, session.number

    def _stop(self, session: Session, event: Event) -> None:
        """End a session's work: what is under way ends first, and is forgotten."""
        session.happens(event)
        session.ready.clear()
        session.results = 0

    def _forget_if_drained(self, session: Session) -> None:
        """Forget a session that is being closed once nothing of it is under way."""
        if session.state is State.CLOSING and not (session.reading or session.at_work or session.writing or session.commands):
            session.happens(Event.DRAINED)
            self.free_memory += session.grant.memory
            del self.sessions[session.number]
            self._turns.remove(session)

    def _end_first(self) -> None:
        end, _, session, step, begin, core = heapq.heappop(self._works)
        heapq.heappush(self._idle_cores, core)
        self.core_busy_ns += end - begin
        if self._steps is not None:
            self._steps.append((core, STEP, HOST, -1, step, begin, end, -1, 1, -1))
        steps = session.task.steps
        size = int(steps.results[step])
        session.at_work -= 1
        session.promised -= size
        if session.state is State.RUNNING:
            session.results += size
            if step == session.task.failure:
                self._stop(session, Event.FAULT)
            elif steps.outputs is not None and steps.targets is not None and steps.outputs[step]:
                session.writing += 1
                self._submit(WRITE, steps.targets[step], steps.outputs[step], [partial(self._finish_write, session)])
            else:
                self._step_is_done(session)
        self._forget_if_drained(session)

    def _step_is_done(self, session: Session) -> None:
        if session.state is State.RUNNING:
            session.ended += 1
            if session.ended == len(session.task.steps.offsets):
                session.happens(Event.LAST_STEP)

    def _silences(self) -> list[tuple[int, Session]]:
        """Sessions whose hosts have no command under way, each with the time at which its host has been silent for too long."""
        sessions = self.sessions.values()
        return [(each.silent_since + self.inside.patience, each) for each in sessions if each.live and not each.commands]

    def _end_silence(self) -> bool:
        silent = [session for at, session in self._silences() if at <= self.now]
        for session in silent:
            self._stop(session, Event.SILENCE)
            self._forget_if_drained(session)
        return bool(silent)

    def _go_on(self) -> None:
        for session in self.sessions.values():
            if session.reads_nothing:
                session.ready.append(session.next_step)
                session.next_step += 1
        while self._idle_cores and (following := next((each for each in self._turns if each.may_work), None)):
            self._turns.rotate(-1 - self._turns.index(following))
            self._begin_step(following)
        for session in self.sessions.values():
            if session.reads_on:
                self._read(session)

    def _begin_step(self, session: Session) -> int:
        step = session.ready.popleft()
        session.at_work += 1
        session.promised += int(session.task.steps.results[step])
        duration = max(1, int(session.task.steps.work[step]))
        heapq.heappush(self._works, (self.now + duration, self._begun, session, step, self.now, heapq.heappop(self._idle_cores)))
        self._begun += 1
        return duration

    def _read(self, session: Session) -> None:
        steps, first = session.task.steps, session.next_step
        ahead = steps.lengths[first : first + session.free_extents]
        last = first + (len(ahead) if ahead.all() else int(np.argmin(ahead)))
        arrivals = [partial(self._finish_read, session, step) for step in range(first, last)]
        self._submit(READ, steps.offsets[first:last], steps.lengths[first:last], arrivals)
        session.next_step = last
        session.reading += last - first

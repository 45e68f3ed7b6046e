"""The runtime's clock in SimPy, to be read: a command, an extent on its way, a step and a silence are processes, over the drive's own.

What commands do to sessions, and who is next for cores and reads, is said once, in `runtime`; when it happens is said here and there.
Order of events that fall on one nanosecond: those of the drive, after each of which what waited for a request goes on, and what may begin
begins; then ends of steps in the order in which they began, after all of which what may begin begins; then silences.
"""

from __future__ import annotations

import heapq
from typing import Any, cast

import numpy as np
import simpy

from flashsim.core.host_specification import ARRIVALS, HostRequest, delay
from flashsim.core.request import COMPLETION, Completions
from flashsim.core.units import NEVER
from flashsim.device.smart.inside import Inside
from flashsim.device.smart.protocol import Answer
from flashsim.device.smart.runtime import Command, Session, SmartDrive
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.specification.parts import Steps

#: Priorities within a nanosecond: after what follows from an event of the drive and before the next, and after all events of the drive.
_REACTION = cast(int, (2 + ARRIVALS) / 2)
_STEPS, _DECISION, _SILENCE = 1 << 61, 1 << 62, 1 << 63


class SmartSpecification(SmartDrive):
    """A drive that runs programs as SimPy processes; takes what `SmartDrive` takes, over a drive's specification."""

    def __init__(self, model: SsdSpecification, inside: Inside) -> None:
        super().__init__(model, inside)
        self.env, self._host = model.env, model.host
        self._awaited: dict[int, simpy.Event] = {}  # by number of the request
        self._answers: list[Answer] = []
        self._own: list[Completions] = []
        self._silences: dict[simpy.Event, tuple[Session, int]] = {}
        self._command_done, self._host.command_done = self._host.command_done, self._react

    def _at(self, priority: int, action: Any, duration: int = 0) -> simpy.Event:
        event = delay(self.env, duration, priority)
        assert event.callbacks is not None
        event.callbacks.append(lambda _: action())
        return event

    def _react(self, request: HostRequest) -> None:
        """A command of the drive is done: once all that follows has happened, those that waited for its request go on."""
        self._command_done(request)
        if len(self._host.completed) == 1 and request.pending == 0:
            self._at(_REACTION, self._go_on_with_completions)

    def _go_on_with_completions(self) -> None:
        completions = self._host.collect()
        awaited = [self._awaited.pop(number, None) for number in completions["id"].tolist()]
        self._own.append(completions[[event is None for event in awaited]])
        for event in awaited:
            if event is not None:
                event.succeed()
        self._at(_REACTION, self._go_on)

    def _wait(self, number: int) -> simpy.Event:
        event = self._awaited[number] = self.env.event()
        return event

    def _send(self, command: Command, operation: int, size: int) -> int:
        number = super()._send(command, operation, size)
        self.env.process(self._command(number, command, self._wait(number)))
        return number

    def _command(self, number: int, command: Command, completed: simpy.Event) -> Steps:
        """A command of the protocol passes the link, and is answered; from then on its host may be silent."""
        yield completed
        del self._commands[number]
        answer = self._answer(number, command)
        self._answers.append(answer)
        session = self.sessions.get(answer.session) if not answer.status.is_error else command.session
        if session and session.live and not session.commands:
            silence = self._at(_SILENCE, self._end_silence, self.inside.patience)
            self._silences[silence] = (session, session.silent_since)

    def _read(self, session: Session) -> None:
        before = set(self._reads)
        super()._read(session)
        for number in self._reads.keys() - before:
            self.env.process(self._extent(number, self._wait(number)))

    def _extent(self, number: int, completed: simpy.Event) -> Steps:
        """An extent comes from flash over the bus into memory."""
        yield completed
        self._arrived(number)

    def _write(self, session: Session, step: int) -> None:
        before = set(self._writes)
        super()._write(session, step)
        (number,) = self._writes.keys() - before
        self.env.process(self._output(number, self._wait(number)))

    def _output(self, number: int, completed: simpy.Event) -> Steps:
        """The output of a step goes to flash."""
        yield completed
        self._stored(number)

    def _begin_step(self, session: Session) -> None:
        super()._begin_step(session)
        end, number, *_ = next(work for work in self._works if work[1] == self._begun - 1)
        self.env.process(self._step(end - self.now, number))

    def _step(self, duration: int, number: int) -> Steps:
        """A core works on an extent."""
        yield delay(self.env, duration, _STEPS + number)
        self._end_first()
        self._at(_DECISION, self._go_on)

    def advance(self, until: int = NEVER) -> tuple[Completions, list[Answer]]:
        """Let time pass up to the earlier of `until` and the next thing that the host notices; see `SmartDrive.advance`."""
        queue = self.env._queue
        while True:
            while queue and self._is_past(queue[0][3]):
                heapq.heappop(queue)
            follows = bool(queue) and queue[0][0] == self.now and queue[0][1] < ARRIVALS
            noticed = bool(self._answers or any(map(len, self._own)))
            if not queue or queue[0][0] > until or (noticed and not follows):
                break
            self.env.step()
        if not noticed and until < NEVER:
            self.env._now = max(self.now, until)
        own, answers = np.concatenate([np.zeros(0, COMPLETION), *self._own]), self._answers
        self._own, self._answers = [], []
        return own, answers

    def _is_past(self, event: Any) -> bool:
        """True of a silence that a command has ended, or of a session that is being closed."""
        session, since = self._silences.get(event, (None, 0))
        return session is not None and (not session.live or bool(session.commands) or session.silent_since != since)

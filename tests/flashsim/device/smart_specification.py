"""The runtime's clock in SimPy, to be read: a request, a step and a silence are processes, over the drive's own.

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
from flashsim.device.smart.runtime import Reaction, Session, SessionCommand, SmartDrive
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.specification.shared import Steps

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
        self._silent: dict[simpy.Event, tuple[Session, int]] = {}
        self._command_done, self._host.command_done = self._host.command_done, self._react

    def _at(self, priority: int, action: Any, duration: int = 0) -> simpy.Event:
        event = delay(self.env, duration, priority)
        assert event.callbacks is not None
        event.callbacks.append(lambda _: action())
        return event

    def _react(self, request: HostRequest, slots: int) -> None:
        """A command of the drive is done: once all that follows has happened, those that waited for its request go on."""
        self._command_done(request, slots)
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

    def _expect(self, number: int, reaction: Reaction) -> None:
        completed = self._awaited[number] = self.env.event()
        self.env.process(self._request(completed, reaction))

    def _request(self, completed: simpy.Event, reaction: Reaction) -> Steps:
        """A command of the protocol passes the link, an extent comes from flash into memory, or the output of a step goes to flash."""
        yield completed
        reaction()

    def _answer(self, command: SessionCommand) -> Answer:
        """Answer a command; from then on its host may be silent."""
        answer = super()._answer(command)
        self._answers.append(answer)
        session = self.sessions.get(answer.session) if not answer.status.is_error else command.session
        if session and session.live and not session.commands:
            silence = self._at(_SILENCE, self._end_silence, self.inside.patience)
            self._silent[silence] = (session, session.silent_since)
        return answer

    def _begin_step(self, session: Session) -> int:
        duration = super()._begin_step(session)
        self.env.process(self._step(duration, self._begun - 1))
        return duration

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
        session, since = self._silent.get(event, (None, 0))
        return session is not None and (not session.live or bool(session.commands) or session.silent_since != since)

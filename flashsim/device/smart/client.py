"""The host of programs inside drives: it opens a session on each drive, gets results by polling as long as there are any, and closes it."""

import heapq
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import COMPLETION, Completions
from flashsim.core.units import MIB, MILLISECONDS, transfer_time
from flashsim.device.smart.protocol import Answer, Status, Task
from flashsim.device.smart.runtime import SmartDrive


@dataclass(frozen=True)
class Polling:
    """Habits of a host."""

    pause: int = MILLISECONDS  #: Time from a GET that brought nothing to the next, ns.
    most: int = MIB  #: Bytes of results that a GET brings at most.
    rate: int = 0  #: Bytes of results a second that the host takes in and merges, from all drives together; 0: in no time.


class Share(NamedTuple):
    """Outcome of one drive's session; times in ns."""

    #: DONE, or the error that ended the session.
    status: Status
    begin: int
    #: When OPEN was answered, and when the last result was merged.
    opened: int
    end: int
    results: int
    gets: int
    completions: Completions  #: Of requests of the host beside the session, dtype COMPLETION.


def run(drives: Sequence[SmartDrive], tasks: Sequence[Task], polling: Polling | None = None) -> list[Share]:
    """Run a task on each drive at once; drives share the host, which takes their answers in the order in which they come.

    Requests that were submitted to a drive before are served beside its session.
    """
    polling = polling or Polling()
    if len(drives) != len(tasks):
        raise InvalidParameterError("tasks", len(tasks), f"each of the {len(drives)} drives needs one")
    talks = [_talk(number, drive, task, polling) for number, (drive, task) in enumerate(zip(drives, tasks, strict=True))]
    waiting = [next(talk) for talk in talks]
    heapq.heapify(waiting)
    shares: dict[int, Share] = {}
    free_at = 0
    while waiting:
        at, number, results = waiting[0]
        busy = transfer_time(results, polling.rate) if polling.rate and results else 0
        free_at = ready = max(at, free_at) + busy if busy else at
        try:
            heapq.heapreplace(waiting, talks[number].send(ready))
        except StopIteration as over:
            shares[number] = over.value
            heapq.heappop(waiting)
    return [shares[number] for number in range(len(drives))]


def _talk(number: int, drive: SmartDrive, task: Task, polling: Polling) -> Generator[tuple[int, int, int], int, Share]:
    """A session on a drive, which stands still at each answer until the host goes on, at the time that is sent.

    Of each answer it yields the time, the drive's number, and the bytes of results.
    """
    others: list[Completions] = []

    def answer_to(command: int) -> Answer:
        while True:
            completions, answers = drive.advance()
            others.append(completions)
            for answer in answers:
                if answer.command == command:
                    return answer

    def wait(until: int) -> None:
        while drive.now < until:
            others.append(drive.advance(until)[0])

    begin = drive.now
    answer = answer_to(drive.open(task))
    wait((yield answer.at, number, answer.results))
    opened = end = drive.now
    status, session, results, gets = answer.status, answer.session, 0, 0
    more = not status.is_error
    while more:
        answer = answer_to(drive.get(session, polling.most))
        wait((yield answer.at, number, answer.results))
        status, end = answer.status, drive.now
        gets += 1
        results += answer.results
        more = status is Status.MORE
        if more and not answer.results:
            wait(drive.now + polling.pause)
    if gets:
        answer = answer_to(drive.close(session))
        wait((yield answer.at, number, 0))
    return Share(status, begin, opened, end, results, gets, np.concatenate([np.zeros(0, COMPLETION), *others]))

"""Run an algorithm of several strands in virtual time: their work and their requests overlap, on the cores and devices of one machine.

A strand runs until it has to wait.  CPU work, and the kernel's work for a request before it is submitted, hold a core from begin to end,
first come, first served; nothing else does.  The run ends when all strands have ended.  What happens is ordered so, and with it every time:

1. Events are ordered by time.  At one time, strands whose work or sleep ends come first, by their numbers; then devices that somebody waits
   for, by theirs, each up to its next completion.
2. What follows from an event without delay is done before the next event: strands that can go on do so one after the other, in the order in
   which they became able to.  A strand that begins another goes on itself; a free latch is taken, and a busy one handed over, at once.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from flashsim.core.protocols import Sink
from flashsim.core.units import NEVER
from flashsim.execution.backend import ResultRows, answer, enter_phase, stop
from flashsim.execution.file_access import Group
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Acquire, Algorithm, Answer, Control, Release, Sleep, Spawn, Strand, Wait
from flashsim.execution.run import ConcurrentRun
from flashsim.execution.strand_state import (
    Coordination,
    OrderedRecord,
    Port,
    Site,
    StrandState,
    StrandStep,
    check_duration,
    check_strand,
    submit,
)
from flashsim.storage.content import ColumnContent
from flashsim.storage.volume import Volume


class _Cores:
    def __init__(self, count: int) -> None:
        self.free = count
        self.waiting: deque[StrandState] = deque()
        self.time = 0  # worked, ns


class ConcurrentDriver:
    """Strands on one machine, or, without one, taking turns in no time.

    `volume` and `content`: where pages are and what they hold; base relations must have been added. `machine`: its devices may be in any
    state; what nobody waits for on them goes on in the background. `sink`: is handed every request, untimed, where there is no machine.
    `results`: is handed the result rows as they are made. `trim`: whether dropped temporary files are trimmed on the devices.
    """

    def __init__(
        self,
        volume: Volume,
        content: ColumnContent,
        machine: Machine | None,
        *,
        sink: Sink | None = None,
        results: ResultRows | None = None,
        trim: bool = False,
    ) -> None:
        self.site = Site(volume, content, machine, lambda: self.now, trim)
        self.now = max(device.now for device in machine.devices) if machine else 0
        self.results = results
        self._record = OrderedRecord(machine.sink if machine else sink)
        self._ports = [Port(number, machine, self._record) for number in range(len(machine.devices))] if machine else []
        self._cores = {place: _Cores(count) for place, count in self.site.cores.items()}
        self._strands: dict[Strand, StrandState] = {}
        self._lives: dict[StrandState, Iterator[None]] = {}  # of strands that have not ended
        self._ready: deque[StrandState] = deque()
        self._timers: list[tuple[int, int, StrandState]] = []
        self._coordination = Coordination()

    def run(self, algorithm: Algorithm) -> ConcurrentRun:
        """Run an algorithm until it and all strands that it began have ended."""
        began = self.now
        self._begin(algorithm, "main")
        try:
            while True:
                while self._ready:
                    self._go_on(self._ready.popleft())
                if not self._lives:
                    break
                self._next_event()
        finally:
            for strand in self._lives:
                stop(strand.algorithm)
        if self.site.machine is not None:
            self.site.machine.now = self.now
        runs = [strand.runs[0] for strand in self._strands.values()]
        runs[0].outstanding = self._record.outstanding
        return ConcurrentRun(
            self.site.name,
            strands=runs,
            elapsed=self.now - began,
            cores=dict(self.site.cores),
            core_times={place: cores.time for place, cores in self._cores.items()},
            device_times=[port.busy_time for port in self._ports],
        )

    def _begin(self, algorithm: Algorithm, name: str, parent: StrandState | None = None) -> Strand:
        number = len(self._strands)
        handle = Strand(name or f"strand {number}", number)
        strand = self._strands[handle] = StrandState(handle, algorithm, self.site, parent)
        self._lives[strand] = self._life(strand)
        self._ready.append(strand)
        return handle

    def _go_on(self, strand: StrandState) -> None:
        for _ in self._lives[strand]:
            return
        del self._lives[strand]
        self._ready.extend(self._strands[other] for other in self._coordination.end(strand.handle))

    def _next_event(self) -> None:
        busy = [port for port in self._ports if port.busy]
        if len(busy) == 1 and not self._timers:
            self._advance(busy[0], NEVER)
            return
        timer = self._timers[0][0] if self._timers else NEVER
        events = [port.next_event for port in self._ports]
        event = min(events, default=NEVER)
        if timer == event == NEVER:
            raise self._coordination.deadlock()
        if timer <= event:
            self.now, _, strand = heappop(self._timers)
            self._go_on(strand)
            return
        port = self._ports[events.index(event)]
        events[port.number] = NEVER
        others = [other - (number < port.number) for number, other in enumerate(events) if other < NEVER]  # lower numbers come first
        if timer < NEVER:
            others.append(timer - 1)
        self._advance(port, min(others, default=NEVER))

    def _advance(self, port: Port, until: int) -> None:
        for strand in port.advance(until):
            self.now = strand.last[0]
            self._ready.append(strand)

    def _life(self, strand: StrandState) -> Iterator[None]:
        answered: Answer = None
        while True:
            try:
                request = strand.algorithm.send(answered)
            except StopIteration:
                strand.phase_ends()
                return
            answered = None
            if isinstance(request, Control):
                enter_phase(request, strand)
            if isinstance(request, Spawn):
                answered = self._begin(request.algorithm, request.name, strand)
            elif isinstance(request, Wait):
                for other in request.strands:
                    check_strand(other, self._strands)
                    if not self._coordination.wait(strand.handle, other):
                        yield
                    strand.follows(self._strands[other].last)
            elif isinstance(request, Sleep):
                check_duration("sleep", request.duration, self.now)
                yield from self._pass(strand, request.duration)
            elif isinstance(request, Acquire):
                if not self._coordination.acquire(strand.handle, request.latch):
                    yield
            elif isinstance(request, Release):
                after = self._coordination.release(strand.handle, request.latch)
                if after is not None:
                    self._strands[after].follows(strand.last)
                    self._ready.append(self._strands[after])
            else:
                answered = answer(request, strand, self.results)
                for step in strand.take_steps():
                    if step.work:
                        yield from self._work(strand, step)
                    if step.groups:
                        yield from self._serve(strand, step.groups)

    def _pass(self, strand: StrandState, duration: int) -> Iterator[None]:
        heappush(self._timers, (self.now + duration, strand.number, strand))
        yield

    def _work(self, strand: StrandState, step: StrandStep) -> Iterator[None]:
        cores = self._cores[step.place]
        if cores.free:
            cores.free -= 1
        else:
            cores.waiting.append(strand)
            yield
        yield from self._pass(strand, step.work)
        cores.time += step.work
        if cores.waiting:
            self._ready.append(cores.waiting.popleft())
        else:
            cores.free += 1

    def _serve(self, strand: StrandState, groups: Sequence[Group]) -> Iterator[None]:
        if self.site.machine is not None:
            submit(self._ports, self._record, strand, groups, self.site.machine, self.now)
            yield
            return
        entry = self._record.note_submission(strand, groups)
        yield from self._pass(strand, 1)  # whoever makes requests takes turns
        self._record.note_completion(entry, len(entry.requests) - 1, self.now)

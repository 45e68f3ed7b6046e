"""The driver of strands, `flashsim.execution.concurrent`, told with SimPy: strands are processes, cores and latches are resources.

Every delay has a priority of its own among events of one nanosecond: what follows without delay (SimPy's priority 1, in order), then
strands whose work or sleep ends, by number, then devices, by number.
"""

from collections.abc import Generator

import simpy

from flashsim.core.errors import DeadlockError
from flashsim.core.host_specification import delay
from flashsim.core.units import NEVER
from flashsim.execution.backend import ResultRows, answer, enter_phase
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Acquire, Algorithm, Answer, Control, Latch, Release, Sleep, Spawn, Strand, Wait
from flashsim.execution.run import ConcurrentRun
from flashsim.execution.strand_state import OrderedRecord, Port, Site, StrandState, submit
from flashsim.storage.content import ColumnContent
from flashsim.storage.volume import Volume

#: Priorities: SimPy's own are 0 and 1.
STRANDS = 2
DEVICES = 1 << 40

Claim = simpy.resources.resource.Request
Process = Generator[simpy.Event, object, None]


class ConcurrentSpecification:
    """The same face as `execution.concurrent.ConcurrentDriver`, with a machine."""

    def __init__(self, volume: Volume, content: ColumnContent, machine: Machine, *, results: ResultRows | None = None) -> None:
        self.env = simpy.Environment(initial_time=max(device.now for device in machine.devices))
        self.site = Site(volume, content, machine, lambda: int(self.env.now), trim=False)
        self.results = results
        self.machine = machine
        self.record = OrderedRecord(machine.sink)
        self.ports = [Port(number, machine, self.record) for number in range(len(machine.devices))]
        self.cores = {place: simpy.Resource(self.env, count) for place, count in self.site.cores.items()}
        self.core_times: dict[str, int] = dict.fromkeys(self.cores, 0)
        self.latches: dict[Latch, simpy.Resource] = {}
        self.claims: dict[Latch, Claim] = {}
        self.released: dict[Latch, tuple[int, int]] = {}
        self.strands: dict[Strand, StrandState] = {}
        self.ends: dict[Strand, simpy.Event] = {}
        self.served: dict[StrandState, simpy.Event] = {}

    def run(self, algorithm: Algorithm) -> ConcurrentRun:
        """Run an algorithm until it and all strands that it began have ended."""
        began = int(self.env.now)
        self.begin(algorithm, "main")
        while not all(end.triggered for end in self.ends.values()):
            try:
                self.env.step()
            except simpy.core.EmptySchedule:
                raise DeadlockError("deadlock") from None
        runs = [strand.runs[0] for strand in self.strands.values()]
        runs[0].outstanding = self.record.outstanding
        return ConcurrentRun(
            self.site.name,
            strands=runs,
            elapsed=int(self.env.now) - began,
            cores=dict(self.site.cores),
            core_times=self.core_times,
            device_times=[port.busy_time for port in self.ports],
        )

    def begin(self, algorithm: Algorithm, name: str, parent: StrandState | None = None) -> Strand:
        """A strand begins when all that could go on before it has done so."""
        handle = Strand(name or f"strand {len(self.strands)}", len(self.strands))
        strand = self.strands[handle] = StrandState(handle, algorithm, self.site, parent)
        self.ends[handle] = self.env.event()
        self.env.process(self.life(strand, self.env.event().succeed()))
        return handle

    def life(self, strand: StrandState, begun: simpy.Event) -> Process:
        yield begun
        answered: Answer = None
        while True:
            try:
                request = strand.algorithm.send(answered)
            except StopIteration:
                break
            answered = None
            if isinstance(request, Control):
                enter_phase(request, strand)
            if isinstance(request, Spawn):
                answered = self.begin(request.algorithm, request.name, strand)
            elif isinstance(request, Wait):
                for other in request.strands:
                    yield from happened(self.ends[other])
                    strand.follows(self.strands[other].last)
            elif isinstance(request, Sleep):
                yield delay(self.env, request.duration, STRANDS + strand.number)
            elif isinstance(request, Acquire):
                yield from self.acquire(strand, request.latch)
            elif isinstance(request, Release):
                self.released[request.latch] = strand.last
                hand_over(self.latches[request.latch], self.claims[request.latch])
            else:
                answered = answer(request, strand, self.results)
                yield from self.serve(strand)
        strand.phase_ends()
        strand.handle.ended = True
        self.ends[strand.handle].succeed()

    def acquire(self, strand: StrandState, latch: Latch) -> Process:
        resource = self.latches.setdefault(latch, simpy.Resource(self.env))
        claim = resource.request()
        if not claim.triggered:
            yield claim
            strand.follows(self.released[latch])
        self.claims[latch] = claim

    def serve(self, strand: StrandState) -> Process:
        """Each step is work on a core, then requests to a device."""
        for step in strand.take_steps():
            if step.work:
                cores = self.cores[step.place]
                claim = cores.request()
                yield from happened(claim)
                yield delay(self.env, step.work, STRANDS + strand.number)
                self.core_times[step.place] += step.work
                hand_over(cores, claim)
            if step.groups:
                for port in submit(self.ports, self.record, strand, step.groups, self.machine, int(self.env.now)):
                    self.look_at(port)
                self.served[strand] = self.env.event()
                yield self.served[strand]

    def look_at(self, port: Port) -> None:
        """Go on with a device when something happens there next."""
        if port.next_event < NEVER:
            event = delay(self.env, port.next_event - int(self.env.now), DEVICES + port.number)
            assert event.callbacks is not None
            event.callbacks.append(lambda _: self.go_on(port))

    def go_on(self, port: Port) -> None:
        """Let a device go on to its next completion of this nanosecond, if it has not already."""
        if port.next_event > self.env.now:
            return
        for strand in port.advance(int(self.env.now)):
            self.served[strand].succeed()
        self.look_at(port)


def happened(event: simpy.Event) -> Process:
    """Wait for an event; one that has been triggered already takes no turn."""
    if not event.triggered:
        yield event


def hand_over(resource: simpy.Resource, claim: Claim) -> None:
    """Release a resource to the one that waits longest, at once: left to itself, SimPy does so a turn later."""
    resource.release(claim)
    resource._trigger_put(None)

"""State that drivers of strands share: holders of latches; and in virtual time the steps of a strand, the ports of devices, and the record.

When a step begins or a strand goes on, and in which order, is decided by the drivers.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flashsim.core.errors import DeadlockError, InvalidParameterError
from flashsim.core.outstanding import OutstandingLevel
from flashsim.core.protocols import Label, Sink
from flashsim.core.request import COMPLETION, Completions, Requests
from flashsim.core.units import NEVER
from flashsim.execution.cpu import kernel_times, kernel_times_at_once
from flashsim.execution.file_access import FileAccess, Group, labels
from flashsim.execution.machine import Machine
from flashsim.execution.requests import HOST, Algorithm, Cpu, Latch, Strand
from flashsim.execution.run import Run
from flashsim.storage.content import ColumnContent
from flashsim.storage.volume import Extents, Volume


@dataclass(slots=True)
class StrandStep:
    """Work on one core, then, if there are any, requests at once, in a group for each device."""

    place: str = HOST
    work: int = 0  # ns
    groups: Sequence[Group] = ()


def check_duration(name: str, duration: object, now: int = 0) -> None:
    if not (isinstance(duration, int | np.integer) and 0 <= duration < NEVER - now):
        raise InvalidParameterError(name, f"{duration} ns", f"it must be a whole number from 0 to {NEVER - now - 1}")


def check_strand(other: Strand, strands: Container[Strand]) -> None:
    """Refuse to wait for what is no strand of this run."""
    if other not in strands:
        raise InvalidParameterError("wait", getattr(other, "name", other), "this run has no such strand")


Awaited = Strand | Latch  #: A strand waits for the end of another strand, or for a latch.


class Coordination:
    """The latches and the waits of strands that run together; `waits` has each waiting strand, the one that waits longest first."""

    def __init__(self) -> None:
        self.waits: dict[Strand, Awaited] = {}
        self._holders: dict[Latch, Strand] = {}
        self._queues: defaultdict[Latch, deque[Strand]] = defaultdict(deque)

    def acquire(self, strand: Strand, latch: Latch) -> bool:
        """Let a strand hold a latch or wait for it; returns True if it holds the latch at once."""
        if latch not in self._holders:
            self._holders[latch] = strand
            return True
        self._queues[latch].append(strand)
        self.waits[strand] = latch
        return False

    def release(self, strand: Strand, latch: Latch) -> Strand | None:
        """Hand a latch over to the strand that waits longest; returns it, if there is one."""
        if self._holders.get(latch) is not strand:
            raise InvalidParameterError("release", latch.name, f"{strand.name} does not hold this latch")
        del self._holders[latch]
        if not self._queues[latch]:
            return None
        after = self._holders[latch] = self._queues[latch].popleft()
        del self.waits[after]
        return after

    def wait(self, strand: Strand, other: Strand) -> bool:
        """Let a strand wait for the end of another; returns True if the other has ended already."""
        if not other.ended:
            self.waits[strand] = other
        return other.ended

    def end(self, strand: Strand) -> list[Strand]:
        """A strand has ended; returns those that waited for it."""
        for latch, holder in self._holders.items():
            if holder is strand:
                raise InvalidParameterError("latch", latch.name, f"{strand.name} ended while it held it")
        strand.ended = True
        waiters = [other for other, awaited in self.waits.items() if awaited is strand]
        for other in waiters:
            del self.waits[other]
        return waiters

    def deadlock(self) -> DeadlockError:
        names = {latch: f"latch {latch.name}, which {holder.name} holds" for latch, holder in self._holders.items()}
        waits = (f"{strand.name} waits for {names[one] if isinstance(one, Latch) else one.name}" for strand, one in self.waits.items())
        return DeadlockError(f"deadlock: {'; '.join(waits)}")


@dataclass(frozen=True)
class Site:
    """Environment of all strands of an algorithm: files, a machine (None: nothing is timed), and the time."""

    volume: Volume
    content: ColumnContent
    machine: Machine | None
    clock: Callable[[], int]
    trim: bool

    @property
    def name(self) -> str:
        return self.machine.name if self.machine is not None else "trace only"

    @property
    def cores(self) -> Mapping[str, int]:
        """Number of cores, by place; work takes time on those alone."""
        return self.machine.cpu.cores if self.machine is not None and self.machine.cpu is not None else {}


class StrandState(FileAccess):
    """The backend of one strand: its algorithm, its requests as steps, and its costs so far."""

    def __init__(self, handle: Strand, algorithm: Algorithm, site: Site, parent: StrandState | None = None) -> None:
        super().__init__(site.volume, site.content, trim=site.trim)
        self.handle = handle
        self.algorithm = algorithm
        self.site = site
        self.runs = [Run(site.name, strand=handle.name)]
        self.last = (0, -1)  # when the last request completed that this strand waited for, and its number in the record
        if parent is not None:
            self.runs[0].phase.name, self.last = parent.runs[0].phase.name, parent.last
        self._steps: list[StrandStep] = []
        self._began = site.clock()
        self._busy = 0  # until then

    @property
    def number(self) -> int:
        return self.handle.number

    def cpu(self, request: Cpu) -> None:
        """Let work be done as the next step; what the driver counts for the pages of a request is done with the kernel's work for it."""
        machine = self.site.machine
        if machine is None or machine.cpu is None:
            return
        time = round(machine.cpu.user_time(request.work, request.place))
        check_duration("work", time, self.site.clock())
        self.runs[0].phase.user_time += time
        self._steps.append(StrandStep(request.place, time))

    def phase_ends(self) -> None:
        """Time of the phase that was neither work nor I/O is a wait."""
        now = self.site.clock()
        if self.runs[0].phases and self.site.machine is not None:
            total = self.runs[0].total()
            busy = total.io_time + total.cpu_time
            self.runs[0].phase.wait_time += now - self._began - (busy - self._busy)
            self._busy = busy
        self._began = now

    def take_steps(self) -> list[StrandStep]:
        steps, self._steps = self._steps, []
        return steps

    def follows(self, last: tuple[int, int]) -> None:
        """Put a strand's next request behind the last one of another strand, for which it waited."""
        self.last = max(self.last, last)

    def issue(self, groups: Sequence[Group]) -> None:
        """Requests one after another are a step each, after the kernel's work for it; those at once are one step."""
        machine, extents = self.site.machine, groups[0].extents
        if machine is None:
            if any(len(group.extents.lengths) for group in groups):
                self._steps.append(StrandStep(groups=groups))
            return
        if groups[0].at_once:
            kernel = kernel_times_at_once(machine.cpu, machine.devices, groups)
        else:
            kernel = kernel_times(machine.cpu, machine.devices[extents.device], extents.lengths)
        self.runs[0].phase.kernel_time += int(kernel.sum())
        before = self._steps.pop().work if self._steps and not self._steps[-1].groups else 0
        for part, time in _parts(groups, kernel.tolist()):
            self._steps.append(StrandStep(HOST, before + time, part))
            before = 0
        if before:
            self._steps.append(StrandStep(HOST, before))


def _parts(groups: Sequence[Group], kernel: list[int]) -> Iterator[tuple[Sequence[Group], int]]:
    count = len(kernel)
    if count == 1 or (count and groups[0].at_once):
        yield groups, sum(kernel)
        return
    group, extents = groups[0], groups[0].extents
    for row, time in enumerate(kernel):
        one = Extents(extents.device, extents.offsets[row : row + 1], extents.lengths[row : row + 1])
        yield [replace(group, extents=one)], time


@dataclass(eq=False, slots=True)
class _Submitted:
    """Requests of one step on their way."""

    strand: StrandState
    requests: Requests
    label: Label
    after: int  # the number of the request that they waited for
    first: int  # the number of the first of them
    pending: int
    completions: Completions | None = None


class OrderedRecord:
    """Hands requests to a sink in the order in which they were submitted, as soon as they and all before them have completed.

    `outstanding` is how many of them were outstanding over time.
    """

    def __init__(self, sink: Sink | None) -> None:
        self._sink = sink
        self.outstanding = OutstandingLevel()
        self._open: deque[_Submitted] = deque()
        self._next = 0

    def note_submission(self, strand: StrandState, groups: Sequence[Group], start: int = 0) -> _Submitted:
        """A strand makes requests, all at once, on devices on which the volume begins at byte `start`."""
        requests = np.concatenate([group.requests(start) for group in groups])
        entry = _Submitted(strand, requests, labels(groups), strand.last[1], self._next, len(requests))
        self._next += len(requests)
        self._open.append(entry)
        return entry

    def note_completion(self, entry: _Submitted, last: int, now: int) -> StrandState:
        """All requests of a step have completed, the one in row `last` as the last; returns the strand."""
        entry.strand.last, entry.pending = (now, entry.first + last), 0
        while self._open and self._open[0].pending == 0:
            first = self._open.popleft()
            if first.completions is not None:
                self.outstanding.add(first.completions["submitted"], first.completions["completed"])
            if self._sink is not None:
                self._sink.record(first.requests, first.completions, first.label, first.after)
        return entry.strand


class Port:
    """A device of a machine, as strands use it."""

    def __init__(self, number: int, machine: Machine, record: OrderedRecord) -> None:
        self.number = number
        self.device = machine.devices[number]
        self.busy_time = 0
        self._record = record
        self._by_id: dict[int, tuple[_Submitted, int]] = {}
        self._busy_since = self._latest = 0

    @property
    def busy(self) -> bool:
        return bool(self._by_id)

    @property
    def next_event(self) -> int:
        """Time of the next event for which a strand may wait; NEVER if there is none.

        What the device does while nobody waits for it happens unseen, before the next request arrives.
        """
        return max(self._latest, self.device.next_event) if self.busy else NEVER

    def submit(self, entry: _Submitted, now: int) -> None:
        """Take those of a step's requests that are for this device, all at once."""
        rows = np.flatnonzero(entry.requests["device"] == self.number)
        ids = self.device.submit(entry.requests[rows], now)
        if not self._by_id:
            self._busy_since = now
        self._latest = now
        self._by_id.update((id, (entry, row)) for row, id in zip(rows.tolist(), ids.tolist(), strict=True))

    def advance(self, until: int) -> list[StrandState]:
        """Let the device go on to the next completion, or to `until`; returns strands whose requests have all completed, in that order."""
        completed: list[StrandState] = []
        completions = self.device.advance(until)
        for id, row in zip(completions["id"].tolist(), completions, strict=True):
            entry, index = self._by_id.pop(id)
            assert entry.completions is not None
            entry.completions[index] = row
            entry.pending -= 1
            if entry.pending == 0:
                times = entry.completions["completed"]
                last = int(times.argmax())
                now = int(times[last])
                entry.strand.runs[0].phase.io_time += now - int(entry.completions["submitted"][0])
                completed.append(self._record.note_completion(entry, last, now))
            if not self._by_id:
                self.busy_time += int(row["completed"]) - self._busy_since
        return completed


def submit(
    ports: Sequence[Port], record: OrderedRecord, strand: StrandState, groups: Sequence[Group], machine: Machine, now: int
) -> list[Port]:
    """Make the requests of a step; returns the devices that serve them."""
    entry = record.note_submission(strand, groups, machine.start)
    entry.completions = np.empty(len(entry.requests), COMPLETION)
    serving = [ports[group.extents.device] for group in groups]
    for port in serving:
        port.submit(entry, now)
    entry.requests["think"] = now - strand.last[0] if strand.last[1] >= 0 else 0
    return serving

"""Run an algorithm in virtual time on simulated devices: on several machines at once, since what it asks for does not depend on time.

I/O is synchronous and does not overlap with CPU time, as in do2009, section 4.1: a request arrives when the CPU time before it has
passed, and the CPU goes on when the last request of a batch has completed.  What is asked for one after the other is gathered, and each
device serves it as one chain of requests, with the CPU time between two as the think time of the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Sink
from flashsim.core.request import FLUSH, READ, TRIM, WRITE, Completions, Integers, Requests, make_requests
from flashsim.core.units import MIB
from flashsim.device.block_layer import command_counts
from flashsim.device.device import Device
from flashsim.execution.cpu import CpuModel
from flashsim.execution.driver import ResultRows, drive
from flashsim.execution.requests import Algorithm, Cpu, Mode, Read, Write
from flashsim.execution.run import Run
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.relation import Tuples
from flashsim.storage.volume import Extents, Volume

#: The label of requests that the file system makes itself.
METADATA = "metadata"
#: So many requests, or bytes, are not gathered further: what a device takes for a submission no longer shows, and its tables stay small.
_GATHERED, _BYTES_GATHERED = 1024, 512 * MIB


@dataclass
class Machine:
    """Devices, a CPU and a recorder that see the same requests.

    Parameters
    ----------
    devices
        As many as the volume has.
    cpu
        Prices of CPU work; without it, CPU work takes no time.
    sink
        Is handed every request with its completion.
    start
        Bytes from a device's begin to the volume's.
    full
        Whether the devices hold data wherever the volume lies: base relations then need not be loaded.
    """

    devices: Sequence[Device]
    cpu: CpuModel | None = None
    sink: Sink | None = None
    name: str = ""
    start: int = 0
    full: bool = False
    now: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.name = self.name or "+".join(device.name for device in self.devices)


class Simulated:
    """The driver's backend: one volume and content, any number of machines.

    Parameters
    ----------
    volume, content
        Where pages are and what they hold; base relations must have been added.
    machines
        May be empty: then nothing is timed and a single run counts requests (trace only).
    sink
        Is handed every request, untimed, where there is no machine.
    trim
        Whether dropped temporary files are trimmed on the devices.
    """

    def __init__(
        self, volume: Volume, content: ColumnContent, machines: Sequence[Machine], *, sink: Sink | None = None, trim: bool = False
    ) -> None:
        self.volume = volume
        self.content = content
        self.machines = machines
        self.sink = sink
        self.trim = trim
        self.runs = [Run(machine.name) for machine in machines] or [Run("trace only")]
        self._seeks = [[0, 0] for _ in machines]
        self._gathered: list[tuple[Requests, str]] = []
        self._requests_gathered = self._bytes_gathered = 0
        self._user = {id(machine.cpu): _UserTime(machine.cpu) for machine in machines}
        for machine in machines:
            machine.now = max(device.now for device in machine.devices)

    def read(self, request: Read) -> Tuples:
        """Serve reads on every machine; the tuples come from the content."""
        self._serve(READ, request.file, request.starts, request.counts, request.mode)
        return self.content.read(request.file, request.starts, request.counts)

    def write(self, request: Write) -> None:
        """Place new pages, serve the writes, and keep what they hold."""
        self.volume.extend(request.file, int(np.sum(request.counts)))
        self.content.append(request.file, request.tuples)
        self._serve(WRITE, request.file, request.starts, request.counts, request.mode)
        self._commit(now=False)

    def _commit(self, now: bool) -> None:
        """Write what the file system itself has to write."""
        due = self.volume.metadata_due(now)
        if due is not None:
            self._on_every_machine(_requests(WRITE, due, Mode.SERIAL), METADATA)

    def flush(self, file: File) -> None:
        """Flush the device that holds the file."""
        self._commit(now=True)
        device = self.volume.locate(file, np.zeros(1, np.int64), np.ones(1, np.int64)).device
        self._on_every_machine(make_requests(FLUSH, 0, 0, device=device), file.name)

    def drop(self, file: File) -> None:
        """Free a temporary file, and trim it if asked to."""
        self.content.drop(file)
        for device, offset, length in self.volume.drop(file):
            if self.trim:
                self._on_every_machine(make_requests(TRIM, offset, length, device=device), file.name)

    def cpu(self, request: Cpu) -> None:
        """Let user time pass."""
        spent = {key: user.pass_by(request) for key, user in self._user.items()}
        for machine, run in zip(self.machines, self.runs, strict=False):
            run.phases[-1].user_time += spent[id(machine.cpu)]

    def phase_ends(self) -> None:
        """Let the phase's last requests complete and its last CPU time pass, and note its seeks."""
        self._serve_gathered()
        for index, (machine, run) in enumerate(zip(self.machines, self.runs, strict=False)):
            machine.now += self._user[id(machine.cpu)].since
            totals = [sum(device.statistics().get(name, 0) for device in machine.devices) for name in ("seeks", "seek_time")]
            if run.phases:
                run.phases[-1].seeks, run.phases[-1].seek_time = (now - then for now, then in zip(totals, self._seeks[index], strict=True))
            self._seeks[index] = totals
        for user in self._user.values():
            user.since = 0

    def _serve(self, operation: int, file: File, starts: Integers, counts: Integers, mode: Mode) -> None:
        extents = self.volume.locate(file, starts, counts)
        self._on_every_machine(_requests(operation, extents, mode), file.name)

    def _on_every_machine(self, requests: Requests, label: str) -> None:
        if not len(requests):
            return
        if self.sink is not None:
            self.sink.record(requests, None, label)
        if not self.machines:
            return
        at_once = np.count_nonzero(requests["dependency"] < 0) > 1
        if self._gathered and (at_once or requests["device"][0] != self._gathered[0][0]["device"][0]):
            self._serve_gathered()
        self._gathered.append((requests, label))
        self._requests_gathered += len(requests)
        self._bytes_gathered += int(requests["length"].sum())
        for user in self._user.values():
            user.gather(len(requests))
        if at_once or self._requests_gathered >= _GATHERED or self._bytes_gathered >= _BYTES_GATHERED:
            self._serve_gathered()

    def _serve_gathered(self) -> None:
        """Have every machine serve what was gathered."""
        if not self._gathered:
            return
        requests = np.concatenate([each for each, _ in self._gathered])
        if len(self._gathered) > 1:  # one after the other
            requests["dependency"] = np.arange(-1, len(requests) - 1)
        before = {key: user.take() for key, user in self._user.items()}
        for machine, run in zip(self.machines, self.runs, strict=False):
            self._on_machine(machine, run, requests.copy(), before[id(machine.cpu)])
        self._gathered, self._requests_gathered, self._bytes_gathered = [], 0, 0

    def _on_machine(self, machine: Machine, run: Run, requests: Requests, user_times: Integers) -> None:
        """Serve requests that begin when the machine's last ones have completed, each after its own user and kernel time."""
        device, phase = machine.devices[requests["device"][0]], run.phases[-1]
        requests["offset"] += machine.start
        kernel_times = np.zeros(len(requests), np.int64)
        if machine.cpu is not None:
            commands = command_counts(requests["length"], device.maximum_command)
            kernel_times = machine.cpu.kernel_times(device.kind, requests["length"], commands)
        first = requests["dependency"] < 0
        requests["think"] = np.where(first, 0, user_times + kernel_times)
        begin = machine.now + int((user_times + kernel_times)[first].sum())
        completions = device.serve(requests, begin, settle=False)
        machine.now = int(completions["completed"].max())
        phase.kernel_time += int(kernel_times.sum())
        phase.io_time += machine.now - begin - int(requests["think"].sum())
        if machine.sink is not None:
            requests["think"] -= np.where(first, 0, user_times)
            self._record(machine.sink, requests, completions)

    def _record(self, sink: Sink, requests: Requests, completions: Completions) -> None:
        """Hand over the requests as they were asked for."""
        end = 0
        for asked, label in self._gathered:
            begin, end = end, end + len(asked)
            requests["dependency"][begin:end] = asked["dependency"]
            requests["think"][begin] = 0
            sink.record(requests[begin:end], completions[begin:end], label)


class _UserTime:
    """User time between requests, on all machines with one CPU.

    Parameters
    ----------
    cpu
        Its prices; without them no time passes.
    """

    def __init__(self, cpu: CpuModel | None) -> None:
        self.cpu = cpu
        self.since = 0  # ns since the last request
        self._before: list[Integers] = []

    def pass_by(self, request: Cpu) -> int:
        """Let CPU work be done; return its time, ns."""
        spent = 0 if self.cpu is None else round(self.cpu.user_time(request.work))
        self.since += spent
        return spent

    def gather(self, count: int) -> None:
        """Requests come now."""
        times = np.zeros(count, np.int64)
        times[0] = self.since
        self._before.append(times)
        self.since = 0

    def take(self) -> Integers:
        """The user time before each request gathered since the last call, ns, shape (n,)."""
        times, self._before = np.concatenate(self._before), []
        return times


def _requests(operation: int, extents: Extents, mode: Mode) -> Requests:
    return make_requests(operation, extents.offsets, extents.lengths, serial=mode is Mode.SERIAL, device=extents.device)


def simulate(
    algorithm: Algorithm,
    files: Sequence[HeapFile],
    machines: Sequence[Machine],
    *,
    placement: str = "packed",
    results: ResultRows | None = None,
    trim: bool = False,
) -> list[Run]:
    """Load base relations onto every machine's devices, then run an algorithm on all of them.

    Parameters
    ----------
    algorithm
        A fresh generator over `files`.
    files
        The base relations, placed in this order.
    machines
        Each with fresh devices, or devices that earlier work has left in some state.
    placement
        See `storage.volume`.

    Returns
    -------
    list of Run
        One a machine.

    Raises
    ------
    CapacityError
        The smallest machine's devices cannot hold the relations and temporary files.
    """
    if not machines:
        raise InvalidParameterError("machines", 0, "at least one is needed (execution.trace_only needs none)")
    rooms = ([device.capacity - machine.start for device in machine.devices] for machine in machines)
    capacities = [min(sizes) for sizes in zip(*rooms, strict=True)]
    volume = Volume(capacities, placement)
    for file in files:
        extents = volume.add(file)
        for machine in (machine for machine in machines if not machine.full):
            for offset, length in zip(extents.offsets.tolist(), extents.lengths.tolist(), strict=True):
                machine.devices[extents.device].load(machine.start + offset, length)
    return drive(algorithm, Simulated(volume, ColumnContent(), machines, trim=trim), results)

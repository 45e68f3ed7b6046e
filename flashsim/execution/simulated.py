"""Run a serial algorithm in virtual time on simulated devices: on several machines at once, since what it asks for does not depend on time.

I/O is synchronous and does not overlap with CPU time, as in do2009, section 4.1: a request arrives when the CPU time before it has
passed, and the CPU goes on when the last request of a batch has completed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Sink
from flashsim.core.request import FLUSH, READ, TRIM, WRITE, make_requests
from flashsim.execution.driver import ResultRows, drive
from flashsim.execution.gathering import Gathering, Group
from flashsim.execution.machine import Machine, load
from flashsim.execution.requests import Algorithm, Cpu, Mode, Read, Write
from flashsim.execution.run import Run
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.rows import Tuples
from flashsim.storage.volume import Extents, Volume

#: The label of requests that the file system makes itself.
METADATA = "metadata"


class FileAccess:
    """What is asked of files, as groups of requests to devices; what pages hold is kept beside.

    Parameters
    ----------
    volume, content
        Where pages are and what they hold; base relations must have been added.
    issue
        Takes the requests, in order.
    trim
        Whether dropped temporary files are trimmed on the devices.
    """

    def __init__(self, volume: Volume, content: ColumnContent, issue: Callable[[Group], None], *, trim: bool = False) -> None:
        self.volume = volume
        self.content = content
        self.issue = issue
        self.trim = trim

    def read(self, request: Read) -> Tuples | None:
        """Issue reads; the tuples, if any are wanted, come from the content."""
        self._issue(READ, request, request.parts)
        if request.columns == ():
            return None
        tuples = self.content.read(request.file, request.starts, request.counts)
        return tuples if request.columns is None else tuples.only(request.columns)

    def write(self, request: Write) -> None:
        """Place pages that are new, issue the writes, and keep what they hold."""
        self.volume.lengthen(request.file, int((request.starts + request.counts).max(initial=0)))
        self.content.write(request.file, request.starts, request.counts, request.tuples)
        self._issue(WRITE, request)
        self._commit(now=False)

    def flush(self, file: File) -> None:
        """Flush the device that holds the file."""
        self._commit(now=True)
        self._issue_at(FLUSH, self.volume.device(file), 0, 0, file.name)

    def drop(self, file: File) -> None:
        """Free a temporary file, and trim it if asked to."""
        self.content.drop(file)
        for device, offset, length in self.volume.drop(file):
            if self.trim:
                self._issue_at(TRIM, device, offset, length, file.name)

    def _issue(self, operation: int, request: Read | Write, parts: Sequence[tuple[int, int]] | None = None) -> None:
        extents = self.volume.locate(request.file, request.starts, request.counts)
        if parts is not None:
            extents = extents.parts(request.file.page_size, parts)
        self.issue(Group(operation, extents, request.file.name, request.mode is Mode.BATCH))

    def _issue_at(self, operation: int, device: int, offset: int, length: int, label: str) -> None:
        self.issue(Group(operation, Extents(device, np.array([offset]), np.array([length])), label))

    def _commit(self, now: bool) -> None:
        """Write what the file system itself has to write."""
        due = self.volume.metadata_due(now)
        if due is not None:
            self.issue(Group(WRITE, due, METADATA))


class Simulated(FileAccess):
    """The driver's backend: one volume and content, any number of machines.

    Parameters
    ----------
    volume, content, trim
        See `FileAccess`.
    machines
        May be empty: then nothing is timed and a single run counts requests (trace only).
    sink
        Is handed every request, untimed, where there is no machine.
    """

    def __init__(
        self, volume: Volume, content: ColumnContent, machines: Sequence[Machine], *, sink: Sink | None = None, trim: bool = False
    ) -> None:
        self.machines = machines
        self.sink = sink
        self.runs = [Run(machine.name) for machine in machines] or [Run("trace only")]
        self._seeks = [[0, 0] for _ in machines]
        self._gathering = Gathering(machines, self.runs[: len(machines)])
        for machine in machines:
            machine.now = max(device.now for device in machine.devices)
        super().__init__(volume, content, self._gathering.add if machines else self._record, trim=trim)

    def cpu(self, request: Cpu) -> None:
        """Let user time pass."""
        self._gathering.cpu(request)

    def phase_ends(self) -> None:
        """Let the phase's last requests complete and its last CPU time pass, and note its seeks."""
        self._gathering.settle()
        for index, (machine, run) in enumerate(zip(self.machines, self.runs, strict=False)):
            totals = [sum(device.statistics().get(name, 0) for device in machine.devices) for name in ("seeks", "seek_time")]
            if run.phases:
                run.phases[-1].seeks, run.phases[-1].seek_time = (now - then for now, then in zip(totals, self._seeks[index], strict=True))
            self._seeks[index] = totals

    def _record(self, group: Group) -> None:
        extents = group.extents
        if self.sink is not None and len(extents.lengths):
            requests = make_requests(group.operation, extents.offsets, extents.lengths, serial=not group.at_once, device=extents.device)
            self.sink.record(requests, None, group.label)


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
    volume = load(files, machines, placement)
    return drive(algorithm, Simulated(volume, ColumnContent(), machines, trim=trim), results)

"""Run a serial algorithm in virtual time on simulated devices: on several machines at once, since what it asks for does not depend on time.

I/O is synchronous and does not overlap with CPU time, as in do2009, section 4.1: a request arrives when the CPU time before it has
passed, and the CPU goes on when the last request of a batch has completed.
"""

from collections.abc import Sequence

from flashsim.core.errors import InvalidParameterError
from flashsim.execution.driver import ResultRows, drive
from flashsim.execution.file_access import FileAccess
from flashsim.execution.gathering import Gathering
from flashsim.execution.machine import Machine, load
from flashsim.execution.requests import Algorithm, Cpu
from flashsim.execution.run import Run
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.volume import Volume


class Simulated(FileAccess):
    """The driver's backend: one volume and content, any number of machines.

    Parameters
    ----------
    volume, content, trim
        See `FileAccess`.
    """

    def __init__(self, volume: Volume, content: ColumnContent, machines: Sequence[Machine], *, trim: bool = False) -> None:
        self.machines = machines
        self.runs = [Run(machine.name) for machine in machines]
        self._seeks = [[0, 0] for _ in machines]
        self._gathering = Gathering(machines, self.runs)
        for machine in machines:
            machine.now = max(device.now for device in machine.devices)
        super().__init__(volume, content, self._gathering.add, trim=trim)

    def cpu(self, request: Cpu) -> None:
        """Let user time pass."""
        self._gathering.cpu(request)

    def phase_ends(self) -> None:
        """Let the phase's last requests complete and its last CPU time pass, and note its seeks."""
        self._gathering.settle()
        for index, (machine, run) in enumerate(zip(self.machines, self.runs, strict=True)):
            totals = [sum(device.statistics().get(name, 0) for device in machine.devices) for name in ("seeks", "seek_time")]
            if run.phases:
                run.phase.seeks += totals[0] - self._seeks[index][0]
                run.phase.seek_time += totals[1] - self._seeks[index][1]
            self._seeks[index] = totals


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
        A member of `flashsim.storage.placement`.

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

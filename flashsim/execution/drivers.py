"""Drivers of algorithms: on simulated machines, on a real device, or on none.

Each function takes a fresh generator over `files`, the base relations, places these in their order as the member `placement` of
`flashsim.storage.placement` does, loads them, and runs the algorithm to its end; `results` is handed the result rows as they are made.
"""

from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.processes import cores as available_cores
from flashsim.core.protocols import Progress, Sink
from flashsim.core.request import SECTOR
from flashsim.core.units import NEVER
from flashsim.device.file import RealDevice
from flashsim.execution.backend import ResultRows, drive
from flashsim.execution.concurrent import ConcurrentDriver
from flashsim.execution.machine import Machine, load
from flashsim.execution.real import RealStrand, StrandThreads
from flashsim.execution.requests import HOST, Algorithm
from flashsim.execution.run import ConcurrentRun, Run, in_one
from flashsim.execution.simulated import SimulatedBackend
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.placement import PLACEMENTS
from flashsim.storage.volume import Volume

_LOAD_PAGES = 4096  #: Pages encoded at once while a relation is loaded onto a real device.


def run(
    algorithm: Callable[[], Algorithm],
    files: Sequence[HeapFile],
    on: Sequence[Machine] | RealDevice | None = None,
    *,
    strands: bool = False,
    placement: str = "packed",
    sink: Sink | None = None,
    results: ResultRows | None = None,
    progress: Progress | None = None,
) -> list[Run]:
    """Run an algorithm where it is to run, by the driver that can.

    Parameters
    ----------
    algorithm
        Makes a fresh generator over `files`.
    files
        What the algorithm reads.
    on
        Simulated machines; a real device, whose content is destroyed; or None, for counts and requests without times.
    strands
        Whether the algorithm begins strands; on simulated machines one that begins any is refused without it.
    placement
        How files lie on devices, a member of `flashsim.storage.placement`.
    sink
        Is handed every request on a real device or on none; on machines their own sinks are.
    results
        Is handed the result rows, of several machines those of the first.
    progress
        Is handed how much of the relations has been loaded onto a real device.

    Returns
    -------
    list of Run
        One per machine, or one; with `strands` of `ConcurrentRun`, except for runs without a device.
    """
    if on is None:
        return [trace_only(algorithm(), files, sink, placement=placement, results=results)]
    if isinstance(on, RealDevice):
        outcome = run_on_device(algorithm(), files, on, placement=placement, sink=sink, results=results, progress=progress)
        return [outcome if strands else in_one(outcome.strands)]
    if not strands:
        return simulate(algorithm(), files, on, placement=placement, results=results)
    return [run_strands(algorithm(), files, machine, placement=placement, results=results if machine is on[0] else None) for machine in on]


def simulate(
    algorithm: Algorithm,
    files: Sequence[HeapFile],
    machines: Sequence[Machine],
    *,
    placement: str = "packed",
    results: ResultRows | None = None,
    trim: bool = False,
) -> list[Run]:
    """Run a serial algorithm on several simulated machines at once; returns a run a machine.

    Devices of machines are fresh, or as earlier work has left them; with `trim`, dropped temporary files are trimmed on them.

    Raises CapacityError: the smallest machine's devices cannot hold the relations and temporary files.
    """
    if not machines:
        raise InvalidParameterError("machines", 0, "at least one is needed (trace_only needs none)")
    return drive(algorithm, SimulatedBackend(load(files, machines, placement), ColumnContent(), machines, trim=trim), results)


def run_strands(
    algorithm: Algorithm,
    files: Sequence[HeapFile],
    machine: Machine,
    *,
    placement: str = "packed",
    results: ResultRows | None = None,
    trim: bool = False,
) -> ConcurrentRun:
    """Run an algorithm of one or more strands on one simulated machine, whose CPU preset says how many cores there are.

    Raises CapacityError: the devices cannot hold the relations and temporary files; DeadlockError: strands wait for each other.
    """
    return ConcurrentDriver(load(files, [machine], placement), ColumnContent(), machine, results=results, trim=trim).run(algorithm)


def trace_only(
    algorithm: Algorithm,
    files: Sequence[HeapFile],
    sink: Sink | None = None,
    *,
    placement: str = "packed",
    results: ResultRows | None = None,
    volume: Volume | None = None,
) -> Run:
    """Count and record the requests of an algorithm, of one or more strands, without any device: in no time.

    `sink` is handed every request, untimed.  An empty volume tells afterwards how much was laid out; by default it has no bounds.
    """
    volume = volume or unbounded_volume(placement)
    for file in files:
        volume.add(file)
    return in_one(ConcurrentDriver(volume, ColumnContent(), None, sink=sink, results=results).run(algorithm).strands)


def run_on_device(
    algorithm: Algorithm,
    files: Sequence[HeapFile],
    device: RealDevice,
    *,
    placement: str = "packed",
    sink: Sink | None = None,
    results: ResultRows | None = None,
    progress: Progress | None = None,
) -> ConcurrentRun:
    """Run an algorithm of one or more strands on a real device; the machine's cores are those that this process may use.

    `device`: opened for writing; what it holds is destroyed. `placement`: ``packed`` or ``spread``. `progress`: is told how much of the
    relations has been loaded.
    """
    check_real_placement(placement)
    volume = Volume([device.size], placement)
    for file in files:
        _load(file, volume, device, progress)
    first = RealStrand(volume, device, sink)
    begin = perf_counter_ns()
    strands = StrandThreads(first, results).run(algorithm)
    elapsed = perf_counter_ns() - begin
    busy = int(first.runs[0].outstanding.times()[1:].sum())
    cores, worked = {HOST: available_cores()}, {HOST: sum(run.total().cpu_time for run in strands)}
    return ConcurrentRun(str(device.path), strands=strands, elapsed=elapsed, cores=cores, core_times=worked, device_times=[busy])


def _load(file: HeapFile, volume: Volume, device: RealDevice, progress: Progress | None) -> None:
    device.check_page_size(file.page_size)
    volume.add(file)
    for start in range(0, file.pages, _LOAD_PAGES):
        count = min(_LOAD_PAGES, file.pages - start)
        data = file.layout.encode(file.run(start, start + count), np.arange(start, start + count)).ravel()
        extents = volume.locate(file, np.array([start]), np.array([count]))
        device.write(extents.offsets, data, extents.lengths)
        if progress is not None:
            progress(start + count, file.pages, file.name)
    device.flush()


def check_real_placement(placement: str) -> None:
    """Refuse a placement that a real device cannot have."""
    member = PLACEMENTS.load(placement)
    if member.DEVICE_MAP.devices > 1:
        raise InvalidParameterError("placement", placement, "a real device is one disk")
    if member.FileSystem.writes_metadata:
        raise InvalidParameterError("placement", placement, "a real file has a file system of its own")


def needed_size(files: Sequence[HeapFile]) -> int:
    """Bytes that two-pass joins of these relations need at most: the relations, and twice as much for temporary files.

    A deeper recursion over a skewed bucket reuses what its parent has freed.
    """
    relations = sum((file.pages + len(file.layout.reserved_places)) * file.page_size for file in files)
    return max(1, -(-3 * relations // SECTOR)) * SECTOR  # a file of no bytes cannot be made


def unbounded_volume(placement: str = "packed") -> Volume:
    """An empty volume on devices without bounds."""
    return Volume([NEVER] * PLACEMENTS.load(placement).DEVICE_MAP.devices, placement)


def room_taken(algorithm: Algorithm, files: Sequence[HeapFile], placement: str = "packed") -> int:
    """Bytes of a device that files and what an algorithm writes take at most, found by running it without one."""
    volume = unbounded_volume(placement)
    trace_only(algorithm, files, placement=placement, volume=volume)
    return volume.laid_out_size

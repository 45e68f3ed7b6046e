"""Run an algorithm on a real file or block device; strands of control are threads."""

from collections.abc import Sequence
from time import perf_counter_ns

import numpy as np

from flashsim.core.compiling import cores as available_cores
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress, Sink
from flashsim.core.request import SECTOR
from flashsim.device.file import RealDevice
from flashsim.execution.driver import ResultRows
from flashsim.execution.real_strand import RealStrand
from flashsim.execution.requests import HOST, Algorithm
from flashsim.execution.run import ConcurrentRun, Run, by_name, in_one
from flashsim.execution.threads import StrandThreads
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.placement import PLACEMENTS
from flashsim.storage.volume import Volume

#: Pages encoded at once while a relation is loaded.
_LOAD_PAGES = 4096


def needed_size(files: Sequence[HeapFile]) -> int:
    """Bytes that two-pass joins of these relations need at most: the relations, and twice as much for temporary files.

    A deeper recursion over a skewed bucket reuses what its parent has freed.
    """
    relations = sum((file.pages + len(file.layout.reserved_places)) * file.page_size for file in files)
    return max(1, -(-3 * relations // SECTOR)) * SECTOR  # a file of no bytes cannot be made


def check_real_placement(placement: str) -> None:
    """Refuse a placement that a real device cannot have."""
    member = PLACEMENTS.load(placement)
    if member.DEVICE_MAP.devices > 1:
        raise InvalidParameterError("placement", placement, "a real device is one disk")
    if member.FileSystem.writes_metadata:
        raise InvalidParameterError("placement", placement, "a real file has a file system of its own")


def run_on_file(
    algorithm: Algorithm,
    files: Sequence[HeapFile],
    device: RealDevice,
    *,
    placement: str = "packed",
    sink: Sink | None = None,
    results: ResultRows | None = None,
    progress: Progress | None = None,
) -> Run:
    """Load base relations onto a real device, then run an algorithm there; of several strands, see `run_strands_on_file`.

    Parameters
    ----------
    algorithm
        A fresh generator over `files`.
    files
        The base relations, placed in this order.
    device
        Opened for writing; what it holds is destroyed.
    placement
        ``packed`` or ``spread``.
    """
    return in_one(run_strands_on_file(algorithm, files, device, placement=placement, sink=sink, results=results, progress=progress).strands)


def run_strands_on_file(
    algorithm: Algorithm,
    files: Sequence[HeapFile],
    device: RealDevice,
    *,
    placement: str = "packed",
    sink: Sink | None = None,
    results: ResultRows | None = None,
    progress: Progress | None = None,
) -> ConcurrentRun:
    """As `run_on_file`; each strand has a run, and the machine's cores are those that this process may use."""
    check_real_placement(placement)
    volume = Volume([device.size], placement)
    for file in files:
        _load(file, volume, device, progress)
    first = RealStrand(volume, device, sink)
    begin = perf_counter_ns()
    strands = by_name(StrandThreads(first, results).run(algorithm))
    elapsed = perf_counter_ns() - begin
    busy = int(first.runs[0].outstanding.times()[1:].sum())
    cores, worked = {HOST: available_cores()}, {HOST: sum(run.total().cpu_time for run in strands)}
    return ConcurrentRun(str(device.path), strands, elapsed, cores, worked, [busy])


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

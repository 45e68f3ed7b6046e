"""Run an algorithm without any device: its rows and its requests, in no time."""

from collections.abc import Sequence

from flashsim.core.protocols import Sink
from flashsim.core.units import NEVER
from flashsim.execution.concurrent import ConcurrentDriver
from flashsim.execution.driver import ResultRows
from flashsim.execution.requests import Algorithm
from flashsim.execution.run import Run, in_one
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.placement import PLACEMENTS
from flashsim.storage.volume import Volume


def trace_only(
    algorithm: Algorithm,
    files: Sequence[HeapFile],
    sink: Sink | None = None,
    *,
    placement: str = "packed",
    results: ResultRows | None = None,
    volume: Volume | None = None,
) -> Run:
    """Count and record what an algorithm asks for, on volumes without bounds.

    Parameters
    ----------
    algorithm
        A fresh generator over `files`.
    files
        The base relations, placed in this order.
    sink
        Is handed every request, untimed.
    volume
        An empty one, which tells afterwards how much was laid out; by default one without bounds.

    Returns
    -------
    Run
        With counts, and no times.
    """
    volume = volume or unbounded(placement)
    for file in files:
        volume.add(file)
    return in_one(ConcurrentDriver(volume, ColumnContent(), None, sink=sink, results=results).run(algorithm).strands)


def unbounded(placement: str = "packed") -> Volume:
    return Volume([NEVER] * PLACEMENTS.load(placement).DEVICE_MAP.devices, placement)


def room_taken(algorithm: Algorithm, files: Sequence[HeapFile], placement: str = "packed") -> int:
    """Bytes of a device that files and what an algorithm writes take at most, found by running it without one."""
    volume = unbounded(placement)
    trace_only(algorithm, files, placement=placement, volume=volume)
    return volume.laid_out

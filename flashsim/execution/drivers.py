"""The choice of a driver: for an algorithm's files on machines in virtual time, on a real file, or without any device."""

from collections.abc import Callable, Sequence
from typing import Literal, overload

from flashsim.core.protocols import Progress, Sink
from flashsim.device.file import RealDevice
from flashsim.execution.concurrent import run_strands
from flashsim.execution.driver import ResultRows
from flashsim.execution.machine import Machine
from flashsim.execution.real import run_strands_on_file
from flashsim.execution.requests import Algorithm
from flashsim.execution.run import ConcurrentRun, Run, in_one
from flashsim.execution.simulated import simulate
from flashsim.execution.trace_only import trace_only
from flashsim.storage.heap_file import HeapFile


@overload
def run(
    algorithm: Callable[[], Algorithm],
    files: Sequence[HeapFile],
    on: Sequence[Machine] | RealDevice | None = None,
    *,
    strands: Literal[False] = False,
    placement: str = "packed",
    sink: Sink | None = None,
    results: ResultRows | None = None,
    progress: Progress | None = None,
) -> Sequence[Run]: ...


@overload
def run(
    algorithm: Callable[[], Algorithm],
    files: Sequence[HeapFile],
    on: Sequence[Machine] | RealDevice | None = None,
    *,
    strands: bool,
    placement: str = "packed",
    sink: Sink | None = None,
    results: ResultRows | None = None,
    progress: Progress | None = None,
) -> Sequence[Run | ConcurrentRun]: ...


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
) -> Sequence[Run | ConcurrentRun]:
    """Run an algorithm where it is to run, by the driver that can.

    Parameters
    ----------
    algorithm
        Makes a fresh generator over `files`.
    files
        The base relations, placed in this order.
    on
        Simulated machines; a real device, whose content is destroyed; or None, for counts and requests without times.
    strands
        Whether the algorithm begins strands; on simulated machines one that begins any is refused without it.
    sink
        Is handed every request on a real device or on none; on machines their own sinks are.
    results
        Is handed the result rows, of several machines those of the first.
    progress
        Is told how much of the relations has been loaded onto a real device.

    Returns
    -------
    sequence of Run or ConcurrentRun
        One a machine, or one; with `strands` of `ConcurrentRun`, but for runs without a device.
    """
    if on is None:
        return [trace_only(algorithm(), files, sink, placement=placement, results=results)]
    if isinstance(on, RealDevice):
        outcome = run_strands_on_file(algorithm(), files, on, placement=placement, sink=sink, results=results, progress=progress)
        return [outcome if strands else in_one(outcome.strands)]
    if not strands:
        return simulate(algorithm(), files, on, placement=placement, results=results)
    return [run_strands(algorithm(), files, machine, placement=placement, results=results if machine is on[0] else None) for machine in on]

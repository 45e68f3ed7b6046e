"""What a machine's CPU takes for an algorithm's work and for its requests, and when it takes it."""

from collections.abc import Sequence

import numpy as np

from flashsim.core.request import Integers
from flashsim.device.block_layer import command_counts
from flashsim.device.device import Device
from flashsim.execution.cpu import CpuModel
from flashsim.execution.file_access import Group
from flashsim.execution.requests import Cpu


def kernel_times(cpu: CpuModel | None, device: Device, lengths: Integers, calls: int | Integers = 1) -> Integers:
    """Kernel time of requests of so many bytes, ns, shape (n,), each of which makes so many calls; none without prices."""
    if cpu is None:
        return np.zeros(len(lengths), np.int64)
    return cpu.kernel_times(device.kind, lengths, command_counts(lengths, device.maximum_command), calls)


def kernel_times_at_once(cpu: CpuModel | None, devices: Sequence[Device], groups: Sequence[Group]) -> Integers:
    """Kernel time of requests that one call hands over, of a group a device, ns, shape (n,): the first one's is that of the call too."""
    parts = []
    for group in groups:
        calls = np.zeros(len(group.extents.lengths), np.int64)
        calls[:1] = group is groups[0]
        parts.append(kernel_times(cpu, devices[group.extents.device], group.extents.lengths, calls))
    return np.concatenate(parts)


class UserTime:
    """User time between gathered requests, on all machines with one CPU.

    Parameters
    ----------
    cpu
        Its prices; without them no time passes.
    """

    def __init__(self, cpu: CpuModel | None) -> None:
        self.cpu = cpu
        self.since = 0  # ns since the last request
        self._before: list[int] = []

    def pass_by(self, request: Cpu) -> int:
        """Let CPU work be done; return its time, ns."""
        spent = 0 if self.cpu is None else round(self.cpu.user_time(request.work))
        self.since += spent
        return spent

    def gather(self) -> None:
        self._before.append(self.since)
        self.since = 0

    def take(self, firsts: Integers, count: int) -> Integers:
        """The user time before each of `count` requests, ns, given the first row of each group gathered since the last call."""
        times = np.zeros(count, np.int64)
        times[firsts] = self._before
        self._before.clear()
        return times

"""The face of every device model, compiled engine and SimPy specification alike."""

from dataclasses import dataclass
from typing import Any, Protocol

from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.state_table import State
from flashsim.core.units import NEVER


@dataclass(frozen=True)
class PowerCut:
    """What a power cut left behind.

    `lost` are the ids of requests that had been submitted and not acknowledged.
    """

    at: int
    lost: Integers


class DeviceModel(Protocol):
    """A device under a virtual clock, driven step by step; any split of the work into calls gives the same times."""

    @property
    def capacity(self) -> int:
        """Bytes that the host can address."""

    @property
    def now(self) -> int:
        """The clock, ns."""

    @property
    def outstanding(self) -> int:
        """Requests submitted and not yet completed."""

    @property
    def next_event(self) -> int:
        """When something happens next, ns, if nothing more is submitted; NEVER if nothing does.  No request completes before."""

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host_queue.HostQueue.append`)."""

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass up to the earlier of `until` and the completion number `wait` from now, and return what completed.

        With `every`, do not stop at completions: run up to `until`, or until nothing is left to do.  The clock ends at `until` only
        if that is not NEVER.
        """

    def load(self, offset: int, length: int) -> None:
        """Mark bytes as written, in no time (bulk loading before a measurement)."""

    def power_cut(self, at: int) -> PowerCut:
        """Run to `at`, then lose power: what was not durable is gone, and the device is idle."""

    def statistics(self) -> dict[str, Any]:
        """Counters since the device was made."""


class CompiledModel(DeviceModel, Protocol):
    """An engine that a compiled loop can drive beside others (`flashsim.execution.compiled_loop`)."""

    def compiled_loop(self) -> tuple[Any, State]:
        """The address of its own compiled loop (`flashsim.core.state_table.ADVANCE`), and its state, valid until it makes room."""

    def room_for(self, longest: int) -> int:
        """Let at least one more request be entered; how many commands of at most so many bytes may be, before it must be asked again."""

    def recover(self, status: int) -> None:
        """Do what its loop stopped for when it returned that negative number."""

"""The face of every device model, compiled engine and SimPy specification alike, and what compiled engines have in common."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from flashsim.core.errors import InvalidParameterError
from flashsim.core.host_queue import HostQueue
from flashsim.core.kernel import address_of, entry
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.state_table import State, StateTable
from flashsim.core.units import NEVER


@dataclass(frozen=True)
class PowerCut:
    """Result of a power cut.

    `lost` are the ids of requests that had been submitted and not acknowledged.
    """

    at: int
    lost: Integers


def check_until(until: int, now: int) -> None:
    """Refuse a time that has passed."""
    if until < now:
        raise InvalidParameterError("until", f"{until} ns", f"the clock is already at {now} ns")


class DeviceModel(Protocol):
    """A device under a virtual clock, driven step by step; any split of the work into calls gives the same times."""

    @property
    def capacity(self) -> int:
        """Capacity that the host can address."""

    @property
    def now(self) -> int:
        """The clock, ns."""

    @property
    def outstanding(self) -> int:
        """Requests submitted and not yet completed."""

    @property
    def next_event(self) -> int:
        """Time of the next event, ns, if nothing more is submitted; NEVER if there is none.  No request completes before."""

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host_queue.HostQueue.append`)."""

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass up to the earlier of `until` and the completion number `wait` from now, and return what completed.

        With `every`, do not stop at completions: run up to `until`, or until nothing is left to do.  The clock ends at `until` only
        if that is not NEVER.
        """

    def load(self, offset: int, length: int) -> None:
        """Mark bytes as written, in no time (bulk loading before a measurement); the times of disks and stations do not change by it."""
        return

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


class CompiledEngine(CompiledModel):
    """The part of `CompiledModel` that is the same for all kinds of devices: a queue, and a loop over a state that crosses as one array.

    `host`: where requests wait; `loop`: the compiled loop, of the signature `flashsim.core.state_table.ADVANCE`; `state_type`: numba's type
    of `state`.
    """

    parameters: Any

    def __init__(self, host: HostQueue, loop: Callable[[State, int, int], int], state_type: Any) -> None:
        self.host = host
        self._loop = entry(loop)
        self._table = StateTable(state_type)

    @property
    @abstractmethod
    def state_arrays(self) -> tuple[Any, ...]:
        """The groups of arrays that the loop works on, the host's tables first."""

    @abstractmethod
    def recover(self, status: int) -> None:
        """See `CompiledModel.recover`."""

    @property
    def capacity(self) -> int:
        return int(self.parameters.capacity)

    @property
    def now(self) -> int:
        """The clock, ns."""
        return self.host.now

    @property
    def outstanding(self) -> int:
        return self.host.outstanding

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        return self.host.append(requests, commands, at)

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        check_until(until, self.now)
        self._run(until, NEVER if every else wait)
        return self.host.collect()

    def _run(self, until: int, wait: int) -> None:
        while (status := self._loop(self.crossing(), until, wait)) < 0:
            self.recover(status)

    def crossing(self) -> State:
        """Argument of kernels for the state (`flashsim.core.state_table`), valid until an array is replaced."""
        return self._table.crossing(self.state_arrays)

    def compiled_loop(self) -> tuple[Any, State]:
        return address_of(self._loop), self.crossing()

    def room_for(self, longest: int) -> int:
        self.host.make_room()
        return NEVER

"""What compiled engines have in common: a queue of the host's requests, and a loop over a state that crosses from Python as one array."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from flashsim.core.host_queue import HostQueue
from flashsim.core.kernel import address_of, entry
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.state_table import State, StateTable
from flashsim.core.units import NEVER


class CompiledEngine(ABC):
    """The part of `flashsim.core.model.CompiledModel` that is the same for all kinds of devices.

    Parameters
    ----------
    host
        Where requests wait.
    loop
        The compiled loop, of the signature `flashsim.core.state_table.ADVANCE`.
    state_type
        Numba's type of `state`.
    """

    parameters: Any

    def __init__(self, host: HostQueue, loop: Callable[[State, int, int], int], state_type: Any) -> None:
        self._host = host
        self._loop = entry(loop)
        self._table = StateTable(state_type)

    @property
    @abstractmethod
    def state_arrays(self) -> tuple[Any, ...]:
        """The groups of arrays that the loop works on, the host's tables first."""

    @abstractmethod
    def recover(self, status: int) -> None:
        """See `flashsim.core.model.CompiledModel.recover`."""

    @property
    def capacity(self) -> int:
        return int(self.parameters.capacity)

    @property
    def now(self) -> int:
        """The clock, ns."""
        return self._host.now

    @property
    def outstanding(self) -> int:
        return self._host.outstanding

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host_queue.HostQueue.append`)."""
        return self._host.append(requests, commands, at)

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`."""
        self._run(until, NEVER if every else wait)
        return self._host.collect()

    def _run(self, until: int, wait: int) -> None:
        while (status := self._loop(self.crossing(), until, wait)) < 0:
            self.recover(status)

    def load(self, offset: int, length: int) -> None:  # noqa: B027
        """Nothing: what was written does not change the times of disks and stations."""

    def crossing(self) -> State:
        """What kernels take for the state (`flashsim.core.state_table`), valid until an array is replaced."""
        return self._table.crossing(self.state_arrays)

    def compiled_loop(self) -> tuple[Any, State]:
        """See `flashsim.core.model.CompiledModel.compiled_loop`."""
        return address_of(self._loop), self.crossing()

    def room_for(self, longest: int) -> int:
        """See `flashsim.core.model.CompiledModel.room_for`."""
        self._host.make_room()
        return NEVER

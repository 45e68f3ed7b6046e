"""The fast model of hard disks: a compiled loop over arrivals and completions, with everything in between computed at once.

Every drive serves one command at a time, so all that a command does is known when it starts (`hdd.engine.cache`), and read-ahead and
destaging in the background are part of that (`hdd.engine.stream`).  Equal, to the nanosecond, to `hdd.specification.drive`.
"""

from typing import Any

import numpy as np
from numba import types

from flashsim.core.array_types import VECTOR
from flashsim.core.engine import CompiledEngine
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.host import HOST_TABLES, Host, arrive, command_done, next_arrival
from flashsim.core.host_queue import HostQueue
from flashsim.core.kernel import kernel_of, spliced_kernel
from flashsim.core.policies import Policies, policy_vector
from flashsim.core.records import RecordArray, empty_record, empty_table
from flashsim.core.request import Commands, Completions, Integers, Requests
from flashsim.core.state_table import ADVANCE, State, state_of
from flashsim.core.units import NEVER
from flashsim.hdd import report
from flashsim.hdd.description import BOUNDS, HEAD_ORDERS
from flashsim.hdd.engine.queueing import admit
from flashsim.hdd.engine.stream import position
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.scheduler.base import CANDIDATE, CHOOSE
from flashsim.hdd.state.disk import CONTROL, COUNTERS, DISK, FIELDS, PAIRS, SEGMENT, SHARE_UNIT, STATE, WRITE_BEHIND, WRITING, Disk
from flashsim.hdd.state.layout import extent_table
from flashsim.hdd.state.seek import seek_curve

_SIZES = ("read_ahead", "read_ahead_least", "segment_size", "write_behind", "command_size")
_SHARES = ("read_start", "write_start")
_NAMES = {"head_order": HEAD_ORDERS, "read_ahead_bound": BOUNDS}

#: What a disk's loop works on: its host's queue, the disk, and its policies.
ENGINE = types.Tuple((HOST_TABLES, DISK, VECTOR))
_state_of = state_of(ENGINE)


@spliced_kernel
def run(host: Host, disk: Disk, policies: Policies, until: int, wait: int) -> int:
    """Let events happen up to `until`, or until so many completions wait to be collected.

    Returns when something happens next, or a negative number.
    """
    while True:
        arrival, _ = next_arrival(host)
        command = disk.state.active
        done = disk.state.busy_until if command >= 0 else NEVER
        due = min(arrival, done)
        if host.scalars.finished >= wait:
            return int(due)
        if due > until or due == NEVER:
            if until != NEVER:
                host.scalars.now = until
            return int(due)
        if arrival <= done:
            arrive(host)
        else:
            host.scalars.now = done
            disk.state.active = -1
            command_done(host, command)
        status = admit(host, disk, policies)
        if status != 0:
            return int(status)


@kernel_of(ADVANCE)
def advance(table: State, until: int, wait: int) -> int:
    """`run`, as Python calls it."""
    host, disk, policies = _state_of(table)
    return run(host, disk, policies, until, wait)


def control_of(parameters: HddParameters) -> RecordArray:
    """CONTROL: the parameters in ns, sectors, and millionths of shares."""
    values = {name: getattr(parameters, name) for name in FIELDS}
    for name in _SIZES:
        values[name] //= parameters.sector_size
    for name in _SHARES:
        values[name] = round(values[name] * SHARE_UNIT)
    for name, known in _NAMES.items():
        values[name] = known.index(values[name])
    values["bus_read"] = max(parameters.bus_read, parameters.bulk_transfer)
    values["bus_write"] = max(parameters.bus_write, parameters.bulk_transfer)
    control = empty_record(CONTROL)
    for name in CONTROL.names or ():
        control[name] = (values[f"{name}_after_read"], values[f"{name}_after_write"]) if name in PAIRS else int(values[name])
    return control


class HddEngine(CompiledEngine):
    """A hard disk under a virtual clock (`core.model.DeviceModel`), compiled.

    Parameters
    ----------
    parameters
        The drive.

    Raises
    ------
    UnknownNameError, MissingFileError, FlashsimError
        The scheduler cannot be loaded.
    """

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters
        self._policies = policy_vector({CHOOSE: parameters.scheduler})
        super().__init__(HostQueue(parameters.queue_depth), advance, ENGINE)
        # Every write in the ring has a sector in the buffer, but for those that a command not yet acknowledged pushes out.
        writes = parameters.write_behind // parameters.sector_size + 2
        self._disk = Disk(
            control_of(parameters),
            empty_record(STATE),
            empty_table(1, STATE),
            empty_record(COUNTERS),
            extent_table(parameters),
            seek_curve(parameters),
            empty_table(parameters.segments, SEGMENT),
            empty_table(writes, WRITE_BEHIND),
            np.zeros(parameters.queue_depth, np.int64),
            empty_table(parameters.queue_depth, CANDIDATE),
        )
        self._power_up()

    def _power_up(self) -> None:
        state = empty_record(STATE)
        state.current = state.active = -1
        state.direction = 1
        state.arm = self._disk.extents[0].track
        self._disk = self._disk._replace(state=state, segments=empty_table(self.parameters.segments, SEGMENT))

    @property
    def capacity(self) -> int:
        return self.parameters.capacity

    @property
    def next_event(self) -> int:
        """When something happens next; see `core.model.DeviceModel.next_event`."""
        state = self._disk.state
        return min(int(state.busy_until) if state.active >= 0 else NEVER, self._host.next_arrival)

    def submit(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take requests, split into commands, that arrive at `at`; return their ids (see `core.host_queue.HostQueue.append`)."""
        self.parameters.check(requests, commands)
        return super().submit(requests, commands, at)

    def advance(self, until: int = NEVER, *, every: bool = False, wait: int = 1) -> Completions:
        """Let time pass; see `flashsim.core.model.DeviceModel.advance`."""
        if until < self.now:
            raise InvalidParameterError("until", f"{until} ns", f"the clock is already at {self.now} ns")
        return super().advance(until, every=every, wait=wait)

    @property
    def state_arrays(self) -> tuple[Any, ...]:
        return self._host.tables, self._disk, self._policies

    def make_room(self, commands: int) -> None:
        """Let a kernel enter a request of so many commands."""
        self._host.make_room(1, commands)

    def recover(self, status: int) -> None:
        raise self.refused()

    def refused(self) -> FlashsimError:
        """The error for a scheduler that the engine cannot go on with."""
        return FlashsimError(f"{CHOOSE.family.kind}: '{self.parameters.scheduler}' chose a command that does not wait")

    def load(self, offset: int, length: int) -> None:
        """Nothing: whether a sector has been written does not change a hard disk's times."""

    def power_cut(self, at: int) -> report.HddPowerCut:
        """Run to `at`, then lose power: buffers and queues are emptied, and the arms park over the outermost track.

        Completions up to `at` that have not been returned by `advance` are not returned any more.
        """
        self.advance(at, every=True)
        host = self._host
        cut = report.power_cut(at, host.unfinished.tolist(), self._unsettled(at))
        host.clear()
        self._power_up()
        return cut

    def _unsettled(self, at: int) -> list[report.Unsettled]:
        """Request, its tag, address and length of the writes in the buffer that are not wholly on the media at `at`."""
        disk = self._disk._replace(state=self._disk.before[0]) if self._disk.state.active >= 0 else self._disk
        if disk.state.stream != WRITING:
            return []
        durable = position(disk, at, False)
        slots = (disk.state.ring_head + np.arange(disk.state.ring_count)) % len(disk.ring)
        size = self.parameters.sector_size
        left = disk.ring[slots][disk.ring[slots].end > durable].tolist()
        return [(request, tag, first * size, (end - first) * size) for first, end, request, tag in left]

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made (`hdd.report.COUNTERS`); a command counts from the moment it starts."""
        return report.statistics(dict(zip(report.COUNTERS, self._disk.counters.tolist(), strict=True)))

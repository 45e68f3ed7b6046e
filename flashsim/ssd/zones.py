"""The zones of a zoned namespace: their states and write pointers, and the status of every command that would break their rules.

NVM Express, *Zoned Namespace Command Set Specification* 1.1: the states and their codes (figure 37), the transitions (section 2.1.1.3), and
the statuses of commands (figure 22).  A zone is written at its write pointer only, within its end, and opened by that; it is full when
the pointer reaches the end, or when it is finished.  A zone that is open or closed is active.  When too many would be open, one that a
write opened is closed; when too many would be active, the command fails.  A reset makes a zone empty.

Commands are checked in the order in which they arrive.  Writes and resets of one zone must reach the drive in that order for certain: in
one queue at known times, or each after the last has ended; others are refused as writes that come too early.  A reset reaches the drive as
a trim of the whole zone; the other actions on zones touch no flash.  Zones that are read-only or offline there are not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.request import TRIM, WRITE, Commands, Integers, Requests


class ZoneState(IntEnum):
    """State of a zone, as the standard numbers it."""

    EMPTY = 0x1
    IMPLICITLY_OPENED = 0x2
    EXPLICITLY_OPENED = 0x3
    CLOSED = 0x4
    FULL = 0xE


class ZoneStatus(IntEnum):
    """Status of a command to a zone, as the standard numbers it."""

    SUCCESS = 0x00
    INVALID_FIELD = 0x02
    ZONE_BOUNDARY_ERROR = 0xB8
    ZONE_IS_FULL = 0xB9
    ZONE_INVALID_WRITE = 0xBC
    TOO_MANY_ACTIVE_ZONES = 0xBD
    TOO_MANY_OPEN_ZONES = 0xBE
    INVALID_ZONE_STATE_TRANSITION = 0xBF

    @property
    def words(self) -> str:
        """The standard's name and number."""
        return f"{self.name.replace('_', ' ').title()} ({self:02X}h)"


class ZoneError(FlashsimError):
    """A command that a zone refuses; `status` is the standard's."""

    def __init__(self, what: str, zone: int, status: ZoneStatus) -> None:
        super().__init__(f"{what}: zone {zone}, but the drive answers {status.words}")
        self.zone = zone
        self.status = status


EMPTY, IMPLICIT, EXPLICIT, CLOSED, FULL = ZoneState


class _ZoneChange(NamedTuple):
    """A write or reset of a zone: its request's id and queue, and its arrival: so many ns after time 0, or after the end of a request."""

    request: int
    queue: int
    after: int  # -1 for time 0
    time: int


_OPEN, _ACTIVE = (IMPLICIT, EXPLICIT), (IMPLICIT, EXPLICIT, CLOSED)


class Zones:
    """Zones of a drive, the first from byte 0 on.

    `capacity`, `size` and `grain` are bytes of the drive, of a zone, and of what writes are multiples of; the limits are the most zones
    that are open, and that are active, 0 for no limit.
    """

    def __init__(self, capacity: int, size: int, grain: int, open_limit: int = 0, active_limit: int = 0) -> None:
        self.size, self.grain = size, grain
        self.open_limit, self.active_limit = open_limit, active_limit
        self.states = [EMPTY] * (capacity // size)
        self.pointers = [zone * size for zone in range(len(self.states))]
        self._opened: list[int] = []  # those that writes opened, the first one opened in front
        self._last: dict[int, _ZoneChange] = {}  # of each zone; it may have ended
        self._requests = 0  # that were submitted: the next one's id

    def __len__(self) -> int:
        return len(self.states)

    def write(self, offset: int, length: int) -> ZoneStatus:
        """Move the write pointer of the zone at `offset` by a write of `length` bytes, if that may be."""
        zone = offset // self.size
        if length <= 0 or offset % self.grain or length % self.grain:
            return ZoneStatus.INVALID_FIELD
        if self.states[zone] == FULL:
            return ZoneStatus.ZONE_IS_FULL
        if offset + length > (zone + 1) * self.size:
            return ZoneStatus.ZONE_BOUNDARY_ERROR
        if offset != self.pointers[zone]:
            return ZoneStatus.ZONE_INVALID_WRITE
        status = ZoneStatus.SUCCESS if self.states[zone] in _OPEN else self._open(zone, IMPLICIT)
        if status == ZoneStatus.SUCCESS:
            self.pointers[zone] += length
            if self.pointers[zone] == (zone + 1) * self.size:
                self._become(zone, FULL)
        return status

    def append(self, zone: int, length: int) -> tuple[ZoneStatus, int]:
        """Write at the write pointer; the status, and the offset that was written."""
        self._check(zone)
        offset = self.pointers[zone]
        if self.states[zone] == FULL:
            return ZoneStatus.ZONE_IS_FULL, offset
        return self.write(offset, length), offset

    def open(self, zone: int) -> ZoneStatus:
        """Open a zone until it is closed, finished, reset or full."""
        self._check(zone)
        if self.states[zone] == FULL:
            return ZoneStatus.INVALID_ZONE_STATE_TRANSITION
        return ZoneStatus.SUCCESS if self.states[zone] == EXPLICIT else self._open(zone, EXPLICIT)

    def close(self, zone: int) -> ZoneStatus:
        """Close an open zone; it stays active."""
        self._check(zone)
        if self.states[zone] not in _ACTIVE:
            return ZoneStatus.INVALID_ZONE_STATE_TRANSITION
        self._become(zone, CLOSED)
        return ZoneStatus.SUCCESS

    def finish(self, zone: int) -> ZoneStatus:
        self._check(zone)
        self._become(zone, FULL)
        return ZoneStatus.SUCCESS

    def reset(self, zone: int) -> ZoneStatus:
        self._check(zone)
        self._become(zone, EMPTY)
        self.pointers[zone] = zone * self.size
        return ZoneStatus.SUCCESS

    def require(self, action: Callable[[int], ZoneStatus], zone: int) -> None:
        """Do an action on a zone, such as `open`, or raise its status as a ZoneError."""
        if not 0 <= zone < len(self):
            raise ZoneError(action.__name__, zone, ZoneStatus.INVALID_FIELD)
        if (status := action(zone)) != ZoneStatus.SUCCESS:
            raise ZoneError(action.__name__, zone, status)

    @contextmanager
    def serve(
        self, requests: Requests, commands: Commands, at: int | Integers, queues: int, unfinished: Callable[[], Integers]
    ) -> Iterator[None]:
        """Take commands of the host as they arrive; or none of them, if one is refused here or by what is done in the context.

        `at` is when requests arrive that wait for none, ns; `queues` the number of submission queues; `unfinished` tells the ids of
        requests that have not ended.

        Raises ZoneError: a write breaks the rules, a trim is not one of whole zones, or either might pass an earlier one on its way to the
        zone.
        """
        kept = self.states[:], self.pointers[:], self._opened[:], self._last.copy()
        try:
            self._take(requests, commands, at, queues, unfinished)
            yield
            self._requests += len(requests)
        except BaseException:
            self.states, self.pointers, self._opened, self._last = kept
            raise

    def _take(self, requests: Requests, commands: Commands, at: int | Integers, queues: int, unfinished: Callable[[], Integers]) -> None:
        operations, offsets, lengths, dependencies, thinks = (
            requests[name].tolist() for name in ("operation", "offset", "length", "dependency", "think")
        )
        of_streams, arrivals = (requests["stream"] % queues).tolist(), np.broadcast_to(at, len(requests)).tolist()
        earliest = arrivals[:]
        for row, before in enumerate(dependencies):
            if before >= row:
                return  # the host's queue refuses it
            if before >= 0:
                earliest[row] = earliest[before] + thinks[row]
        rows, taken = commands.tolist(), -1
        rows.sort(key=lambda command: earliest[command[0]])
        for request, offset, length in rows:
            operation = operations[request]
            if operation not in (WRITE, TRIM):
                continue
            first, end = offsets[request], offsets[request] + lengths[request]
            what = f"write of {length} B at {offset}" if operation == WRITE else f"trim of {end - first} B at {first}"
            if request != taken:  # with the first of its commands
                taken, before = request, dependencies[request]
                timing = (-1, arrivals[request]) if before < 0 else (self._requests + before, thinks[request])
                change = _ZoneChange(self._requests + request, of_streams[request], *timing)
                for zone in range(first // self.size, -(-end // self.size)):
                    if not self._follows(change, zone, earliest[request], dependencies, unfinished):
                        raise ZoneError(
                            f"{what}, which may overtake one that has not ended (they need one queue and times, or to wait for each other)",
                            zone,
                            ZoneStatus.ZONE_INVALID_WRITE,
                        )
                    self._last[zone] = change
                if operation == TRIM:
                    if first % self.size or end % self.size:
                        raise ZoneError(what, first // self.size, ZoneStatus.INVALID_FIELD)
                    for zone in range(first // self.size, end // self.size):
                        self.reset(zone)
            if operation == WRITE and (status := self.write(offset, length)) != ZoneStatus.SUCCESS:
                ragged = status == ZoneStatus.INVALID_FIELD
                raise ZoneError(f"{what}, not in units of {self.grain} B" if ragged else what, offset // self.size, status)

    def _follows(self, change: _ZoneChange, zone: int, earliest: int, dependencies: list[int], unfinished: Callable[[], Integers]) -> bool:
        """Whether a change of a zone reaches the drive after the last one for certain."""
        last = self._last.get(zone)
        if last is None:
            return True
        if last.queue == change.queue and (
            last.time <= earliest if last.after < 0 else last[2:] <= change[2:] and last.after == change.after
        ):
            return True
        row, last_row = change.request - self._requests, last.request - self._requests
        if last_row < 0:
            return last.request not in unfinished()
        while row > last_row:  # what it waits for, and so on
            row = dependencies[row]
        return row == last_row

    def forget(self) -> None:
        """Make all zones empty, those that are finished as well."""
        for zone in range(len(self)):
            self.reset(zone)

    def rebuild(self, mapped: npt.NDArray[np.bool_]) -> None:
        """Forget what was open: write pointers follow the last pages that are mapped, given one a `grain`; finished zones stay full."""
        pages = self.size // self.grain
        for zone in range(len(self)):
            held = np.flatnonzero(mapped[zone * pages : (zone + 1) * pages])
            finished = self.states[zone] == FULL and self.pointers[zone] < (zone + 1) * self.size
            written = int(held[-1]) + 1 if len(held) else 0
            self.pointers[zone] = zone * self.size + written * self.grain
            self.states[zone] = FULL if finished or written == pages else CLOSED if written else EMPTY
        self._opened.clear()
        self._last.clear()

    def _check(self, zone: int) -> None:
        if zone not in range(len(self)):
            raise InvalidParameterError("zone", zone, f"the drive has zones 0 to {len(self) - 1}")

    def _open(self, zone: int, state: ZoneState) -> ZoneStatus:
        """Open a zone that is empty, closed, or open by a write; another that a write opened may have to be closed."""
        if self.active_limit and self.states[zone] not in _ACTIVE and self._count(_ACTIVE) >= self.active_limit:
            return ZoneStatus.TOO_MANY_ACTIVE_ZONES
        if self.open_limit and self.states[zone] not in _OPEN and self._count(_OPEN) >= self.open_limit:
            if not self._opened:
                return ZoneStatus.TOO_MANY_OPEN_ZONES
            self._become(self._opened[0], CLOSED)
        self._become(zone, state)
        return ZoneStatus.SUCCESS

    def _become(self, zone: int, state: ZoneState) -> None:
        if self.states[zone] == IMPLICIT:
            self._opened.remove(zone)
        if state == IMPLICIT:
            self._opened.append(zone)
        self.states[zone] = state

    def _count(self, states: tuple[ZoneState, ...]) -> int:
        return sum(state in states for state in self.states)

"""The zones of a zoned namespace: their states and write pointers, and the status of every command that would break their rules.

NVM Express, *Zoned Namespace Command Set Specification* 1.1: the states and their codes (figure 37), the transitions (section 2.1.1.3), and
the statuses of commands (figure 22).  A zone is written at its write pointer only, within its end, and opened by that; it is full when
the pointer reaches the end, or when it is finished.  A zone that is open or closed is active.  When too many would be open, one that a
write opened is closed; when too many would be active, the command fails.  A reset makes a zone empty.

A drive checks commands in the order in which they are submitted.  A reset reaches it as a trim of the whole zone; the other actions on
zones touch no flash.  Zones that are read-only or offline there are not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import FlashsimError
from flashsim.core.request import TRIM, WRITE, Commands, Requests


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
_OPEN, _ACTIVE = (IMPLICIT, EXPLICIT), (IMPLICIT, EXPLICIT, CLOSED)


class Zones:
    """Zones of a drive, the first from byte 0 on.

    Parameters
    ----------
    capacity, size, grain
        Bytes of the drive, of a zone, and of what writes are multiples of.
    open_limit, active_limit
        The most zones that are open, and that are active; 0 for no limit.
    """

    def __init__(self, capacity: int, size: int, grain: int, open_limit: int = 0, active_limit: int = 0) -> None:
        self.size, self.grain = size, grain
        self.open_limit, self.active_limit = open_limit, active_limit
        self.states = [EMPTY] * (capacity // size)
        self.pointers = [zone * size for zone in range(len(self.states))]
        self._opened: list[int] = []  # those that writes opened, the first one opened in front

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
        offset = self.pointers[zone]
        if self.states[zone] == FULL:
            return ZoneStatus.ZONE_IS_FULL, offset
        return self.write(offset, length), offset

    def open(self, zone: int) -> ZoneStatus:
        """Open a zone until it is closed, finished, reset or full."""
        if self.states[zone] == FULL:
            return ZoneStatus.INVALID_ZONE_STATE_TRANSITION
        return ZoneStatus.SUCCESS if self.states[zone] == EXPLICIT else self._open(zone, EXPLICIT)

    def close(self, zone: int) -> ZoneStatus:
        """Close an open zone; it stays active."""
        if self.states[zone] not in _ACTIVE:
            return ZoneStatus.INVALID_ZONE_STATE_TRANSITION
        self._become(zone, CLOSED)
        return ZoneStatus.SUCCESS

    def finish(self, zone: int) -> ZoneStatus:
        """Let nothing more be written to a zone."""
        self._become(zone, FULL)
        return ZoneStatus.SUCCESS

    def reset(self, zone: int) -> ZoneStatus:
        """Make a zone empty."""
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
    def serve(self, requests: Requests, commands: Commands) -> Iterator[None]:
        """Take commands of the host in order; or none of them, if one is refused here or by what is done in the context.

        Raises
        ------
        ZoneError
            A write breaks the rules, or a trim is not one of whole zones.
        """
        kept = self.states[:], self.pointers[:], self._opened[:]
        try:
            self._take(requests, commands)
            yield
        except BaseException:
            self.states, self.pointers, self._opened = kept
            raise

    def _take(self, requests: Requests, commands: Commands) -> None:
        operations, offsets, lengths = (requests[name].tolist() for name in ("operation", "offset", "length"))
        trimmed = -1
        for request, offset, length in commands.tolist():
            if operations[request] == WRITE and (status := self.write(offset, length)) != ZoneStatus.SUCCESS:
                raise ZoneError(f"write of {length} B at {offset}", offset // self.size, status)
            if operations[request] == TRIM and request != trimmed:  # with the first of its commands
                first, end, trimmed = offsets[request], offsets[request] + lengths[request], request
                if first % self.size or end % self.size:
                    raise ZoneError(f"trim of {end - first} B at {first}", first // self.size, ZoneStatus.INVALID_FIELD)
                for zone in range(first // self.size, end // self.size):
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

"""What a hard disk drive is made of: the declared parameters of a drive, checked as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.parameters import count, duration, rate, size, table
from flashsim.core.request import FLUSH, READ, SECTOR, Commands, Requests
from flashsim.core.units import NEVER, format_size
from flashsim.hdd.seek import lee_curve


@dataclass(frozen=True)
class HddParameters:
    """A drive with zones, a seek curve and two cache segments; make it with `flashsim.core.parameters.build`.

    Raises
    ------
    InvalidParameterError
        Values that contradict each other: zones too small for the capacity, a seek curve that is not monotone, and the like.
    """

    capacity: int = size("what the host can address")
    sector_size: int = size("the logical sector", least=SECTOR)
    rotation: int = duration("one revolution", least=1)
    heads: int = count("recording surfaces")
    zones: tuple[tuple[int, int], ...] = table("rows (cylinders, sectors a track), from the outer edge inwards")
    seek_single: int = duration("a seek to the next cylinder", least=1)
    seek_average: int = duration("the mean seek between two random cylinders", least=1)
    seek_full: int = duration("a seek across all cylinders", least=1)
    head_switch: int = duration("changing the head within a cylinder")
    write_settle: int = duration("added to a seek or head switch before a write")
    link_rate: int = rate("the host interface")
    overhead: int = duration("the controller's work on each command", least=1)
    read_ahead: int = size("the read-ahead segment; 0: no read-ahead", least=0)
    write_behind: int = size("the write-behind segment; 0: every write is acknowledged from the media", least=0)
    queue_depth: int = count("commands that the drive holds at once")

    def __post_init__(self) -> None:
        _check_zones(self)
        for name in ("capacity", "read_ahead", "write_behind"):
            if getattr(self, name) % self.sector_size:
                raise InvalidParameterError(name, f"{getattr(self, name)} B", f"it must be a multiple of the sector, {self.sector_size} B")
        if self.sector_size % SECTOR:
            raise InvalidParameterError("sector_size", f"{self.sector_size} B", f"it must be a multiple of {SECTOR} B")
        if 2 * self.write_settle > self.rotation:
            raise InvalidParameterError(
                "write_settle", f"{self.write_settle} ns", f"it must be at most half a revolution, {self.rotation // 2} ns"
            )
        curve = lee_curve(self.cylinders, self.seek_single, self.seek_average, self.seek_full)
        falls = np.flatnonzero(np.diff(curve) < 0)
        if len(falls) or curve[1:].min(initial=1) < 1:
            where = int(falls[0]) + 1 if len(falls) else int(np.argmin(curve[1:])) + 1
            raise InvalidParameterError(
                "seek_average",
                f"{self.seek_average} ns",
                f"with seek_single {self.seek_single} ns and seek_full {self.seek_full} ns the curve falls at {where} cylinders",
            )

    @property
    def cylinders(self) -> int:
        """Cylinders of all zones together."""
        return sum(cylinders for cylinders, _ in self.zones)

    @property
    def sectors(self) -> int:
        """Sectors that the host can address."""
        return self.capacity // self.sector_size

    def check(self, requests: Requests, commands: Commands) -> None:
        """Refuse commands that lie outside the drive or are not in whole sectors.

        Raises
        ------
        InvalidParameterError
            The first such command, by its offset and length; or an operation that no drive knows.
        """
        offset, length = commands["offset"], commands["length"]
        moves_data = (requests["operation"][commands["request"]] & ~1) == 0  # READ and WRITE
        bad = (offset % self.sector_size != 0) | (length % self.sector_size != 0) | (length <= 0)
        bad |= (offset < 0) | (offset > self.capacity - length)
        bad &= moves_data
        if bad.any():
            row = int(np.argmax(bad))
            bound = f"the drive has {self.sectors} sectors of {self.sector_size} B"
            raise InvalidParameterError("command", f"{length[row]} B at {offset[row]}", bound)
        unknown = (requests["operation"] < READ) | (requests["operation"] > FLUSH)
        if unknown.any():
            raise InvalidParameterError("operation", int(requests["operation"][unknown][0]), f"it must be {READ} to {FLUSH}")


def _check_zones(parameters: HddParameters) -> None:
    if not parameters.zones:
        raise InvalidParameterError("zones", "none", "at least one is needed")
    rows: Sequence[Sequence[float]] = parameters.zones
    for row in rows:
        if len(row) != 2 or not all(isinstance(value, int) for value in row) or row[0] < 1 or row[1] < 4:
            raise InvalidParameterError("zones", row, "a row is (cylinders, sectors a track), at least (1, 4)")
        if row[1] > parameters.rotation:
            raise InvalidParameterError("zones", row, f"a revolution of {parameters.rotation} ns must last a nanosecond a sector")
    sectors = sum(cylinders * per_track for cylinders, per_track in parameters.zones) * parameters.heads
    if sectors * parameters.sector_size < parameters.capacity:
        raise InvalidParameterError(
            "zones",
            f"{sectors} sectors = {format_size(sectors * parameters.sector_size)}",
            f"the capacity is {format_size(parameters.capacity)}",
        )
    if 4 * sectors * parameters.rotation >= NEVER:
        raise InvalidParameterError("zones", f"{sectors} sectors", "times of more than 2**60 ns would not fit into 64 bits")

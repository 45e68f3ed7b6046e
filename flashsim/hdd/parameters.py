"""The parameters of a hard disk drive, checked as a whole; an error names the parameter, its value and the bound."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flashsim.core.errors import InvalidParameterError, check_known
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import FLUSH, READ, SECTOR, WRITE, Commands, Requests
from flashsim.core.units import NEVER, format_size
from flashsim.hdd.description import BOUNDS, HEAD_ORDERS, SPARING, DriveDescription
from flashsim.hdd.scheduler.base import FAMILY
from flashsim.hdd.state.layout import SLOT_UNIT, sectors_of
from flashsim.hdd.state.seek import seek_curve

_MOST_SECTORS = 2**40  #: A drive has at most so many sectors; the times of a stream then stay below 2**62 ns.


@dataclass(frozen=True, kw_only=True)
class HddParameters(DriveDescription):
    """A drive; make it with `flashsim.core.parameters.build`."""

    def __post_init__(self) -> None:
        _check_sizes(self)
        for name, choices in (("sparing", SPARING), ("head_order", HEAD_ORDERS), ("read_ahead_bound", BOUNDS)):
            check_known(name, getattr(self, name), choices)
        FAMILY.load(self.scheduler)
        _check_layout(self)
        _check_arm(self)
        sectors = sectors_of(self)
        if self.capacity == 0:
            object.__setattr__(self, "capacity", sectors * self.sector_size)
        if self.capacity < self.sector_size or sectors * self.sector_size < self.capacity:
            text = f"{sectors} sectors = {format_size(sectors * self.sector_size)}"
            raise InvalidParameterError("zones", text, f"the capacity is {format_size(self.capacity)}")

    def check(self, requests: Requests, commands: Commands) -> None:
        """Refuse commands that lie outside the drive or are not in whole sectors."""
        requests, commands = np.ascontiguousarray(requests), np.ascontiguousarray(commands)
        command, request = _first_refused(requests, commands, self.sector_size, self.capacity)
        if command >= 0:
            _, offset, length = commands[command].tolist()
            bound = f"the drive has {self.capacity // self.sector_size} sectors of {self.sector_size} B"
            raise InvalidParameterError("command", f"{length} B at {offset}", bound)
        if request >= 0:
            raise InvalidParameterError("operation", int(requests["operation"][request]), f"it must be {READ} to {FLUSH}")


@lean_kernel
def _first_refused(requests: Requests, commands: Commands, sector_size: int, capacity: int) -> tuple[int, int]:
    """The first command that is refused, and the first request whose operation is unknown; -1 where there is none."""
    for row in range(commands.shape[0]):
        request, offset, length = commands[row]["request"], commands[row]["offset"], commands[row]["length"]
        if request < 0 or request >= requests.shape[0] or requests[request]["operation"] not in (READ, WRITE):
            continue
        if offset % sector_size != 0 or length % sector_size != 0 or length <= 0 or offset < 0 or offset > capacity - length:
            return row, -1
    for row in range(requests.shape[0]):
        if requests[row]["operation"] < READ or requests[row]["operation"] > FLUSH:
            return -1, row
    return -1, -1


def _check_sizes(parameters: DriveDescription) -> None:
    sector = parameters.sector_size
    if sector % SECTOR:
        raise InvalidParameterError("sector_size", f"{sector} B", f"it must be a multiple of {SECTOR} B")
    for name in ("capacity", "read_ahead", "read_ahead_least", "segment_size", "write_behind", "command_size"):
        if getattr(parameters, name) % sector:
            raise InvalidParameterError(name, f"{getattr(parameters, name)} B", f"it must be a multiple of the sector, {sector} B")
    least, most = parameters.read_ahead_least, parameters.read_ahead
    if least > most:
        raise InvalidParameterError("read_ahead_least", format_size(least), f"read_ahead is {format_size(most)}")


def _check_layout(parameters: DriveDescription) -> None:
    """Zones are whole, and slips and defects lie in them."""
    if not parameters.zones:
        raise InvalidParameterError("zones", "none", "at least one is needed")
    for row in parameters.zones:
        _check_zone(row, parameters.rotation)
    if parameters.sparing == "none" and (parameters.slips or any(len(row) > 2 and row[6] for row in parameters.zones)):
        raise InvalidParameterError("sparing", "none", "with spares or slips it must be one of " + ", ".join(SPARING[1:]))
    sectors = sum(int(row[0]) * int(row[1]) for row in parameters.zones) * parameters.heads
    if sectors > _MOST_SECTORS:
        raise InvalidParameterError("zones", f"{sectors} sectors", f"at most {_MOST_SECTORS} are possible")
    for name, columns in (("slips", 2), ("defects", 3)):
        for row in getattr(parameters, name):
            _check_bad(parameters, name, row, columns)


def _check_zone(row: Sequence[float], rotation: int) -> None:
    whole = (0, 1, 5, 6, 7)
    if len(row) not in (2, 8) or any(not isinstance(row[at], int) or row[at] < 0 for at in whole if at < len(row)):
        raise InvalidParameterError("zones", row, "a row has 2 or 8 numbers, and all but skews and offset are whole")
    if row[0] < 1 or row[1] < 4:
        raise InvalidParameterError("zones", row, "a row is (cylinders, sectors a track), at least (1, 4)")
    if row[1] > rotation:
        raise InvalidParameterError("zones", row, f"a revolution of {rotation} ns must last a nanosecond a sector")
    for value in row[2:5]:
        if not 0 <= value < row[1]:
            raise InvalidParameterError("zones", row, f"skews and offset must be from 0 to below {row[1]} sectors")
    if len(row) > 2 and row[1] * SLOT_UNIT * 2 * rotation >= NEVER:
        raise InvalidParameterError("zones", row, f"with a revolution of {rotation} ns the angle would not fit into 64 bits")


def _check_bad(parameters: DriveDescription, name: str, row: Sequence[float], columns: int) -> None:
    if len(row) != columns or any(not isinstance(value, int) or value < 0 for value in row) or row[0] >= len(parameters.zones):
        raise InvalidParameterError(name, row, f"a row is {columns} whole numbers, the first a zone from 0 to {len(parameters.zones) - 1}")
    zone, *places = (int(value) for value in row)
    tracks = int(parameters.zones[zone][0]) * parameters.heads
    most = tracks if parameters.sparing == "tracks" else tracks * int(parameters.zones[zone][1])
    if max(places) >= most:
        raise InvalidParameterError(name, row, f"zone {zone} has {most} {'tracks' if parameters.sparing == 'tracks' else 'sectors'}")


def _check_arm(parameters: DriveDescription) -> None:
    """Seeks take time, more over longer distances where a curve says so, and settling is shorter than half a revolution."""
    if 2 * parameters.write_settle > parameters.rotation:
        raise InvalidParameterError(
            "write_settle", f"{parameters.write_settle} ns", f"it must be at most half a revolution, {parameters.rotation // 2} ns"
        )
    for name, columns in (("seek_formula", 5), ("seek_table", 2), ("seek_first", 1)):
        rows = getattr(parameters, name)
        if any(len(row) != columns for row in rows) or (name == "seek_formula" and len(rows) > 1):
            raise InvalidParameterError(name, rows, f"a row has {columns} numbers")
    distances = [row[0] for row in parameters.seek_table]
    if distances != sorted(set(distances)) or (distances and distances[0] < 1):
        raise InvalidParameterError("seek_table", distances, "distances must ascend from 1 on")
    lee = not parameters.seek_table and not parameters.seek_formula
    if lee and min(parameters.seek_single, parameters.seek_average, parameters.seek_full) < 1:
        names = "seek_single, seek_average and seek_full"
        raise InvalidParameterError(
            "seek_single", f"{parameters.seek_single} ns", f"without seek_formula and seek_table {names} are needed"
        )
    curve = seek_curve(parameters)
    falls = np.flatnonzero(np.diff(curve) < 0) if lee and not parameters.seek_first else np.zeros(0, np.int64)
    if len(falls) or curve[1:].min(initial=1) < 1:
        where = int(falls[0]) + 1 if len(falls) else int(np.argmin(curve[1:])) + 1
        name = "seek_average" if lee else "seek_formula" if parameters.seek_formula else "seek_table"
        what = f"seek_single {parameters.seek_single} ns and seek_full {parameters.seek_full} ns the curve falls at {where} cylinders"
        bound = f"with {what}" if lee else f"a seek over {where} cylinders takes no time"
        raise InvalidParameterError(name, f"{parameters.seek_average} ns" if lee else getattr(parameters, name)[:1], bound)

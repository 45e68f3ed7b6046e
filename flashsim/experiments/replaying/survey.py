"""A first pass over a trace before it is replayed: what it needs of a device, and what it reads written before."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from flashsim.core.errors import FlashsimWarning, InvalidParameterError, RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.request import FLUSH, READ, SECTOR, WRITE, Integers, make_requests
from flashsim.core.units import MIB
from flashsim.device.block_layer import split
from flashsim.device.device import Device
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.zones import ZoneError, Zones
from traces.file.excerpt import Source, path_of, requests_of
from traces.file.schema import Batches, unknown_columns
from traces.summary.distinct import Footprint
from traces.summary.histogram import Clock

#: Requests that are in memory at once, and the distance over which a request may wait for an earlier one.
WINDOW = 1 << 16
#: Bytes of the pieces in which a drive is loaded: each call costs about a millisecond, whatever it loads.
_LOAD_UNIT = MIB
#: The most separate places of reads: beyond, the unit doubles until they are fewer; memory stays small, and more is loaded than read.
_MOST_PLACES = 1 << 20


@dataclass(frozen=True)
class Survey:
    """The result of a first pass over a trace.

    `reach` is where the furthest request ends, `read` what is read, shape (n, 2); `bursts` warns of coarse times, and
    `unknown` are columns that the trace's source does not have.  `reaches` and `labels` are, by number of the device, where the furthest of
    its requests ends, and what the first one is called.
    """

    requests: int
    reach: int
    read: Integers
    timed: bool
    dependent: bool
    reaches: Mapping[int, int]
    labels: Mapping[int, str]
    bursts: str = ""
    unknown: frozenset[str] = frozenset()

    @property
    def devices(self) -> int:
        return len(self.reaches)

    def pace(self) -> str:
        """The pace that keeps most of what the trace knows."""
        return "think" if self.dependent else "timed" if self.timed else "asap"


def warn_of(what: Survey, pace: str) -> None:
    """Warn of a replay's assumptions that the trace does not confirm."""
    if pace == "timed" and what.bursts:
        warnings.warn(f"trace: {what.bursts}", FlashsimWarning, stacklevel=3)
    if "operation" in what.unknown:
        warnings.warn("trace: operations are not in the file: all requests are replayed as reads", FlashsimWarning, stacklevel=3)


def first_requests(batches: Batches, limit: int | None) -> Batches:
    """The first `limit` requests, in batches of at most a window."""
    rest = limit
    for batch in batches:
        for begin in range(0, batch.num_rows, WINDOW):
            piece = batch.slice(begin, WINDOW if rest is None else min(WINDOW, rest))
            rest = None if rest is None else rest - piece.num_rows
            if piece.num_rows:
                yield piece
        if rest == 0:
            return


def survey(source: Source, limit: int | None = None) -> Survey:
    """A first pass over a trace file, or a part of it, which must have a request; for errors see `traces.file.excerpt.Excerpt.batches`."""
    if limit is not None and limit < 1:
        raise InvalidParameterError("limit", limit, "it must be at least 1")
    requests, timed, dependent, footprint, unit = 0, True, False, Footprint(), _LOAD_UNIT
    reaches, labels = dict[int, int](), dict[int, str]()
    clock, unknown = Clock(), frozenset[str]()
    for batch in first_requests(requests_of(source), limit):
        offset, length, operation, device = (column(batch, name) for name in ("offset", "length", "operation", "device"))
        requests += batch.num_rows
        for number in np.unique(device).tolist():
            mine = device == number
            reaches[number] = max(reaches.get(number, 0), int(np.where(operation == FLUSH, 0, offset + length)[mine].max()))
            labels.setdefault(number, str(batch.column("label")[int(np.argmax(mine))].as_py() or ""))
        timed &= batch.column("arrival").null_count == 0
        clock.add(batch.column("arrival").drop_null().to_numpy())
        unknown |= unknown_columns(batch.schema)
        dependent |= bool((column(batch, "dependency") >= 0).any())
        reads = operation == READ
        _read_from(footprint, offset[reads], (offset + length)[reads], unit)
        while len(footprint.ranges) > _MOST_PLACES:
            unit *= 2
            finer, footprint = footprint.ranges, Footprint()
            _read_from(footprint, finer[:, 0], finer[:, 1], unit)
    if not requests:
        raise InvalidParameterError("trace", str(path_of(source)), "there must be a request in it")
    return Survey(requests, max(reaches.values()), footprint.ranges, timed, dependent, reaches, labels, clock.bursts, unknown)


def _read_from(footprint: Footprint, begin: Integers, end: Integers, unit: int) -> None:
    first = begin // unit * unit
    footprint.add(first, -(-end // unit) * unit - first)


def check_zones(source: Source, drive: SsdParameters, limit: int | None = None) -> None:
    """Refuse a trace with a write or trim to a zoned drive not in whole units, or not where the last one in its zone ended."""
    zones, begun, count = Zones(drive.capacity, drive.zone_size, drive.unit_size), set[int](), 0
    for batch in first_requests(requests_of(source), limit):
        requests = make_requests(*(column(batch, name) for name in ("operation", "offset", "length")))
        requests["offset"] %= drive.capacity
        requests["length"] = np.minimum(requests["length"], drive.capacity - requests["offset"])
        commands = split(requests, drive.zone_size, drive.zone_size)
        writes: Integers = commands["offset"][requests["operation"][commands["request"]] == WRITE]
        of, first = np.unique(writes // drive.zone_size, return_index=True)
        for zone, begin in zip(of.tolist(), writes[first].tolist(), strict=True):
            if zone not in begun:
                zones.pointers[zone] = begin
        begun.update(of.tolist())
        try:
            with zones.serve(requests, commands, count + np.arange(len(requests)), 1, lambda: np.zeros(0, np.int64)):
                count += len(requests)
        except ZoneError as error:
            raise RefusedError(f"trace: a zoned drive does not take its {error}") from error


def load(device: Device, what: Survey, progress: Progress | None = None) -> None:
    """Mark what a trace reads as written, so that reads move data; a range beyond the end wraps around with the requests."""
    end = device.capacity // SECTOR * SECTOR
    pieces = what.read
    if what.reach > end:
        begins, sizes = what.read[:, 0] % end, np.minimum(what.read[:, 1] - what.read[:, 0], end)
        beyond = np.maximum(begins + sizes - end, 0)
        every = Footprint()
        every.add(np.append(begins, 0), np.append(sizes - beyond, beyond.max(initial=0)))
        pieces = every.ranges
    for number, (begin, stop) in enumerate(pieces.tolist()):
        if min(stop, end) > begin:
            device.load(begin, min(stop, end) - begin)
        if progress and number % 64 == 0:
            progress(number, len(pieces), "loading")


def fit(batch: pa.RecordBatch, block: int | Integers, end: int | Integers) -> tuple[Integers, Integers, int, int]:
    """Offsets and lengths of requests in whole blocks, and such that those beyond a device's end wrap around to its begin.

    Also how many had to be widened to that, and how many were wrapped around.
    """
    offset, length, moves = column(batch, "offset"), column(batch, "length"), column(batch, "operation") != FLUSH
    begin, stop = whole_blocks(offset, length, block)
    widened, outside, size = moves & (stop - begin != length), moves & (stop > end), stop - begin
    begin = np.where(outside, np.minimum(begin % end, end - size), begin)
    return np.where(moves, begin, 0), np.where(moves, size, 0), int(widened.sum()), int(outside.sum())


def whole_blocks(offset: Integers, length: Integers, block: int | Integers) -> tuple[Integers, Integers]:
    """The begin of the first block of each request, and the end of its last."""
    return offset // block * block, -(-(offset + length) // block) * block


def column(batch: pa.RecordBatch, name: str) -> Integers:
    return batch.column(name).to_numpy(zero_copy_only=False)

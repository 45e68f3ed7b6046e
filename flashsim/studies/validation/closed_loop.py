"""A measured closed loop run again on a simulated drive: the next request comes its think time after the simulated completion."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.request import FLUSH, READ, REQUEST, SECTOR, TRIM, WRITE, Integers, Requests
from flashsim.core.units import format_size
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from traces.format import disksim
from traces.format.base import read_trace, recognise

#: Requests that are submitted together; each waits for the one before it.
BATCH = 8192


@dataclass(frozen=True)
class ClosedLoop:
    """What a run shows, a row a request in order: shape (n,) each.

    Parameters
    ----------
    operation
        READ or WRITE.
    measured, simulated
        Response times, ns.
    tag
        What the measured drive's cache did, a number into `kinds`.
    kinds
        Names of what the cache may have done; none where the trace does not tell it.
    """

    operation: npt.NDArray[np.int8]
    offset: Integers
    length: Integers
    measured: Integers
    simulated: Integers
    tag: Integers
    kinds: tuple[str, ...] = ()


def run(preset: Preset, path: Path, model: str = "engine", progress: Progress | None = None) -> ClosedLoop:
    """Send the requests of a closed loop trace to a fresh drive, whole batches at once.

    Requests go to the drive as they stand in the trace: the measured drive took them in one command each, so none is split.
    """
    batches = list(_checked(read_trace(path)))
    if not batches:
        raise InvalidParameterError("trace", path.name, "it must hold at least one request")
    names = ("operation", "offset", "length", "tag", "arrival", "completed")
    columns = {name: np.concatenate([_column(batch, name) for batch in batches]) for name in names}
    measured = columns.pop("completed") - columns.pop("arrival")
    reach = int(np.max(columns["offset"] + columns["length"]))
    if reach > preset.capacity:
        raise CapacityError(f"trace: it reaches to {format_size(reach)}, but {preset.name} holds {format_size(preset.capacity)}")
    device = Device(preset, model, maximum_command=int(columns["length"].max()))
    simulated = []
    for batch in batches:
        requests = _requests(batch)
        completions = device.serve(requests, device.now + int(requests["think"][0]))
        simulated.append(completions["completed"] - completions["submitted"])
        if progress:
            progress(sum(map(len, simulated)), len(measured))
    kinds = disksim.KINDS if recognise(path) == "disksim" and np.ptp(columns["tag"]) > 0 else ()
    return ClosedLoop(**columns, measured=measured, simulated=np.concatenate(simulated), kinds=tuple(kinds))


def _column(batch: pa.RecordBatch, name: str) -> Integers:
    values: Integers = batch.column(name).to_numpy()
    return values


def _requests(batch: pa.RecordBatch) -> Requests:
    """A batch as requests that each wait for the one before; the first one's think time is the caller's to add."""
    requests = np.zeros(batch.num_rows, REQUEST)
    for name in ("operation", "offset", "length", "tag", "think", "flags"):
        requests[name] = _column(batch, name)
    requests["dependency"] = np.arange(-1, batch.num_rows - 1)
    return requests


def _checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in batches:
        for name in ("arrival", "completed"):
            if batch.column(name).null_count:
                raise InvalidParameterError(f"trace: {name}", "not recorded", "a validation needs the measured time of every request")
        if not np.array_equal(_column(batch, "dependency"), np.arange(first - 1, first + batch.num_rows - 1)):
            raise InvalidParameterError("trace: dependency", "not a chain", "in a closed loop each request waits for the one before")
        operation = _column(batch, "operation")
        if np.isin(operation, (TRIM, FLUSH)).any() or not np.isin(operation, (READ, WRITE)).all():
            raise InvalidParameterError("trace: operation", "trim or flush", "a validation compares reads and writes")
        if np.any((_column(batch, "length") <= 0) | (_column(batch, "length") % SECTOR != 0)):
            raise InvalidParameterError("trace: length", int(_column(batch, "length").min()), f"it must be a multiple of {SECTOR} B")
        first += batch.num_rows
        for begin in range(0, batch.num_rows, BATCH):
            yield batch.slice(begin, BATCH)

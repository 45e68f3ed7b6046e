"""Replay a trace on a real file or block device: everything is checked before the first request, and reads are harmless by default."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.errors import ALLOW_WRITE, WRAP, CapacityError, InvalidParameterError, RefusedError, UnknownNameError, option
from flashsim.core.protocols import Progress
from flashsim.core.request import FLUSH, OPERATIONS, READ, TRIM, WRITE, Completions, Integers
from flashsim.core.units import MIB, MICROSECONDS, format_duration, format_size
from flashsim.device.access import check_readable, check_typed
from flashsim.device.aio import check_outstanding
from flashsim.device.batch import aligned_buffer
from flashsim.device.file import NoDirectIOError, RealDevice
from flashsim.experiments.replaying.survey import WINDOW, Survey, column, first_requests, fit, warn_of, whole_blocks
from traces.file.excerpt import Source, requests_of
from traces.file.schema import Batches, make_batch
from traces.replay.base import BACK, Observer, load_engine
from traces.replay.builtin import fill

#: Requests submitted so much after they were due, ns, are late; timers and a system call take less.
LATE = 100 * MICROSECONDS
#: A file that is made is a multiple of this, the largest block of direct I/O.
_BLOCK = 4096


@dataclass(frozen=True)
class RealSettings:
    """Settings of a replay on a real device."""

    #: See `traces.replay.base.Engine.replay`.
    pace: str
    depth: int = 1
    #: A member of `traces.replay`.
    engine: str = "builtin"
    #: Wrap requests beyond the device's end around to its begin, widen them to its whole blocks, read there what the trace writes.
    scale_offsets: bool = False
    widen: bool = False
    writes_as_reads: bool = False
    #: Permission to write, to overwrite a file that exists, and to write to block devices of these names, as typed by the user.
    allow_write: bool = False
    replace: bool = False
    destroy: str | Sequence[str] | None = None
    #: Go through the page cache.
    buffered: bool = False


@dataclass
class RealReplay:
    """Figures of a replay on a real device, beside its observer's: the engine, and numbers of requests wrapped around and widened."""

    how: str = ""
    moved: int = 0
    widened: int = 0
    #: Bytes of the file up to the trace's end that were never written: reading them reads nothing.
    holes: int = 0


class Lateness:
    """Counts the requests that were submitted noticeably later than they were due."""

    def __init__(self) -> None:
        self.requests = self.late = self.most = self._sum = 0

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        behind: Integers = completions["started"] - completions["submitted"]
        late = behind[behind > LATE]
        self.requests += len(behind)
        self.late += len(late)
        self._sum += int(late.sum())
        self.most = max(self.most, int(behind.max(initial=0)))

    def as_dict(self) -> dict[str, int | float]:
        return {"requests": self.requests, "late": self.late, "mean": self._sum / max(1, self.late), "max": self.most}

    def __str__(self) -> str:
        if not self.late:
            return f"all requests were submitted within {format_duration(LATE)} of when they were due"
        by = f"by {format_duration(round(self._sum / self.late))} on average and {format_duration(self.most)} at most"
        late = f"{self.late:,} of {self.requests:,} requests were submitted more than {format_duration(LATE)} late"
        return f"timing was not kept up: {late}, {by}"


def replay_on(
    source: Source, target: Path | Mapping[int, Path], settings: RealSettings, what: Survey, observe: Observer, limit: int | None = None,
    progress: Progress | None = None,
) -> RealReplay:  # fmt: skip
    """Replay a trace on a file or block device, or each of its devices, by its number, on one of its own.

    A file that does not exist is made, if writing is allowed, filled with random bytes, and removed at the end.
    """
    engine = load_engine(settings.engine)
    engine.check()
    if settings.pace not in engine.PACES:
        raise InvalidParameterError("pace", settings.pace, option("engine") + f" {settings.engine} knows {' and '.join(engine.PACES)} only")
    if settings.pace == "timed" and not what.timed:
        raise InvalidParameterError("pace", "timed", "the trace does not say when requests arrived; take asap or think")
    if settings.depth > 1 and not settings.buffered:
        check_outstanding(settings.depth)
    if not 1 <= settings.depth <= WINDOW // 2:
        raise InvalidParameterError("depth", settings.depth, f"it must be in [1, {WINDOW // 2}]")
    _check_requests(source, settings, limit)
    warn_of(what, settings.pace)
    targets = target if isinstance(target, Mapping) else dict.fromkeys(what.reaches, target)
    with ExitStack() as stack:
        devices, reaches = dict[Path, RealDevice](), dict[Path, int]()
        for path in targets.values():
            if path not in devices:
                numbers = [number for number in what.reaches if targets[number] == path]
                reaches[path] = max(what.reaches[number] for number in numbers)
                check = partial(_check_blocks, settings=settings, source=source, limit=limit, numbers=numbers)
                devices[path] = stack.enter_context(_open(path, settings, reaches[path], check, progress))
        device = next(iter(devices.values()))
        device.beside = {number: devices[path] for number, path in targets.items()}
        result = RealReplay()
        batches = _fit_to(device.beside, source, limit, settings, result)

        def tell(done: float, total: float, message: str = "") -> None:
            if progress:
                progress(done, what.requests, message or "replaying")

        result.how = engine.replay(batches, device, settings.pace, settings.depth, observe, tell if progress else None)
        result.holes = sum(_holes(path, min(reach, devices[path].size)) for path, reach in reaches.items())
        return result


def _with_first(source: Source, limit: int | None) -> Iterator[tuple[pa.RecordBatch, int]]:
    first = 0
    for batch in first_requests(requests_of(source), limit):
        yield batch, first
        first += batch.num_rows


def _check_requests(source: Source, settings: RealSettings, limit: int | None) -> None:
    """Refuse a trace that cannot be replayed, and name the first request that is the cause."""
    last = -1
    for batch, first in _with_first(source, limit):
        operation, dependency, arrival = (column(batch, name) for name in ("operation", "dependency", "arrival"))

        def refuse(rows: npt.NDArray[np.bool_], problem: str, batch: pa.RecordBatch = batch, first: int = first) -> None:
            if rows.any():
                raise RefusedError(f"trace: {_request(batch, int(np.argmax(rows)), first)}, " + problem)

        reads_instead = option("writes-as-reads") + " to read there instead"
        refuse(operation == TRIM, "which is not replayed on real devices")
        if not settings.allow_write and not settings.writes_as_reads:
            refuse(operation == WRITE, "but nothing is written; add " + ALLOW_WRITE + ", or " + reads_instead)
        if settings.pace == "think":
            far = (dependency >= 0) & (dependency < first - BACK)
            refuse(far, f"which waits for one more than {BACK} before it; take " + option("pace") + " asap or timed")
        elif settings.pace == "timed":
            back = np.diff(arrival, prepend=last) < 0
            back[0] &= first > 0
            refuse(back, "which arrives before the one in front of it; take " + option("pace") + " asap")
            last = int(arrival[-1])


def _request(batch: pa.RecordBatch, row: int, first: int) -> str:
    operation, offset, length = (int(batch.column(part)[row].as_py()) for part in ("operation", "offset", "length"))
    return f"request {first + row} is a {OPERATIONS[operation]} of {format_size(length)} at byte {offset}"


@contextmanager
def _open(
    target: Path, settings: RealSettings, reach: int, check: Callable[[RealDevice], None], progress: Progress | None
) -> Iterator[RealDevice]:
    write = settings.allow_write and not settings.writes_as_reads
    make = write and not target.exists()
    try:
        size = -(-reach // _BLOCK) * _BLOCK if make else 0
        real = RealDevice(target, size, allow_write=make, read_only=not make, buffered=settings.buffered)
    except NoDirectIOError as problem:
        raise NoDirectIOError(f"{problem}; " + option("buffered") + " goes through the page cache") from problem
    with real as device:
        if reach > device.size and not settings.scale_offsets:
            capacity = f"{device.path} holds {format_size(device.size)}"
            raise CapacityError(f"trace: it reaches to {format_size(reach)}, but {capacity}; add " + WRAP + " to wrap it around")
        check(device)
        if device.is_new:
            _fill(device, progress)
        if device.is_new or not write:
            yield device
            device.remove_if_new()
            return
    if check_readable(target):
        check_typed(target, settings.destroy)
    with RealDevice(target, device.size, allow_write=True, replace=settings.replace, buffered=settings.buffered) as device:
        yield device


def _check_blocks(device: RealDevice, settings: RealSettings, source: Source, limit: int | None, numbers: Sequence[int]) -> None:
    """Refuse requests that are not whole blocks or larger than the device; of the trace's devices with these numbers."""
    block = device.alignment
    end = device.size // block * block
    for batch, first in _with_first(source, limit):
        offset, length = column(batch, "offset"), column(batch, "length")
        moves = (column(batch, "operation") != FLUSH) & np.isin(column(batch, "device"), numbers)
        odd = moves & ((offset % block != 0) | (length % block != 0))
        if odd.any() and not settings.widen:
            request = _request(batch, int(np.argmax(odd)), first)
            raise RefusedError(
                f"trace: {request}, but {device.path} takes multiples of {block} B; add " + option("widen") + " to round to these"
            )
        begin, stop = whole_blocks(offset, length, block)
        large = moves & (stop - begin > end)
        if large.any():
            raise CapacityError(f"trace: {_request(batch, int(np.argmax(large)), first)}, but {device.path} holds {format_size(end)}")


def _fit_to(devices: Mapping[int, RealDevice], source: Source, limit: int | None, settings: RealSettings, counts: RealReplay) -> Batches:
    """The requests of a trace such that its devices can serve them; those that had to be changed are counted."""
    blocks, ends = np.ones((2, max(devices) + 1), np.int64)
    for number, device in devices.items():
        blocks[number], ends[number] = device.alignment, device.size // device.alignment * device.alignment
    for batch, first in _with_first(source, limit):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        operation, own = column(batch, "operation"), column(batch, "device")
        columns["offset"], columns["length"], widened, moved = fit(batch, blocks[own], ends[own])
        counts.widened, counts.moved = counts.widened + widened, counts.moved + moved
        if settings.writes_as_reads:
            columns["operation"] = np.where(operation == WRITE, READ, operation)
        yield make_batch(columns, first, batch.column("label"))


def _fill(device: RealDevice, progress: Progress | None) -> None:
    """Write a file that was made for the replay, so that reading it reads from the device."""
    data = aligned_buffer(MIB)
    fill(data)
    for begin in range(0, device.size, MIB):
        size = min(MIB, device.size - begin)
        device.write(np.array([begin]), data[:size], np.array([size]))
        if progress:
            progress(begin, device.size, "writing what is read")
    device.flush()


def _holes(path: Path, end: int) -> int:
    """Bytes before `end` that were never written, by the file system's extents."""
    holes = at = 0
    with path.open("rb") as file:
        while at < end:
            try:
                data = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:  # no data follow
                return holes + end - at
            holes += min(data, end) - at
            at = os.lseek(file.fileno(), data, os.SEEK_HOLE)
    return holes


def names_of(what: Survey) -> dict[int, str]:
    """Names of a trace's devices, by number: the labels of their requests, or the number where several have one label."""
    often = Counter(what.labels.values())
    return {number: label if label and often[label] == 1 else str(number) for number, label in what.labels.items()}


def parse_assignments(texts: Sequence[str]) -> dict[str, Path] | None:
    """Paths of texts ``NAME=PATH``, by name; None if there is one text of another form.

    Examples
    --------
    >>> parse_assignments(["disk=./disk.bin", "1=/dev/sdb"])
    {'disk': PosixPath('disk.bin'), '1': PosixPath('/dev/sdb')}
    """
    paths: dict[str, Path] = {}
    for text in texts:
        name, sign, path = text.partition("=")
        if not (name and sign and path) or os.sep in name:
            if len(texts) == 1:
                return None
            raise InvalidParameterError("device", text, "of several each is NAME=PATH: a device of the trace, and its file or block device")
        if name in paths:
            raise InvalidParameterError("device", text, f"{name} has {paths[name]} already")
        paths[name] = Path(path)
    return paths


def targets_of(paths: Mapping[str, Path], what: Survey) -> dict[int, Path]:
    names = names_of(what)
    for name in paths:
        if name not in names.values() and name not in map(str, names):
            raise UnknownNameError("device of the trace", name, [*names.values()])
    targets = {number: path for number, name in names.items() if (path := paths.get(name, paths.get(str(number)))) is not None}
    for number, name in names.items():
        if name != str(number) and name in paths and str(number) in paths and str(number) not in names.values():
            raise InvalidParameterError(
                "device", f"{number}={paths[str(number)]}", f"device {number} is {name}, and has {paths[name]} already"
            )
        if number not in targets:
            raise InvalidParameterError("device", f"nothing for {name}", f"add {name}=PATH, or leave that device of the trace out")
    owners: dict[Path, str] = {}
    for number, path in targets.items():
        if (other := owners.setdefault(path.resolve(), names[number])) != names[number]:
            raise InvalidParameterError("device", f"{names[number]}={path}", f"{other} has that file: they would write over each other")
    return targets

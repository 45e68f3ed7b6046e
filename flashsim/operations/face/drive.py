"""``fs.drive``: a simulated drive in a known state, which is written, read and sent traces."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial, wraps
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypedDict, TypeVar, Unpack

import pandas as pd

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.provenance import provenance
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import format_duration, format_size
from flashsim.device.access import is_path
from flashsim.device.device import Device
from flashsim.device.namespaces import Namespace, divide
from flashsim.experiments.replaying.preconditioning import bring_into
from flashsim.experiments.replaying.simulated import ReplaySettings
from flashsim.experiments.replaying.survey import Survey, survey
from flashsim.experiments.runs.drives import ReadyDrive
from flashsim.operations.face._drive_run import DriveReplay
from flashsim.operations.face._replay_outcome import ReplayOutcome, check_pace, pace_in_words, title_of
from flashsim.operations.face._traces import pattern_trace, trace_file
from flashsim.operations.fields import count, duration, flag, size, text
from flashsim.operations.operation import check_arguments, in_words_of_python, with_named_methods
from traces.file.excerpt import Source
from traces.workload.base import Pattern

#: Words for states beside those of ``--precondition``.
_STATES = {"new": "empty", "full": "sequential"}


class Amount(TypedDict, total=False):
    """Arguments of `Drive.write` and `Drive.read`."""

    random: str | None
    sequential: str | None
    request: str
    depth: int
    within: str | None
    seed: int


#: Most of a stream's number, which takes 16 bits.
_MOST_STREAM = 2**15 - 1

P = ParamSpec("P")
R = TypeVar("R")


def _alone(method: Callable[Concatenate[Drive, P], R]) -> Callable[Concatenate[Drive, P], R]:
    """A method that waits until no other thread is in one of the same drive."""

    @wraps(method)
    def wrapper(drive: Drive, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with drive._lock:
            return method(drive, *args, **kwargs)

    return wrapper


@with_named_methods
class Drive:
    """A simulated drive with a past: what is written to it stays, and its clock goes on.

    It was made with arguments of `drive`; `preparation` is that of its state, in words.
    """

    def __init__(self, device: Device, preset: str, state: str, seed: int, preparation: str) -> None:
        self.device, self.preset, self.state, self.seed, self.preparation = device, preset, state, seed, preparation
        self._has_past, self._lock = False, RLock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Drive:
        other = Drive.__new__(Drive)
        with self._lock:
            vars(other).update({name: deepcopy(value, memo) for name, value in vars(self).items() if name != "_lock"}, _lock=RLock())
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """A recipe that builds the drive again; a drive that has been used is refused."""
        return partial(drive, **self.recipe()), ()

    @property
    def name(self) -> str:
        return self.device.name

    @property
    def capacity(self) -> int:
        """Capacity that the host can address."""
        return self.device.capacity

    def copy(self) -> Drive:
        return deepcopy(self)

    __copy__ = copy

    def recipe(self) -> dict[str, Any]:
        """Arguments of `drive` that make the drive again."""
        if self._has_past:
            raise RefusedError(f"device: {self.name} has been used since it was made; give its name, or a new fs.drive(...)")
        return {"preset": self.preset, "state": self.state, "seed": self.seed}

    @property
    def is_flash(self) -> bool:
        return self.device.preset.flash is not None

    @property
    def precondition(self) -> str:
        """The state as ``--precondition`` has it."""
        return _STATES.get(self.state, self.state)

    def ready(self) -> ReadyDrive:
        """The drive for a join, which runs on a copy of it."""
        fill = self.precondition.partition(",")[0]
        return ReadyDrive(self.device, full=self.is_flash and fill in ("sequential", "random", "steady"))

    def write(self, stream: int = 0, **amount: Unpack[Amount]) -> ReplayOutcome:
        """Write so much, at random places or one after another.

        Parameters
        ----------
        stream
            The requests' stream, 0 by default: on a drive with placement handles, the handle that they go to.
        random, sequential
            The size, such as ``"1GiB"``; one of them.
        request
            Bytes of a request, ``"4KiB"`` by default.
        depth
            Requests that are outstanding at a time, 1 by default.
        within
            Length of the part at the drive's beginning, if not all of it.
        seed
            Seed of the places, 0 by default.

        Examples
        --------
        >>> import flashsim as fs
        >>> run = fs.drive("intel-x25e-64gb", state="new").write(random="4MiB", depth=8)
        >>> run.summary()["requests"].tolist()
        [1024]
        """
        return self._run(WRITE, stream, **amount)

    def read(self, **amount: Unpack[Amount]) -> ReplayOutcome:
        """Read so much, at random places or one after another; see `write`.

        Examples
        --------
        >>> import flashsim as fs
        >>> run = fs.drive("toshiba-5400-320gb").read(random="400KiB")
        >>> run.latencies()["operation"].unique().tolist()
        ['read']
        """
        return self._run(READ, 0, **amount)

    @_alone
    @in_words_of_python()
    def replay(self, trace: Any, *, pace: str | None = None, depth: int = 1, limit: int | None = None, wrap: bool = False) -> ReplayOutcome:
        """Send a trace to the drive.

        Parameters
        ----------
        trace
            A file of any format that `fs.trace` knows, or a frame with columns operation, offset and length (bytes).
        pace
            ``asap``, ``timed`` or ``think``; by default as the trace knows.
        depth
            Outstanding requests, with ``asap``.
        limit
            Number of requests, from the first on.
        wrap
            Wrap requests beyond the drive's end around to its begin.

        Examples
        --------
        >>> import flashsim as fs, pandas as pd
        >>> trace = pd.DataFrame({"operation": ["write", "read"], "offset": [0, 0], "length": [4096, 4096]})
        >>> fs.drive("intel-x25e-64gb", state="new").replay(trace).requests()["operation"].tolist()
        ['write', 'read']
        """
        limit, wrap = None if limit is None else count(limit, "limit"), flag(wrap, "wrap")
        pace = None if pace is None else text(pace, "pace")
        with trace_file(trace) as source:
            what, name = survey(source, limit), source.name
            settings = ReplaySettings(what.pace() if pace is None else pace, count(depth, "depth"), wrap)
            check_pace(settings.pace, settings.depth)
            parameters = {"trace": name, "device": self.name, "state": self.state, "limit": limit, **vars(settings)}
            return self._replay(source, what, settings, parameters, self.seed, name, f"{name} replayed ({settings.pace})", limit)

    def _replay(
        self, source: Source, what: Survey, settings: ReplaySettings, parameters: dict[str, Any], seed: int, name: str, words: str,
        limit: int | None = None,
    ) -> ReplayOutcome:  # fmt: skip
        """Replay a trace, whose name is `name`, or what was done, which title and provenance tell."""
        self._has_past = True
        origin = provenance(parameters, seed)
        run = DriveReplay(source, what, limit, origin).on(self.device, settings, self.preparation)
        title = title_of(words, [run], self.preparation)
        return ReplayOutcome([run], title, origin, name, pace_in_words(settings.pace, settings.depth), what)

    @_alone
    @in_words_of_python()
    @check_arguments
    def _run(
        self, operation: int, stream: int, random: str | None = None, sequential: str | None = None, request: str = "4KiB", depth: int = 1,
        within: str | None = None, seed: int = 0,
    ) -> ReplayOutcome:  # fmt: skip
        if (random is None) == (sequential is None):
            both = "none" if random is None else "both"
            raise InvalidParameterError("random, sequential", both, "one of them says how much, such as random='1GiB'")
        name, amount = ("random", random) if random is not None else ("sequential", sequential)
        total, each = size(amount, name), size(request, "request")
        span = self.capacity if within is None else size(within, "within")
        if not SECTOR <= each <= span or each % SECTOR:
            bound = f"it must be a multiple of {SECTOR} B, and fit in {format_size(span)}"
            raise InvalidParameterError("request", format_size(each), bound)
        if span > self.capacity:
            raise InvalidParameterError("within", format_size(span), f"{self.name} holds {format_size(self.capacity)}")
        if total < each:
            raise InvalidParameterError(name, format_size(total), f"a request takes {format_size(each)}")
        settings = ReplaySettings("asap", count(depth, "depth"))
        pattern = Pattern(operation, each, span // each * each, random=name == "random")
        verb = "written" if operation == WRITE else "read"
        about = {"device": self.name, "state": self.state, verb: total, "pattern": name, "request": each, "depth": depth, "within": span}
        about |= {"stream": stream} if (stream := count(stream, "stream", 0, _MOST_STREAM)) else {}
        words = f"{format_size(total)} {verb} {'at random' if name == 'random' else 'in order'}"
        with pattern_trace(pattern, total // each, count(seed, "seed", 0), name, stream) as path:
            return self._replay(path, survey(path), settings, about, seed, words, words)

    @_alone
    def idle(self, time: str) -> None:
        """Let time pass without a request: an SLC cache is folded meanwhile.

        Examples
        --------
        >>> import flashsim as fs
        >>> rested = fs.drive("intel-x25e-64gb", state="new")
        >>> rested.idle("2s")
        >>> rested.device.now
        2000000000
        """
        self._has_past = True
        self.device.advance(self.device.now + duration(time, "time"), every=True)

    @_alone
    def zones(self) -> pd.DataFrame:
        """The zones of a zoned drive, one a row: state, first byte, and write pointer.

        Examples
        --------
        >>> import flashsim as fs
        >>> zoned = fs.drive("wd-zn540-1tb", state="new")
        >>> zoned.append(1, "16KiB") == int(zoned.zones()["offset"][1])
        True
        >>> zoned.zones()["state"].head(3).tolist()
        ['empty', 'implicitly opened', 'empty']
        """
        zones = self.device.zones
        states = [state.name.lower().replace("_", " ") for state in zones.states]
        offsets = [zone * zones.size for zone in range(len(zones))]
        return pd.DataFrame({"state": states, "offset": offsets, "pointer": zones.pointers}).rename_axis("zone")

    @_alone
    def append(self, zone: int, length: str) -> int:
        """Write at a zone's write pointer, until that has ended; return its offset."""
        offset = self.device.append(count(zone, "zone", 0), size(length, "length"))
        self._complete()
        return offset

    @_alone
    def reset(self, zone: int) -> None:
        """Make a zone empty, until that has ended."""
        self.device.reset(self._zone(zone))
        self._complete()

    def open(self, zone: int) -> None:
        """Open a zone until it is closed, finished, reset or full."""
        self._change(zone, "open")

    def close(self, zone: int) -> None:
        """Close an open zone; it stays active."""
        self._change(zone, "close")

    def finish(self, zone: int) -> None:
        """Let nothing more be written to a zone."""
        self._change(zone, "finish")

    @_alone
    def namespaces(self, sizes: Mapping[str, str]) -> dict[str, Namespace]:
        """Divide the drive into namespaces of these sizes, which take requests (`flashsim.device.namespaces.divide`).

        Examples
        --------
        >>> import flashsim as fs
        >>> spaces = fs.drive("intel-x25e-64gb", state="new").namespaces({"log": "1GB", "data": "2GiB"})
        >>> spaces["data"].offset
        1000000000
        """
        if not isinstance(sizes, Mapping):
            raise InvalidParameterError("sizes", repr(sizes), "sizes by name are needed, such as {'log': '1GB'}")
        self._has_past = True
        return divide(self.device, {name: size(bytes_of_it, name) for name, bytes_of_it in sizes.items()})

    def _zone(self, zone: int) -> int:
        return count(zone, "zone", 0, len(self.device.zones) - 1)

    @_alone
    def _change(self, zone: int, action: str) -> None:
        zones = self.device.zones
        self._has_past = True
        zones.require(getattr(zones, action), self._zone(zone))

    def _complete(self) -> None:
        self._has_past = True
        while self.device.outstanding:
            self.device.advance()

    def __repr__(self) -> str:
        title = self.device.preset.title
        at = f"; its clock stands at {format_duration(self.device.now)}" if self._has_past else ""
        return f"<Drive {self.name}: {title}, {format_size(self.capacity)}; {self.preparation}{at}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p>"


@check_arguments
def drive(preset: str | PathLike[str], state: str = "full", *, precondition: str | None = None, seed: int = 0) -> Drive:
    """A simulated drive in a known state.

    Parameters
    ----------
    preset
        A name that `fs.devices` lists, or the path of a TOML file or of DiskSim's ``.parv``.
    state
        ``"new"``, ``"full"`` (written in order), ``"random"`` (written at random) or ``"steady"`` (as long random writes leave it);
        ``"random:0.8"`` for a share, and ``",erases=1000:50"`` behind it for worn blocks. A disk is the same in all of them.
    precondition
        The same by the words of commands, such as ``"sequential"`` for ``"full"``.
    seed
        Seed of all that is drawn.

    Returns
    -------
    Drive
        Its methods `write`, `read`, `replay` and `idle` change it, and those on zones; a join runs on a copy.

    Examples
    --------
    >>> import flashsim as fs
    >>> new = fs.drive("intel-x25e-64gb", state="new")
    >>> new.name, new.preparation
    ('intel-x25e-64gb', 'empty')
    """
    name, name_of_state = text(preset, "preset"), text(state if precondition is None else precondition, "state")
    if is_path(name) and not name.endswith(".parv"):
        raise RefusedError(f"preset: {name} is a real file; fs.join, fs.replay and fs.compare take its path as their device")
    device, seed = Device.open(name), count(seed, "seed", 0)
    if device.preset.flash is None and name_of_state in (*_STATES, *_STATES.values(), "random", "steady"):
        return Drive(device, name, name_of_state, seed, "a disk, which has no state")
    with activity(f"preparing {Path(name).name}") as progress:
        preparation = bring_into(device, _STATES.get(name_of_state, name_of_state), seed, progress, "state")
    return Drive(device, name, name_of_state, seed, preparation)

"""``fs.drive``: a simulated drive in a known state, which is written, read and sent traces."""

from __future__ import annotations

import html
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

from flashsim.core.activity import activity
from flashsim.core.errors import FlashsimError, InvalidParameterError, RefusedError
from flashsim.core.provenance import provenance
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import format_duration, format_size
from flashsim.device.access import is_path
from flashsim.device.device import Device
from flashsim.operations.face._drive_run import DriveReplay
from flashsim.operations.face._replaying import ReplayOutcome, pace_in_words, title_of
from flashsim.operations.face._traces import pattern_trace, trace_file
from flashsim.operations.fields import count, size, text
from flashsim.operations.operation import in_words_of_python
from flashsim.studies.replaying.preconditioning import bring_into
from flashsim.studies.replaying.simulated import ReplaySettings
from flashsim.studies.replaying.survey import survey
from flashsim.studies.runs.drives import ReadyDrive
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


class Drive:
    """A simulated drive with a past: what is written to it stays, and its clock goes on.

    Parameters
    ----------
    device
        The drive itself.
    preset, state, seed
        Arguments of `drive`.
    preparation
        The preparation of the state, in words.
    """

    def __init__(self, device: Device, preset: str, state: str, seed: int, preparation: str) -> None:
        self.device = device
        self.preset = preset
        self.state = state
        self.seed = seed
        self.preparation = preparation
        self._has_past = False

    @property
    def name(self) -> str:
        """The preset's name."""
        return self.device.name

    @property
    def capacity(self) -> int:
        """Bytes that the host can address."""
        return self.device.capacity

    def copy(self) -> Drive:
        """Another drive in the very same state."""
        return deepcopy(self)

    def recipe(self) -> dict[str, Any]:
        """Arguments of `drive` that make the drive again."""
        if self._has_past:
            raise RefusedError(f"device: {self.name} has been used since it was made; give its name, or a new fs.drive(...)")
        return {"preset": self.preset, "state": self.state, "seed": self.seed}

    @property
    def is_flash(self) -> bool:
        """The drive is a flash drive."""
        return self.device.preset.flash is not None

    @property
    def precondition(self) -> str:
        """The state as ``--precondition`` has it."""
        return _STATES.get(self.state, self.state)

    def ready(self) -> ReadyDrive:
        """The drive for a join, which runs on a copy of it."""
        fill = self.precondition.partition(",")[0]
        return ReadyDrive(self.device, full=self.is_flash and fill in ("sequential", "random", "steady"))

    def write(self, **amount: Unpack[Amount]) -> ReplayOutcome:
        """Write so much, at random places or one after another.

        Parameters
        ----------
        random, sequential
            The size, such as ``"1GiB"``; one of them.
        request
            Bytes of a request, ``"4KiB"`` by default.
        depth
            Requests that are outstanding at a time, 1 by default.
        within
            The first so many bytes of the drive, if not all of it.
        seed
            Seed of the places, 0 by default.

        Examples
        --------
        >>> import flashsim as fs
        >>> run = fs.drive("intel-x25e-64gb").write(random="4MiB", depth=8)
        >>> run.summary()["requests"].tolist()
        [1024]
        """
        return self._run(WRITE, **amount)

    def read(self, **amount: Unpack[Amount]) -> ReplayOutcome:
        """Read so much, at random places or one after another; see `write`.

        Examples
        --------
        >>> import flashsim as fs
        >>> run = fs.drive("toshiba-5400-320gb").read(random="400KiB")
        >>> run.latencies()["operation"].unique().tolist()
        ['read']
        """
        return self._run(READ, **amount)

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
        >>> fs.drive("intel-x25e-64gb").replay(trace).requests()["operation"].tolist()
        ['write', 'read']
        """
        limit = None if limit is None else count(limit, "limit")
        with trace_file(trace) as source:
            what, name = survey(source, limit), source.name
            settings = ReplaySettings(what.pace() if pace is None else pace, count(depth, "depth"), wrap)
            parameters = {"trace": name, "device": self.name, "state": self.state, "limit": limit, **vars(settings)}
            self._has_past = True
            origin = provenance(parameters, self.seed)
            run = DriveReplay(source, what, limit, origin).on(self.device, settings, self.preparation)
        title = title_of(f"{name} replayed ({settings.pace})", [run], self.preparation)
        return ReplayOutcome([run], title, origin, name, pace_in_words(settings.pace, depth), what)

    @in_words_of_python()
    def _run(
        self,
        operation: int,
        random: str | None = None,
        sequential: str | None = None,
        request: str = "4KiB",
        depth: int = 1,
        within: str | None = None,
        seed: int = 0,
    ) -> ReplayOutcome:
        if (random is None) == (sequential is None):
            both = "none" if random is None else "both"
            raise InvalidParameterError("random, sequential", both, "one of them says how much, such as random='1GiB'")
        name, amount = ("random", random) if random is not None else ("sequential", sequential)
        total, each = size(amount, name), size(request, "request")
        span = self.capacity if within is None else size(within, "within")
        if not SECTOR <= each <= span or each % SECTOR:
            raise InvalidParameterError(
                "request", format_size(each), f"it must be a multiple of {SECTOR} B, and fit in {format_size(span)}"
            )
        if span > self.capacity:
            raise InvalidParameterError("within", format_size(span), f"{self.name} holds {format_size(self.capacity)}")
        if total < each:
            raise InvalidParameterError(name, format_size(total), f"a request takes {format_size(each)}")
        settings = ReplaySettings("asap", count(depth, "depth"))
        pattern = Pattern(operation, each, span // each * each, random=name == "random")
        verb = "written" if operation == WRITE else "read"
        about = {"device": self.name, "state": self.state, verb: total, "pattern": name, "request": each, "depth": depth, "within": span}
        with pattern_trace(pattern, total // each, count(seed, "seed", 0), name) as path:
            self._has_past = True
            origin, what = provenance(about, seed), survey(path)
            run = DriveReplay(path, what, None, origin).on(self.device, settings, self.preparation)
        words = f"{format_size(total)} {verb} {'at random' if name == 'random' else 'in order'}"
        return ReplayOutcome([run], title_of(words, [run], self.preparation), origin, words, pace_in_words("asap", depth), what)

    def __repr__(self) -> str:
        title = self.device.preset.title
        at = f"; its clock stands at {format_duration(self.device.now)}" if self._has_past else ""
        return f"<Drive {self.name}: {title}, {format_size(self.capacity)}; {self.preparation}{at}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p>"


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
        Its methods `write`, `read` and `replay` change it; a join runs on a copy.

    Examples
    --------
    >>> import flashsim as fs
    >>> new = fs.drive("intel-x25e-64gb", state="new")
    >>> new.name, new.preparation
    ('intel-x25e-64gb', 'empty')
    """
    name, name_of_state = text(preset, "preset"), text(precondition or state, "state")
    if is_path(name) and not name.endswith(".parv"):
        raise RefusedError(f"preset: {name} is a real file; fs.join, fs.replay and fs.compare take its path as their device")
    device = Device.open(name)
    if device.preset.flash is None and name_of_state in (*_STATES, *_STATES.values(), "random", "steady"):
        return Drive(device, name, name_of_state, seed, "a disk, which has no state")
    try:
        with activity(f"preparing {Path(name).name}") as progress:
            preparation = bring_into(device, _STATES.get(name_of_state, name_of_state), count(seed, "seed", 0), progress)
    except FlashsimError as problem:  # in the words of this argument
        problem.args = (str(problem).replace("--precondition", "state"), *problem.args[1:])
        raise
    return Drive(device, name, name_of_state, seed, preparation)

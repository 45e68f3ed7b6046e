"""``fs.replay``: a trace on one device or several."""

from __future__ import annotations

from typing import Any

from experiments.face._devices import drive_of
from experiments.face._outcome import point_of
from experiments.face._replaying import ReplayOutcome, run_on, titled
from experiments.face._traces import trace_file
from experiments.face._units import count, several
from experiments.replaying.simulated import ReplaySettings
from experiments.replaying.survey import load, survey
from flashsim.core.provenance import provenance
from flashsim.device.device import Device


def replay(
    trace: Any,
    device: Any,
    *,
    pace: str | None = None,
    depth: int = 1,
    limit: int | None = None,
    wrap: bool = False,
) -> ReplayOutcome:
    """Replay a trace on one device or several, each by itself.

    Parameters
    ----------
    trace
        A file of any format that `fs.trace` knows, or a frame with columns operation, offset and length (bytes).
    device
        A preset or several: then what the trace reads was written before, and nothing else. Or an `fs.drive`, which is left as it is.
    pace, depth, limit, wrap
        See `Drive.replay`.

    Raises
    ------
    UnknownNameError
        There is no such preset.
    MissingFileError, DamagedFileError, SchemaError
        The trace is not there, or cannot be read.
    CapacityError
        It reaches beyond a device's end.

    Examples
    --------
    >>> import flashsim as fs, pandas as pd
    >>> trace = pd.DataFrame({"operation": "read", "offset": [0, 65536, 4096], "length": 4096})
    >>> told = fs.replay(trace, ["intel-x25e-64gb", "toshiba-5400-320gb"])
    >>> told.summary()["requests"].tolist()
    [3, 3]
    """
    limit = None if limit is None else count(limit, "limit")
    with trace_file(trace) as source:
        what, name = survey(source, limit), source.name
        settings = ReplaySettings(what.pace() if pace is None else pace, count(depth, "depth"), wrap)
        asked = {"trace": name, "limit": limit, **vars(settings)}
        runs = []
        for each in several(device, "device"):
            given = drive_of(each)
            if isinstance(given, str):
                drive = Device.open(given)
                if what.reach <= drive.capacity or wrap:
                    load(drive, what)
            else:
                drive = given.copy().device
            runs.append(run_on(drive, source, settings, what, limit, asked | {"device": drive.name}))
    title = titled(f"{name} replayed ({settings.pace})", runs)
    return ReplayOutcome(title, provenance(asked | {"devices": [run.device for run in runs]}), runs)


def point(arguments: dict[str, Any], stamps: dict[str, str]) -> dict[str, Any]:
    """One run of a sweep; the stamps of its files make it another run when they change."""
    return point_of(replay, arguments, "summary")

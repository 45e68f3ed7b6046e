"""``fs.replay``: a trace on one device or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.face._devices import device_of
from experiments.face._outcome import point_of
from experiments.face._replaying import DriveRun, ReplayOutcome, run_on, run_on_file, run_on_files, titled
from experiments.face._traces import trace_file
from experiments.face._units import count, several, text
from experiments.replaying.real import RealSettings
from experiments.replaying.simulated import ReplaySettings
from experiments.replaying.survey import Survey, load, survey
from flashsim.core.provenance import provenance
from flashsim.device.access import is_path
from flashsim.device.device import Device
from traces.excerpt import Excerpt
from traces.replay.base import load_engine


def replay(
    trace: Any,
    device: Any,
    *,
    pace: str | None = None,
    depth: int = 1,
    limit: int | None = None,
    wrap: bool = False,
    writes_as_reads: bool = False,
    allow_write: bool = False,
    yes_destroy: str | Sequence[str] | None = None,
    force: bool = False,
) -> ReplayOutcome:
    """Replay a trace on one device or several, each by itself.

    Parameters
    ----------
    trace
        A file of any format that `fs.trace` knows, or a frame with columns operation, offset and length (bytes).
    device
        A preset or several: then what the trace reads was written before, and nothing else. Or an `fs.drive`, which is left as it is,
        or the path of a real file or block device, which is only read unless writing is allowed. Or for each device of the trace such a
        path, as ``{"disk": "./disk.bin", "ssd": "./ssd.bin"}``: then requests wait for those of other devices too.
    pace, depth, limit, wrap
        See `Drive.replay`.
    writes_as_reads, allow_write, yes_destroy, force
        Of a real device: whether what the trace writes is read instead; or may be written, which destroys what it holds; which block
        devices these are; and whether a file that exists is overwritten.

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
        paced = settings.pace if pace or settings.pace in load_engine("builtin").PACES else "asap"
        real = RealSettings(
            paced,
            settings.depth,
            "builtin",
            wrap,
            writes_as_reads=writes_as_reads,
            allow_write=allow_write,
            replace=force,
            destroy=yes_destroy,
        )
        if isinstance(device, Mapping):
            paths = {text(name, "device"): Path(text(path, "device")) for name, path in device.items()}
            runs = run_on_files(paths, source, real, what, limit, asked)
        else:
            runs = [_on_one(each, source, settings, real, what, limit, asked) for each in several(device, "device")]
    title = titled(f"{name} replayed ({settings.pace})", runs)
    return ReplayOutcome(title, provenance(asked | {"devices": [run.device for run in runs]}), runs)


def _on_one(
    device: Any,
    source: Excerpt,
    settings: ReplaySettings,
    real: RealSettings,
    what: Survey,
    limit: int | None,
    asked: Mapping[str, Any],
) -> DriveRun:
    """On a drive, a preset's or one that there is, or a file."""
    given = device_of(device)
    if isinstance(given, str) and is_path(given):
        return run_on_file(Path(given), source, real, what, limit, {**asked, "device": given})
    if isinstance(given, str):
        drive = Device.open(given)
        if what.reach <= drive.capacity or settings.scale_offsets:
            load(drive, what)
    else:
        drive = given.copy().device
    return run_on(drive, source, settings, what, limit, {**asked, "device": drive.name})


#: One run of a sweep.
point = point_of(replay)

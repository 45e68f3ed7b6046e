"""``flashsim trace replay`` and ``fs.replay``: a trace on one device or several."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Unpack

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, RefusedError, option
from flashsim.device import presets
from flashsim.device.access import is_path
from flashsim.device.device import Device
from flashsim.experiments.replaying import preconditioning
from flashsim.experiments.replaying.real import RealSettings, parse_assignments
from flashsim.experiments.replaying.simulated import ReplaySettings
from flashsim.experiments.replaying.survey import Survey, check_zones, survey
from flashsim.operations import fields
from flashsim.operations.face._device_arguments import AllowWrite, device_of, on_block, preset_of
from flashsim.operations.face._drive_run import DriveReplay, TimelineFile, TimelineFrom, TimelineTo, load_unless_too_small, timeline_writer
from flashsim.operations.face._replay_outcome import ReplayOutcome, check_pace, pace_in_words, title_of
from flashsim.operations.face._sweep_point import point_of
from flashsim.operations.face._traces import TracePart, part_of, trace_file
from flashsim.operations.face.trace import Trace
from flashsim.operations.fields import Count, Field, Flag, Name, Names, Target, several, text
from flashsim.operations.operation import operation, origin
from traces.file.excerpt import Source
from traces.replay.base import load_engine

_DEVICES = (
    "A preset, a TOML file, or a real file or block device; several run separately. DEVICE=PATH maps a device of the trace, such as "
    "disk=./disk.bin."
)
_IN_PYTHON = 'Or an `fs.drive`, which is left as it is; or ``{"disk": "./disk.bin"}``.'


def _devices(value: Any, parameter: str) -> Any:
    """Devices, each by itself; or paths by the names of the devices of a trace."""
    if isinstance(value, Mapping) and "preset" not in value:
        if not value:
            raise InvalidParameterError(parameter, "{}", "a path for each device of the trace is needed")
        return {text(name, "device"): Path(text(path, "device")) for name, path in value.items()}
    many = several(value, parameter)
    if any(isinstance(one, str) and parse_assignments([one]) for one in many):
        return parse_assignments([text(one, parameter) for one in many])
    return [device_of(one) for one in many]


@operation
def replay(
    trace: Trace,
    device: Annotated[
        Any,
        Field(_DEVICES, "DEVICE", _devices, ("presets",), python=_IN_PYTHON, several=True, single=True, reads=True),
    ],
    *,
    pace: Annotated[str | None, Name("Arrival of requests; by default as the trace defines it.", "asap|timed|think")] = None,
    depth: Annotated[int, Count("With --pace asap: queue depth.")] = 1,
    out: Annotated[Any, Target("Write the replayed requests with their times to this file.", "TRACE.parquet")] = None,
    limit: Annotated[int | None, Count("Only the first N requests.")] = None,
    timeline: TimelineFile = None,
    timeline_from: TimelineFrom = None,
    timeline_to: TimelineTo = None,
    wrap: Annotated[bool, Flag("Wrap requests beyond the end of the device around.", seldom=True)] = False,
    empty: Annotated[bool, Flag("Start with an empty device; by default all data that is read was written before.", seldom=True)] = False,
    precondition: fields.Precondition = None,
    engine: Annotated[
        str | None, Name("Replay engine on a real device: {engines}; builtin by default.", "NAME", completes=("engines",))
    ] = None,
    against: Annotated[
        str | None, Name("Also simulate the replay on this preset, for comparison.", "PRESET", completes=("presets",))
    ] = None,
    writes_as_reads: Annotated[bool, Flag("Replay writes as reads on a real device.")] = False,
    widen: Annotated[bool, Flag("Extend requests to whole blocks of a real device.", seldom=True)] = False,
    buffered: Annotated[bool, Flag("Use the page cache where direct I/O is not supported.", seldom=True)] = False,
    allow_write: AllowWrite = False,
    yes_destroy: Annotated[
        Any,
        Names("Block device or file whose contents --allow-write may destroy.", "/dev/NAME", provenance=False, needs=on_block, seldom=True),
    ] = None,
    force: fields.Force = False,
    why: fields.Why = False,
    exact: fields.Exact = False,
    requests: Annotated[bool, Flag("Keep every request with its times.", constant=lambda values: False, provenance=False)] = True,
    pauses: Annotated[
        bool,
        Flag(
            "Watch a flash drive's pauses by garbage collection.",
            constant=lambda values: bool(values["json_"] or values["out_dir_"]),
            provenance=False,
        ),
    ] = False,
    **part: Unpack[TracePart],
) -> ReplayOutcome:
    """Replay a trace on a simulated or real device.

    With --precondition a simulated drive begins in that state, and nothing else is written before. A real file or block device is only
    read, past the page cache; if the trace writes, take --writes-as-reads or --allow-write. The latencies that the trace has recorded, and
    those of --against, stand beside the real ones.

    Examples::

        flashsim trace replay bnl.parquet --device intel-x25e-64gb
        flashsim trace replay bnl.parquet --device toshiba-5400-320gb --pace asap --depth 4 --json bnl.json
        flashsim trace replay bnl.parquet --device mtron-msd-sata3025-16gb --precondition random:0.8
        flashsim trace replay bnl.parquet --device ocz-core-60gb --out-dir shown --timeline bnl.json.gz --timeline-to 10ms
        flashsim trace replay bnl.parquet --device ./disk.bin --allow-write --against ocz-core-60gb
        flashsim trace replay bnl.parquet --device intel-x25e-64gb --device-number 0 --window 500ms --speed 2
        flashsim trace replay pool.parquet --device disk=./disk.bin --device ssd=./ssd.bin --device log=./log.bin --allow-write

    Examples
    --------
    >>> import flashsim as fs, pandas as pd
    >>> trace = pd.DataFrame({"operation": "read", "offset": [0, 65536, 4096], "length": 4096})
    >>> result = fs.replay(trace, ["intel-x25e-64gb", "toshiba-5400-320gb"])
    >>> result.summary()["requests"].tolist()
    [3, 3]
    """
    real_only = {"engine": engine, "against": against, "writes_as_reads": writes_as_reads, "widen": widen, "buffered": buffered}
    simulated_only = {"timeline": timeline, "empty": empty, "precondition": precondition, "why": why}
    together = isinstance(device, Mapping)
    real = [one for one in device if together or (isinstance(one, str) and is_path(one))]
    if not real:
        fields.refuse(real_only, f"{preset_of(device[0])} is a preset")
    elif len(real) == len(device):
        fields.refuse(simulated_only, f"{real[0]} is not a preset")
    if together:
        fields.refuse({"against": against}, "one simulated drive does not stand for several devices")
    if timeline and len(device) > 1:
        raise RefusedError("timeline: it shows one device")
    if empty and precondition:
        raise RefusedError("empty: " + option("precondition") + " says in which state the drive begins; take one of them")
    common = origin(), out, requests, pauses, timeline_writer(timeline, timeline_from, timeline_to, origin()), why, exact
    if against:
        presets.load(against)
    with trace_file(part_of(trace, part)) as source:
        what, name = survey(source, limit), source.name
        replay_of, on_real, pace_of = DriveReplay(source, what, limit, *common), None, pace or what.pace()
        if real:
            how = engine or "builtin"
            pace_of = pace or (what.pace() if what.pace() in load_engine(how).PACES else "asap")
            on_real = RealSettings(pace_of, depth, how, wrap, widen, writes_as_reads, allow_write, force, yes_destroy, buffered)
        check_pace(pace_of, depth, source.speed)
        if on_real and together:
            runs = replay_of.on_files(device, on_real)
        else:
            runs = []
            for one in device:
                if on_real and one in real:
                    runs.append(replay_of.on_file(Path(one), on_real, against))
                    continue
                drive, state = _prepare(one, source, limit, what, wrap, empty, precondition)
                runs.append(replay_of.on(drive, ReplaySettings(pace_of, depth, wrap), state, has_past=not isinstance(one, str)))
    title = title_of(f"{name} replayed ({pace_of})", runs)
    return ReplayOutcome(runs, title, origin(), name, pace_in_words(pace_of, depth, source.speed), what, together)


def _prepare(
    device: Any, source: Source, limit: int | None, what: Survey, wrap: bool, empty: bool, precondition: str | None
) -> tuple[Device, str]:
    """A preset's drive, or a copy of one that there is, and the state that it was brought into, in words."""
    if not isinstance(device, str):
        fields.refuse({"precondition": precondition, "empty": empty}, f"{device.name} has a state of its own")
        return device.copy().device, ""
    preset = presets.load(device)
    if preset.flash is not None and preset.flash.zone_size:
        check_zones(source, preset.flash, limit)
    if precondition:
        preconditioning.parse_state(precondition, preset)  # refuse before anything is compiled
    drive, state = Device(preset), ""
    if precondition:
        with activity(f"preparing {drive.name}") as progress:
            state = preconditioning.bring_into(drive, precondition, progress=progress)
    elif not empty:
        load_unless_too_small(drive, what, wrap=wrap)
    return drive, state


#: A run of a sweep.
point = point_of(replay)

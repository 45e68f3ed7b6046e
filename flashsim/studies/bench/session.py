"""One benchmark session: the device that a command line names, what is measured on it, and how much of it is used."""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError
from flashsim.core.protocols import Progress
from flashsim.core.request import SECTOR
from flashsim.core.units import GIB, KIB, format_size
from flashsim.device import presets
from flashsim.device.access import is_path
from flashsim.device.aio import check_outstanding
from flashsim.device.device import Device
from flashsim.device.file import RealDevice
from flashsim.studies.bench import aio
from flashsim.studies.bench.figures import Figure, figures
from flashsim.studies.bench.targets import RealTarget, SimulatedTarget, Target
from flashsim.studies.bench.uflip import Measured, Method, names, run_all
from flashsim.studies.presentation.timeline import Timeline
from flashsim.studies.replaying.preconditioning import bring_into, wanted
from traces.workload.base import Setting

#: How much is used unless a size is given: of a simulated drive, so that its state fits into memory, and of a real one that is written.
_SIMULATED, _WRITTEN, _QUICK = 64 * GIB, GIB, GIB
_UNIT = 32 * KIB

Draw = Callable[[Device], AbstractContextManager[Timeline]]
_COUNT, _QUICK_COUNT = 1024, 256


@dataclass(frozen=True)
class Options:
    """What a user asked for; None and 0 stand for the defaults."""

    only: Sequence[str] = ()
    size: int | None = None
    count: int | None = None
    quick: bool = False
    allow_write: bool = False
    replace: bool = False
    precondition: str | None = None
    set: str = "uflip"
    sizes: Sequence[int] = ()
    levels: Sequence[int] = ()


@dataclass(frozen=True)
class Session:
    """What was measured."""

    device: str
    size: int
    state: str
    pause: int
    figures: list[Figure]
    runs: list[Measured]
    set: str = "uflip"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; times are ns and rates bytes a second."""
        nominal = [vars(one) | {"difference": one.difference} for one in self.figures]
        return vars(self) | {"figures": nominal, "runs": [one.as_dict() for one in self.runs]}


def bench(device: str, options: Options, method: Method, progress: Progress | None = None, draw: Draw | None = None) -> Session:
    """Measure a preset (its nominal figures as well) or a real file or block device (only reading, unless writing is allowed).

    Parameters
    ----------
    draw
        Begins a timeline of what is measured on a simulated drive.
    """
    grid = _grid(options)
    if options.size is not None and options.size < SECTOR:
        raise InvalidParameterError("--size", format_size(options.size), f"it must be at least {SECTOR} B")
    if is_path(device):
        if options.precondition:
            raise RefusedError(f"--precondition: {device} is no preset; only simulated drives are brought into a state in no time")
        if draw:
            raise RefusedError(f"--timeline: {device} is no preset; what happens inside is known of simulated drives only")
        return _real(Path(device), options, grid, method, progress)
    preset = presets.load(device)
    if options.precondition:
        wanted(options.precondition, preset)  # refuse before anything is compiled
    drive = Device(preset)
    size = options.size or min(drive.capacity, _QUICK if options.quick else aio.FILE if grid else _SIMULATED)
    with draw(drive) if draw else nullcontext() as timeline:
        enforced = partial(bring_into, drive, options.precondition, progress=progress) if options.precondition else None
        target = SimulatedTarget(drive, _whole(size), timeline, enforced)
        state, pause, runs = _measured(target, options, grid, method, progress, write=True)
    nominal = [] if options.only or grid else figures(preset, seed=method.seed)
    return Session(preset.name, target.size, state, pause, nominal, runs, options.set)


def _real(path: Path, options: Options, grid: aio.Grid | None, method: Method, progress: Progress | None) -> Session:
    size = options.size or (_default_size(path, options) if path.exists() else _WRITTEN)
    if grid:  # refuse before anything is opened
        grid.check(_whole(size), SECTOR)
        check_outstanding(grid.levels[-1])
    else:
        _setting(_whole(size), SECTOR, options.allow_write, options)
    if options.allow_write:
        opened = RealDevice(path, _whole(size), allow_write=True, replace=options.replace)
    else:
        opened = RealDevice(path, _whole(size), read_only=True)
    with opened as real:
        target = RealTarget(real, _whole(size))
        state, pause, runs = _measured(target, options, grid, method, progress, write=options.allow_write)
    return Session(str(path), target.size, state, pause, [], runs, options.set)


def _grid(options: Options) -> aio.Grid | None:
    """What AIOMicrobench measures, None where uFLIP is asked for; names that the set does not have are refused."""
    if options.set not in aio.SETS:
        raise UnknownNameError("set", options.set, aio.SETS)
    if options.set == "aio":
        aio.operations(options.only)
        return aio.Grid.of(options.sizes, options.levels, options.count, quick=options.quick)
    names(options.only)
    for name in ("sizes", "levels"):
        if getattr(options, name):
            raise RefusedError(f"--{name}: the set uflip has its own; only aio lets them be chosen")
    return None


def _measured(
    target: Target, options: Options, grid: aio.Grid | None, method: Method, progress: Progress | None, *, write: bool
) -> tuple[str, int, list[Measured]]:
    if grid:
        return aio.run_all(target, grid, method, options.only, progress, write=write)
    return run_all(target, _setting(target.size, target.least, write, options), method, options.only, progress)


def _default_size(path: Path, options: Options) -> int:
    if options.allow_write:
        return _WRITTEN
    mode = path.stat().st_mode
    if not stat.S_ISBLK(mode) and not stat.S_ISREG(mode):
        return _WRITTEN  # refused when it is opened
    with path.open("rb") as file:
        return file.seek(0, os.SEEK_END)


def _whole(size: int) -> int:
    return size // _UNIT * _UNIT or size


def _setting(size: int, least: int, write: bool, options: Options) -> Setting:
    count = options.count or (_QUICK_COUNT if options.quick else _COUNT)
    if count < 0:
        raise InvalidParameterError("count", count, "it must be at least 1")
    return Setting(size, count=count, least=least, write=write, quick=options.quick)

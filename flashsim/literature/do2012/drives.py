"""Systems of chapter 3 on a part of simulated disks and of a simulated SSD."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from flashsim.core.units import MIB
from flashsim.literature.base import Job, Settings
from flashsim.literature.do2012.runs import SHARE, at_scale
from flashsim.literature.do2012.simulations import FLASH, PARTS, measure_rates, parts_at, preset_of, run_on_drives
from flashsim.pools.setup import PoolSetup, run_pool
from flashsim.studies.replaying.preconditioning import parse_state

#: Share of the paper's own scale; with less than a thousandth a plane of the SSD has too few blocks.
_PART, _LEAST = 0.2, 0.001


class Drives(NamedTuple):
    """Drives with other values of their presets' parameters, and the state that the SSD begins in."""

    name: str
    disks: Mapping[str, Any] = {}
    ssd: Mapping[str, Any] = {}
    state: str = "steady"


AS_THEY_ARE = Drives("as they are")
NEAREST_FIRST = Drives("disks serve the nearest first", disks={"scheduler": "sptf"})
OTHERS = (
    Drives("the SSD is empty at the beginning", state="empty"),
    Drives("no write buffer", ssd={"write_buffer": 0}),
    Drives("one command at a time", ssd={"queue_depth": 1}),
    Drives("reads overtake and interrupt programs and erases", ssd={"read_priority": True, "suspend": "both"}),
    NEAREST_FIRST,
    Drives("disks cache 2 MiB of writes", disks={"write_behind": 2 * MIB}),
)


def scale_of(settings: Settings) -> float:
    """The scale of runs on drives."""
    return max(_PART * settings.scale * SHARE, _LEAST)


def steady(changes: Mapping[str, Any], parts: int) -> list[Any]:
    """Occupancy from which the steady state of one of so many parts of the SSD starts: a formula has it, and no run rests on one."""
    occupancy = parse_state("steady", preset_of(FLASH, changes, parts)).occupancy
    assert occupancy is not None
    return list(occupancy.tolist())


def on_drives(setup: PoolSetup, settings: Settings, drives: Drives = AS_THEY_ARE) -> Job:
    """The run of a system on simulated drives."""
    label, scale = f"{setup.workload}, {setup.design}, on simulated drives: {drives.name}", scale_of(settings)
    occupancy = None if drives.state == "empty" else steady(drives.ssd, parts_at(scale))
    values = at_scale(setup, scale, settings)
    return Job.of(run_on_drives, label, setup=values, disks=drives.disks, ssd=drives.ssd, occupancy=occupancy)


def at_rates(setup: PoolSetup, settings: Settings) -> Job:
    """The same run on devices that have rates."""
    label = f"{setup.workload}, {setup.design}, at rates beside simulated drives"
    return Job.of(run_pool, label, setup=at_scale(setup, scale_of(settings), settings))


def alone(settings: Settings) -> Job:
    """The rates of the drives without a system."""
    return Job.of(measure_rates, "random requests of simulated drives", occupancy=steady({}, PARTS), seed=settings.seed)

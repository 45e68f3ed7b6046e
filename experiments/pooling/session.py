"""Runs of systems of pools as they are asked for: designs beside each other, each also without some of the SSD manager's parts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.extensions.base import DESIGNS, extension_design
from algorithms.replacement.base import REPLACEMENT, replacement_policy
from experiments.pooling.telling import INTERVALS, Ran
from experiments.replaying.preconditioning import wanted
from experiments.runs.pool_devices import PoolDevice, pages_in_a_row, statistics
from experiments.runs.wear import WORN, worn
from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError
from flashsim.core.protocols import Progress
from flashsim.core.provenance import provenance
from flashsim.core.transactions import TransactionStream
from flashsim.core.units import KIB, NEVER, format_duration, format_size
from flashsim.execution.pooled.columns import ENDED
from flashsim.execution.pooled.run import PoolRun
from flashsim.execution.pooled.system import COUNTED, PURPOSES, SSD, PoolSystem
from flashsim.ssd.setup.precondition import Precondition
from traces.parquet_writer import ParquetWriter
from traces.recording import CausedRequests
from traces.transactions import TransactionWorkload, workload

#: Parts of the SSD manager that can be switched off, the parameter of the system that does, and its value then.
PARTS = {
    "filling": ("fill", 0),
    "throttle": ("throttle", 0),
    "grouping": ("group", 1),
    "partitions": ("partitions", 1),
    "expansion": ("expansion", 1),
    "read-ahead": ("read_ahead", 1),
    "trimming": ("trimming", 0),
    "checkpoints": ("checkpoint", 0),
}
#: Those that mean nothing without an SSD.
_OF_THE_SSD = ("filling", "throttle", "grouping", "partitions", "trimming")
#: Steps of virtual time in which an interval passes: how often progress is told, and an interrupt heard.
_STEPS = 4


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What systems are asked for; what can be refused without compiling anything is refused at once.

    Parameters
    ----------
    workload
        As `traces.transactions.workload` takes it.
    designs
        Names, or files of one's own.
    memory, ssd
        Bytes of the memory pool and of the SSD's frames.
    time
        Nanoseconds that each system runs.
    devices
        As `experiments.runs.pool_devices.PoolDevice` takes them, by purpose.
    states
        What flash drives are brought into before each run, as ``--precondition`` has it, and the seed of what is drawn then, by purpose;
        empty unless it is said.
    policy
        Of the memory pool.
    without
        Names of `PARTS`: each design runs once more without each of them.
    last
        The share of the time, at its end, over which rates are told.
    switches
        More parameters of `flashsim.execution.pooled.system.PoolSystem`, by name.

    Raises
    ------
    FlashsimError
        A name or value that is none.
    """

    workload: str
    designs: Sequence[str]
    memory: int
    ssd: int
    time: int
    devices: Mapping[str, str] = field(default_factory=lambda: {"disk": "rates", "ssd": "rates"})
    states: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    policy: str = "lru-k"
    page_size: int = 8 * KIB
    seed: int = 0
    without: Sequence[str] = ()
    last: float = 0.2
    switches: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not INTERVALS <= self.time < NEVER:
            raise InvalidParameterError("time", format_duration(self.time), f"it must be at least {INTERVALS} ns")
        if not 0 <= self.seed < NEVER:
            raise InvalidParameterError("seed", self.seed, f"it must be at least 0, and below {NEVER}")
        if not 0 < self.last <= 1:
            raise InvalidParameterError("last", f"{self.last:.4g}", "a share of the time above 0 and up to 1 is needed")
        for part in self.without:
            if part not in PARTS:
                raise UnknownNameError("part", part, PARTS)
        for name in self.designs:
            _needs_ssd(name)
        REPLACEMENT.load(self.policy.partition(":")[0])

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        told = {name: value for name, value in vars(self).items() if name != "switches"}
        return told | dict(self.switches) | {"designs": list(self.designs), "without": list(self.without), "devices": dict(self.devices)}

    def variants(self) -> Iterator[tuple[str, str | None]]:
        """Each design, and what it runs without."""
        for design in dict.fromkeys(self.designs):
            yield design, None
            for part in dict.fromkeys(self.without):
                if _needs_ssd(design) or part not in _OF_THE_SSD:
                    yield design, part

    def stream(self) -> TransactionStream:
        """The transactions, from the first."""
        return workload(self.workload, seed=self.seed, page_size=self.page_size)


@dataclass(frozen=True)
class Pools:
    """What systems did.

    Parameters
    ----------
    asked
        What was asked.
    pages
        Of the database.
    runs
        One a design and part that it was without.
    """

    asked: Asked
    pages: int
    runs: Sequence[Ran]

    def title(self) -> str:
        """What ran in a line."""
        asked = self.asked
        told = f"{asked.workload}: {format_size(self.pages * asked.page_size)} of pages, {format_size(asked.memory)} of memory"
        return f"{told}, an SSD of {format_size(asked.ssd)}, {format_duration(asked.time)}"

    def rows(self) -> list[dict[str, Any]]:
        """A row a run (`experiments.pooling.telling.Ran.row`), with its transactions over those of the same design with all parts."""
        whole = {each.design: each.row()["transactions_s"] for each in self.runs if each.without is None}
        rows = [each.row() for each in self.runs]
        for row in rows:
            row["over_whole"] = row["transactions_s"] / whole[row["design"]] if row["without"] and whole[row["design"]] else None
        return rows

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        runs = [row | {"traffic": each.traffic(), "series": each.series()} for row, each in zip(self.rows(), self.runs, strict=True)]
        return {"asked": self.asked.as_dict(), "pages": self.pages, "runs": runs}


def simulate(asked: Asked, progress: Progress | None = None, trace: Path | None = None) -> Pools:
    """Run each system from cold.

    Parameters
    ----------
    trace
        Where to write the requests of all devices, if there is one run.

    Raises
    ------
    InvalidParameterError
        The workload does not fit the disk, the SSD is smaller than its partitions need, a value out of its bounds, or a trace of several
        runs.
    FlashsimError
        A trace cannot be read, or a policy breaks its contract.
    """
    stream, variants = asked.stream(), list(asked.variants())
    if trace and len(variants) > 1:
        raise InvalidParameterError("trace", str(trace), f"it holds the requests of one run, but {len(variants)} are asked for")
    devices = {purpose: PoolDevice(purpose, text) for purpose, text in asked.devices.items()}
    states = {purpose: _state(devices[purpose], *told) for purpose, told in asked.states.items()}
    systems = [_system(asked, design, part, stream.pages, devices) for design, part in variants]
    runs = []
    for number, ((design, part), system) in enumerate(zip(variants, systems, strict=True)):
        name = design if part is None else f"{design} without {part}"
        told = _part_of(progress, number, len(variants))
        with ParquetWriter(trace, provenance(asked.as_dict())) if trace else nullcontext() as writer:
            runs.append(_run(asked, system, devices, states, (design, part, name), told, writer))
    return Pools(asked, stream.pages, runs)


def _system(asked: Asked, design: str, part: str | None, pages: int, devices: Mapping[str, PoolDevice]) -> PoolSystem:
    """A system, if its devices have room for it."""
    size, switches = asked.page_size, dict[str, Any](asked.switches)
    if part is not None:
        name, value = PARTS[part]
        switches[name] = value
    frames = asked.ssd // size if _needs_ssd(design) else 0
    partitions = switches.get("partitions", 1)
    if _needs_ssd(design) and frames < max(1, partitions):
        told = f"{design} divides it into {partitions} partitions of at least a page of {format_size(size)}"
        raise InvalidParameterError("ssd", format_size(asked.ssd), told)
    devices["disk"].check_room("workload", asked.workload, pages * size)
    if frames:
        devices["ssd"].check_room("ssd", format_size(asked.ssd), frames * size)
    used = [device for purpose, device in devices.items() if frames or purpose != "ssd"]
    return PoolSystem(
        pages,
        asked.memory // size,
        replacement_policy(asked.policy),
        extension_design(design),
        frames,
        page_size=size,
        chunk=pages_in_a_row(used, size),
        interval=asked.time // INTERVALS,
        **switches,
    )


def _part_of(progress: Progress | None, number: int, count: int) -> Progress:
    """Progress of one run of several."""

    def tell(done: float, total: float, message: str = "") -> None:
        if progress is not None:
            progress((number + done / total) / count, 1, message)

    return tell


def _state(device: PoolDevice, text: str, seed: int) -> Precondition:
    """What its flash drives are brought into.

    Raises
    ------
    FlashsimError
        There is no such state, or they cannot be brought into it.
    """
    if device.is_rates:
        raise RefusedError(f"--precondition: the {device.purpose}, {device.text}, is no flash drive: what was written before does not tell")
    return wanted(text, device.preset, seed)


def _run(
    asked: Asked,
    system: PoolSystem,
    devices: Mapping[str, PoolDevice],
    states: Mapping[str, Precondition],
    named: tuple[str, str | None, str],
    progress: Progress,
    writer: ParquetWriter | None,
) -> Ran:
    stream, size = asked.stream(), system.page_size
    made = {PURPOSES.index(name): device.make(size, states.get(name)) for name, device in devices.items() if name != "ssd" or system.ssd}
    flash = devices["ssd"].preset.flash if system.ssd and devices["ssd"].is_flash else None
    rows: list[list[int]] = []
    record = CausedRequests(writer, [PURPOSES[each] for each in sorted(made)], sorted(made)).take if writer else None
    run, begun = PoolRun(system, made, stream, INTERVALS + 1, record=record), time.process_time()
    metric = stream.METRIC if isinstance(stream, TransactionWorkload) else None
    design, part, name = named
    ran = Ran(design, part, system, metric, asked.last, {}, lifetime_erases=devices["ssd"].lifetime_erases)
    for step in range(1, INTERVALS * _STEPS + 1):
        run.run(step * system.interval // _STEPS)
        now = step // _STEPS
        if step % _STEPS == 0:
            counts = dict(zip(COUNTED, run.tables.series[:now].T.copy(), strict=True))
            if flash:
                rows.append(worn(made[SSD], flash.page_size))
                counts |= dict(zip(WORN, np.diff(rows, axis=0, prepend=0).T, strict=True))
            ran = replace(ran, counts=counts)
            progress(now, INTERVALS, f"{name}: {ran.lately()}")
    run.record_rest()
    told = {PURPOSES[purpose]: statistics(device) for purpose, device in made.items()}
    return replace(ran, devices=told, cpu_s=time.process_time() - begun, ended=bool(run.tables.numbers[ENDED]))


def _needs_ssd(design: str) -> bool:
    """Whether a design does anything with an SSD.

    Raises
    ------
    UnknownNameError, MissingFileError
        There is no such design.
    """
    return DESIGNS.load(design.partition(":")[0]).SSD

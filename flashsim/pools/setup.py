"""Systems of pools from names and sizes, run in virtual time, with counts of each interval.

Pages, the units in which a workload grows, and simulated time are scaled alike; devices and clients are not.  So rates and ratios hardly
depend on the scale.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from algorithms.extensions.base import DESIGNS, described_design, extension_design
from algorithms.replacement.base import replacement_policy
from algorithms.restart.base import restart_design
from flashsim.core.errors import InvalidParameterError
from flashsim.core.model import CompiledModel
from flashsim.core.replacement import ReplacementPolicy
from flashsim.core.request import Integers
from flashsim.core.transactions import TransactionStream
from flashsim.core.units import GIB, HOURS, KIB, MINUTES, SECONDS, format_size
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.execution.compiled_loop import Striped
from flashsim.execution.pooled.logging_design import Logging
from flashsim.execution.pooled.options import LogOptions, PoolOptions
from flashsim.execution.pooled.run import PoolRun, Recorder
from flashsim.execution.pooled.system import COUNTED, CPU, PURPOSES, SSD, PoolSystem
from flashsim.pools.devices import RATES, WORN, PoolDevice, flash_counts, pages_in_a_row, statistics
from flashsim.pools.mechanisms import CHECKPOINTS, PROCESSOR
from flashsim.ssd.precondition import Precondition
from flashsim.storage.log.recovery import Recovery
from traces.transactions import TransactionWorkload, scale_stream, workload

#: Called after each interval with the number of intervals so far and the counts of each of them.
Watch = Callable[[int, Mapping[str, Integers]], None]


@dataclass(frozen=True)
class PoolSetup:
    """A system of pools, its devices, and how long it runs; JSON-ready."""

    workload: str  #: Text that `traces.transactions.workload` takes, of a workload that can be scaled.
    design: str  #: Design of the extension: a member of `algorithms.extensions`, or a file.
    memory: int = 20 * GIB  #: Bytes.
    ssd: int = 140 * GIB  #: Bytes of the SSD's frames; not used by a design that takes none.
    time: int = 10 * HOURS  #: Nanoseconds that the system runs.
    interval: int = 6 * MINUTES  #: Nanoseconds of an interval with counts of its own.
    #: Texts that `PoolDevice` takes, by purpose.
    devices: Mapping[str, str] = field(default_factory=lambda: {"disk": RATES, "ssd": RATES})
    policy: str = "lru-k"  #: Replacement policy of the memory pool.
    page_size: int = 8 * KIB  #: Bytes.
    options: PoolOptions = field(default_factory=PoolOptions)  #: All that may be chosen besides.
    scale: float = 1.0  #: Multiplies pages, memory, the SSD, and all times but those of devices and clients.
    seed: int = 0  #: Seed of the workload.
    restart: str = ""  #: Restart design: a member of `algorithms.restart`, or a file.  Empty: there is no log of records.
    hardening: LogOptions = field(default_factory=LogOptions)  #: All that may be chosen of the log and the restart design besides.
    ideal: Sequence[str] = ()  #: Mechanisms that take no time, by name (`flashsim.pools.mechanisms`).

    def with_options(self, **options: Any) -> PoolSetup:
        return replace(self, options=replace(self.options, **options))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> PoolSetup:
        records = {"options": PoolOptions(**document["options"]), "hardening": LogOptions(**document["hardening"])}
        return cls(**{**document, **records, "ideal": tuple(document["ideal"])})

    @property
    def intervals(self) -> int:
        return round(self.time / self.interval)

    def stream(self) -> TransactionStream:
        """The transactions at the scale, from the first."""
        whole = workload(self.workload, seed=self.seed, page_size=self.page_size)
        return whole if self.scale == 1 else scale_stream(whole, self.scale)

    def parts(self) -> dict[str, PoolDevice]:
        """Devices before they are made, by purpose."""
        return {purpose: PoolDevice(purpose, text, tuple(self.ideal)) for purpose, text in self.devices.items()}

    def frames(self, size: int) -> int:
        """Frames in `size` bytes at the scale."""
        return size // self.page_size if self.scale == 1 else round(size // self.page_size * self.scale)

    def system(self, pages: int) -> PoolSystem:
        """The system for a database of `pages` pages, for which nothing is compiled yet.

        Raises InvalidParameterError: the devices have no room for pages or frames, the SSD is smaller than its partitions, or a value is
        out of its bounds.
        """
        devices, needs_ssd = self.parts(), DESIGNS.load(self.design.partition(":")[0]).SSD
        frames, partitions = self.frames(self.ssd) if needs_ssd else 0, self.options.partitions
        size = format_size(round(self.ssd * self.scale))
        if needs_ssd and frames < max(1, partitions):
            bound = f"{self.design} divides it into {partitions} partitions of at least a page of {format_size(self.page_size)}"
            raise InvalidParameterError("ssd", size, bound)
        devices["disk"].check_room("workload", self.workload, pages * self.page_size)
        if frames:
            devices["ssd"].check_room("ssd", size, frames * self.page_size)
        devices_used = [device for purpose, device in devices.items() if frames or purpose != "ssd"]
        return PoolSystem(
            pages,
            self.frames(self.memory),
            ReplacementPolicy(self.policy, {}, None, None),
            described_design(self.design),
            frames,
            self.page_size,
            pages_in_a_row(devices_used, self.page_size),
            round(self.interval * self.scale),
            **vars(self.options) | {"checkpoint": 0 if CHECKPOINTS in self.ideal else round(self.options.checkpoint * self.scale)},
        )

    def logging(self, frames: int) -> Logging | None:
        """The log of records and the restart design at the scale; the flusher writes an SSD's table in 128 parts (Do, 2012, 4.3.4.2)."""
        if not self.restart:
            return None
        times = {"pause": round(self.hardening.pause * self.scale), "indirect": round(self.hardening.indirect * self.scale)}
        return Logging(restart_design(self.restart), max(1, frames // 128), **vars(self.hardening) | times)

    def build(
        self,
        states: Mapping[str, Precondition] | None = None,
        devices: Mapping[int, CompiledModel | Striped] | None = None,
        record: Recorder | None = None,
        recovered: Recovery | None = None,
    ) -> SystemRun:
        """The system, its devices and its transactions before the first one.

        `states`: states of flash drives at the start, by purpose; none: they are empty. `devices`: drives in the place of those of
        `PoolSetup.devices`, by their number (`flashsim.execution.pooled.system.DISK` and so on). `record`: see
        `flashsim.execution.pooled.run.PoolRun`. `recovered`: see `flashsim.execution.pooled.run.PoolRun`.
        """
        stream, parts = self.stream(), self.parts()
        plain = self.system(stream.pages)
        system = replace(plain, policy=replacement_policy(self.policy), design=extension_design(self.design))
        drives = dict(devices or {})
        for name, part in parts.items():
            number = PURPOSES.index(name)
            if number not in drives and (name != "ssd" or system.ssd):
                drives[number] = part.make(system.page_size, (states or {}).get(name))
        if system.work and CPU not in drives:
            drives[CPU] = StationEngine(
                StationParameters(system.work, system.work, servers=system.clients if PROCESSOR in self.ideal else 1)
            )
        flash = parts["ssd"].preset.flash if system.ssd and parts["ssd"].is_flash else None
        return SystemRun(self, system, drives, stream, flash.page_size if flash else 0, record, recovered)


class SystemRun(PoolRun):
    """A run of a `PoolSetup`, whose result has counts by interval.

    `setup`: parameters of the system; `devices`: devices by number; `flash_page`: bytes of a flash page of the SSD, 0 where no flash drive
    is simulated.
    """

    def __init__(
        self,
        setup: PoolSetup,
        system: PoolSystem,
        devices: Mapping[int, CompiledModel | Striped],
        stream: TransactionStream,
        flash_page: int,
        record: Recorder | None,
        recovered: Recovery | None,
    ) -> None:
        logging = setup.logging(system.ssd)
        super().__init__(system, devices, stream, setup.intervals + 1, record=record, logging=logging, recovered=recovered)
        self.setup, self.devices, self.stream, self.flash_page = setup, devices, stream, flash_page
        self.start = time.process_time()

    def result(self, steps: int = 1, watch: Watch | None = None) -> PoolResult:
        """Let the system run from its start to its end, and hand out the requests that are recorded.

        `steps`: steps of virtual time in which an interval passes, after each of which an interrupt is heard; `watch`: called after each
        interval.
        """
        counts: dict[str, Integers] = {}
        totals: list[list[int]] = []
        for step in range(1, self.setup.intervals * steps + 1):
            self.run(step * self.system.interval // steps)
            if step % steps == 0:
                interval = step // steps
                counts = {name: np.asarray(self.tables.series)[name][:interval] for name in COUNTED}
                if self.flash_page:
                    totals.append(flash_counts(self.devices[SSD], self.flash_page))
                    counts |= dict(zip(WORN, np.diff(totals, axis=0, prepend=0).T, strict=True))
                if watch:
                    watch(interval, counts)
        self.record_rest()
        kinds = self.tables.by_kind[: self.setup.intervals].T
        return PoolResult(
            counts,
            self.system.interval,
            self.system.ssd,
            dict(zip(self.kinds, kinds, strict=True)) if len(self.kinds) > 1 else {},
            {PURPOSES[number]: statistics(device) for number, device in self.devices.items()},
            time.process_time() - self.start,
            bool(self.tables.scalars.ended),
            self.figures(),
            self.loop.completions,
        )

    def figures(self) -> dict[str, float]:
        """The benchmark's figures, of a run that has come to its end."""
        if not (isinstance(self.stream, TransactionWorkload) and self.is_over):
            return {}
        return self.stream.figures({kind: end / SECONDS for kind, end in self.end_times.items()})


@dataclass(frozen=True)
class PoolResult:
    """The result of a run, with counts of each interval."""

    #: Counts by name (`flashsim.execution.pooled.system.COUNTED`, and `flashsim.pools.devices.WORN` of a simulated SSD), a number an
    #: interval.
    counts: Mapping[str, Integers]
    interval: int  #: Nanoseconds, at the scale of the run: rates are those of devices, which are not scaled.
    ssd: int  #: Frames of the SSD.
    #: Transactions of each kind, a number an interval; empty where all are of one kind.
    by_kind: Mapping[str, Integers] = field(default_factory=dict)
    #: Statistics of each device's drives, by purpose.
    devices: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    cpu_s: float = 0.0  #: Processor seconds of the run.
    ended: bool = False  #: The transactions had come to their end.
    figures: Mapping[str, float] = field(default_factory=dict)  #: The benchmark's figures of a run to its end, by name.
    requests: int = 0  #: Requests that devices completed.

    @cached_property
    def seconds(self) -> float:
        return self.interval / SECONDS

    def total(self, what: str, part: slice = slice(None)) -> int:
        return int(self.counts[what][part].sum())

    def rate(self, what: str, part: slice = slice(None)) -> float:
        counts = self.counts[what][part]
        return float(counts.sum() / (len(counts) * self.seconds))

    def share(self, what: str, of: str, part: slice = slice(None)) -> float:
        return self.total(what, part) / max(1, self.total(of, part))

    def filled_share(self, what: str, part: slice = slice(None)) -> float:
        """Share of the SSD that is in a state, in the mean over the ends of some intervals."""
        return float(self.counts[what][part].mean() / max(1, self.ssd))

    def frame(self) -> pd.DataFrame:
        """A row an interval: when it ended, seconds of virtual time, and what was counted in it."""
        ends = np.arange(1, len(self.counts[COUNTED[0]]) + 1) * self.seconds
        return pd.DataFrame({"seconds": ends, **self.counts})

    def as_dict(self) -> dict[str, Any]:
        lists = {name: {key: np.asarray(each).tolist() for key, each in getattr(self, name).items()} for name in ("counts", "by_kind")}
        return {each.name: getattr(self, each.name) for each in fields(self)} | lists

    @classmethod
    def of(cls, record: Mapping[str, Any], **more: Any) -> Self:
        arrays = {name: {key: np.array(each, np.int64) for key, each in record[name].items()} for name in ("counts", "by_kind")}
        return cls(**{each.name: record[each.name] for each in fields(PoolResult)} | arrays | more)


def run_pool(setup: Mapping[str, Any]) -> dict[str, Any]:
    return PoolSetup.of(setup).build().result().as_dict()

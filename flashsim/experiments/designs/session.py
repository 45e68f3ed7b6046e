"""A study of systems of pools: designs beside each other, each also without some of the SSD manager's parts."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.extensions.base import DESIGNS, design_parts
from algorithms.replacement.base import REPLACEMENT, check_replacement_policy, replacement_parts
from flashsim.core.activity import activity
from flashsim.core.compiling import parts_of
from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError
from flashsim.core.protocols import Progress
from flashsim.core.provenance import provenance
from flashsim.core.request import Integers
from flashsim.core.units import KIB, NEVER, format_duration, format_size
from flashsim.execution.pooled.run import PoolRun
from flashsim.execution.pooled.system import PURPOSES
from flashsim.experiments.designs.results import INTERVALS, DesignResult, variant_name
from flashsim.experiments.replaying.preconditioning import parse_state
from flashsim.experiments.runs import kept
from flashsim.experiments.runs.jobs import Job, Settings, make
from flashsim.pools import PoolOptions
from flashsim.pools.devices import PoolDevice
from flashsim.pools.setup import PoolSetup
from flashsim.ssd.precondition import Precondition
from traces.file.recording import CausedRequests, ParquetWriter
from traces.transactions import TransactionWorkload

#: Parts of the SSD manager that can be switched off, the option that does, and its value then.
PARTS: dict[str, tuple[str, Any]] = {
    "filling": ("filling", 0),
    "throttle": ("throttle", 0),
    "grouping": ("group", 1),
    "partitions": ("partitions", 1),
    "expansion": ("expansion", 1),
    "read-ahead": ("read_ahead", 1),
    "trimming": ("trimming", False),
    "checkpoints": ("checkpoint", 0),
}
#: Separator of names: a comma that no parameter stands behind.
_BETWEEN = re.compile(r",(?![^,:]*=)")
#: Parts that mean nothing without an SSD.
_OF_THE_SSD = ("filling", "throttle", "grouping", "partitions", "trimming")
#: Steps of virtual time in an interval: progress is reported, and an interrupt heard, after each.
_STEPS = 4


@dataclass(frozen=True, kw_only=True)
class PoolStudy:
    """Parameters of a study of designs; what can be refused without compiling anything is refused at once."""

    #: Text that `traces.transactions.workload` takes.
    workload: str
    #: Names, or files of one's own.
    designs: Sequence[str]
    #: Bytes of the memory pool and of the SSD's frames.
    memory: int
    ssd: int
    #: Nanoseconds that each system runs.
    time: int
    #: Texts that `flashsim.pools.devices.PoolDevice` takes, by purpose.
    devices: Mapping[str, str] = field(default_factory=lambda: {"disk": "rates", "ssd": "rates"})
    #: States of flash drives before each run, as ``--precondition`` has them, and the seeds of what is drawn then, by purpose; empty: flash
    #: drives are empty.
    states: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    policy: str = "lru-k"
    page_size: int = 8 * KIB
    seed: int = 0
    #: Multiplies pages, what the workload grows by, memory, the SSD and all times but those of devices and clients.
    scale: float = 1.0
    #: Names of `PARTS`: each design runs once more without each of them.
    without: Sequence[str] = ()
    #: The share of the time, at its end, over which rates are means.
    last: float = 0.2
    #: All that may be chosen of a system besides.
    options: PoolOptions = field(default_factory=PoolOptions)

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1:
            raise InvalidParameterError("scale", f"{self.scale:g}", "it must be above 0 and at most 1")
        if not INTERVALS <= round(self.time * self.scale) < NEVER:
            at_scale = "" if self.scale == 1 else f" at scale {self.scale:g}"
            raise InvalidParameterError("time", format_duration(self.time), f"it must be at least {INTERVALS} ns{at_scale}")
        if not 0 <= self.seed < NEVER:
            raise InvalidParameterError("seed", self.seed, f"it must be at least 0, and below {NEVER}")
        if not 0 < self.last <= 1:
            raise InvalidParameterError("last", f"{self.last:.4g}", "a share of the time above 0 and up to 1 is needed")
        for part in self.without:
            if part not in PARTS:
                raise UnknownNameError("part", part, PARTS)
        for name in self.designs:
            _needs_ssd(name)
        check_replacement_policy(self.policy)
        member = REPLACEMENT.load(self.policy.partition(":")[0])
        if member.FUTURE:
            raise InvalidParameterError(
                "policy", self.policy, "what is asked for next is not known before: it depends on what requests take"
            )
        if not hasattr(member, "hit"):
            raise InvalidParameterError("policy", self.policy, "systems of pools need one with kernels, and not its plain form alone")

    def setup(self, design: str, part: str | None = None, ideal: Sequence[str] = ()) -> PoolSetup:
        """The system of a design, without a part of the SSD manager if one is named, and with some mechanisms ideal."""
        options = replace(self.options, **dict([PARTS[part]])) if part else self.options
        interval = self.time // INTERVALS
        return PoolSetup(
            self.workload, design, self.memory, self.ssd, interval * INTERVALS, interval, self.devices, self.policy, self.page_size,
            options, self.scale, self.seed, ideal=ideal,
        )  # fmt: skip

    def preconditions(self) -> dict[str, Precondition]:
        """States of flash drives before each run, by purpose."""
        devices = self.setup(self.designs[0]).parts()
        return {purpose: _state(devices[purpose], *state) for purpose, state in self.states.items()}

    def as_dict(self) -> dict[str, Any]:
        parameters = {name: value for name, value in vars(self).items() if name != "options"}
        lists = {"designs": list(self.designs), "without": list(self.without), "devices": dict(self.devices)}
        return parameters | vars(self.options) | lists

    def variants(self) -> Iterator[tuple[str, str | None]]:
        for design in dict.fromkeys(self.designs):
            yield design, None
            for part in dict.fromkeys(self.without):
                if _needs_ssd(design) or part not in _OF_THE_SSD:
                    yield design, part

    def job(self, design: str, part: str | None, states: Mapping[str, Precondition], ideal: Sequence[str] = ()) -> Job:
        """The run of one design, whose flash drives are brought into states, which rests on no formula: their occupancy is its argument."""
        setup = self.setup(design, part, ideal)
        preconditions = {
            purpose: vars(state) | {"occupancy": None if state.occupancy is None else np.asarray(state.occupancy).tolist()}
            for purpose, state in states.items()
        }
        stamps = kept.stamps([self.workload, self.policy, design, *(device.preset_name for device in setup.parts().values())])
        name = variant_name(design, part) + (f" with ideal {', '.join(ideal)}" if ideal else "")
        return Job.of(run_design, name, setup=setup.as_dict(), name=name, stamps=stamps, preconditions=preconditions)


@dataclass(frozen=True)
class DesignRuns:
    """Results of a study of designs."""

    study: PoolStudy
    pages: int
    #: A result a design and part that it was without.
    runs: Sequence[DesignResult]
    recalled: int = 0

    def title(self) -> str:
        study = self.study
        database = format_size(round(self.pages * study.page_size / study.scale))
        description = f"{study.workload}: {database} of pages, {format_size(study.memory)} of memory, an SSD of {format_size(study.ssd)}"
        return f"{description}, {format_duration(study.time)}" + ("" if study.scale == 1 else f"; all that at scale {study.scale:g}")

    def rows(self) -> list[dict[str, Any]]:
        """A row a run (`DesignResult.row`), with its transactions over those of the same design with all parts."""
        whole = {each.design: each.row()["transactions_s"] for each in self.runs if each.without is None}
        rows = [each.row() for each in self.runs]
        for row in rows:
            row["over_whole"] = row["transactions_s"] / whole[row["design"]] if row["without"] and whole[row["design"]] else None
        return rows

    def as_dict(self) -> dict[str, Any]:
        runs = [
            row | {"kinds": each.kinds(), "traffic": each.traffic(), "series": each.series()}
            for row, each in zip(self.rows(), self.runs, strict=True)
        ]
        return {"asked": self.study.as_dict(), "pages": self.pages, "runs": runs}


def execute(study: PoolStudy, progress: Progress | None = None, settings: Settings | None = None, trace: Path | None = None) -> DesignRuns:
    """Run each system from cold, unless its result is kept from before.

    The requests of all devices go to the file `trace`, if one is named, of a study with one run, which is then made anew.

    Raises
    ------
    InvalidParameterError
        The workload does not fit the disk, the SSD is smaller than its partitions need, a value out of its bounds, or a trace of several
        runs.
    FlashsimError
        A trace cannot be read, or a policy breaks its contract.
    """
    variants = list(study.variants())
    setups = [study.setup(*variant) for variant in variants]
    stream, devices = setups[0].stream(), setups[0].parts()
    if trace and len(variants) > 1:
        raise InvalidParameterError("trace", f"{len(variants)} runs", "it holds the requests of one: one design, and no part left out")
    states = study.preconditions()
    systems = [setup.system(stream.pages) for setup in setups]
    if trace:
        with ParquetWriter(trace, provenance(study.as_dict())) as writer:
            outcomes, recalls = [_run(setups[0], variant_name(*variants[0]), states, writer)], 0
    else:
        jobs = [study.job(*variant, states) for variant in variants]
        parts = [*parts_of([PoolRun.__module__]), *(part for device in devices.values() for part in device.parts())]
        parts += [*replacement_parts([study.policy.partition(":")[0]]), *design_parts(name.partition(":")[0] for name in study.designs)]
        results = make(jobs, settings or Settings(), progress, parts=list(dict.fromkeys(parts)))
        outcomes, recalls = [results[job] for job in jobs], sum(each.recalled for each in results.runs.values())
    metric = stream.METRIC if isinstance(stream, TransactionWorkload) else None
    common = {"metric": metric, "last": study.last, "lifetime_erases": devices["ssd"].lifetime_erases, "scale": study.scale}
    runs = [
        DesignResult.of(each, design=design, without=part, system=system, **common)
        for (design, part), system, each in zip(variants, systems, outcomes, strict=True)
    ]
    return DesignRuns(study, stream.pages, runs, recalls)


def run_design(
    setup: Mapping[str, Any], name: str, stamps: Mapping[str, str], preconditions: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The result of one run, JSON-ready; changed stamps of its files make it another run."""
    states = {
        purpose: Precondition(**{**state, "occupancy": None if state["occupancy"] is None else np.array(state["occupancy"])})
        for purpose, state in preconditions.items()
    }
    return _run(PoolSetup.of(setup), name, states)


def _run(setup: PoolSetup, name: str, states: Mapping[str, Precondition], writer: ParquetWriter | None = None) -> dict[str, Any]:
    """The result of a system, JSON-ready; its requests are recorded if there is a writer."""
    purposes = sorted(PURPOSES.index(purpose) for purpose in setup.devices if purpose != "ssd" or _needs_ssd(setup.design))
    record = CausedRequests(writer, [PURPOSES[each] for each in purposes], purposes).take if writer else None
    run = setup.build(states, record=record)
    with activity(f"running {name}") as progress:

        def watch(intervals: int, counts: Mapping[str, Integers]) -> None:
            system = run.system
            last = DesignResult(counts, system.interval, system.ssd, design=setup.design, without=None, system=system, scale=setup.scale)
            progress(intervals, INTERVALS, last.lately())

        return run.result(_STEPS, watch).as_dict()


def _state(device: PoolDevice, text: str, seed: int) -> Precondition:
    if device.is_rates:
        raise RefusedError(f"precondition: the {device.purpose}, {device.text}, is not a flash drive: earlier writes change no times")
    return parse_state(text, device.preset, seed)


def _needs_ssd(design: str) -> bool:
    return DESIGNS.load(design.partition(":")[0]).SSD


def parse_percent(value: str | float, parameter: str) -> int:
    """Whole percent of a share, as ``50%`` or ``0.5``.

    Examples
    --------
    >>> parse_percent("50%", "dirty_limit"), parse_percent(0.9, "dirty_limit")
    (50, 90)
    """
    text = str(value).strip()
    with suppress(ValueError):
        share = float(text[:-1]) if text.endswith("%") else 100 * float(text)
        if 0 <= share <= 100 and abs(share - round(share)) < 1e-9:
            return round(share)
    raise InvalidParameterError(parameter, repr(value), "a share of whole percent from 0 to 1 is needed, such as 50% or 0.5")


def design_names(texts: Sequence[str]) -> list[str]:
    """Designs of texts that hold one or several, or ``all``.

    Examples
    --------
    >>> design_names(["none,lc", "tac:extent=16,aging=1000,lc"])
    ['none', 'lc', 'tac:extent=16,aging=1000']
    """
    names = _apart(texts, DESIGNS.names())
    if not names:
        raise InvalidParameterError("design", "none", "at least one is needed")
    return names


def part_names(texts: Sequence[str]) -> list[str]:
    """Parts of the SSD manager of texts that hold one or several, or ``all``."""
    return _apart(texts, PARTS)


def _apart(texts: Sequence[str], names: Iterable[str]) -> list[str]:
    entries = [name.strip() for text in texts for name in _BETWEEN.split(text) if name.strip()]
    return list(dict.fromkeys(each for name in entries for each in (names if name == "all" else [name])))

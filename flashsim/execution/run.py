"""Cost of a run: counts and times by phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from flashsim.core.outstanding import OutstandingLevel


@dataclass
class PhaseCost:
    """One phase of a run on one machine; times are nanoseconds of virtual (or, on a real file, wall-clock) time."""

    name: str
    reads: int = 0  # host requests, before any splitting
    writes: int = 0
    pages_read: int = 0
    pages_written: int = 0
    io_time: int = 0
    user_time: int = 0
    kernel_time: int = 0
    wait_time: int = 0  # for a core, a latch or other strands, and asleep
    seeks: int = 0  # as the device counted them; 0 where there are none
    seek_time: int = 0
    work: dict[str, int] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        return self.reads + self.writes

    @property
    def pages(self) -> int:
        return self.pages_read + self.pages_written

    @property
    def cpu_time(self) -> int:
        """User and kernel time, ns."""
        return self.user_time + self.kernel_time

    @property
    def total_time(self) -> int:
        """Duration, ns: a strand does I/O, has CPU work done, or waits."""
        return self.io_time + self.cpu_time + self.wait_time

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"work": {str(kind): count for kind, count in self.work.items()}}

    def add(self, other: PhaseCost) -> None:
        """Count what another phase has cost as this one's."""
        for name, value in vars(other).items():
            if isinstance(value, int):
                setattr(self, name, getattr(self, name) + value)
        for kind, count in other.work.items():
            self.work[kind] = self.work.get(kind, 0) + count


@dataclass
class Run:
    """The run of an algorithm, or of one of its strands, on one machine; a strand begins in the phase of the one that began it."""

    machine: str
    phases: list[PhaseCost] = field(default_factory=list)
    result_rows: int = 0
    strand: str = "main"
    #: How many requests the machine had outstanding, those of all strands; it is noted with the first one.
    outstanding: OutstandingLevel = field(default_factory=OutstandingLevel, repr=False, compare=False)
    phase: PhaseCost = field(default_factory=lambda: PhaseCost("run"), init=False, repr=False)

    def enter(self, name: str) -> None:
        """Begin a phase, or go on with the one of that name, which becomes the `phase` that goes on."""
        earlier = [phase for phase in self.phases if phase.name == name]
        self.phase = earlier[0] if earlier else PhaseCost(name)
        if not earlier:
            self.phases.append(self.phase)

    def total(self) -> PhaseCost:
        total = PhaseCost("total")
        for phase in self.phases:
            total.add(phase)
        return total

    def as_dict(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "result_rows": self.result_rows,
            "phases": [phase.as_dict() for phase in self.phases],
            "total": self.total().as_dict(),
            "outstanding": self.outstanding.as_dict(),
        }


@dataclass
class ConcurrentRun(Run):
    """The run of an algorithm of several strands on one machine: what each strand did, and how busy the machine was.

    Its phases are those of all strands together; their times overlap, so that they may add up to more than has elapsed.
    """

    #: A run a strand, in the order in which they began; their phases are their own.  Strands of one name, such as an algorithm begins one
    #: after the other, have one run.
    strands: list[Run] = field(default_factory=list)
    elapsed: int = 0  #: Until the last strand ended, ns.
    cores: dict[str, int] = field(default_factory=dict)  #: How many the machine has, by place.
    core_times: dict[str, int] = field(default_factory=dict)  #: Working time, by place, of all cores together, ns.
    device_times: list[int] = field(default_factory=list)  #: How long each device had a request outstanding, ns.

    def __post_init__(self) -> None:
        self.strands = by_name(self.strands)
        self.phases = _merge_phases(self.strands)
        self.result_rows = sum(run.result_rows for run in self.strands)
        self.outstanding = self.strands[0].outstanding

    @property
    def strand_time(self) -> int:
        """Time of the strands that were begun, all together, ns."""
        return sum(run.total().total_time for run in self.strands[1:])

    def time_in(self, phase: str) -> int:
        """Time of the algorithm itself in a phase, ns, while it waited for strands or worked."""
        return sum(cost.total_time for cost in self.strands[0].phases if cost.name == phase)

    @property
    def core_shares(self) -> dict[str, float]:
        """Utilisation of the cores, by place: a share of the time elapsed."""
        return {place: self.core_times[place] / max(1, cores * self.elapsed) for place, cores in self.cores.items()}

    @property
    def device_shares(self) -> list[float]:
        """Utilisation of each device: a share of the time elapsed."""
        return [time / max(1, self.elapsed) for time in self.device_times]

    def as_dict(self) -> dict[str, Any]:
        report = super().as_dict()
        for phase in report["phases"]:
            phase["elapsed"] = self.time_in(phase["name"])
        strands = [{"strand": run.strand} | run.as_dict() for run in self.strands]
        for strand in strands:
            del strand["outstanding"]  # the machine's
        shares = {"core_shares": self.core_shares, "device_shares": self.device_shares}
        return report | {"elapsed": self.elapsed, "cores": self.cores} | shares | {"strands": strands}


def _merge_phases(runs: Iterable[Run]) -> list[PhaseCost]:
    merged: dict[str, PhaseCost] = {}
    for phase in (phase for run in runs for phase in run.phases):
        merged.setdefault(phase.name, PhaseCost(phase.name)).add(phase)
    return list(merged.values())


def by_name(runs: Iterable[Run]) -> list[Run]:
    """Runs of strands, those of one name as one."""
    by_strand: dict[str, list[Run]] = {}
    for run in runs:
        by_strand.setdefault(run.strand, []).append(run)
    return [
        same[0] if len(same) == 1 else Run(same[0].machine, _merge_phases(same), sum(run.result_rows for run in same), name)
        for name, same in by_strand.items()
    ]


def in_one(runs: Sequence[Run]) -> Run:
    """The runs of strands as one: their phases one strand after the other, those of strands that others began named after it."""
    runs = by_name(runs)
    if len(runs) == 1:
        return runs[0]
    phases = [phase if run is runs[0] else replace(phase, name=f"{run.strand}: {phase.name}") for run in runs for phase in run.phases]
    return Run(runs[0].machine, phases, sum(run.result_rows for run in runs), outstanding=runs[0].outstanding)

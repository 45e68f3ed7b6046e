"""What a run cost: counts and times by phase."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from flashsim.execution.requests import Work


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
    seeks: int = 0  # as the device counted them; 0 where there are none
    seek_time: int = 0
    work: dict[Work, int] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """Host requests."""
        return self.reads + self.writes

    @property
    def pages(self) -> int:
        """Pages moved."""
        return self.pages_read + self.pages_written

    @property
    def cpu_time(self) -> int:
        """User and kernel time, ns."""
        return self.user_time + self.kernel_time

    @property
    def total_time(self) -> int:
        """I/O and CPU time, which do not overlap, ns."""
        return self.io_time + self.cpu_time

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self) | {"work": {kind.value: count for kind, count in self.work.items()}}


@dataclass
class Run:
    """An algorithm's run on one machine."""

    machine: str
    phases: list[PhaseCost] = field(default_factory=list)
    result_rows: int = 0

    def total(self) -> PhaseCost:
        """All phases together."""
        total = PhaseCost("total")
        for phase in self.phases:
            for name, value in vars(phase).items():
                if isinstance(value, int):
                    setattr(total, name, getattr(total, name) + value)
            for kind, count in phase.work.items():
                total.work[kind] = total.work.get(kind, 0) + count
        return total

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "machine": self.machine,
            "result_rows": self.result_rows,
            "phases": [phase.as_dict() for phase in self.phases],
            "total": self.total().as_dict(),
        }

"""A pool's misses and write-backs on a device: what references take in virtual time on a simulated one, or by the clock on a real one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flashsim.apps.caching.numbered import NumberedTrace
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress, Sink
from flashsim.core.replacement import FIRST_PAGE, ReplacementPolicy
from flashsim.core.units import SECONDS
from flashsim.device import presets
from flashsim.device.access import is_path
from flashsim.device.file import RealDevice
from flashsim.execution import cpu as cpus
from flashsim.execution.buffer_manager import BufferManager
from flashsim.execution.drivers import run
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Algorithm, Phase
from flashsim.execution.run import Run
from flashsim.experiments.runs.drives import DriveInUse, HeldDrive
from flashsim.storage.content import token_file
from flashsim.storage.pool.buffer_pool import BufferPool

#: References whose misses are found at once.
_AT_ONCE = 1 << 17
_WARM_UP, _REFERENCES, _FLUSH = "warm-up", "references", "flush"


def cost_row(run: Run, cpu: str | None) -> dict[str, Any]:
    """A run of `Target.serve` JSON-ready: of the references, what was read and written in pages, and seconds; of the flush too."""
    phases = {phase.name: phase for phase in run.phases}
    references, flush = phases[_REFERENCES], phases[_FLUSH]
    row = {"device": run.machine, "cpu": cpu, "pages_read": references.pages_read, "pages_written": references.pages_written}
    row |= {f"{name}_s": getattr(references, f"{name}_time") / SECONDS for name in ("io", "cpu", "total")}
    return row | {"pages_flushed": flush.pages_written, "flush_s": flush.total_time / SECONDS}


@dataclass(frozen=True)
class Target:
    """A device that holds a trace's pages, in the order of their ids and without gaps.

    A preset, by name or TOML file, the path of a real file or block device, or a drive that stands ready, which is left as it is.  At most
    `depth` pages are exchanged at once (`flashsim.execution.buffer_manager.BufferManager`).  `cpu` is a preset that prices requests and
    pages, or `flashsim.execution.cpu.BY_YEAR`; None: they take no time of it.  The sink takes every request, the warm-up's and the flush's
    too, of one pool only.
    """

    device: str | HeldDrive
    depth: int = 1
    cpu: str | None = cpus.BY_YEAR
    #: Permission to write to a real device, and to overwrite a file that exists.
    allow_write: bool = False
    force: bool = False
    sink: Sink | None = None

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise InvalidParameterError("depth", self.depth, "it must be at least 1")
        if self.cpu_name is not None:
            cpus.load(self.cpu_name)

    @property
    def preset(self) -> presets.Preset | None:
        """The simulated device, if it is one."""
        if isinstance(self.device, str):
            return None if is_path(self.device) else presets.load(self.device)
        return self.device.load()

    @property
    def cpu_name(self) -> str | None:
        """The CPU preset that prices work."""
        return cpus.choose(self.cpu, self.preset)

    @property
    def file(self) -> Path | None:
        """The real file or block device, if it is one."""
        return Path(self.device) if isinstance(self.device, str) and is_path(self.device) else None

    def serve(
        self, trace: NumberedTrace, policy: ReplacementPolicy, frames: int, page_size: int, warm_up: int, seed: int,
        progress: Progress | None,
    ) -> Run:  # fmt: skip
        """Refer to a pool's pages of `page_size` bytes, and execute its misses and write-backs, on a machine with the device.

        The run's phases are the warm-up of `warm_up` references, the other references, and the flush of dirty pages at the end.  For a
        policy that must know the future the trace has looked ahead.
        """
        file = token_file("pages", trace.pages, page_size)
        manager = BufferManager(BufferPool(policy, frames, (file,), seed), depth=self.depth)
        algorithm = _references(manager, trace, policy.future, warm_up, progress)
        size = (file.pages + len(file.layout.reserved_places)) * file.page_size
        if self.file:
            with RealDevice(self.file, size, allow_write=self.allow_write, replace=self.force) as device:
                (cost,) = run(lambda: algorithm, [file], device, sink=self.sink)
                device.remove_if_new()
            return cost
        drive: HeldDrive = DriveInUse(self.device) if isinstance(self.device, str) else self.device
        cpu = cpus.load(self.cpu_name) if self.cpu_name else None
        machine = Machine([drive.device(size)], cpu, self.sink, drive.load().name, drive.start, drive.full, drive.scale)
        return run(lambda: algorithm, [file], [machine])[0]


def _references(manager: BufferManager, trace: NumberedTrace, future: bool, warm_up: int, progress: Progress | None) -> Algorithm:
    place = np.empty(FIRST_PAGE + trace.pages, np.int64)
    place[FIRST_PAGE + np.argsort(trace.ids)] = np.arange(trace.pages)
    for name, begin, end in ((_WARM_UP, 0, warm_up), (_REFERENCES, warm_up, trace.references)):
        yield Phase(name)
        for first in range(begin, end, _AT_ONCE):
            last = min(end, first + _AT_ONCE)
            pages, writes = trace.part(first, last)
            yield from manager.refer(place[pages], writes, trace.next_uses(first, last) if future else None)
            if progress is not None:
                progress(last, trace.references, f"{manager.pool.policy.name} in {manager.pool.frames:,} pages on the device")
    yield Phase(_FLUSH)
    yield from manager.flush()

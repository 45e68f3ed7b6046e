"""A ship's model of a join: relations and memory of a part, on drives and under a file system that shrink with them.

What a run then takes is nearly that part of what the large one takes, by phase and device: requests are as many, and each of them takes
the part (`flashsim.device.scaling`).  Two things are set right that would not follow: memory is divided as for the large relations, and
sorting fewer tuples takes fewer comparisons a tuple, so that each stands for more.
"""

import math
from dataclasses import dataclass, replace

from flashsim.core.errors import InvalidParameterError
from flashsim.device.presets import Preset
from flashsim.device.scaling import LEAST, STEP, miniature
from flashsim.execution.cpu import CpuModel
from flashsim.execution.requests import Work
from models.allocation.buffers import FUDGE, Allocation, NestedLoopsAllocation, check, exact
from models.disk import Disk


@dataclass(frozen=True)
class ShipsModel:
    """A model of that scale.

    Parameters
    ----------
    scale
        Of relations and memory, at most 1.
    page
        Bytes of a page, where every request is one; 0 where requests are longer.
    """

    scale: float
    page: int = 0

    @property
    def of_drives(self) -> float:
        """The scale of the drives and of the file system: whole `STEPS`, so that all of their lengths keep their proportions."""
        return max(LEAST, round(self.scale / STEP)) * STEP

    def preset(self, preset: Preset) -> Preset:
        return miniature(preset, self.of_drives, page=self.page)

    def disk(self, disk: Disk) -> Disk:
        """A drive as the formulas see it: a request of many pages stands for one of more, but of a page for several."""
        return disk if self.page else replace(disk, seek_ms=disk.seek_ms * self.scale, latency_ms=disk.latency_ms * self.scale)

    def sorting(self, cpu: CpuModel, tuples: int) -> CpuModel:
        """Prices of a join that sorts so many tuples: a comparison is one of those that the large relations take, n log2 n in all."""
        dearer = math.log2(tuples / self.scale) / math.log2(max(2, tuples))
        return replace(cpu, user={**cpu.user, Work.COMPARE: cpu.user[Work.COMPARE] * dearer})

    def buffers(self, large: Allocation, large_r: int, memory: int, r_pages: int) -> Allocation | None:
        """`memory` pages divided as for large relations: as many chunks of R or buckets, and buffers in proportion; None if that cannot be.

        What rounding leaves belongs to the hash table or the tree.
        """
        if isinstance(large, NestedLoopsAllocation):
            outer = math.ceil(r_pages * exact(FUDGE) / large.chunks(large_r))
            return _checked(NestedLoopsAllocation(outer, memory - outer), memory)
        if not getattr(large, "buckets", 1):
            return None  # all of R stays in memory, at any scale
        parts = {name: pages if name == "buckets" else math.floor(pages * self.scale) for name, pages in vars(large).items()}
        small: Allocation = type(large)(**parts)
        names = [name for name in ("workspace", "phase2_workspace") if parts.get(name)]
        for name, used in zip(names, small.phases()[-len(names) :], strict=True):
            parts[name] += memory - used
        return _checked(type(large)(**parts), memory)


def _checked(allocation: Allocation, memory: int) -> Allocation | None:
    try:
        check(allocation, memory)
    except InvalidParameterError:
        return None
    return allocation

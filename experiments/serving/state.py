"""What a served drive holds when its first client comes, and what it costs to read it."""

import os
from pathlib import Path

from experiments.replaying import preconditioning
from flashsim.core.errors import RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.request import SECTOR
from flashsim.core.units import GIB, format_size
from flashsim.device.device import Device
from flashsim.device.nbd.content import FileContent, MemoryContent
from flashsim.device.presets import Preset

#: So much of a flash drive is written in order before it is served: 4 KiB flash pages take some 10 bytes of memory each.
_FILLED = 64 * GIB


def content_of(path: Path | None, device: Device, read_only: bool) -> MemoryContent | FileContent:
    """Content in a file, or else in at most half of the machine's memory."""
    if path:
        return FileContent(path, device.capacity // SECTOR * SECTOR, read_only)
    return MemoryContent(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)


def check(preset: Preset, empty: bool, precondition: str | None) -> None:
    """Refuse states that there are not, and two at once."""
    if empty and precondition:
        raise RefusedError("--empty: --precondition says in which state the drive begins; take one of them")
    if precondition:
        preconditioning.wanted(precondition, preset)


def bring_into(
    device: Device, content: MemoryContent | FileContent, empty: bool, precondition: str | None, progress: Progress | None
) -> str:
    """Write a flash drive in no time, as `check` has allowed; say what it then holds, or nothing of a disk."""
    if precondition:
        return preconditioning.bring_into(device, precondition, progress=progress)
    if device.kind != "ssd":
        return ""
    if empty:
        extents = list(content.extents()) if isinstance(content, FileContent) else []
        _load(device, extents, progress)
        return "empty but for what its content holds" if extents else "empty"
    filled = min(_FILLED, device.capacity // SECTOR * SECTOR)
    _load(device, [(0, filled)], progress)
    return f"written in order{'' if filled + SECTOR > device.capacity else f', the first {format_size(filled)} of it'}"


def _load(device: Device, extents: list[tuple[int, int]], progress: Progress | None) -> None:
    total, done = sum(length for _, length in extents), 0
    for offset, length in extents:
        begin, end = offset // SECTOR * SECTOR, -(-(offset + length) // SECTOR) * SECTOR
        for at in range(begin, end, GIB):
            device.load(at, min(GIB, end - at))
            done += min(GIB, end - at)
            if progress:
                progress(min(done, total), total, "filling")

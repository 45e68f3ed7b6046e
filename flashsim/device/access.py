"""Checks before a file or block device is read or written: it must be there, nothing may be lost unasked, and nobody may be using it."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from flashsim.core.errors import ALLOW_WRITE, FORCE, MissingFileError, RefusedError, option
from flashsim.core.units import format_size
from flashsim.device import presets


def is_path(device: str) -> bool:
    """True if a name is the path of a real file or block device rather than a preset's.

    >>> is_path("./disk.bin"), is_path("ocz-core-60gb"), is_path("mine.toml")
    (True, False, False)
    """
    return not device.endswith(".toml") and device not in presets.names(zoned=True) and (os.sep in device or Path(device).exists())


def check_readable(path: Path) -> bool:
    """Refuse what is not there or cannot be a device; return whether it is a block device."""
    try:
        mode = path.stat().st_mode
    except OSError as problem:
        raise MissingFileError(f"device: cannot read {path}: {problem.strerror}") from problem
    _check_kind(path, mode)
    return stat.S_ISBLK(mode)


def check_writable(path: Path, size: int, *, allow_write: bool, replace: bool) -> bool:
    """Refuse to destroy anything unasked, and what is in use whatever was asked; return whether it is a block device.

    `size` is bytes that would be written; `allow_write` and `replace` are whether writing was allowed, and to a file that exists as well.
    """
    mode = path.stat().st_mode if path.exists() else None
    if mode is None and not path.parent.is_dir():
        raise MissingFileError(f"device: no folder {path.parent}")
    if mode is not None:
        _check_kind(path, mode)
        use = in_use(path)
        if use:
            raise RefusedError(f"device: {path} is {use}, and is never written to")
    block_device = mode is not None and stat.S_ISBLK(mode)
    if not allow_write:
        what = f"the block device {path}" if block_device else f"{format_size(size)} in {path}"
        raise RefusedError(f"device: writing would destroy {what}; allow it with " + ALLOW_WRITE)
    if mode is not None and not block_device and not replace:
        raise RefusedError(f"device: the file {path} exists and would be overwritten; allow it with " + FORCE)
    return block_device


def check_typed(target: Path, typed: str | Sequence[str] | None) -> None:
    """Refuse to write to a block device that its user has not named as one to destroy."""
    names = [typed] if isinstance(typed, str) else typed or []
    if os.path.realpath(target) not in map(os.path.realpath, names):
        raise RefusedError(
            f"device: what the block device {target} holds would be destroyed; allow it with " + option("yes-destroy") + f" {target}"
        )


def _check_kind(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode) and not stat.S_ISBLK(mode):
        raise RefusedError(f"device: {path} is neither a file nor a block device")


def in_use(path: Path) -> str:
    """Use of a file, a block device, a partition of it, or something on top of it, in words; empty if none is known."""
    status = path.stat()
    if any(Path(name).exists() and os.path.samefile(name, path) for name in _swaps()):
        return "in use for swapping"
    for loop in Path("/sys/block").glob("loop*/loop/backing_file"):
        behind = Path(loop.read_text(encoding="utf-8").strip())
        if behind.exists() and os.path.samefile(behind, path):
            return f"in use by /dev/{loop.parts[3]}"
    if not stat.S_ISBLK(status.st_mode):
        return ""
    name = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    folder = Path("/sys/dev/block") / name
    parts = {name} | {part.read_text(encoding="utf-8").strip() for part in folder.glob("*/dev")}
    if parts & _mounted_devices():
        return "mounted or in use"
    names = [holder.name for holders in (folder / "holders", *folder.glob("*/holders")) if holders.is_dir() for holder in holders.iterdir()]
    return f"in use by {names[0]}" if names else ""


def _swaps() -> list[str]:
    try:
        lines = Path("/proc/swaps").read_text(encoding="utf-8").splitlines()[1:]
    except OSError:
        return []
    return [line.split()[0].replace("\\040", " ") for line in lines]


def _mounted_devices() -> set[str]:
    """Numbers of the block devices that are mounted, also of those whose file system shows a number of its own."""
    mounted = set()
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        mounted.add(before.split()[2])
        source = Path(after.split()[1]) if len(after.split()) > 1 else Path()
        if source.is_absolute() and source.is_block_device():
            number = source.stat().st_rdev
            mounted.add(f"{os.major(number)}:{os.minor(number)}")
    return mounted

"""Arguments that are devices, presets, drives or files, and what makes it safe to write to them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.device import presets
from flashsim.device.access import is_path
from flashsim.operations.fields import Flag, Name, several, text

if TYPE_CHECKING:
    from flashsim.operations.face.drive import Drive


def device_of(device: Any, parameter: str = "device") -> str | Drive:
    """A drive, or the name of a preset or the path of a real file or block device."""
    if not isinstance(device, str | PathLike):
        from flashsim.operations.face.drive import Drive, drive  # loads what a name has no use for

        if isinstance(device, Mapping):
            return drive(**device)
        if not isinstance(device, Drive):
            raise InvalidParameterError(parameter, repr(device), "a preset's name, an fs.drive or a path is needed")
        return device
    name = text(device, parameter)
    if not is_path(name):
        presets.load(name)
    return name


def preset_of(device: str | Drive) -> str:
    """The name of a device's preset, or its path."""
    return device if isinstance(device, str) else device.preset


def on_real(arguments: Mapping[str, Any], title: str, block: bool = False) -> None:
    """Refuse an argument that has an effect on real files and devices alone, or on block devices, where none is named."""
    devices = arguments.get("device")
    every = [*(devices.values() if isinstance(devices, Mapping) else several(devices, "device")), arguments.get("path")]
    paths = [str(each) for each in every if isinstance(each, str | PathLike)]
    if any(is_path(each) and not (block and Path(each).is_file()) for each in paths):
        return
    if paths or "device" in arguments:
        what = "no block device" if block else "a preset" if paths else "no real file or device"
        raise RefusedError(f"{title}: {' and '.join(paths) or 'there'} is {what}")


#: Refuses an argument that has an effect on block devices alone.
on_block = partial(on_real, block=True)
AllowWrite = Annotated[bool, Flag("Permit writes to DEVICE, a real file or disk; its contents are lost.", provenance=False, needs=on_real)]
YesDestroy = Annotated[
    str | None, Name("Block device whose contents --allow-write may destroy.", "/dev/NAME", provenance=False, needs=on_block)
]

"""Arguments that are devices: a preset, a drive, or the path of a real file."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from flashsim.core.errors import InvalidParameterError
from flashsim.device import presets
from flashsim.device.access import is_path
from flashsim.operations.fields import text

if TYPE_CHECKING:  # whose libraries a preset's name has no use for
    from flashsim.operations.face.drive import Drive


def device_of(device: Any, parameter: str = "device") -> str | Drive:
    """A drive, or the name of a preset or the path of a real file or block device."""
    if not isinstance(device, str | PathLike):
        from flashsim.operations.face.drive import Drive, drive

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

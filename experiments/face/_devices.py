"""What is given as a device: a preset, a drive, or the path of a real file."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from experiments.face._units import text
from experiments.face.drive import Drive, drive
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.device import presets
from flashsim.device.access import is_path


def drive_of(device: Any) -> str | Drive:
    """A simulated device: a preset's name, or a drive.

    Raises
    ------
    InvalidParameterError
        It is neither.
    UnknownNameError
        There is no such preset.
    RefusedError
        It is a real file.
    """
    found = device_of(device)
    if isinstance(found, str) and is_path(found):
        raise RefusedError(f"device: {found} is a real file, but a preset or an fs.drive is needed here")
    return found


def device_of(device: Any) -> str | Drive:
    """The same, or the path of a real file or block device."""
    if isinstance(device, Drive):
        return device
    if isinstance(device, Mapping):
        return drive(**device)
    if not isinstance(device, str | PathLike):
        raise InvalidParameterError("device", repr(device), "a preset's name, an fs.drive or a path is needed")
    name = text(device, "device")
    if not is_path(name):
        presets.load(name)
    return name

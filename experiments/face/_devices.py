"""What is given as a device: a preset, a drive, or the path of a real file."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from experiments.face._units import text
from experiments.face.drive import Drive, drive
from flashsim.core.errors import InvalidParameterError
from flashsim.device import presets
from flashsim.device.access import is_path


def device_of(device: Any) -> str | Drive:
    """A drive, or the name of a preset or the path of a real file or block device.

    Raises
    ------
    InvalidParameterError
        It is something else.
    UnknownNameError
        There is no such preset.
    """
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

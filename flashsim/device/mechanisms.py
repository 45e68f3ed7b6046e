"""Mechanisms of a device with the block layer in front of it."""

from flashsim.core.errors import RefusedError
from flashsim.core.mechanisms import DeviceMechanism
from flashsim.device.presets import Preset
from flashsim.hdd import mechanisms as of_disks
from flashsim.hdd.parameters import HddParameters
from flashsim.ssd import mechanisms as of_flash

_COMMANDS = DeviceMechanism(
    "commands", "commands of a request", "requests are split into commands", is_split=True, decides="how requests are split"
)


def mechanisms_of(preset: Preset) -> list[DeviceMechanism]:
    """The mechanisms that a single drive has; RefusedError: it is an array, or a station."""
    if preset.flash is not None and preset.array is None:
        return [*of_flash.mechanisms_of(preset.flash), _COMMANDS]
    if isinstance(preset.parameters, HddParameters) and preset.array is None:
        return [*of_disks.mechanisms_of(preset.parameters), _COMMANDS]
    raise RefusedError(f"why: {preset.name} is {'an array' if preset.array else 'a station'}, whose parts are not recorded")

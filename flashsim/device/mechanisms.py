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


def load_on(preset: Preset) -> DeviceMechanism:
    """Requests at the same time, which is what their other mechanisms leave on a flash drive, and comes before seeks on a disk."""
    words = "load", "requests at the same time", "requests wait for one another"
    return DeviceMechanism(*words, one_at_a_time=True, decides="when requests come", rank=1 if preset.flash else -1)


def mechanisms_of(preset: Preset) -> list[DeviceMechanism]:
    """The mechanisms that a single drive has; RefusedError: it is an array, or a station."""
    if preset.flash is not None and preset.array is None:
        return [*of_flash.mechanisms_of(preset.flash), _COMMANDS]
    if isinstance(preset.parameters, HddParameters) and preset.array is None:
        return [*of_disks.mechanisms_of(preset.parameters), _COMMANDS]
    raise RefusedError(f"why: {preset.name} is {'an array' if preset.array else 'a station'}, whose parts are not recorded")

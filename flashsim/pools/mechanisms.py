"""Mechanisms of a system of pools: those of its devices, waiting for the processor, and checkpoints."""

from dataclasses import replace

from flashsim.core.mechanisms import DeviceMechanism
from flashsim.device.mechanisms import mechanisms_of
from flashsim.device.presets import Preset

PROCESSOR, CHECKPOINTS = "processor", "checkpoints"
#: Devices in the field's words, by purpose.
_WORDS = {"disk": "the disks", "ssd": "the SSD", "log": "the log"}
#: Servers of a station at which nothing waits, and the least time of a request, ns.
_SERVERS, _LEAST = 65535, 1


def mechanisms_of_rates(purpose: str) -> list[DeviceMechanism]:
    """Mechanisms of a station that serves requests at given rates."""
    device = _WORDS[purpose]
    waiting, group = f"waiting for {device}", f"waiting for {device}, which writes keep busy as well"
    return [
        DeviceMechanism(f"{purpose} queue", waiting, f"requests wait for {device}", {"servers": _SERVERS}, is_wait=True, group=group),
        DeviceMechanism(f"{purpose} writes", f"writes of {device}", f"writes keep {device} busy", {"write": _LEAST}, group=group),
    ]


def mechanisms_of_drive(purpose: str, preset: Preset) -> list[DeviceMechanism]:
    """Mechanisms of each of the drives that a device consists of, but for the block layer's."""
    device = _WORDS[purpose]
    return [
        replace(each, name=f"{purpose} {each.name}", title=f"{each.title} ({device})", sentence=f"{each.sentence} ({device})")
        for each in mechanisms_of(replace(preset, array=None))
        if not each.is_split
    ]


def mechanisms_of_system(*, works: bool, checkpoints: bool) -> list[DeviceMechanism]:
    """Mechanisms besides those of devices: of a system whose transactions need the processor, or that has checkpoints."""
    every = [
        (works, DeviceMechanism(PROCESSOR, "waiting for the processor", "transactions wait for the processor", is_wait=True)),
        (checkpoints, DeviceMechanism(CHECKPOINTS, "checkpoints", "transactions wait for checkpoints and their writes")),
    ]
    return [mechanism for has, mechanism in every if has]

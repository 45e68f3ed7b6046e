"""Runs on drives that differ from the presets in one assumption."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flashsim.core.units import KIB, MIB
from flashsim.device import presets
from flashsim.literature.shin2016.runs import DEVICES, Setup, on_drives
from flashsim.ssd.parameters import SsdParameters

_USUAL = "as assumed"
VARIANTS = (
    _USUAL, "no write buffer", "write buffer of 64 KiB", "write buffer of 256 KiB", "write buffer of 4 MiB", "half the channels",
    "programs take half as long",
)  # fmt: skip


def _changed(parameters: SsdParameters, variant: str) -> SsdParameters:
    """A drive that differs in one assumption; without half of its channels it has as much flash, on larger dies."""
    if variant == "half the channels":
        return replace(parameters, channels=parameters.channels // 2, blocks_per_plane=2 * parameters.blocks_per_plane)
    if variant == "programs take half as long":
        return replace(parameters, write_latency=parameters.write_latency - parameters.program // 2, program=parameters.program // 2)
    sizes = {
        "no write buffer": 0,
        "write buffer of 64 KiB": 64 * KIB,
        "write buffer of 256 KiB": 256 * KIB,
        "write buffer of 4 MiB": 4 * MIB,
    }
    return replace(parameters, write_buffer=sizes[variant]) if variant in sizes else parameters


def varied(setup: Mapping[str, Any], scale: float, seed: int) -> dict[str, Any]:
    """One run, JSON-ready: as `run_partition`, by drive and variant."""
    drives = {}
    for drive, name in DEVICES.items():
        preset = presets.load(name)
        parameters = preset.flash
        assert parameters is not None
        for variant in VARIANTS:
            drives[f"{drive}, {variant}"] = replace(preset, parameters=_changed(parameters, variant))
    return on_drives(Setup(**setup), drives, scale, seed)

"""Energy figures of a flash drive from its watts: what chips and channels take is estimated, and the controller takes the rest."""

from dataclasses import replace

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.units import MB, SECONDS, format_duration, format_power
from flashsim.device.presets import Preset
from flashsim.ssd.energy import EnergyFigures
from flashsim.ssd.parameters import SsdParameters

#: Power of a chip at work, mW: 25 mA at 3.3 V.
_CHIP = 82.5
#: Energy of a byte on a channel, pJ: 15 pJ a bit at 1.2 V.
_CHANNEL_BYTE = 120


def energy_like(flash: SsdParameters, base: Preset, idle: int | None, loaded: int | None) -> tuple[EnergyFigures | None, dict[str, str]]:
    """Energy figures of a drive from its power when idle and under load (mW), and their sources; without them, those of the base.

    Raises
    ------
    RefusedError
        One of the two is missing, and the base does not have it.
    InvalidParameterError
        A drive under load takes no more than an idle one.
    """
    energy, sources = base.energy, dict.fromkeys(base.energy_sources, f"estimate: as {base.name}")
    if idle is None and loaded is None:
        return energy, sources
    of_sheet = {name: "data sheet" for name, given in (("idle", idle), ("loaded", loaded)) if given is not None}
    if energy is None:
        if idle is None or loaded is None:
            raise RefusedError(f"idle_power, active_power: {base.name} has no energy figures, so both are needed")
        energy, sources = _estimated(flash, loaded - idle)
    energy = replace(energy, idle=energy.idle if idle is None else idle, loaded=energy.loaded if loaded is None else loaded)
    if energy.loaded <= energy.idle:
        bound = f"it must be more than the idle drive's, {energy.idle} mW"
        raise InvalidParameterError("active-power", f"{energy.loaded} mW", bound)
    if base.energy:
        share = (energy.loaded - energy.idle) / (base.energy.loaded - base.energy.idle)
        energy = replace(energy, controller=round(energy.controller * share))
    return energy, sources | of_sheet


def _estimated(flash: SsdParameters, above_idle: int) -> tuple[EnergyFigures, dict[str, str]]:
    """Figures of a drive that reads in order under load, at the rate of its link."""
    chip = "estimate: 25 mA at 3.3 V (Micron MT29F64*, as SimpleSSD takes it) for"
    times = {"page_read": flash.read, "page_program": flash.program, "block_erase": flash.erase}
    each = {name: round(_CHIP * time) for name, time in times.items()}
    planes = flash.planes_per_die if flash.multi_plane else 1
    each |= {name: each[name] // planes for name in ("page_program", "block_erase")}
    shared = f", shared by {planes} planes" if planes > 1 else ""
    sources = {name: f"{chip} {format_duration(time)}" for name, time in times.items()}
    sources |= {name: sources[name] + shared for name in ("page_program", "block_erase")}
    rate = flash.link_read_rate
    chips = (rate / flash.page_size * each["page_read"] + rate * _CHANNEL_BYTE) / SECONDS
    sources |= {"channel_byte": "estimate: 15 pJ a bit at 1.2 V"}
    left = f"what the data sheet's watts leave when {rate / MB:,.0f} MB/s are read, of which flash takes {format_power(round(chips))}"
    sources["controller"] = f"estimate: {left}"
    return EnergyFigures(**each, channel_byte=_CHANNEL_BYTE, controller=max(0, round(above_idle - chips)), idle=0, loaded=0), sources

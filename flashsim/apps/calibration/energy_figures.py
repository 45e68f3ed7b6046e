"""Energy figures of a flash drive from its watts: what chips and channels take is estimated, and the controller takes the rest."""

from dataclasses import replace

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.units import MB, SECONDS
from flashsim.device.presets import Preset
from flashsim.ssd.energy import EnergyFigures
from flashsim.ssd.parameters import SsdParameters

#: Power of a chip at work, mW: 25 mA at 3.3 V.
_CHIP = 82.5
#: Energy of a byte on a channel, pJ: 15 pJ a bit at 1.2 V.
_CHANNEL_BYTE = 120


def energy_like(flash: SsdParameters, base: Preset, idle: int | None, loaded: int | None) -> tuple[EnergyFigures | None, dict[str, str]]:
    """Energy figures of a drive from its power when idle and under load (mW), and their sources; without them, those of the base.

    Raises RefusedError: one of the two is missing, and the base does not have it; InvalidParameterError: a drive under load takes no more
    than an idle one.
    """
    energy, sources = base.energy, dict.fromkeys(base.energy_sources, f"estimate: as {base.name}")
    if idle is None and loaded is None:
        return energy, sources
    of_sheet = {name: value for name, value in (("idle", idle), ("loaded", loaded)) if value is not None}
    if energy is None and len(of_sheet) < 2:
        raise RefusedError(f"active_power: {base.name} has no energy figures, so idle and active power are both needed")
    read, program, erase = (round(_CHIP * time) for time in (flash.read, flash.program, flash.erase))
    before = energy or EnergyFigures(read, program, erase, _CHANNEL_BYTE, controller=0, idle=0, loaded=0)
    energy = replace(before, **of_sheet)
    if energy.loaded <= energy.idle:
        bound = f"it must be more than the idle drive's, {energy.idle} mW"
        raise InvalidParameterError("active-power", f"{energy.loaded} mW", bound)
    if base.energy:
        share = (energy.loaded - energy.idle) / (before.loaded - before.idle)
        return replace(energy, controller=round(energy.controller * share)), sources | dict.fromkeys(of_sheet, "data sheet")
    rate = flash.link_read_rate
    left = energy.loaded - energy.idle - rate * (energy.page_read / flash.page_size + energy.channel_byte) / SECONDS
    chip = "estimate: 25 mA at 3.3 V (Micron MT29F64*, as SimpleSSD takes it) while it works"
    sources = dict.fromkeys(("page_read", "page_program", "block_erase"), chip) | {"channel_byte": "estimate: 15 pJ a bit at 1.2 V"}
    sources["controller"] = f"estimate: what the data sheet's watts leave when {rate / MB:,.0f} MB/s are read"
    return replace(energy, controller=max(0, round(left))), sources | dict.fromkeys(of_sheet, "data sheet")

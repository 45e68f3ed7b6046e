"""A flash drive from the figures of a data sheet: another drive's preset is changed until it shows them."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from flashsim.apps.calibration.nominal_figures import NominalFigure, figures
from flashsim.core.errors import FlashsimWarning, InvalidParameterError, RefusedError
from flashsim.core.parameters import build, describe
from flashsim.core.preset_files import as_toml
from flashsim.core.protocols import Progress
from flashsim.core.units import SECONDS, TB, format_size
from flashsim.device import presets
from flashsim.device.figures import CitedFigures, show
from flashsim.device.presets import Preset
from flashsim.device.scaling import most_parts, part_of
from flashsim.ssd.energy import EnergyFigures
from flashsim.ssd.parameters import SsdParameters

#: Figures in the order in which they are met, each with the parameter that it decides; those before it change nothing of it, or little.
DECIDES = {
    "sequential_read": "link_read_rate",
    "sequential_write": "link_write_rate",
    "random_read_iops": "read_latency",
    "random_write_iops": "write_latency",
    "random_read": "read",
    "random_write": "write_latency",
}
#: Rounds of all figures, and the difference at which one is met.
_ROUNDS, _MET = 8, 0.01
#: The difference beyond which figures are taken to contradict each other.
_MOST_MISSED = 0.5
#: Flash of the drive that is tried: a part of a large drive shows the same figures.
_TRIED = 2 << 30
#: Units of values, by what parses them.
_UNITS = {"parse_duration": "ns", "parse_size": "B", "_parse_rate": "B/s"}
_UNITS |= {"parse_energy": "pJ", "parse_power": "mW", "_parse_energy_per_byte": "pJ/B"}
#: Write amplification that the bytes of an endurance are taken to be written with, and its range.
_AMPLIFICATION, _LEAST_AMPLIFICATION, _MOST_AMPLIFICATION = 2, 1, 4


@dataclass(frozen=True)
class DataSheet:
    """Figures of a data sheet; None for what it does not have."""

    #: Figures of `DECIDES` (bytes a second, requests a second, ns), by name.
    shown: Mapping[str, int]
    #: Bytes that the host can address, and that it may write before the drive is worn out.
    capacity: int | None = None
    written: int | None = None
    #: Flash besides the capacity, as a share of it.
    overprovisioning: float | None = None
    #: Power, mW.
    idle: int | None = None
    loaded: int | None = None


@dataclass(frozen=True)
class NewDrive:
    """A drive that shows the figures of a data sheet."""

    preset: Preset
    #: Preset that it comes from.
    base: str
    #: Figures that were asked for, as the drive shows them.
    figures: list[NominalFigure]

    def rows(self) -> list[dict[str, Any]]:
        return [each._asdict() | {"met": abs(each.difference or 0) <= 5 * _MET} for each in self.figures]

    def text(self) -> str:
        comments = [f"Made from {self.base} and the figures of a data sheet. What that does not tell is an estimate, and says so."]
        comments += [
            f"Not met: {each.name}, {each.measured:.4g} instead of {each.cited}: what decides it is bound by other figures."
            for each, row in zip(self.figures, self.rows(), strict=True)
            if not row["met"]
        ]
        return as_toml(document_of(self.preset), comments)


def document_of(preset: Preset) -> dict[str, Any]:
    """A preset as a TOML file has it: of its values those that have a source."""
    document: dict[str, Any] = {"name": preset.name, "kind": preset.kind, "title": preset.title}
    sections = (("parameters", preset.parameters, preset.sources), ("cited", preset.cited, preset.cited_sources))
    for title, values, sources in (*sections, ("energy", preset.energy, preset.energy_sources)):
        names = [field.name for field in fields(values) if field.name in sources] if values else []
        section = {name: {"value": _text(values, name), "source": sources[name]} for name in names}
        document |= {title: section} if section else {}
    return document


def _text(values: Any, name: str) -> Any:
    value, parse = getattr(values, name), {field.name: field for field in fields(values)}[name].metadata["parse"]
    if not parse:
        return value
    unit = _UNITS[parse.__name__]
    return [f"{each}{unit}" for each in value] if isinstance(value, tuple) else f"{value}{unit}"


def new_drive(base: str, name: str, title: str, sheet: DataSheet, progress: Progress | None = None) -> NewDrive:
    """A drive like another one that shows the figures of a data sheet.

    Raises
    ------
    RefusedError
        The other one is no flash drive, or has pages of different times.
    InvalidParameterError
        A figure that no such drive can have, or not beside the others: one that it shows by more than half differently.

    Warns
    -----
    FlashsimWarning
        Of a figure that the drive does not show, as others bind it.
    """
    source = presets.load(base)
    if source.flash is None:
        raise RefusedError(f"base: {source.name} is no flash drive")
    if source.flash.read_pages or source.flash.program_pages:
        raise RefusedError(f"base: pages of {source.name} have times of their own, which one figure does not tell")
    flash = _with_capacity(source.flash, sheet)
    erases = {} if sheet.written is None else {"block_erases": max(1, round(_AMPLIFICATION * sheet.written / _flash_bytes(flash)))}
    cited = build(CitedFigures, dict(sheet.shown) | erases)
    cited_sources = dict.fromkeys(cited.as_dict(), "data sheet")
    preset = replace(source, name=name, title=title, parameters=flash, cited=cited, cited_sources=cited_sources, inside=None)
    shown = list[NominalFigure]()
    for number in range(_ROUNDS):
        shown = _figures_of_sheet(preset, sheet)
        if all(abs(each.difference or 0) <= _MET for each in shown):
            break
        for place, each in enumerate(shown):
            if number < _ROUNDS - 1 and abs(each.difference or 0) > _MET:
                (now,) = _figures_of_sheet(preset, sheet, each.name)
                preset = replace(preset, parameters=_nearer(preset.flash, now))
            if progress:
                progress(number + place / len(shown), _ROUNDS, each.name)
    made = NewDrive(_with_sources(preset, source, sheet), source.name, shown)
    for each, row in zip(shown, made.rows(), strict=True):
        if not row["met"]:
            _complain(each, source.name)
    return made


def _complain(missed: NominalFigure, base: str) -> None:
    """Refuse a figure that a drive is far from, and warn of one that it is not quite at."""
    cited, measured = (show(missed.name, value) for value in (missed.cited or 0, missed.measured))
    if abs(missed.difference or 0) > _MOST_MISSED:
        bound = f"a drive like {base} with the other figures shows {measured}: they contradict each other, or no such drive can have them"
        raise InvalidParameterError(missed.name, cited, bound)
    warnings.warn(f"{missed.name}: {measured} instead of {cited}: what decides it is bound by other figures", FlashsimWarning, stacklevel=3)


def _with_capacity(flash: SsdParameters, sheet: DataSheet) -> SsdParameters:
    """A drive of the sheet's capacity, with as large a share of flash besides, or the sheet's."""
    capacity = sheet.capacity or flash.capacity
    share = flash.effective_overprovisioning if sheet.overprovisioning is None else sheet.overprovisioning
    pages = -(-capacity // flash.unit_size) * (1 + share)
    blocks = round(pages / (flash.pools * flash.slots_per_block)) + flash.gc_reserve + flash.spare_blocks
    try:
        return replace(flash, capacity=capacity, blocks_per_plane=blocks)
    except InvalidParameterError as problem:
        raise InvalidParameterError(
            "capacity", format_size(capacity), f"a drive of {share:.1%} more flash cannot have it: {problem}"
        ) from None


def _flash_bytes(flash: SsdParameters) -> int:
    return flash.good_blocks * flash.pools * flash.slots_per_block * flash.unit_size


def _figures_of_sheet(preset: Preset, sheet: DataSheet, only: str | None = None) -> list[NominalFigure]:
    parts = max(1, min(preset.capacity // _TRIED, most_parts(preset)))
    names = [only] if only else [name for name in DECIDES if name in sheet.shown]
    return figures(part_of(preset, parts) if parts > 1 else preset, names) if names else []


def _nearer(flash: SsdParameters | None, figure: NominalFigure) -> SsdParameters:
    """A drive whose figure is nearer, by the parameter that decides it."""
    assert flash is not None and figure.cited is not None
    ratio, transfer = figure.measured / figure.cited, flash.unit_size * SECONDS // flash.channel_rate + 1
    changes: dict[str, Any] = {}
    match figure.name:
        case "sequential_read":
            changes = {"link_read_rate": max(1, round(flash.link_read_rate / ratio))}
        case "sequential_write" if figure.measured < 0.95 * min(flash.link_write_rate, figure.cited):  # flash is slower than the link
            program = max(1, round((flash.program + transfer) * ratio) - transfer)
            changes = {"program": program, "write_latency": flash.write_latency + program - flash.program}
        case "sequential_write":
            changes = {"link_write_rate": max(1, round(flash.link_write_rate / ratio))}
        case "random_read_iops":
            overhead = flash.read_latency - flash.read - transfer
            changes = {"read_latency": flash.read + transfer + max(1, round(overhead * ratio))}
        case "random_write_iops":
            overhead = flash.write_latency - flash.program - transfer
            changes = {"write_latency": flash.program + transfer + max(1, round(overhead * ratio))}
        case "random_read":
            read = max(1, flash.read + round(figure.cited - figure.measured))
            changes = {"read": read, "read_latency": flash.read_latency + read - flash.read}
        case _:
            changes = {"write_latency": max(flash.program + transfer + 1, flash.write_latency + round(figure.cited - figure.measured))}
    return replace(flash, **changes)


def _with_sources(preset: Preset, source: Preset, sheet: DataSheet) -> Preset:
    """The preset with the source of each value: the data sheet, or an estimate, with the range of all flash drives."""
    flash = preset.flash
    assert flash is not None
    every = [each for name in presets.names() if (each := presets.load(name).flash)]
    of_sheet = {DECIDES[name]: f"what the data sheet's {name.replace('_', ' ')} leaves" for name in sheet.shown}
    of_sheet |= {"program": of_sheet["link_write_rate"]} if flash.program != (source.flash or flash).program else {}
    of_sheet |= {"capacity": "data sheet"} if sheet.capacity else {}
    of_sheet |= {"blocks_per_plane": "data sheet: capacity and over-provisioning"} if sheet.overprovisioning is not None else {}
    shown = {name: text for name, text, _ in describe(flash)}
    sources = {name: of_sheet.get(name) or f"estimate: as {source.name}{_range(every, name)}" for name in shown if name in source.sources}
    cited_sources = dict(preset.cited_sources)
    if sheet.written is not None:
        low, high = (round(share * sheet.written / _flash_bytes(flash)) for share in (_LEAST_AMPLIFICATION, _MOST_AMPLIFICATION))
        written = f"{sheet.written / TB:g} TB written, at a write amplification of {_AMPLIFICATION}"
        cited_sources["block_erases"] = (
            f"estimate: the data sheet's {written}; {low:,} to {high:,} at {_LEAST_AMPLIFICATION} to {_MOST_AMPLIFICATION}"
        )
    energy, energy_sources = preset.energy, dict.fromkeys(preset.energy_sources, f"estimate: as {source.name}")
    if energy and (sheet.idle is not None or sheet.loaded is not None):
        energy = _with_power(energy, sheet)
        energy_sources |= {name: "data sheet" for name in ("idle", "loaded") if getattr(sheet, name) is not None}
    return replace(
        preset, sources=sources, cited_sources=cited_sources, energy=energy, energy_sources=energy_sources, inside_sources={}, notes=()
    )


def _range(drives: list[SsdParameters], name: str) -> str:
    values = [(getattr(each, name), {own: text for own, text, _ in describe(each)}[name]) for each in drives]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value, _ in values):
        return ""
    return f"; flash drives of the presets have {min(values)[1]} to {max(values)[1]}"


def _with_power(energy: EnergyFigures, sheet: DataSheet) -> EnergyFigures:
    idle = energy.idle if sheet.idle is None else sheet.idle
    loaded = energy.loaded if sheet.loaded is None else sheet.loaded
    if loaded <= idle:
        raise InvalidParameterError("active-power", f"{loaded} mW", f"it must be more than the idle drive's, {idle} mW")
    share = (loaded - idle) / (energy.loaded - energy.idle)
    return replace(energy, idle=idle, loaded=loaded, controller=round(energy.controller * share))

"""A drive from the figures of a data sheet: another drive's preset is changed until it shows them."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from flashsim.apps.calibration.disk_changes import disk_like
from flashsim.apps.calibration.energy_figures import energy_like
from flashsim.apps.calibration.flash_changes import FlashChanges, slc_changes, with_capacity, with_chips
from flashsim.apps.calibration.nominal_figures import NominalFigure, figures
from flashsim.core.errors import FlashsimWarning, InvalidParameterError, RefusedError
from flashsim.core.parameters import build, describe
from flashsim.core.preset_files import as_toml
from flashsim.core.protocols import Progress
from flashsim.core.units import KIB, TB
from flashsim.device import presets
from flashsim.device.figures import LONG, CitedFigures, show
from flashsim.device.presets import Preset
from flashsim.device.product import Product
from flashsim.device.scaling import most_parts, part_of
from flashsim.ssd.parameters import SsdParameters

#: Figures of flash drives in the order in which they are met, each with the parameter that decides it; those before it change nothing of
#: it, or little.  Two tell of long writes, and take seconds.
DECIDES = {
    "sequential_read": "link_read_rate",
    "sequential_write": "link_write_rate",
    "random_read_iops": "read_latency",
    "random_write_iops": "write_latency",
    "random_read": "read",
    "random_write": "write_latency",
    "sequential_write_full": "program",
    "steady_write_iops": "blocks_per_plane",
}
#: Rounds of all figures, and of those after long writes; the differences at which one is met, and that beyond which it is said not to be.
_ROUNDS, _LONG_ROUNDS, _MET, _MET_LONG, _MISSED = 12, 6, 0.01, 0.02, 0.03
#: The difference beyond which figures are taken to contradict each other.
_MOST_MISSED = 0.5
#: Flash of the drive that is tried: a part of a large drive shows the same figures.  An SLC cache takes all that is written then.
_TRIED, _TRIED_CACHE = 2 << 30, 4 << 30
#: Units of values, by what parses them.
_UNITS = {"parse_duration": "ns", "parse_size": "B", "_parse_rate": "B/s"}
_UNITS |= {"parse_energy": "pJ", "parse_power": "mW", "_parse_energy_per_byte": "pJ/B"}


@dataclass(frozen=True)
class DataSheet:
    """Figures of a data sheet; None for what it does not have."""

    #: Figures (bytes a second, requests a second, ns), by name: of a flash drive those of `DECIDES`.
    shown: Mapping[str, int]
    #: Bytes that the host can address, and that it may write before the drive is worn out.
    capacity: int | None = None
    written: int | None = None
    #: Flash besides the capacity, as a share of it.
    overprovisioning: float | None = None
    #: Power, mW.
    idle: int | None = None
    loaded: int | None = None
    #: Write amplification of the endurance's workload, and how the data sheet says what may be written, if not as bytes.
    amplification: float = 1.0
    written_as: str = ""
    #: Bytes of an SLC cache (0: none) and of a mapping unit, and commands in the drive at once.
    slc_cache: int | None = None
    mapping_unit: int | None = None
    queue_depth: int | None = None
    #: Of a disk: a revolution, ns, bytes of its cache, and its heads.
    rotation: int | None = None
    cache: int | None = None
    heads: int | None = None
    #: Its year, if the data sheet is of one.
    product: Product = field(default_factory=Product)


@dataclass(frozen=True)
class NewDrive:
    """A drive that shows the figures of a data sheet."""

    preset: Preset
    #: Preset that it comes from.
    base: str
    #: Figures that were asked for, as the drive shows them.
    figures: list[NominalFigure]

    def rows(self) -> list[dict[str, Any]]:
        return [each._asdict() | {"met": abs(each.difference or 0) <= _MISSED} for each in self.figures]

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
    more = (("energy", preset.energy, preset.energy_sources), ("product", preset.product, preset.product_sources))
    for title, values, sources in (*sections, *more):
        names = [each.name for each in fields(values) if each.name in sources] if values else []
        section = {name: {"value": _text(values, name), "source": sources[name]} for name in names}
        document |= {title: section} if section else {}
    return document


def _text(values: Any, name: str) -> Any:
    value, parse = getattr(values, name), {each.name: each for each in fields(values)}[name].metadata["parse"]
    if not parse:
        return value
    unit = _UNITS[parse.__name__]
    return [f"{each}{unit}" for each in value] if isinstance(value, tuple) else f"{value}{unit}"


def new_drive(base: str, name: str, title: str, sheet: DataSheet, progress: Progress | None = None) -> NewDrive:
    """A drive like another one, of flash or a disk, that shows the figures of a data sheet.

    Raises
    ------
    RefusedError
        The other one is neither flash drive nor disk, is zoned, or is a disk that cannot be scaled.
    UnknownNameError
        A figure that a drive of its kind does not have.
    InvalidParameterError
        A figure that no such drive can have, or not beside the others: one that it shows by more than half differently.

    Warns
    -----
    FlashsimWarning
        Of a figure that the drive does not show, as others bind it.
    """
    source = presets.load(base)
    cited = build(CitedFigures, dict(sheet.shown))
    preset = replace(source, name=name, title=title, cited=cited, cited_sources=dict.fromkeys(cited.as_dict(), "data sheet"), inside=None)
    if source.disk is not None:
        disk, reasons = disk_like(source, cited, sheet.capacity, sheet.rotation, sheet.cache, sheet.heads)
        preset = replace(preset, parameters=disk)
        shown = figures(preset, list(cited.as_dict()))
    elif source.flash is not None:
        presets.refuse_zoned(source, "no data sheet tells of its zones")
        preset, reasons, shown = _flash_like(preset, source.flash, source.name, sheet, progress)
    else:
        raise RefusedError(f"base: {source.name} is neither flash drive nor disk")
    made = NewDrive(_with_sources(preset, source, sheet, reasons), source.name, shown)
    for each, row in zip(shown, made.rows(), strict=True):
        if not row["met"]:
            _complain(each, source.name)
    return made


def with_cache(
    preset: Preset, cache: int | None, level: int | None, progress: Progress | None = None
) -> tuple[Preset, dict[str, str], list[NominalFigure]]:
    """A flash drive with an SLC cache of so many bytes (None: as it has) and the rate past it, bytes a second (None: whatever it shows).

    Returns the drive, the source of each parameter that was changed, and the rate as the drive shows it, if one was given.
    """
    sheet = DataSheet({} if level is None else {"sequential_write_full": level}, slc_cache=cache)
    if cache is None and level is None:
        return preset, {}, []
    assert preset.flash is not None
    return _flash_like(replace(preset, cited=build(CitedFigures, dict(sheet.shown))), preset.flash, preset.name, sheet, progress)


def _flash_like(
    preset: Preset, base: SsdParameters, name: str, sheet: DataSheet, progress: Progress | None
) -> tuple[Preset, dict[str, str], list[NominalFigure]]:
    """The drive, the source of each parameter that was changed, and its figures."""
    drive, reasons = _with_sheet(base, sheet)
    preset = replace(preset, parameters=drive)
    changes = FlashChanges(base, name, sheet.shown, sheet.overprovisioning is not None)
    measured = dict[tuple[Any, str], NominalFigure]()

    quick, long = ([each for each in DECIDES if each in sheet.shown and (each in LONG) == where] for where in (False, True))
    rounds = [quick] * _ROUNDS + [long] * _LONG_ROUNDS + [quick] * (_ROUNDS if long else 0)

    def measure(figure: str, number: int) -> NominalFigure:
        key = (preset.parameters, figure)
        if key not in measured:
            if progress:
                progress(number, len(rounds), figure.replace("_", " "))
            measured[key] = _figure(preset, figure)
        return measured[key]

    for number, names in enumerate(rounds):
        for each in names:
            now, flash = measure(each, number), preset.flash
            if flash is not None and abs(now.difference or 0) > (_MET_LONG if each in LONG else _MET):
                preset = replace(preset, parameters=changes.nearer(flash, now))
    return preset, reasons | changes.reasons, [measure(each, len(rounds)) for each in (*quick, *long)]


def _with_sheet(flash: SsdParameters, sheet: DataSheet) -> tuple[SsdParameters, dict[str, str]]:
    """The drive with what the data sheet says of itself, and the sources of that."""
    reasons, changes = dict[str, str](), dict[str, Any]()
    if sheet.mapping_unit:
        changes, reasons = {"mapping_unit": sheet.mapping_unit}, {"mapping_unit": "data sheet"}
        if sheet.mapping_unit > 4 * KIB and not flash.code_word:
            changes["code_word"], reasons["code_word"] = 4 * KIB, "estimate: so that a short read transfers no whole unit"
        flash = with_chips(flash, **changes)
    if sheet.queue_depth:
        flash = replace(flash, queue_depth=sheet.queue_depth, queues=1, command_slots=0, slot_order="turns", command_slot=4 * KIB)
        reasons["queue_depth"] = "data sheet"
    share = flash.effective_overprovisioning if sheet.overprovisioning is None else sheet.overprovisioning
    changes, more = ({}, {}) if sheet.slc_cache is None else slc_changes(flash, sheet.slc_cache)
    if not changes.get("slc_cache", flash.slc_cache) and "sequential_write_full" in sheet.shown:
        raise RefusedError("write_mbps_after: there is no SLC cache, whose size is needed")
    more |= {"capacity": "data sheet"} if sheet.capacity else {}
    more |= {} if sheet.overprovisioning is None else {"blocks_per_plane": "data sheet: capacity and over-provisioning"}
    return with_capacity(flash, sheet.capacity or flash.capacity, share, **changes), reasons | more


def _complain(missed: NominalFigure, base: str) -> None:
    """Refuse a figure that a drive is far from, and warn of one that it is not quite at."""
    cited, measured = (show(missed.name, value) for value in (missed.cited or 0, missed.measured))
    if abs(missed.difference or 0) > _MOST_MISSED:
        bound = f"a drive like {base} with the other figures shows {measured}: they contradict each other, or no such drive can have them"
        raise InvalidParameterError(missed.name, cited, bound)
    warnings.warn(f"{missed.name}: {measured} instead of {cited}: what decides it is bound by other figures", FlashsimWarning, stacklevel=3)


def _figure(preset: Preset, name: str) -> NominalFigure:
    """A figure of a drive; quick ones of a part of it."""
    flash, parts = preset.flash, 1
    if flash is not None and name not in LONG:
        tried = _TRIED if not flash.slc_cache else preset.capacity * _TRIED_CACHE // flash.slc_cache
        parts = max(1, min(preset.capacity // tried, most_parts(preset)))
    return figures(part_of(preset, parts) if parts > 1 else preset, [name])[0]


def _with_sources(preset: Preset, source: Preset, sheet: DataSheet, reasons: dict[str, str]) -> Preset:
    """The preset with the source of each value: the data sheet, or an estimate, with the range of all drives of its kind."""
    met = {DECIDES[name]: f"data sheet's {name.replace('_', ' ')}" for name in sheet.shown if name in DECIDES}
    of_sheet = {name: f"estimate: as {source.name}, with which the {figure} is met" for name, figure in met.items()} | reasons
    every = [each.parameters for name in presets.names() if (each := presets.load(name)).kind == source.kind]
    kind, plain = ("flash drives", preset.flash) if preset.flash else ("disks", preset.disk)
    defaults = {each.name: each.default for each in fields(preset.parameters)}
    sources = {}
    for name, _, _ in describe(preset.parameters):
        value = getattr(plain, name)
        if value == defaults[name] and value != getattr(source.parameters, name):  # switched off
            continue
        if name in source.sources or name in reasons:
            sources[name] = of_sheet.get(name) or f"estimate: as {source.name}{_range(every, name, kind)}"
    preset = replace(
        preset, sources=sources, energy_sources={}, inside_sources={}, notes=(), product=sheet.product,
        product_sources={"year": "data sheet"} if sheet.product.year else {},
    )  # fmt: skip
    if preset.flash is None:
        return preset
    cited, cited_sources = preset.cited, dict(preset.cited_sources)
    if sheet.written is not None:
        size = preset.flash.good_blocks * preset.flash.pools * preset.flash.slots_per_block * preset.flash.unit_size
        cited = replace(cited, block_erases=max(1, round(sheet.amplification * sheet.written / size)))
        written = f"{sheet.written / TB:g} TB written{sheet.written_as}"
        cited_sources["block_erases"] = f"data sheet: {written}, over all flash, at a write amplification of {sheet.amplification:g}"
    energy, energy_sources = energy_like(preset.flash, source, sheet.idle, sheet.loaded)
    return replace(preset, cited=cited, cited_sources=cited_sources, energy=energy, energy_sources=energy_sources)


def _range(drives: list[Any], name: str, kind: str) -> str:
    values = [(getattr(each, name), {own: text for own, text, _ in describe(each)}[name]) for each in drives]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value, _ in values):
        return ""
    return f"; {kind} of the presets have {min(values)[1]} to {max(values)[1]}"

"""Device presets: a TOML file a device, in which every value says where it comes from.

::

    name = "ocz-core-60gb"
    kind = "ssd"
    title = "OCZ Core Series 60 GB"
    [product]
    year = { value = 2008, source = "comptoir-hardware.com, 26 Sept 2008" }
    [parameters]
    read = { value = "20us", source = "do2009 slides, page 29" }
    [cited]
    sequential_read = { value = "120MB/s", source = "do2009, table 2" }
    [energy]
    idle = { value = "60mW", source = "data sheet" }

`[product]` (optional) says when the drive came to market and what its cells are (`flashsim.device.product`), `[cited]` (optional) names
figures that the drive shows when it is measured, and what it lasts (`flashsim.device.figures`), `[energy]` (optional, of an SSD) what it
takes in energy (`flashsim.ssd.energy`), `[inside]` (optional, of an SSD) what runs programs in it (`flashsim.device.smart.inside`),
`[array]` (optional, of a disk) how many of them make one device (`flashsim.device.striped`).
"""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, RefusedError, UnknownNameError, printable
from flashsim.core.parameters import build
from flashsim.core.preset_files import PresetFolder, check_members
from flashsim.core.request import SECTOR
from flashsim.device.figures import CitedFigures, Nominal, nominal_of
from flashsim.device.product import Product, origin_of
from flashsim.device.smart import inside as insides
from flashsim.device.smart.inside import Inside
from flashsim.device.station import StationParameters
from flashsim.device.striped import Striping
from flashsim.hdd.diskspecs import drive as diskspecs
from flashsim.hdd.parameters import HddParameters
from flashsim.ssd.energy import EnergyFigures
from flashsim.ssd.parameters import SsdParameters

_FOLDER = PresetFolder(Path(__file__).parent / "presets", "device preset")
_ZONED = PresetFolder(_FOLDER.path / "zoned", _FOLDER.kind)
_KINDS: dict[str, type[HddParameters | SsdParameters | StationParameters]] = {
    "hdd": HddParameters,
    "ssd": SsdParameters,
    "station": StationParameters,
}


@dataclass(frozen=True)
class Preset:
    """A device's parameters, the figures that it is meant to show and its energies (None: not known), and the source of each as text.

    `notes` say what a description of the device tells that the parameters cannot.  With an `array`, it is several such drives.
    """

    name: str
    kind: str
    title: str
    parameters: HddParameters | SsdParameters | StationParameters
    sources: dict[str, str]
    cited: CitedFigures = field(default_factory=CitedFigures)
    cited_sources: dict[str, str] = field(default_factory=dict)
    energy: EnergyFigures | None = None
    energy_sources: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    array: Striping | None = None
    array_sources: dict[str, str] = field(default_factory=dict)
    inside: Inside | None = None
    inside_sources: dict[str, str] = field(default_factory=dict)
    product: Product = field(default_factory=Product)
    product_sources: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.array:
            self.array.check(self.sector_size, self.parameters.capacity)

    @property
    def capacity(self) -> int:
        """Bytes that the host can address; of an array those of all its drives."""
        each = self.parameters.capacity
        return self.array.capacity(each) if self.array else each

    @property
    def disk(self) -> HddParameters | None:
        """The parameters of a hard disk; None of any other drive."""
        return self.parameters if isinstance(self.parameters, HddParameters) else None

    @property
    def flash(self) -> SsdParameters | None:
        """The parameters of a flash drive; None of any other."""
        return self.parameters if isinstance(self.parameters, SsdParameters) else None

    @property
    def lifetime_erases(self) -> int:
        """Erases that the blocks of a flash drive last together; 0 where the preset does not say it."""
        each = self.flash.endurance or self.cited.block_erases or 0 if self.flash else 0
        return each * self.flash.good_blocks * self.flash.pools if self.flash else 0

    @property
    def cells(self) -> str:
        """The cells of a flash drive, such as TLC, or how a disk records, such as PMR; empty where the preset does not say it."""
        return self.product.cells or (self.flash.cell.upper() if self.flash and self.flash.cell != "none" else "")

    @property
    def origin(self) -> str:
        """Whether the drive is identified, measured, fitted, sourced or estimated (`flashsim.device.product.origin_of`)."""
        return origin_of(self.sources.values(), [source for name, source in self.cited_sources.items() if name != "block_erases"])

    @property
    def sector_size(self) -> int:
        return self.disk.sector_size if self.disk else SECTOR

    @property
    def nominal(self) -> Nominal:
        """Seek, latency and rates at first sight."""
        return nominal_of(self.parameters)


def names(*, zoned: bool = False) -> list[str]:
    """Names of the presets that take writes anywhere; if asked for, of zoned drives too."""
    return sorted(_FOLDER.names() + _ZONED.names()) if zoned else _FOLDER.names()


def refuse_zoned(preset: Preset, instead: str) -> None:
    """Refuse a zoned drive, before what would write at any place begins; say what can be done `instead`."""
    if preset.flash is not None and preset.flash.zone_size:
        raise RefusedError(f"device: {preset.name} is zoned, and takes writes in order only; " + instead)


def load(name: str) -> Preset:
    """The preset of that name, or in the TOML file at that path, or the drive that DiskSim's files there describe (``.parv``).

    Raises UnknownNameError: no preset has that name; close ones are suggested; MissingFileError: there is no file at that path;
    DamagedFileError: the file is no TOML or not a preset; InvalidParameterError: a value is missing or out of bounds; RefusedError: a value
    names a Python file (see `flashsim.core.preset_files.check_members`).
    """
    if name.endswith(diskspecs.ENDINGS):
        drive = diskspecs.read(Path(name))
        return dataclasses.replace(from_document(drive.document(Path(name).stem), Path(name)), notes=drive.notes)
    path, document = (_ZONED if name in _ZONED.names() else _FOLDER).read(name)
    return from_document(document, path)


def from_document(document: dict[str, Any], path: Path) -> Preset:
    """The preset that the content of a TOML file describes; errors name it as `path`."""
    titles = ("parameters", "cited", "energy", "array", "inside", "product")
    sections = {title: _section(document, title, path) if title in document or title == "parameters" else {} for title in titles}
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UnknownNameError(f"device preset {path.name}: kind", str(kind), _KINDS)
    for title in ("energy", "inside"):
        if sections[title] and kind != "ssd":
            raise DamagedFileError(f"device preset: {path} has [{title}], but a drive of kind {kind} has none")
    if sections["array"] and kind != "hdd":
        raise DamagedFileError(f"device preset: {path} has [array], but only disks are striped")
    values = {title: {name: entry["value"] for name, entry in section.items()} for title, section in sections.items()}
    sources = {title: {name: printable(str(entry["source"])) for name, entry in section.items()} for title, section in sections.items()}
    check_members(f"device preset {path.name}", values["parameters"])
    try:
        parameters = build(_KINDS[kind], values["parameters"])
        cited = build(CitedFigures, values["cited"])
        energy = build(EnergyFigures, values["energy"]) if "energy" in document else None
        array = build(Striping, values["array"]) if sections["array"] else None
        inside = build(Inside, values["inside"]) if "inside" in document else None
        product = build(Product, values["product"])
        if inside and isinstance(parameters, SsdParameters):
            insides.check(inside, parameters)
    except FlashsimError as problem:
        problem.args = (f"device preset {path.name}: " + problem.message,)
        raise
    title, name = _text(document, "title", "", path), _text(document, "name", path.stem, path)
    own, *others = (sources[section] for section in titles)
    return Preset(
        name, kind, title, parameters, own, cited, others[0], energy, others[1],
        array=array, array_sources=others[2], inside=inside, inside_sources=others[3],
        product=product, product_sources=others[4],
    )  # fmt: skip


def _text(document: dict[str, Any], key: str, default: str, path: Path) -> str:
    value = document.get(key, default)
    if not isinstance(value, str):
        raise InvalidParameterError(f"device preset {path.name}: {key}", repr(value), "it must be a text")
    return printable(value)


def _section(document: dict[str, Any], title: str, path: Path) -> dict[str, dict[str, Any]]:
    section = document.get(title)
    if not isinstance(section, dict):
        raise DamagedFileError(f"device preset: {path} has no [{title}]")
    for name, entry in section.items():
        if not isinstance(entry, dict) or not {"value", "source"} <= entry.keys():
            raise DamagedFileError(f"device preset: {path}: {name} must be given as {{ value = ..., source = ... }}")
    return section

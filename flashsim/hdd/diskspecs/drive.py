"""A drive described by DiskSim's parameter files, as the values of `flashsim.hdd.parameters` and where each stands."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashsim.core.errors import DamagedFileError, FlashsimError, RefusedError, UnknownNameError, option
from flashsim.core.parameters import build
from flashsim.hdd.diskspecs import controller, grammar, model
from flashsim.hdd.diskspecs.block import SECTOR, Block, Collection
from flashsim.hdd.parameters import HddParameters

#: Endings of the names of files that `read` takes.
ENDINGS = (".parv", ".diskspecs")
#: Kinds of devices that are no disk drive with a mechanism.
_OTHER_DEVICES = ("disksim_simpledisk", "memsmodel_mems", "ssdmodel_ssd", "disksim_cachedev")


@dataclass(frozen=True)
class ImportedDrive:
    """Values and sources by parameter, and what the files say that the parameters cannot; `name` is the drive's name in the files."""

    name: str
    values: dict[str, Any]
    sources: dict[str, str]
    notes: tuple[str, ...]
    files: tuple[Path, ...]

    def document(self, name: str) -> dict[str, Any]:
        """The content of a preset file of that name (`flashsim.device.presets`)."""
        values = {parameter: {"value": value, "source": self.sources[parameter]} for parameter, value in self.values.items()}
        return {"name": name, "kind": "hdd", "title": f"{self.name}, as described for DiskSim", "parameters": values}


def read(path: Path, disk: str | None = None) -> ImportedDrive:
    """The drive in a ``.parv`` or ``.diskspecs`` file, with the files that it names; `disk` is which, where the file has several kinds."""
    document = grammar.read(path)
    drive, buses = _drive_of(document, path, disk)
    collection = Collection()
    collection.put("sector_size", f"{SECTOR}B", "DiskSim's blocks")
    disk_model = drive.child("Model", "dm_disk")
    model.collect(disk_model, tuple(dict.fromkeys((disk_model.at.path.parent, path.parent))), collection)
    controller.collect(drive, buses, collection)
    promised = disk_model.whole("Block count", 0, least=0)
    disk_model.refuse_unread(("Number of cylinders",))
    try:
        parameters = build(HddParameters, collection.values | {"capacity": 0})
    except FlashsimError as problem:
        problem.args = (f"{path}: " + problem.message,)
        raise
    collection.put("capacity", f"{parameters.sectors * SECTOR}B", f"derived from {collection.sources['zones']}")
    if promised and promised != parameters.sectors:
        note = f"{disk_model.place('Block count')} = {promised}: the zones hold {parameters.sectors} blocks, which are taken"
        collection.notes.append(note)
    order = [field.name for field in dataclasses.fields(HddParameters) if field.name in collection.values]
    values, sources = ({name: table[name] for name in order} for table in (collection.values, collection.sources))
    return ImportedDrive(drive.name, values, sources, tuple(collection.notes), (*document.files, *collection.files))


def _drive_of(document: grammar.Document, path: Path, name: str | None) -> tuple[Block, tuple[Block, ...]]:
    """The only drive, or the one called `name`, and the buses between it and the host, outermost first (none where no topology is told)."""
    blocks = {block.name: block for block in document.blocks if block.name}

    def block_of(component: grammar.Component) -> Block:
        kind = document.instances.get(component.name)
        if kind is None:
            raise DamagedFileError(f"{component.kind.at}: the topology names {component.name}, which is not instantiated")
        if kind.text not in blocks:
            raise DamagedFileError(f"{kind.at}: {component.name} is instantiated as {kind.text}, but there is no such block")
        return blocks[kind.text]

    buses = {
        block_of(component).name: tuple(block_of(each) for each in component.above if each.kind.text == "disksim_bus")
        for component in document.topology
        if component.kind.text == "disksim_disk"
    }
    disks = {block.name: block for block in document.blocks if block.kind == "disksim_disk" and (not buses or block.name in buses)}
    if name is not None and name not in disks:
        raise UnknownNameError(f"{path}: drive", name, list(disks))
    if not disks:
        others = sorted({block.kind for block in document.blocks if block.kind in _OTHER_DEVICES})
        raise RefusedError(f"{path}: it describes no drive (disksim_disk){', but ' + ', '.join(others) if others else ''}")
    if name is None and len(disks) > 1:
        raise RefusedError(f"{path}: it has {len(disks)} kinds of drives; take one of {', '.join(disks)} with " + option("disk"))
    drive = disks[name or next(iter(disks))]
    return drive, buses.get(drive.name, ())

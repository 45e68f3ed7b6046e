"""A drive described by DiskSim's parameter files, as the values of `flashsim.hdd.parameters` and where each stands."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashsim.core.errors import FlashsimError
from flashsim.core.parameters import build
from flashsim.hdd.diskspecs import controller, layout, mechanics, system
from flashsim.hdd.diskspecs.collected import SECTOR, Collected
from flashsim.hdd.parameters import HddParameters

#: How the names of files end that `read` takes.
ENDINGS = (".parv", ".diskspecs")


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
    """The drive in a ``.parv`` or ``.diskspecs`` file, with the files that it names.

    Parameters
    ----------
    path
        The file.
    disk
        Which drive, where the file has several kinds.
    """
    chosen = system.find(path, disk)
    found = Collected()
    model = chosen.disk.child("Model", "dm_disk")
    found.put("sector_size", f"{SECTOR}B", "DiskSim's blocks")
    folders = tuple(dict.fromkeys((model.at.path.parent, path.parent)))
    mechanics.collect(model, folders, found)
    layout.collect(model, found)
    controller.collect(chosen.disk, chosen.buses, found)
    promised = model.whole("Block count", 0, least=0)
    model.refuse_unread(("Number of cylinders",))
    try:
        parameters = build(HddParameters, found.values | {"capacity": 0})
    except FlashsimError as problem:
        problem.args = (f"{path}: {problem}",)
        raise
    found.put("capacity", f"{parameters.sectors * SECTOR}B", f"derived from {found.sources['zones']}")
    if promised and promised != parameters.sectors:
        found.notes.append(f"{model.place('Block count')} = {promised}: the zones hold {parameters.sectors} blocks, which are taken")
    order = [field.name for field in dataclasses.fields(HddParameters) if field.name in found.values]
    values = {name: found.values[name] for name in order}
    files = (*chosen.files, *found.files)
    return ImportedDrive(chosen.disk.name, values, {name: found.sources[name] for name in order}, tuple(found.notes), files)

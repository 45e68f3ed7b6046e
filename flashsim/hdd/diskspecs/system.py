"""Which drive a parameter file is about, and the buses between it and the host."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flashsim.core.errors import DamagedFileError, RefusedError, UnknownNameError
from flashsim.hdd.diskspecs.block import Block
from flashsim.hdd.diskspecs.libparam import Component, Document, read

#: Kinds of devices that are no disk drive with a mechanism.
_OTHER_DEVICES = ("disksim_simpledisk", "memsmodel_mems", "ssdmodel_ssd", "disksim_cachedev")


@dataclass(frozen=True)
class System:
    """A drive, and the buses that its data pass on their way to the host, outermost first (none where the file tells no topology)."""

    disk: Block
    buses: tuple[Block, ...]
    files: tuple[Path, ...]


def find(path: Path, name: str | None = None) -> System:
    """The drive of a ``.parv`` or ``.diskspecs`` file; of several kinds, the one called `name`."""
    document = read(path)
    blocks = {block.name: block for block in document.blocks if block.name}
    chains = dict(_attached(document, blocks))
    disks = [block for block in document.blocks if block.kind == "disksim_disk" and (not chains or block.name in chains)]
    names = list(dict.fromkeys(disk.name for disk in disks))
    if name is not None and name not in names:
        raise UnknownNameError(f"{path}: drive", name, names)
    if not disks:
        others = sorted({block.kind for block in document.blocks if block.kind in _OTHER_DEVICES})
        raise RefusedError(f"{path}: it describes no drive (disksim_disk){', but ' + ', '.join(others) if others else ''}")
    if name is None and len(names) > 1:
        raise RefusedError(f"{path}: it has {len(names)} kinds of drives; take one of {', '.join(names)} with --disk")
    disk = next(block for block in disks if block.name == (name or names[0]))
    return System(disk, chains.get(disk.name, ()), tuple(document.files))


def _attached(document: Document, blocks: dict[str, Block]) -> Iterator[tuple[str, tuple[Block, ...]]]:
    for top in document.topology:
        for component, above in _walk(top, ()):
            if component.kind == "disksim_disk":
                buses = tuple(_block(bus, document, blocks) for bus in above if bus.kind == "disksim_bus")
                yield _block(component, document, blocks).name, buses


def _walk(component: Component, above: tuple[Component, ...]) -> Iterator[tuple[Component, tuple[Component, ...]]]:
    yield component, above
    for below in component.below:
        yield from _walk(below, (*above, component))


def _block(component: Component, document: Document, blocks: dict[str, Block]) -> Block:
    kind = document.instances.get(component.name)
    if kind is None:
        raise DamagedFileError(f"{component.at}: the topology names {component.name}, which is not instantiated")
    if kind.text not in blocks:
        raise DamagedFileError(f"{kind.at}: {component.name} is instantiated as {kind.text}, but there is no such block")
    return blocks[kind.text]

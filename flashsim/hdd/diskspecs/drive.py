"""A drive described by DiskSim's parameter files, as the values of `flashsim.hdd.parameters` and where each stands.

Bus, controller, buffer and queue (``disksim_disk``) are read here, and the rest by `flashsim.hdd.diskspecs.model`.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashsim.core.errors import DamagedFileError, FlashsimError, RefusedError, UnknownNameError, option
from flashsim.core.parameters import build
from flashsim.hdd.diskspecs import grammar, model
from flashsim.hdd.diskspecs.block import SECTOR, Block, Collection, milliseconds
from flashsim.hdd.parameters import HddParameters

ENDINGS = (".parv", ".diskspecs")  #: Endings of the names of files that `read` takes.
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
    _collect_controller(drive, buses, collection)
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


#: DiskSim's numbers of scheduling policies; by block number and by cylinder are told apart there, not here.
_SCHEDULERS = {1: "fcfs", 2: "look", 3: "c-look", 4: "sstf", 5: "look", 6: "c-look", 7: "sstf", 8: "sptf"}
_BOUNDS = {1: "track", 2: "cylinder", 3: "none", 4: "next-track"}
#: DiskSim lets a drive that gives the bus away before the data of a write begin once it has so many blocks, whatever the water mark says.
_EXTRA_DISCONNECT_BLOCKS = 10
#: Larger buffers and queues are no drive's: 1 GiB a segment.
_MOST_BLOCKS, _MOST_SEGMENTS, _MOST_COMMANDS = 2**21, 2**16, 2**16

_OVERHEADS = {
    **{
        f"{way}_{kind}_after_{before}": f"{way.title()} {kind} over. after {before}"
        for way in ("read", "write")
        for kind in ("hit", "miss")
        for before in ("read", "write")
    },
    "data_preparation": "Data preparation overhead",
    "complete_read": "Read completion overhead",
    "complete_write": "Write completion overhead",
    "extra_command": "Extradisc command overhead",
    "extra_disconnect_first": "Extradisc disconnect overhead",
    "extra_pause": "Extradisc inter-disconnect delay",
    "extra_disconnect_second": "Extradisc 2nd disconnect overhead",
    "extra_seek_delay": "Extradisc seek delta",
    "write_move": "Minimum seek delay",
}
#: Times that a drive does not take which never gives the bus away.
_SHARING = {
    "reselect_first": "First reselect overhead",
    "reselect_other": "Other reselect overhead",
    "disconnect_read_after_read": "Read disconnect afterread",
    "disconnect_read_after_write": "Read disconnect afterwrite",
    "disconnect_write": "Write disconnect overhead",
}
#: Keys whose effect the model has in one way only: the value for that, and the effect instead of any other.
_ONE_WAY = {
    "Allow sneaky partial read hits": (0, "hits in part are not served while another request is under way"),
    "Allow sneaky intermediate read hits": (0, "hits are not served in the pauses of another request"),
    "Allow write prebuffering": (0, "the data of the next write wait for the request before it"),
    "Preseeking level": (0, "the arm starts for a request when the one before is complete"),
    "Immediate buffer read": (0, "a track is read from the first sector that was asked for"),
    "Immediate buffer write": (0, "a track is written from the first sector that was sent"),
    "Combine seq writes": (1, "writes that continue each other are combined"),
    "Disconnect write if seek": (0, "the bus is kept while the arm moves for a write"),
    "Write hit stop prefetch": (1, "a write stops read-ahead"),
    "Read directly to buffer": (1, "what the host waits for is read straight into the buffer"),
    "Maximum number of write segments": (1, "one segment holds written data"),
}
_BUFFER_SWITCHES = {
    "read_ahead_on_hit": "Read-ahead on idle hit",
    "read_ahead_again": "Read-ahead on idle hit",
    "next_hits": "Allow almost read hits",
    "partial_hits": "Immed transfer partial hit",
    "hits_while_writing": "Allow sneaky full read hits",
    "read_preceding": "Read any free blocks",
    "read_written": "Allow read hits on write data",
}
#: Nothing follows from these: statistics, how DiskSim computes, effects below a sector, and what is derived from the layout.
_HARMLESS = ("Print stats", "Calc sector by sector", "Stop prefetch in sector", "Avg sectors per cylinder")
_HARMLESS_IN_QUEUE = (
    "Cylinder mapping strategy", "Write initiation delay", "Read initiation delay", "Maximum concat size",
    "Sequential stream diff maximum", "Timeout time/weight", "Timeout scheduling", "Priority scheduling",
)  # fmt: skip


def _collect_controller(disk: Block, buses: Sequence[Block], collection: Collection) -> None:
    """Take everything but the model of a ``disksim_disk`` block, and the buses that it hangs on."""
    scale = disk.number("Time scale for overheads", 1.0, least=0)
    _collect_bus(disk, buses, collection)
    _collect_times(disk, scale, collection)
    _collect_transfers(disk, collection)
    _collect_buffer(disk, collection)
    _collect_queue(disk, collection)
    for key, (neutral, instead) in _ONE_WAY.items():
        collection.note_unless(disk, key, neutral, f"in the model {instead}")
    disk.refuse_unread(_HARMLESS)


def _collect_bus(disk: Block, buses: Sequence[Block], collection: Collection) -> None:
    for name, key in (("bus_read", "Read block transfer time"), ("bus_write", "Write block transfer time")) if buses else ():
        time, slowest = max(((bus.number(key, 0.0, least=0), bus) for bus in buses), key=lambda pair: pair[0])
        collection.take(name, milliseconds(time), slowest, key)
    if not buses:
        collection.notes.append(f"{disk.at.short}: no bus is known to this drive, so that none holds it up (a .parv file has one)")
    key = "Bulk sector transfer time"
    bulk = disk.number(key, 0.0)
    if bulk < 0:
        collection.notes.append(f"{disk.place(key)} = {bulk:g}: taken as 0")
    collection.take("bulk_transfer", milliseconds(max(0.0, bulk)), disk, key)


def _collect_times(disk: Block, scale: float, collection: Collection) -> None:
    for name, key in (_OVERHEADS | ({} if disk.switch("Never disconnect") else _SHARING)).items():
        collection.take_time(name, disk, key, scale)
    for key in _SHARING.values():
        disk.number(key, 0.0)
    key = "Per-request overhead time"
    overhead = milliseconds(disk.number(key, 0.0, least=0) * scale)
    if overhead == "0ms":
        collection.take("overhead", "1ns", disk, key, "; the model needs one")
    else:
        collection.take("overhead", overhead, disk, key)
    collection.take("extra_disconnect", disk.switch("Extra write disconnect"), disk, "Extra write disconnect")


def _collect_transfers(disk: Block, collection: Collection) -> None:
    """Times for which the bus is held, and the share of data with which a transfer, or a write to the media, begins."""
    keeps, extra = disk.switch("Never disconnect"), disk.switch("Extra write disconnect")
    hold_reads, hold_writes = (disk.switch(f"Hold bus entire {way} xfer") for way in ("read", "write"))
    collection.take("hold_reads", keeps or hold_reads, disk, "Never disconnect" if keeps else "Hold bus entire read xfer")
    high, low = (disk.number(key, 0.0, 0, 1) for key in ("High (read) water mark", "Low (write) water mark"))
    by_request = disk.switch("Set watermark by reqsize", True)
    segment = disk.whole("Segment size (in blks)", None, 1, _MOST_BLOCKS)
    if keeps:
        collection.take("read_start", 0.0, disk, "Never disconnect")
    elif by_request:
        collection.take("read_start", high, disk, "High (read) water mark")
    else:
        collection.take("read_start_least", max(1, math.ceil(high * segment)), disk, "High (read) water mark", " of a segment")
    if extra:
        collection.take("write_start", 1.0, disk, "Extra write disconnect")
        rule = ": DiskSim's own rule for such drives"
        collection.take("write_start_most", _EXTRA_DISCONNECT_BLOCKS, disk, "Extra write disconnect", rule)
    elif hold_writes:
        collection.take("write_start", 1.0, disk, "Hold bus entire write xfer")
    else:
        collection.take("write_start", low, disk, "Low (write) water mark")
        if not by_request and low:
            collection.notes.append(f"{disk.place('Set watermark by reqsize')} = 0: the write water mark counts by the request")


def _collect_buffer(disk: Block, collection: Collection) -> None:
    segment = disk.whole("Segment size (in blks)", None, 1, _MOST_BLOCKS)
    count = disk.whole("Number of buffer segments", None, 1, _MOST_SEGMENTS)
    caching = disk.whole("Enable caching in buffer", 1, 0, 2)
    ahead = disk.whole("Buffer continuous read", 0, 0, 4) * bool(caching)
    most, least = (disk.whole(f"{which} read-ahead (blks)", 0, 0, _MOST_BLOCKS) for which in ("Maximum", "Minimum"))
    own = disk.switch("Use separate write segment") and count > 1
    fast = disk.whole("Fast write level", 0, 0, 2)
    size = min(most, segment) or segment
    blocks = [
        ("read_ahead", size if ahead else 0, "Maximum read-ahead (blks)" if ahead else "Buffer continuous read"),
        *([("read_ahead_least", min(least, size), "Minimum read-ahead (blks)")] if ahead else []),
        ("segment_size", segment, "Segment size (in blks)"),
        ("write_behind", segment if fast and caching else 0, "Fast write level"),
    ]
    for name, number, key in blocks:
        collection.take(name, f"{number * SECTOR}B", disk, key)
    if ahead:
        collection.take("read_ahead_bound", _BOUNDS[ahead], disk, "Buffer continuous read")
    collection.take("segments", count - own, disk, "Number of buffer segments")
    collection.take("own_write_segment", own, disk, "Use separate write segment")
    collection.take("keep_read", disk.whole("Read-ahead over requested", 0, -1, 1) != 1, disk, "Read-ahead over requested")
    for name, key in _BUFFER_SWITCHES.items():
        collection.take(name, disk.switch(key), disk, key)


def _collect_queue(disk: Block, collection: Collection) -> None:
    collection.take("queue_depth", max(1, disk.whole("Max queue length", 1, 0, _MOST_COMMANDS)), disk, "Max queue length")
    if not disk.has("Scheduler"):
        return
    queue = disk.child("Scheduler", "disksim_ioqueue")
    policy = queue.whole("Scheduling policy", 1, least=0)
    if policy not in _SCHEDULERS:
        collection.notes.append(f"{queue.place('Scheduling policy')} = {policy}: not modelled; requests are served as they come")
    collection.take("scheduler", _SCHEDULERS.get(policy, "fcfs"), queue, "Scheduling policy")
    for key in ("Sequential stream scheme", "Overlapping request scheme", "Scheduling timeout scheme", "Scheduling priority scheme"):
        collection.note_unless(queue, key, 0, "in the model the queue has no such rule")
    queue.refuse_unread(_HARMLESS_IN_QUEUE)

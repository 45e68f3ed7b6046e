"""Arm, spindle and layout of sectors: DiskSim's ``dm_disk``, its ``dm_mech_g1`` and ``dm_layout_g1``, in the words of `hdd.parameters`."""

import re
from pathlib import Path

from flashsim.core.errors import DamagedFileError, InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.core.input_files import read_text
from flashsim.core.units import MINUTES
from flashsim.hdd.description import HEAD_ORDERS, SPARING
from flashsim.hdd.diskspecs.block import Block, Collection, SourcePlace, milliseconds

#: More cylinders are no drive's.
_MOST_CYLINDERS = 10_000_000
_SEEK_TYPES = ("extracted", "hpl", "hplplus10", "curve", "linear", "constant")
_ACCESS_TYPES = ("trackSwitchPlusRotation", "averageRotation")
_SEEK_TIMES = ("Single cylinder seek time", "Average seek time", "Full strobe seek time")
_FORMULA, _FIRST, _CURVE, _CONSTANT = "HPL seek equation values", "First ten seek times", "Full seek curve", "Constant seek time"


def collect(model: Block, folders: tuple[Path, ...], collection: Collection) -> None:
    """Take the mechanics and the layout of a ``dm_disk`` block; seek files lie in one of some folders."""
    _collect_mechanics(model.child("Mechanical Model", "dm_mech_g1"), model, folders, collection)
    _collect_layout(model.child("Layout Model", "dm_layout_g1"), collection)


def _collect_mechanics(mechanics: Block, model: Block, folders: tuple[Path, ...], collection: Collection) -> None:
    rpm = mechanics.number("Rotation speed (in rpms)", least=1, most=1_000_000)
    collection.take("rotation", f"{round(MINUTES / rpm)}ns", mechanics, "Rotation speed (in rpms)", f" = {rpm:g}")
    collection.take("heads", model.whole("Number of data surfaces", None, 1, 1000), model, "Number of data surfaces")
    collection.take("head_switch", milliseconds(mechanics.number("Head switch time", 0.0, 0.0)), mechanics, "Head switch time")
    settle = "Add. write settling delay"
    collection.take("write_settle", milliseconds(mechanics.number(settle, 0.0)), mechanics, settle)
    access = mechanics.word("Access time type", "trackSwitchPlusRotation")
    if access not in _ACCESS_TYPES:
        raise UnknownNameError(f"{mechanics.entries['Access time type'].at}: Access time type", access, _ACCESS_TYPES)
    if access == "averageRotation":
        collection.notes.append(f"{mechanics.place('Access time type')} = {access}: the model tracks the rotation nevertheless")
    if mechanics.number("Percent error in rpms", 0.0):
        collection.notes.append(f"{mechanics.place('Percent error in rpms')}: the model turns at the nominal speed")
    _collect_seeks(mechanics, model, folders, collection)
    mechanics.refuse_unread((*_SEEK_TIMES, _FORMULA, _FIRST, _CURVE, _CONSTANT, "Constant access time"))


def _collect_seeks(mechanics: Block, model: Block, folders: tuple[Path, ...], collection: Collection) -> None:
    kind = mechanics.word("Seek type")
    remark = f" = {kind}"
    if kind == "extracted":
        _collect_curve(mechanics, folders, collection)
    elif kind in ("hpl", "hplplus10"):
        _collect_formula(mechanics, kind, collection)
    elif kind == "curve":
        for name, key in zip(("seek_single", "seek_average", "seek_full"), _SEEK_TIMES, strict=True):
            mechanics.number(key, least=0)
            collection.take_time(name, mechanics, key)
    elif kind == "linear":
        cylinders = model.whole("Number of cylinders", least=3)
        distances = (1, max(2, cylinders // 3), max(3, cylinders - 1))
        rows = [[distance, mechanics.number(key, least=0)] for distance, key in zip(distances, _SEEK_TIMES, strict=True)]
        collection.take("seek_table", rows, mechanics, "Seek type", remark)
    elif kind == "constant":
        collection.take("seek_table", [[1, mechanics.number(_CONSTANT, least=0)]], mechanics, "Seek type", remark)
    else:
        raise UnknownNameError(f"{mechanics.entries['Seek type'].at}: Seek type", kind, _SEEK_TYPES)


def _collect_curve(mechanics: Block, folders: tuple[Path, ...], collection: Collection) -> None:
    name = mechanics.word(_CURVE)
    path = next((folder / name for folder in folders if (folder / name).is_file()), folders[0] / name)
    if not path.is_file():
        raise DamagedFileError(f"{mechanics.entries[_CURVE].at}: there is no seek file {path}")
    collection.files.append(path)
    rows, has_writes = _seek_times(path)
    rows = [row for row in rows if row[0] > 0]
    if not rows:
        raise DamagedFileError(f"{path}:1: no distance of at least one cylinder")
    collection.put("seek_table", rows, f"{path.name}, by {mechanics.place(_CURVE)}")
    if has_writes:
        collection.notes.append(f"{path.name}: seeks to write take their own times there; those to read are taken for both")


def _seek_times(path: Path) -> tuple[list[list[float]], bool]:
    """The rows (distance in cylinders, ms) of a file of measured seek times, ascending, and whether writes have times of their own.

    It has a line ``Seek distances measured: 87``, then lines ``distance, milliseconds``.  Some files have no such first line; some have a
    third column (how much the time varies), some a fourth: the times of writes.
    """
    try:
        lines = read_text(path, errors="replace").splitlines()
    except OSError as problem:
        raise MissingFileError(f"{path}: {problem.strerror}") from problem
    rows: list[list[float]] = []
    promised, writes = None, 0
    for number, line in enumerate(lines, 1):
        text, at = line.split("#")[0].strip(), SourcePlace(path, number)
        header = re.match(r"seek distances measured:\s*(\d+)$", text, re.IGNORECASE)
        if header and not rows and promised is None:
            promised = int(header[1])
        elif text:
            distance, times = _seek_row(text, at)
            if rows and distance <= rows[-1][0]:
                raise DamagedFileError(f"{at}: distance {distance} follows {rows[-1][0]}, but distances must ascend")
            rows.append([distance, times[0]])
            writes += len(times) == 3
    if not rows or promised not in (None, len(rows)) or writes not in (0, len(rows)):
        raise DamagedFileError(f"{path}:{len(lines)}: {len(rows)} distances, where {promised or 'at least 1'} were promised")
    return rows, writes > 0


def _seek_row(text: str, at: SourcePlace) -> tuple[int, list[float]]:
    first, *rest = text.split(",")
    try:
        distance, times = int(first), [float(part) for part in rest]
    except ValueError:
        distance, times = -1, []
    if distance < 0 or len(times) not in (1, 2, 3) or not all(0 <= time < 10_000 for time in times):
        raise DamagedFileError(f"{at}: 'distance, milliseconds' was expected, not '{text[:60]}'")
    return distance, times


def _collect_formula(mechanics: Block, kind: str, collection: Collection) -> None:
    numbers = mechanics.numbers(_FORMULA)
    if len(numbers) != 6 or min(numbers[:5]) < 0:
        raise DamagedFileError(f"{mechanics.entries[_FORMULA].at}: {_FORMULA} must be six numbers, the first five at least 0")
    collection.take("seek_formula", [list(numbers[:5])], mechanics, _FORMULA)
    if kind == "hplplus10":
        first = mechanics.numbers(_FIRST)
        if not first or min(first) <= 0:
            raise DamagedFileError(f"{mechanics.entries[_FIRST].at}: {_FIRST} must be above 0")
        collection.take("seek_first", [[time] for time in first], mechanics, _FIRST)
    elif numbers[5] != -1:
        collection.take("seek_first", [[numbers[5]]], mechanics, _FORMULA)


def _collect_layout(layout: Block, drive: Collection) -> None:
    scheme = layout.whole("Sparing scheme used", least=0, most=len(SPARING) - 1)
    order = layout.whole("LBN-to-PBN mapping scheme", least=0, most=len(HEAD_ORDERS) - 1)
    rows, slips, defects = [], [], []
    behind = 0  # the cylinder behind the last zone
    for number, zone in enumerate(layout.children("Zones", "dm_layout_g1_zone")):
        row, behind = _zone(zone, behind, scheme == 0)
        rows.append(row)
        slips += [[number, place] for place in dict.fromkeys(_places(zone, "slips"))]  # some files name one twice
        pairs = _places(zone, "defects")
        if len(pairs) % 2:
            raise InvalidParameterError(f"{zone.at}: defects", f"{len(pairs)} numbers", "they must be pairs: a defect, its replacement")
        defects += [[number, *pair] for pair in zip(pairs[::2], pairs[1::2], strict=True) if pair[0] != pair[1]]
        zone.refuse_unread()
    drive.take("zones", rows, layout, "Zones")
    drive.take("sparing", SPARING[scheme], layout, "Sparing scheme used")
    drive.take("sparing_range", layout.whole("Rangesize for sparing", 1, least=1), layout, "Rangesize for sparing")
    drive.take("head_order", HEAD_ORDERS[order], layout, "LBN-to-PBN mapping scheme")
    if slips and not scheme:
        drive.notes.append(f"{layout.place('Sparing scheme used')} = 0: without spares there are no slips, and those listed are ignored")
        slips = []
    for name, table in (("slips", slips), ("defects", defects)):
        if table:
            drive.take(name, table, layout, "Zones", f", {name}")
    layout.refuse_unread()


def _zone(zone: Block, behind: int, unspared: bool) -> tuple[list[float], int]:
    """A row of `flashsim.hdd.parameters.HddParameters.zones`, and the cylinder behind the zone."""
    first, last = (zone.whole(f"{which} cylinder number", None, 0, _MOST_CYLINDERS) for which in ("First", "Last"))
    if first < behind or last < first:
        raise InvalidParameterError(f"{zone.at}: cylinders", f"{first} to {last}", f"zones must ascend, and {behind} is the next free one")
    per_track = zone.whole("Blocks per track", least=1)
    skews = [zone.number(key, 0.0) % per_track for key in ("Skew for track switch", "Skew for cylinder switch", "Offset of first block")]
    empty, spares = (zone.whole(key, 0, least=0) for key in ("Empty space at zone front", "Number of spares"))
    plain = [skew if skew % 1 else int(skew) for skew in skews]
    return [last - first + 1, per_track, *plain, empty, 0 if unspared else spares, first - behind], last + 1


def _places(zone: Block, key: str) -> list[int]:
    places = zone.numbers(key, ())
    for place in places:
        if place < 0 or place % 1:
            raise InvalidParameterError(f"{zone.entries[key].at}: {key}", place, "it must be a whole number of at least 0")
    return [int(place) for place in places]

"""Arm and spindle: DiskSim's ``dm_mech_g1`` in the words of `flashsim.hdd.parameters`."""

from pathlib import Path

from flashsim.core.errors import DamagedFileError, UnknownNameError
from flashsim.hdd.diskspecs import seek_curve
from flashsim.hdd.diskspecs.block import Block
from flashsim.hdd.diskspecs.collected import Collected, milliseconds

_MINUTE = 60_000_000_000
#: The seek types, each with the keys that it takes.
_SEEK_TYPES = ("extracted", "hpl", "hplplus10", "curve", "linear", "constant")
_FORMULA = "HPL seek equation values"
_UNUSED = (
    "Single cylinder seek time", "Average seek time", "Full strobe seek time", "Full seek curve", "Constant seek time", _FORMULA,
    "First ten seek times", "Constant access time",
)  # fmt: skip


def collect(model: Block, folders: tuple[Path, ...], found: Collected) -> None:
    """Take the mechanics of a ``dm_disk`` block; seek files lie in one of some folders."""
    mechanics = model.child("Mechanical Model", "dm_mech_g1")
    rpm = mechanics.number("Rotation speed (in rpms)", least=1, most=1_000_000)
    found.put("rotation", f"{round(_MINUTE / rpm)}ns", mechanics.place("Rotation speed (in rpms)") + f" = {rpm:g}")
    found.put("heads", model.whole("Number of data surfaces", None, 1, 1000), model.place("Number of data surfaces"))
    found.put_time("head_switch", mechanics, "Head switch time")
    if not mechanics.has("Head switch time"):
        found.put("head_switch", "0ms", mechanics.place("Head switch time"))
    settle = mechanics.number("Add. write settling delay", 0.0)
    found.put("write_settle", milliseconds(settle), mechanics.place("Add. write settling delay"))
    access = mechanics.word("Access time type", "trackSwitchPlusRotation")
    if access == "averageRotation":
        found.notes.append(f"{mechanics.place('Access time type')} = {access}: the model tracks the rotation nevertheless")
    elif access != "trackSwitchPlusRotation":
        known = ("trackSwitchPlusRotation", "averageRotation")
        raise UnknownNameError(f"{mechanics.entries['Access time type'].at}: Access time type", access, known)
    if mechanics.number("Percent error in rpms", 0.0):
        found.notes.append(f"{mechanics.place('Percent error in rpms')}: the model turns at the nominal speed")
    _collect_seeks(mechanics, model, folders, found)
    mechanics.refuse_unread(_UNUSED)


def _collect_seeks(mechanics: Block, model: Block, folders: tuple[Path, ...], found: Collected) -> None:
    kind = mechanics.word("Seek type")
    source = mechanics.place("Seek type") + f" = {kind}"
    if kind == "extracted":
        _collect_table(mechanics, folders, found)
    elif kind in ("hpl", "hplplus10"):
        _collect_formula(mechanics, kind, found)
    elif kind == "curve":
        for name, key in (("single", "Single cylinder"), ("average", "Average"), ("full", "Full strobe")):
            mechanics.number(f"{key} seek time", least=0)
            found.put_time(f"seek_{name}", mechanics, f"{key} seek time")
    elif kind == "linear":
        cylinders = model.whole("Number of cylinders", least=3)
        single, average, full = (mechanics.number(f"{key} seek time", least=0) for key in ("Single cylinder", "Average", "Full strobe"))
        found.put("seek_table", [[1, single], [max(2, cylinders // 3), average], [max(3, cylinders - 1), full]], source)
    elif kind == "constant":
        found.put("seek_table", [[1, mechanics.number("Constant seek time", least=0)]], source)
    else:
        raise UnknownNameError(f"{mechanics.entries['Seek type'].at}: Seek type", kind, _SEEK_TYPES)


def _collect_table(mechanics: Block, folders: tuple[Path, ...], found: Collected) -> None:
    name = mechanics.word("Full seek curve")
    path = next((folder / name for folder in folders if (folder / name).is_file()), folders[0] / name)
    if not path.is_file():
        raise DamagedFileError(f"{mechanics.entries['Full seek curve'].at}: there is no seek file {path}")
    found.files.append(path)
    curve = seek_curve.read(path)
    rows = [[distance, time] for distance, time in curve.reads if distance > 0]
    if not rows:
        raise DamagedFileError(f"{path}:1: no distance of at least one cylinder")
    found.put("seek_table", rows, f"{path.name}, by {mechanics.place('Full seek curve')}")
    if curve.writes:
        found.notes.append(f"{path.name}: seeks to write take their own times there; those to read are taken for both")


def _collect_formula(mechanics: Block, kind: str, found: Collected) -> None:
    numbers = mechanics.numbers(_FORMULA)
    if len(numbers) != 6 or min(numbers[:5]) < 0:
        raise DamagedFileError(f"{mechanics.entries[_FORMULA].at}: {_FORMULA} must be six numbers, the first five at least 0")
    found.put("seek_formula", [list(numbers[:5])], mechanics.place(_FORMULA))
    if kind == "hplplus10":
        first = mechanics.numbers("First ten seek times")
        if not first or min(first) <= 0:
            raise DamagedFileError(f"{mechanics.entries['First ten seek times'].at}: First ten seek times must be above 0")
        found.put("seek_first", [[time] for time in first], mechanics.place("First ten seek times"))
    elif numbers[5] != -1:
        found.put("seek_first", [[numbers[5]]], mechanics.place(_FORMULA))

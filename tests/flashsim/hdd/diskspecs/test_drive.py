"""A drive in DiskSim's files: every value arrives where it belongs, with its place; what is not understood is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, MissingFileError, RefusedError, UnknownNameError
from flashsim.core.parameters import build
from flashsim.core.preset_files import as_toml
from flashsim.core.rng import generator
from flashsim.device import presets
from flashsim.hdd.diskspecs.drive import ImportedDrive, read
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.layout import extents_of
from tests.cases import with_each
from tests.flashsim.hdd.diskspecs.drive_files import MODEL, write_drive
from tests.tiers import examples

MICROSECOND = 1000


def parameters_of(path: Path) -> HddParameters:
    return build(HddParameters, read(path).values)


def test_values_arrive_where_they_belong(tmp_path: Path) -> None:
    drive = parameters_of(write_drive(tmp_path))
    assert (drive.heads, drive.rotation, drive.sector_size) == (2, 10_000_000, 512)
    assert (drive.head_switch, drive.write_settle) == (500 * MICROSECOND, -250 * MICROSECOND)
    assert drive.zones == ((4, 20, 3.5, 5, 2, 20, 2, 0), (2, 10, 1, 2, 0, 0, 1, 1))
    assert (drive.sparing, drive.slips, drive.defects) == ("tracks", ((0, 3),), ((1, 1, 3),))
    assert drive.seek_table == ((1, 1.0), (2, 2.0), (6, 4.0))
    assert (drive.bus_read, drive.bus_write, drive.bulk_transfer) == (100 * MICROSECOND, 200 * MICROSECOND, 50 * MICROSECOND)
    times = [
        drive.read_hit_after_read, drive.read_hit_after_write, drive.read_miss_after_read, drive.read_miss_after_write,
        drive.write_hit_after_read, drive.write_hit_after_write, drive.write_miss_after_read, drive.write_miss_after_write,
        drive.complete_read, drive.complete_write,
    ]  # fmt: skip
    assert times == [100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 150_000, 250_000]
    assert (drive.hold_reads, drive.read_start, drive.write_start) == (True, 0.5, 0.25)
    assert (drive.segments, drive.segment_size, drive.read_ahead, drive.write_behind) == (2, 32 * 512, 16 * 512, 0)
    assert (drive.own_write_segment, drive.keep_read, drive.read_ahead_on_hit, drive.read_written) == (True, False, True, False)
    assert (drive.queue_depth, drive.scheduler) == (4, "sptf")


def test_sectors_lie_where_the_layout_says(tmp_path: Path) -> None:
    """Of eight tracks of 20 the first is empty, number 3 slipped, and one of two spares still unused: 100 sectors; 30 in the inner zone."""
    drive = parameters_of(write_drive(tmp_path))
    assert drive.capacity == (100 + 30) * 512
    extents = extents_of(drive)
    placed = {}
    for row in extents:
        for sector in range(row.first, row.end):
            track, slot = divmod(sector - row.first, row.per_track)
            placed[sector] = (int(row.track + track), int(row.slot + slot))
    assert len(placed) == 130
    outer = [(track, slot) for track in (1, 2, 4, 5, 6) for slot in range(20)]
    inner = [(track, slot) for track in (10, 13, 12) for slot in range(10)]  # the second track is defect, and moved to the spare
    assert [placed[sector] for sector in range(130)] == outer + inner


@with_each(
    ("scheme", "spares", "slips", "sectors"),
    [
        (0, 5, "[ 7 ]", 160),  # spares and slips do not count
        (1, 3, "[]", 160 - 3 * 20),
        (2, 6, "[]", 160 - 4 * 6),  # a cylinder
        (3, 1, "[]", 160 - 8 * 1),  # a track
        (5, 6, "[]", 160 - 4 * 6),
        (8, 6, "[]", 160 - 2 * 6),  # two cylinders
        (9, 6, "[ 9, 8 ]", 160 - 6),  # the zone; slips use spares
        (10, 6, "[ 8, 9 ]", 160 - 6 - 2),
        (7, 6, "[ 8, 9 ]", 160 - 2),
    ],
)
def test_sparing_schemes(tmp_path: Path, scheme: int, spares: int, slips: str, sectors: int) -> None:
    write_drive(tmp_path)
    model = MODEL.replace("Sparing scheme used = 1", f"Sparing scheme used = {scheme}").replace("sparing = 1", "sparing = 2")
    model = model.replace("front = 20", "front = 0").replace("Number of spares = 1", "Number of spares = 0").replace("[ 1, 3 ]", "[]")
    model = model.replace("Number of spares = 2", f"Number of spares = {spares}").replace("[ 3   ]", slips)
    (tmp_path / "small.model").write_text(model)
    assert parameters_of(tmp_path / "small.parv").sectors == sectors + 40


def test_every_value_names_file_and_line(tmp_path: Path) -> None:
    drive = read(write_drive(tmp_path))
    assert drive.values.keys() == drive.sources.keys()
    lines = {path.name: path.read_text().splitlines() for path in tmp_path.iterdir()}
    named = 0
    for source in drive.sources.values():
        place, _, key = source.partition(", ")
        file, _, line = place.rpartition(":")
        if file in lines and key and not key.startswith("no "):
            assert lines[file][int(line) - 1].strip().startswith(key.split(" = ")[0].split(",")[0].split(";")[0])
            named += 1
    assert named > 40
    assert {path.name for path in drive.files} == set(lines)


def test_a_preset_file_gives_the_same_drive(tmp_path: Path) -> None:
    drive = read(write_drive(tmp_path))
    (tmp_path / "mine.toml").write_text(as_toml(drive.document("mine"), drive.notes))
    preset, direct = presets.load(str(tmp_path / "mine.toml")), presets.load(str(tmp_path / "small.parv"))
    assert preset.parameters == direct.parameters == build(HddParameters, drive.values)
    assert preset.sources == direct.sources == drive.sources
    assert direct.notes == drive.notes and "999" in drive.notes[0]


@with_each(
    ("kind", "mechanics", "at", "milliseconds"),
    [
        ("constant", "Constant seek time = 3.0", [1, 2, 5], [3, 3, 3]),
        ("linear", "Single cylinder seek time = 1.0, Average seek time = 2.0, Full strobe seek time = 6.0", [1, 2, 6], [1, 2, 6]),
        ("hpl", "HPL seek equation values = [ 3, 1.0, 0.5, 2.0, 0.25, 0.75 ]", [1, 2, 3], [0.75, 1 + 0.5 * 2**0.5, 2.75]),
        ("hpl", "HPL seek equation values = [ 3, 1.0, 0.5, 2.0, 0.25, -1 ]", [1, 5], [1.5, 3.25]),
        ("hplplus10", "HPL seek equation values = [ 3, 1.0, 0.5, 2.0, 0.25, -1 ], First ten seek times = [ 0.5, 0.6 ]",
         [1, 2, 4], [0.5, 0.6, 3.0]),
    ],
)  # fmt: skip
def test_seek_types(tmp_path: Path, kind: str, mechanics: str, at: list[int], milliseconds: list[float]) -> None:
    from flashsim.hdd.state.seek import seek_curve

    old = "Seek type = extracted,\n      Full seek curve = small.seek"
    drive = parameters_of(write_drive(tmp_path, model=(old, f"Seek type = {kind}, {mechanics}")))
    np.testing.assert_allclose(seek_curve(drive)[at] / 1e6, milliseconds, atol=1e-6)


@pytest.mark.parametrize(
    "text", ["1, 1.0, 0.02\n2, 2.0, 0.03\n6, 4.0, 0.1\n", "Seek distances measured: 3\n1, 1.0, 0.02, 1.5\n2, 2.0, 0.02, 2.5\n6, 4, 0, 5\n"]
)
def test_seek_files_with_more_columns(tmp_path: Path, text: str) -> None:
    path = write_drive(tmp_path)
    (tmp_path / "small.seek").write_text(text)
    drive = read(path)
    assert drive.values["seek_table"] == [[1, 1.0], [2, 2.0], [6, 4.0]]
    assert any("write" in note for note in drive.notes) == ("measured" in text)


def test_a_drive_that_never_disconnects_shares_no_bus(tmp_path: Path) -> None:
    change = ("Never disconnect = 0", "Never disconnect = 1, First reselect overhead = 0.5, Read disconnect afterread = 0.5")
    drive = parameters_of(write_drive(tmp_path, diskspecs=change))
    assert (drive.reselect_first, drive.disconnect_read_after_read, drive.read_start, drive.hold_reads) == (0, 0, 0.0, True)


@with_each(
    ("old", "new", "says"),
    [
        ("Preseeking level = 0", "Preseeking level = 2", "Preseeking level = 2"),
        ("Fast write level = 0", "Fast write level = 0, Immediate buffer read = 1", "first sector"),
        ("Scheduling policy = 8", "Scheduling policy = 21", "Scheduling policy = 21"),
        ("Enable caching in buffer = 1", "Combine seq writes = 0", "Combine seq writes = 0"),
    ],
)
def test_what_the_model_does_otherwise_is_said(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert not any(says in note for note in read(write_drive(tmp_path)).notes)
    assert any(says in note for note in read(write_drive(tmp_path, diskspecs=(old, new))).notes)


@with_each(
    ("file", "old", "new", "error", "says"),
    [
        ("diskspecs", "Print stats", "Print starts", UnknownNameError, r"small.diskspecs:16: .*did you mean Print stats"),
        ("model", "Head switch time", "Head swatch time", UnknownNameError, "small.model:11: .*Head swatch time"),
        ("model", "slips =", "slops =", UnknownNameError, "slops"),
        ("diskspecs", "Timeout time/weight", "Time", UnknownNameError, "small.diskspecs:22"),
        ("model", "dm_layout_g1 {", "dm_layout_g4 {", UnknownNameError, "small.model:15: Layout Model: 'dm_layout_g4'"),
        ("model", "Seek type = extracted", "Seek type = jump", UnknownNameError, "jump"),
        ("model", "trackSwitchPlusRotation", "constant", UnknownNameError, "constant"),
        ("model", "Sparing scheme used = 1", "Sparing scheme used = 11", InvalidParameterError, "Sparing scheme used: 11"),
        ("model", "Blocks per track = 20", "Blocks per track = 20.5", InvalidParameterError, "whole number"),
        ("model", "First cylinder number = 5", "First cylinder number = 3", InvalidParameterError, "zones must ascend"),
        ("model", "defects = [ 1, 3 ]", "defects = [ 1 ]", InvalidParameterError, "pairs"),
        ("model", "[ 3   ]", "[ 8 ]", InvalidParameterError, "small.parv: slips: .*8 tracks"),
        ("model", "Head switch time = 0.5", "Head switch time = soon", DamagedFileError, "small.model:11: Head switch"),
        ("model", "= 0.5", "= nan", InvalidParameterError, "finite"),
        ("model", "Number of data surfaces = 2,\n", "", DamagedFileError, "Number of data surfaces"),
        ("model", "Number of cylinders = 7,", "Number of cylinders = 7", DamagedFileError, "small.model:4: .*',' or '}' was expected"),
        ("model", "   Number of cylinders = 7,", "Number of data surfaces = 2,", DamagedFileError, "given twice"),
        ("diskspecs", "= source small.model", "= source other.model", MissingFileError, "small.diskspecs:2: .*other.model"),
        ("diskspecs", "= source small.model", "= source small.diskspecs", DamagedFileError, "sourced from within itself"),
        ("parv", "source small.diskspecs", "source small.parv", DamagedFileError, "small.parv:14: .*itself"),
        ("parv", "source small.diskspecs", "disksim_simpledisk SD0 { Access time = 9.5 }", DamagedFileError, "no such block"),
        ("parv", "as SMALL_ST-1.x", "as SMALL", DamagedFileError, "small.parv:18: disk0 is instantiated as SMALL"),
        ("parv", "instantiate [ disk0 .. disk1 ]", "instantiate [ disk0 ]", DamagedFileError, "disk1, which is not instantiated"),
        ("parv", "disk0 .. disk1 ]", "disk0 .. desk1 ]", DamagedFileError, "not a range of names"),
        ("parv", "disksim_bus BUS0 {", "disksim_bus {", DamagedFileError, "BUS0, but there is no such block"),
        ("parv", "topology", "tapology", DamagedFileError, "'tapology' begins no block"),
        ("seek", "2,  2.0", "2;  2.0", DamagedFileError, "small.seek:3"),
        ("seek", "2,  2.0", "0,  2.0", DamagedFileError, "small.seek:3: distance 0 follows 1"),
        ("seek", "measured: 3", "measured: 4", DamagedFileError, "3 distances, where 4 were promised"),
        ("seek", "2.0", "-2.0", DamagedFileError, "small.seek:3"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(tmp_path: Path, file: str, old: str, new: str, error: type[FlashsimError], says: str) -> None:
    path = write_drive(tmp_path, **{file: (old, new)})
    with pytest.raises(error, match=says) as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", ["parv", "diskspecs", "model", "seek"])
def test_a_file_that_is_cut_off_anywhere_is_refused_in_one_line(tmp_path: Path, ending: str) -> None:
    path = write_drive(tmp_path)
    whole, file = read(path), tmp_path / f"small.{ending}"
    text = file.read_text()
    for length in range(0, len(text), 7):
        file.write_text(text[:length])
        problem, cut = _attempt(path)
        if cut is None:
            assert "\n" not in problem and "small." in problem
        else:  # what was lost was comment, blanks, or not about the drive
            assert cut.values == whole.values or ending == "parv"


def _attempt(path: Path) -> tuple[str, ImportedDrive | None]:
    try:
        return "", read(path)
    except FlashsimError as problem:
        return str(problem), None


def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """Words and marks are replaced by others at random."""
    draw = generator(1, "damage")
    others = ["0", "-1", "1e300", "nan", "999999999", "{", "}", "[", "]", ",", "=", "source", "x", "", "0.5", "#", "..", "7"]
    for _ in range(examples(150)):
        path = write_drive(tmp_path)
        file = tmp_path / f"small.{draw.choice(['parv', 'diskspecs', 'model', 'seek'])}"
        words = re.split(r"(\s+|[={}\[\],])", file.read_text())
        for place in draw.integers(0, len(words), draw.integers(1, 4)):
            words[place] = str(draw.choice(others))
        file.write_text("".join(words))
        problem, drive = _attempt(path)
        assert drive or ("small." in problem and "\n" not in problem)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    for name, content in (("binary", b"\x7fELF\0\1"), ("text", b"once upon a time\n"), ("empty", b""), ("deep", b"a { b = c {" * 500)):
        path = tmp_path / f"{name}.parv"
        path.write_bytes(content)
        with pytest.raises(FlashsimError, match=f"{name}.parv"):
            read(path)
    with pytest.raises(MissingFileError):
        read(tmp_path / "missing.parv")


def test_one_of_several_drives_is_named(tmp_path: Path) -> None:
    path = write_drive(tmp_path)
    other = (tmp_path / "small.diskspecs").read_text().replace("SMALL_ST-1.x", "OTHER").replace("queue length = 4", "queue length = 9")
    (tmp_path / "other.diskspecs").write_text(other)
    text = path.read_text().replace("source small", "source other.diskspecs\nsource small")
    path.write_text(
        text.replace("instantiate [ disk0 .. disk1 ] as SMALL_ST-1.x", "instantiate [disk0] as OTHER instantiate [disk1] as SMALL_ST-1.x")
    )
    with pytest.raises(RefusedError, match=r"2 kinds of drives; take one of OTHER, SMALL_ST-1.x"):
        read(path)
    assert read(path, "OTHER").values["queue_depth"] == 9
    assert read(path, "SMALL_ST-1.x").values["queue_depth"] == 4
    with pytest.raises(UnknownNameError, match="did you mean OTHER"):
        read(path, "OTHERS")


def test_a_drive_without_a_system_has_no_bus(tmp_path: Path) -> None:
    write_drive(tmp_path)
    drive = read(tmp_path / "small.diskspecs")
    assert "bus_read" not in drive.values
    assert any("no bus" in note for note in drive.notes)

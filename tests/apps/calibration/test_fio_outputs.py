"""Outputs of fio as people have them: each is read, or refused in one line; and the text says the same as the JSON."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.apps.calibration.drive_figures import DriveFigure, DriveLoad
from flashsim.apps.calibration.figure_files import read
from flashsim.apps.calibration.figure_runs import simulated_figures
from flashsim.core.errors import DamagedFileError, FlashsimError, FlashsimWarning
from flashsim.core.request import READ, WRITE
from flashsim.core.units import KIB, MIB
from flashsim.device import presets
from tests.cases import with_each
from tests.commands import Run
from tests.tiers import deep

OUTPUTS = Path(__file__).parent / "fio_outputs"
NAMES = sorted(path.name for path in OUTPUTS.iterdir() if path.name != "README.md")
UNKNOWN = "of fio's text, which does not show direct=1, nor rate, thinktime, fsync and the like"
CACHED = "through the page cache: fio had no direct=1"

SEQUENTIAL = DriveLoad(WRITE, 128 * KIB, random=False, depth=4, state="steady")
#: Figures of each: the load, the figures by name (requests a second, us), and the note.
READ_AS = {
    "2.1.3-loop.txt": [
        (DriveLoad(READ), {"iops": 10683.9, "p50": 91, "p99": 100, "p99.9": 102}, UNKNOWN),
        (DriveLoad(READ), {"iops": 10683.5, "p50": 93, "p99": 100, "p99.9": 105}, UNKNOWN),
    ],
    "2.1.11-threads.txt": [
        (DriveLoad(READ, depth=30, state="steady", reads=0.714), {"iops": 640.2, "p50": 27_000, "p99": 265_000, "p99.9": 429_000}, ""),
        (DriveLoad(WRITE, depth=30, state="steady", reads=0.714), {"p50": 81, "p99": 2928, "p99.9": 98_816}, ""),
    ],
    "2.2.10-hard-disk.txt": [
        (DriveLoad(READ, depth=16), {"iops": 275.21, "p50": 36_000, "p99": 310_000, "p99.9": 506_000}, UNKNOWN),
    ],
    "2.2.10-reduced.txt": [(DriveLoad(READ, depth=64, state="steady", reads=0.75), {"iops": 13_887.9}, "")],
    "2.2.10-rate-and-command.txt": [(DriveLoad(WRITE, random=False, rate=5.0, state="steady"), {"p99": 88, "p99.9": 91}, "")],
    "2.10-mixed.json": [
        (DriveLoad(WRITE, random=False, state="steady", reads=0.5), {"iops": 745.59, "p50": 502, "p99": 7712, "p99.9": 16_768}, ""),
        (DriveLoad(READ, random=False, state="steady", reads=0.5), {"p50": 612, "p99": 1896, "p99.9": 4768}, ""),
    ],
    "2.15-rw-buffered.txt": [
        (DriveLoad(WRITE, random=False, depth=2, state="steady", reads=0.5), {"iops": 152_919}, CACHED),
        (DriveLoad(READ, random=False, depth=2, state="steady", reads=0.5), {"p50": 193, "p99": 932, "p99.9": 51_456}, CACHED),
    ],
    "3.1-status.txt": [(DriveLoad(READ, 128 * KIB, random=False, depth=4), {"iops": 7900, "p50": 502, "p99": 955, "p99.9": 1221}, UNKNOWN)],
    "2.17-no-latencies.txt": [(DriveLoad(READ, depth=1024), {"iops": 1_858_979}, UNKNOWN)],
    "3.28-broken-lines.txt": [(DriveLoad(READ, depth=64), {"iops": 357_378, "p50": 175, "p99": 310, "p99.9": 480}, "")],
    "3.18-commands.txt": [(DriveLoad(READ, 16 * KIB, depth=10), {"iops": 67_411, "p50": 96, "p99": 742, "p99.9": 1237}, "")],
    "3-job-file.txt": [(DriveLoad(READ, MIB, random=False, depth=32), {"iops": 9167.4, "p50": 3359, "p99": 6521, "p99.9": 8160}, "")],
    "3.33-groups.txt": [
        (DriveLoad(READ, depth=16), {"iops": 36_330, "p50": 293, "p99": 4293, "p99.9": 7242}, UNKNOWN),
        (SEQUENTIAL, {"iops": 5328, "p50": 285, "p99": 7046, "p99.9": 14_484}, UNKNOWN),
        (DriveLoad(WRITE, 16 * KIB, depth=2, state="steady"), {"iops": 4535, "p50": 79, "p99": 5800, "p99.9": 8979}, UNKNOWN),
    ],
    "3.33-status-interval.txt": [(DriveLoad(READ, 64 * KIB, depth=2), {"iops": 6850, "p99": 4391, "p99.9": 8405}, UNKNOWN)],
    "3.33-sync-engine.txt": [(DriveLoad(READ), {"iops": 7178, "p50": 79, "p99": 2573, "p99.9": 5866}, UNKNOWN)],
    "3.33-log.txt": [(DriveLoad(READ), {"iops": 7178, "p50": 79, "p99": 2573, "p99.9": 5866}, UNKNOWN)],
    "3.33-reduced.txt": [(DriveLoad(READ, depth=32), {"iops": 27_400}, UNKNOWN)],
}  # fmt: skip
#: What is missing, or shows more than the drive, by the output.
REFUSED = {
    "2.2.10-no-options.json": "its rw and iodepth are missing, as in JSON of early fio 2",
    "2.2.10-rate.txt": "one of iodepth=32 was outstanding, as with rate or thinktime",
    "2.8-begin.txt": "its line of IO depths is missing",
    "3-result-alone.txt": r"the line of its load is missing \(read_iops: \(g=0\): rw=",
    "3-script.txt": r"the line of its load is missing \(onedisk: ",
    "3-terse.txt": r"is fio's terse output, which does not show iodepth \(take --output-format=json\)",
    "3.1-unified.txt": r"its reads and writes are counted together",
    "3.12-fsync.txt": "its fsync=1 shows more than the drive",
    "3.16-zoned.txt": "its zonemode=zbd shows more than the drive",
    "3.27-verify.txt": "its rw=randwrite has reads besides, as with verify or trim",
    "3.28-client.txt": "it ended with an error",
    "3.33-fsync": "its fsync=1 shows more than the drive",
    "3.33-trim": "its rw=randtrim is not a load of reads, writes or both",
    "3.33-two-sizes": "its requests are not of one size",
    "3.33-unified": r"its reads and writes are counted together \(unified_rw_reporting\)",
    "3.33-unlike": "jobs of other loads ran at the same time",
    "3.33-verify": "its rw=randwrite has reads besides",
}
PAIRS = [name.removesuffix(".json") for name in NAMES if name.endswith(".json") and name.removesuffix(".json") + ".txt" in NAMES]


@with_each("name", READ_AS)
def test_outputs_of_the_world_are_read(name: str) -> None:
    shown = read(OUTPUTS / name)
    expected = [
        (load, figure, pytest.approx(value if figure == "iops" else 1000 * value, rel=2e-4), note)
        for load, figures, note in READ_AS[name]
        for figure, value in figures.items()
    ]
    assert [(each.load, each.name, each.value, each.note) for each in shown] == expected


@with_each("name", [name for name in NAMES if name in REFUSED or name.rpartition(".")[0] in REFUSED])
def test_or_refused_in_one_line_that_says_what_is_missing(name: str, here: Path, flashsim: Run) -> None:
    shutil.copy(OUTPUTS / name, name)
    result = flashsim(f"device identify --figures {name} --out mine.toml --json mine.json")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and name in result.stderr, result.stderr
    assert re.search(REFUSED.get(name) or REFUSED[name.rpartition(".")[0]], result.stderr), result.stderr
    assert not Path("mine.toml").exists()


def test_each_output_is_described_and_tested() -> None:
    described = re.findall(r"^\| `([^`]+)` \|", (OUTPUTS / "README.md").read_text(), re.MULTILINE)
    assert described == NAMES
    assert {
        name for name in NAMES if name not in READ_AS and name not in REFUSED and name.rpartition(".")[0] not in (*REFUSED, *PAIRS)
    } == set()
    assert len(READ_AS) + len(REFUSED) >= 20


def assert_same(text: Path, document: Path) -> None:
    """Figures of both are the same, but for percentiles: the text rounds them up to its unit, and those of one digit are left out."""
    unit = 1_000_000 if "percentiles (msec)" in text.read_text() else 1000
    of_text = {(each.load, each.name): each.value for each in read(text)}
    of_document = {(each.load, each.name): each.value for each in read(document)}
    assert [each for each in of_document if each in of_text] == list(of_text)
    for key, value in of_document.items():
        most = value * (1 + 1e-6) + (unit if key[1] != "iops" else 0)
        assert value * (1 - 1e-6) <= of_text.get(key, value) <= most, (key, value, of_text[key])
        assert key in of_text or (key[1] != "iops" and value <= 9 * unit), (key, value)


@with_each("name", [name for name in PAIRS if name not in REFUSED])
def test_the_text_says_what_the_json_says(name: str) -> None:
    assert_same(OUTPUTS / f"{name}.txt", OUTPUTS / f"{name}.json")


COMMON = "--filename=f --size=8m --time_based --runtime=400ms --output-format=normal,json "
ENGINE = "--ioengine=libaio --name=job "
SHAPES = [
    ENGINE + "--rw=randread --bs=4k --iodepth=8",
    ENGINE + "--rw=randread --bs=16k --iodepth=64 --numjobs=2 --group_reporting",
    ENGINE + "--rw=read --bs=128k --iodepth=2 --numjobs=3",
    ENGINE + "--rw=randwrite --bs=4k --iodepth=16 --numjobs=2",
    ENGINE + "--rw=write --bs=64k --iodepth=4 --numjobs=2 --group_reporting",
    ENGINE + "--rw=randrw --bs=8k --iodepth=8 --numjobs=2 --group_reporting",
    ENGINE + "--rw=rw --bs=32k --iodepth=4 --rwmixread=30",
    ENGINE + "--rw=randread --bs=4k --iodepth=8 --status-interval=150ms",
    ENGINE + "--rw=randrw --bs=4k --lat_percentiles=1 --clat_percentiles=0 --rwmixread=90",
    ENGINE + "--rw=readwrite --bs=4k --iodepth=2 --percentile_list=50:99",
    ENGINE + "--rw=randread:4 --bs=4k --iodepth=4 --gtod_reduce=1",
    "--ioengine=psync --iodepth=4 --name=a --rw=randread --bs=4k --name=b --stonewall --rw=write --bs=1m --name=c --stonewall --rw=randrw",
    "--ioengine=null --name=a --rw=randread --bs=4k --group_reporting --name=b --rw=randread --bs=4k",
    "--name=a --description=words --ioengine=libaio --direct=1 --rw=randread --bs=4k --iodepth=3 --unit_base=1 --kb_base=1000",
]


@deep
@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
@with_each("shape", SHAPES)
def test_the_text_of_fio_itself_says_what_its_json_says(shape: str, tmp_path: Path) -> None:
    """One process prints both."""
    output = subprocess.run(["fio", *(COMMON + shape).split()], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    documents = list(re.finditer(r"^\{$.*?^\}$", output, re.MULTILINE | re.DOTALL))
    (tmp_path / "out.json").write_text(documents[-1].group())
    (tmp_path / "out.txt").write_text(re.sub(r"^\{$.*?^\}$", "", output, flags=re.MULTILINE | re.DOTALL))
    assert_same(tmp_path / "out.txt", tmp_path / "out.json")
    (tmp_path / "command.txt").write_text(f"$ fio {COMMON}{shape}\n" + (tmp_path / "out.txt").read_text())
    assert {each.note for each in read(tmp_path / "command.txt")} == {each.note for each in read(tmp_path / "out.json")}


@given(st.sampled_from(NAMES), st.floats(0, 1), st.floats(0, 1), st.sampled_from(["", "> ", "\t", "# "]))
def test_a_part_of_an_output_has_the_figures_of_the_whole_or_is_refused(name: str, begin: float, length: float, before: str) -> None:
    text = (OUTPUTS / name).read_text()
    first = round(begin * len(text)) if begin > 0.5 else 0
    part = "\n".join(before + line for line in text[first : first + round(length * len(text))].splitlines())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FlashsimWarning)
            shown = read_text_of(part)
            loads = {(each.load.operation, each.load.size, each.load.random) for each in read(OUTPUTS / name)}
    except FlashsimError:
        return
    assert {(each.load.operation, each.load.size, each.load.random) for each in shown} <= loads


def read_text_of(text: str) -> list[DriveFigure]:
    with TemporaryDirectory() as folder:
        (Path(folder) / "part.txt").write_text(text)
        return read(Path(folder) / "part.txt")


def test_a_command_line_and_a_job_file_say_what_the_text_does_not(tmp_path: Path) -> None:
    result = (OUTPUTS / "3.33-sync-engine.txt").read_text()
    for before, note in (
        ("$ fio --rw=randread --iodepth=8 --direct=1 --name=s", ""),
        ("$ fio --direct=1 \\\n    --rw=randread --name=s", ""),
        ("# fio -direct 1 -rw 'randread' -thread -name s", ""),
        ("[global]\ndirect = 1\n[s]\nrw=randread\ntime_based\n", ""),
        ("[global]\ndirect = 1\n[other]\nrw=randread\n", UNKNOWN),
        ("$ fio --rw=randread --name=s", CACHED),
        ("$ fio --direct=1 --rw=randwrite --name=s", UNKNOWN),  # of another run
        ("$ fio --direct=1 --rw=randread --name=s\n$ fio --rw=randread --name=s", UNKNOWN),  # one of both
    ):
        (tmp_path / "fio.txt").write_text(f"{before}\n{result}")
        assert {each.note for each in read(tmp_path / "fio.txt")} == {note}, before
    (tmp_path / "fio.txt").write_text(f"$ fio --rw=randread --thinktime=1ms --name=s\n{result}")
    with pytest.raises(DamagedFileError, match="its thinktime=1ms shows more than the drive"):
        read(tmp_path / "fio.txt")


def test_mixed_loads_of_fio_are_simulated() -> None:
    shown = read(OUTPUTS / "3.33-mixed.txt", "sequential") + read(OUTPUTS / "3.33-mixed-in-order.txt", "sequential")
    simulated = simulated_figures(presets.load("intel-x25e-64gb"), shown, 1, 300)
    assert np.isfinite(simulated).all() and (simulated > 0).all()
    assert {each.kind for each in shown} == {"mixed read rate", "mixed read latency", "mixed write rate", "mixed write latency"}


def test_jobs_of_json_with_text_before_and_of_other_programs(tmp_path: Path) -> None:
    path, text = tmp_path / "fio.txt", (OUTPUTS / "3.33-mixed.txt").read_text()
    path.write_text(text + (OUTPUTS / "3.33-mixed.json").read_text())
    assert {each.note for each in read(path)} == {""}  # of the JSON, which says more
    path.write_text(text + (OUTPUTS / "2.2.10-no-options.json").read_text())
    assert {each.note for each in read(path)} == {UNKNOWN}
    path.write_text(text.replace(">=64", "&gt;=64").replace("\n", "\r\n"))
    assert read(path) == read(OUTPUTS / "3.33-mixed.txt")
    document = json.loads((OUTPUTS / "3.33-mixed.json").read_text())
    del document["fio version"]
    path.write_text(json.dumps(document))
    with pytest.raises(DamagedFileError, match="is JSON, but not of fio"):
        read(path)

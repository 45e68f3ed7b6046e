"""Bad input, each one clear line on stderr and exit code 2, with nothing left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.experiments.conftest import SMALL_JOIN, Run


def changed(**options: str) -> str:
    """The small join with some options changed; `algorithm` is the argument."""
    words = SMALL_JOIN.split()
    words[1] = options.pop("algorithm", words[1])
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if option in words:
            words[words.index(option) + 1] = value
        else:
            words += [option, value]
    return " ".join(words)


BAD = {
    changed(device="ocz-core-60bg"): "did you mean ocz-core-60gb",
    changed(algorithm="hash-hybrid"): "did you mean",
    changed(algorithm="mine.py"): "mine.py",
    changed(memory="1000"): "--memory: '1000'",
    changed(memory="4KiB"): "memory: 4 KiB",
    changed(algorithm="grace-hash", memory="40KiB"): "sqrt(F |R|)",
    changed(algorithm="sort-merge", memory="40KiB"): "memory: 5 pages",
    changed(page_size="8192"): "--page-size: '8192'",
    changed(page_size="3000B"): "power of two",
    changed(page_size="128KiB"): "64 KiB",
    changed(on="c_custkey"): "column: 'c_custkey'",
    changed(on="=o_custkey"): "on:",
    changed(on="padding=o_custkey"): "cannot be compared",
    changed(r="do2009:customers@0.01"): "did you mean customer",
    changed(r="do2009:customer"): "scale factor",
    changed(r="missing.parquet"): "missing.parquet",
    changed(r="missing.sqlite:t"): "missing.sqlite",
    changed(r="missing.csv"): "missing.csv",
    changed(r="nonsense"): "nonsense",
    changed(r="broken.parquet"): "broken.parquet",
    changed(r="broken.sqlite:t"): "broken.sqlite",
    changed(r="texts.parquet", on="key=o_custkey"): "cannot be compared",
    changed(device="broken.toml"): "broken.toml",
    changed(device="missing.toml"): "missing.toml",
    changed(device="small.toml"): "device: 1 MiB",
    changed(device="./disk.img"): "--allow-write",
    changed(placement="nowhere"): "placement",
    changed(cpu="pentium-d-2010"): "did you mean pentium-d-2009",
    changed(io="both"): "--io",
    changed(out="no/such/folder/rows.parquet"): "--out: cannot write",
    changed(out="kept.txt"): "--force",
    changed(json="."): "folder",
    changed(json="a.out", trace="a.out"): "also what --trace writes",
    changed(buffers_for="nothing"): "device preset",
    "join bnl": "Missing option",
    "joint": "joint",
    "join bnl --speed 3": "--speed",
    "device show ocz-core": "did you mean ocz-core-60gb",
    "device lisst": "lisst",
    "trace info missing.parquet": "missing.parquet",
    "trace info broken.parquet": "broken.parquet",
    "trace info texts.parquet": "texts.parquet",
    "reproduce do2010": "did you mean do2009",
    "reproduce do2009/table33": "did you mean table",
    "reproduce do2009 --scale 0": "scale: 0",
    "reproduce do2009 --scale 2": "scale: 2",
    "reproduce do2009 --scale nan": "scale: nan",
    "reproduce do2009 --scale 0.000001": "scale: 1e-06",
    "reproduce do2009 --scale small": "--scale",
    "reproduce do2009/table1 --jobs 0": "jobs: 0",
    "reproduce do2009/table3-io --scale 0.005 --jobs 1 --seed -1": "seed: -1",
    "reproduce do2009/table1 --out kept.txt": "is a file",
    "reproduce do2009/table1 --out full": "not empty",
    "reproduce do2009/table1 --json kept.txt": "--force",
}


@pytest.fixture
def files(here: Path) -> Path:
    """Files that are damaged, foreign, or must not be overwritten."""
    (here / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    (here / "broken.sqlite").write_bytes(b"SQLite format 3\0" + bytes(40))
    (here / "broken.toml").write_text("kind = [")
    (here / "kept.txt").write_text("kept")
    (here / "full").mkdir()
    (here / "full" / "kept.txt").write_text("kept")
    pq.write_table(pa.table({"key": ["one", "two"]}), here / "texts.parquet")
    preset = Path(__file__).parents[2] / "flashsim" / "device" / "presets" / "ocz-core-60gb.toml"
    (here / "small.toml").write_text(preset.read_text().replace('"60GB"', '"1MiB"'))
    return here


@pytest.mark.parametrize("line", list(BAD), ids=range(len(BAD)))
def test_one_line_and_exit_code_2(line: str, files: Path, flashsim: Run) -> None:
    before = sorted(files.rglob("*"))
    result = flashsim(line)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("flashsim: ")
    assert BAD[line] in result.stderr
    assert sorted(files.rglob("*")) == before
    assert (files / "kept.txt").read_text() == "kept"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(here: Path, flashsim: Run) -> None:
    (here / "locked").mkdir(mode=0o500)
    result = flashsim(changed(out="locked/rows.parquet"))
    assert result.exit_code == 2
    assert "Permission denied" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(flashsim: Run) -> None:
    result = flashsim("device list --json /dev/full")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1 and "No space left" in result.stderr

"""Replays on block devices: loop devices, where the system lets tests make them; otherwise only the checks on what is told of devices."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from flashsim.core.request import READ, WRITE
from flashsim.device import access
from tests.commands import Run
from tests.flashsim.experiments.replaying.test_real_replay import BLOCK, SIZE, refused, write_trace


@pytest.fixture(autouse=True)
def administrators_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of root stand in folders that not every root looks in."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin:/sbin")


@pytest.fixture
def loop(here: Path) -> Iterator[str]:
    """A loop device over the file `image` of random bytes, beside traces `reads` and `writes`."""
    (here / "image").write_bytes(np.random.default_rng(1).bytes(SIZE))
    try:
        made = subprocess.run(["losetup", "--find", "--show", "image"], capture_output=True, text=True, check=False)
    except OSError:
        pytest.skip("losetup is not installed")
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    name = made.stdout.strip()
    write_trace(here / "reads", operation=np.full(20, READ))
    write_trace(here / "writes", operation=np.full(20, WRITE))
    yield name
    subprocess.run(["losetup", "--detach", name], check=True)


def test_a_block_device_is_read_and_written_only_by_its_name(flashsim: Run, here: Path, loop: str) -> None:
    before = Path(loop).read_bytes()
    result = flashsim(f"trace replay reads --device {loop}")
    assert result.exit_code == 0, result.output
    refused(flashsim(f"trace replay writes --device {loop}"), "--allow-write")
    for typed in ("", "--yes-destroy /dev/null", "--yes-destroy yes"):
        refused(flashsim(f"trace replay writes --device {loop} --allow-write --force {typed}"), f"--yes-destroy {loop}")
    assert Path(loop).read_bytes() == before
    done = flashsim(f"trace replay writes --device {loop} --allow-write --yes-destroy {loop}")
    assert done.exit_code == 0, done.output
    changed = (np.frombuffer(Path(loop).read_bytes(), np.uint8) != np.frombuffer(before, np.uint8)).reshape(-1, BLOCK).any(axis=1)
    assert np.array_equal(np.flatnonzero(changed), np.arange(20))


def test_a_file_behind_a_device_is_never_written(flashsim: Run, here: Path, loop: str) -> None:
    before = (here / "image").read_bytes()
    refused(flashsim("trace replay writes --device ./image --allow-write --force"), f"in use by {loop}", "never written")
    assert (here / "image").read_bytes() == before


def test_a_mounted_device_is_never_written(flashsim: Run, here: Path, loop: str) -> None:
    if not shutil.which("mkfs.ext4"):
        pytest.skip("mkfs.ext4 is not installed")
    subprocess.run(["mkfs.ext4", "-q", loop], check=True, capture_output=True)
    (here / "mounted").mkdir()
    if subprocess.run(["mount", "-o", "ro", loop, "mounted"], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not permitted")
    try:
        refused(
            flashsim(f"trace replay writes --device {loop} --allow-write --force --yes-destroy {loop}"),
            "mounted or in use",
            "never written",
        )
        assert flashsim(f"trace replay reads --device {loop}").exit_code == 0
    finally:
        subprocess.run(["umount", "mounted"], check=True)


def test_the_device_of_this_very_file_system_is_in_use() -> None:
    for name in Path("/sys/class/block").glob("*"):
        device = Path("/dev") / name.name
        if device.is_block_device() and device.stat().st_rdev == Path("/").stat().st_dev:
            assert access.in_use(device) == "mounted or in use"
            return
    pytest.skip("the root file system is on no block device that is seen here")


def test_what_the_system_tells_of_swaps_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "swap file").write_bytes(b"")
    told = "Filename\t\tType\t\tSize\n" + str(tmp_path / "swap file").replace(" ", "\\040") + "  file  1024\n"
    plain = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda self, *rest, **more: told if str(self) == "/proc/swaps" else plain(self, *rest, **more))
    assert access.in_use(tmp_path / "swap file") == "in use for swapping"
    (tmp_path / "other").write_bytes(b"")
    assert access.in_use(tmp_path / "other") == ""

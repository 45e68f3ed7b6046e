"""Real files: what is written comes back, nothing is overwritten unasked, and every refusal is one clear line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import CapacityError, FlashsimError, MissingFileError, RefusedError
from flashsim.core.units import TIB
from flashsim.device.file import RealDevice


@pytest.mark.parametrize("batch", [False, True])
def test_what_is_written_is_read_back_in_any_order(tmp_path: Path, batch: bool) -> None:
    data = np.random.default_rng(1).integers(0, 256, 1 << 18, np.uint8)
    with RealDevice(tmp_path / "file", 1 << 18, allow_write=True) as device:
        offsets = np.arange(0, 1 << 18, 1 << 14)[::-1].copy()
        lengths = np.full(len(offsets), 1 << 14)
        written = device.write(offsets, data, lengths, batch=batch)
        read, completions = device.read(offsets, lengths, batch=batch)
        assert np.array_equal(read, data)
        assert (completions["completed"] >= completions["submitted"]).all()
        assert (written["completed"] <= completions["submitted"].min()).all()
        if not batch:
            assert (completions["submitted"][1:] >= completions["completed"][:-1]).all()
        device.flush()


@pytest.mark.parametrize("batch", [False, True])
def test_bytes_that_were_read_stay_when_others_are_read(tmp_path: Path, batch: bool) -> None:
    size = 1 << 16
    with RealDevice(tmp_path / "file", 4 * size, allow_write=True) as device:
        offsets, lengths = np.array([0, size]), np.full(2, size)
        device.write(offsets, np.repeat(np.array([1, 2], np.uint8), size), lengths, batch=batch)
        device.write(offsets + 2 * size, np.repeat(np.array([3, 4], np.uint8), size), lengths, batch=batch)
        first, _ = device.read(offsets, lengths, batch=batch)
        second, _ = device.read(offsets + 2 * size, lengths, batch=batch)
    assert first[::size].tolist() == [1, 2] and second[::size].tolist() == [3, 4]


def test_nothing_is_written_without_permission(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="--allow-write"):
        RealDevice(tmp_path / "file", 4096)
    assert not (tmp_path / "file").exists()


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(RefusedError, match="exists"):
        RealDevice(tmp_path / "file", 4096, allow_write=True)
    assert (tmp_path / "file").read_text() == "precious"


def test_an_existing_file_is_overwritten_if_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("worthless")
    with RealDevice(tmp_path / "file", 8192, allow_write=True, replace=True) as device:
        assert device.size == (tmp_path / "file").stat().st_size == 8192


def test_a_file_made_for_work_that_fails_is_removed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), RealDevice(tmp_path / "file", 4096, allow_write=True):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        RealDevice(tmp_path / "none" / "file", 4096, allow_write=True)
    with pytest.raises(RefusedError, match="neither"):
        RealDevice(tmp_path, 4096, allow_write=True)
    with pytest.raises(CapacityError):
        RealDevice(tmp_path / "huge", 4096 * TIB, allow_write=True)
    assert list(tmp_path.iterdir()) == []


def test_reading_behind_the_end_is_an_error(tmp_path: Path) -> None:
    with RealDevice(tmp_path / "file", 8192, allow_write=True) as device, pytest.raises(FlashsimError, match="ends"):
        device.read(np.array([4096]), np.array([8192]))


def test_a_file_opened_for_reading_is_read_and_never_changed(tmp_path: Path) -> None:
    data = np.random.default_rng(2).integers(0, 256, 1 << 14, np.uint8)
    (tmp_path / "file").write_bytes(data.tobytes())
    with RealDevice(tmp_path / "file", 1 << 14, read_only=True) as device:
        read, _ = device.read(np.array([1 << 13]), np.array([1 << 13]))
        assert np.array_equal(read, data[1 << 13 :])
        with pytest.raises(FlashsimError):
            device.write(np.array([0]), np.zeros(1 << 13, np.uint8), np.array([1 << 13]))
    assert (tmp_path / "file").read_bytes() == data.tobytes()


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(4096))
    with pytest.raises(MissingFileError):
        RealDevice(tmp_path / "none", 4096, read_only=True)
    with pytest.raises(RefusedError, match="neither"):
        RealDevice(tmp_path, 4096, read_only=True)
    with pytest.raises(CapacityError):
        RealDevice(tmp_path / "file", 8192, read_only=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

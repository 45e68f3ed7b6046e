"""Output files appear whole, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from flashsim.core.errors import FlashsimError, RefusedError
from flashsim.experiments.runs.outputs import Outputs, write_json


def test_nothing_is_left_when_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Outputs(force=False) as outputs:
        write_json(outputs.file("--json", tmp_path / "a.json"), {})
        (outputs.folder("--out", tmp_path / "new" / "folder") / "page.html").write_text("half")
        raise KeyboardInterrupt
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_old_file_stays_when_the_work_fails(tmp_path: Path) -> None:
    old = tmp_path / "a.json"
    old.write_text("old")
    with pytest.raises(FlashsimError), Outputs(force=True) as outputs:
        outputs.file("--json", old).write_text("new")
        raise FlashsimError("no")
    assert old.read_text() == "old"


def test_files_appear_at_the_end(tmp_path: Path) -> None:
    with Outputs(force=False) as outputs:
        partial = outputs.file("--json", tmp_path / "a.json")
        folder = outputs.folder("--out", tmp_path / "deep" / "out")
        partial.write_text("1")
        (folder / "b.txt").write_text("2")
        assert not (tmp_path / "a.json").exists() and not (tmp_path / "deep" / "out").exists()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["a.json", "deep", "deep/out", "deep/out/b.txt"]


def test_a_folder_keeps_its_other_files(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("mine")
    with pytest.raises(RefusedError), Outputs(force=False) as outputs:
        outputs.folder("--out", tmp_path)
    with Outputs(force=True) as outputs:
        (outputs.folder("--out", tmp_path) / "page.html").write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.txt", "page.html"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with Outputs(force=False) as outputs:
        outputs.file("--json", tmp_path / "link").write_text("x")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "x"


def test_the_same_file_under_two_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(RefusedError, match="also what --json writes"), Outputs(force=False) as outputs:
        outputs.file("--json", tmp_path / "link")
        outputs.file("--trace", tmp_path / "target")


def test_a_full_disk_names_the_outputs_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FlashsimError, match="--out .*rows: No space left on device"), Outputs(force=False) as outputs:
        outputs.file("--out", tmp_path / "rows")
        raise OSError(errno.ENOSPC, "full")
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused_leaves_no_folders(tmp_path: Path) -> None:
    with pytest.raises(FlashsimError, match="a is a folder, but a file is needed"), Outputs(force=False) as outputs:
        outputs.folder("--out-dir", tmp_path / "a" / "b" / "c")
        outputs.file("--json", tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_a_file_system_of_its_own_is_filled(tmp_path: Path) -> None:
    """Nothing is moved there from another file system, which the system refuses in the end."""
    (tmp_path / "mounted").mkdir()
    with Outputs(force=False) as outputs:
        partial = outputs.folder("--out-dir", tmp_path / "mounted")
        assert partial.parent == tmp_path / "mounted"
        (partial / "page.html").write_text("x")
    assert [path.name for path in (tmp_path / "mounted").iterdir()] == ["page.html"]


def test_an_output_that_cannot_be_put_in_place_takes_no_other_along(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with pytest.raises(FlashsimError, match="^--out: cannot write .*: Broken pipe"), Outputs(force=False) as outputs:
        folder = outputs.folder("--out-dir", tmp_path / "new")
        pipe = outputs.file("--out", Path(f"/dev/fd/{writer}"))
        for path in (folder / "page.html", pipe, outputs.file("--json", tmp_path / "a.json")):
            path.write_text("x")
        os.close(reader)
    os.close(writer)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.json", "new", "page.html"]

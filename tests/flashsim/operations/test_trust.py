"""What comes from somebody else is not run, and does not write to the terminal what is not text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flashsim.core.errors import FlashsimWarning, RefusedError
from flashsim.core.preset_files import ALLOW_CODE
from flashsim.core.source_files import cache_of, check_trusted, is_trustworthy
from flashsim.experiments.runs import kept
from tests.commands import Run
from tests.flashsim.operations.test_bad_input import changed

ROOT = Path(__file__).parents[3]
PRESETS = ROOT / "flashsim" / "device" / "presets"


@pytest.mark.parametrize("name, preset", [("gc", "micron-p300"), ("scheduler", "seagate-st3300655lc")])
def test_a_preset_runs_no_file_unless_told_so(name: str, preset: str, here: Path, flashsim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW_CODE, "")  # and so put back in the end
    (here / "bad.py").write_text("open('was-run', 'w').close()\n")
    text = "\n".join(line for line in (PRESETS / f"{preset}.toml").read_text().splitlines() if not line.startswith(f"{name} ="))
    (here / "mine.toml").write_text(text.replace("[parameters]", f'[parameters]\n{name} = {{ value = "./bad.py", source = "a friend" }}'))
    result = flashsim("device bench mine.toml --quick --only order")
    assert result.exit_code == 2 and f"mine.toml: {name}: './bad.py'" in result.stderr and "--allow-code" in result.stderr
    assert result.stderr.count("\n") == 1 and not (here / "was-run").exists()
    result = flashsim("--allow-code device bench mine.toml --quick --only order")
    assert result.exit_code == 2 and "does not define" in result.stderr and (here / "was-run").exists()


def test_a_title_writes_no_control_characters(here: Path, flashsim: Run) -> None:
    text = (PRESETS / "ocz-core-60gb.toml").read_text()
    lines = [r'title = "\u001b]0;mine\u0007 drive"' if line.startswith("title") else line for line in text.splitlines()]
    (here / "mine.toml").write_text("\n".join(lines).replace('source = "', r'source = "\u001b[2J'))
    result = flashsim("device show mine.toml")
    assert result.exit_code == 0 and "mine  drive" in result.stdout
    assert result.stdout.replace("\n", "").isprintable()


@pytest.mark.parametrize("where", ["import", "run"])
def test_a_member_that_ends_the_program_is_named(where: str, here: Path, flashsim: Run) -> None:
    code = "from algorithms.joins.bnl import FORMULA, allocate\n"
    code += "raise SystemExit(3)\n" if where == "import" else "def join(*given):\n    raise SystemExit(3)\n    yield\n"
    (here / "mine.py").write_text(code)
    result = flashsim(changed(algorithm="mine.py"))
    assert result.exit_code == 2 and "SystemExit" in result.stderr and "3" in result.stderr and result.stderr.count("\n") == 1


def test_kernels_are_kept_where_nobody_else_writes(tmp_path: Path) -> None:
    code = "from flashsim.core.kernel import kernel\n@kernel\ndef one():\n    return 1\nprint(one())\n"
    (tmp_path / "mine.py").write_text(code)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FLASHSIM_CACHE": str(tmp_path / "new" / "cache")}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)

    before = os.umask(0)  # folders that are made may be written to by all, unless they are said to be private
    try:
        assert run().stdout == "1\n" and run().stdout == "1\n"
    finally:
        os.umask(before)
    (tmp_path / "new" / "cache" / "kernels").chmod(0o777)
    told = run()
    assert told.returncode == 1 and str(tmp_path / "new" / "cache" / "kernels") in told.stderr.splitlines()[-1]
    assert "can be written to by others (mode 777)" in told.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("which", ["root", "root/folder", "root/folder/file"])
def test_what_somebody_else_owns_is_not_loaded(which: str, tmp_path: Path) -> None:
    folder = tmp_path / "root" / "folder"
    folder.mkdir(parents=True)
    (folder / "file").write_text("")
    os.chown(tmp_path / which, 12345, -1)
    with pytest.raises(RefusedError, match=f"{tmp_path / which} belongs to user 12345, not to 0"):
        check_trusted(tmp_path / "root", folder)


def test_a_file_that_others_may_write_to_is_not_loaded_where_they_reach_it(tmp_path: Path) -> None:
    folder = tmp_path / "root" / "folder"
    check_trusted(tmp_path / "root", folder)
    (folder / "file").write_text("")
    (folder / "file").chmod(0o666)
    check_trusted.cache_clear()
    check_trusted(tmp_path / "root", folder)
    for each in (tmp_path / "root", folder):
        each.chmod(0o755)
    check_trusted.cache_clear()
    with pytest.raises(RefusedError, match=r"file can be written to by others \(mode 666\)"):
        check_trusted(tmp_path / "root", folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("which", ["above", "link"])
def test_a_way_that_somebody_else_owns_is_not_taken(which: str, tmp_path: Path) -> None:
    """Its owner could put another folder in the place of the one that was checked."""
    (tmp_path / "above" / "root" / "folder").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "above")
    os.chown(tmp_path / which, 12345, -1, follow_symlinks=False)
    check_trusted.cache_clear()
    with pytest.raises(RefusedError, match=f"{tmp_path / which} leads there and belongs to user 12345"):
        check_trusted(tmp_path / "link" / "root", tmp_path / "link" / "root" / "folder")


def test_a_way_that_others_may_write_to_is_taken_only_where_they_remove_nothing(tmp_path: Path) -> None:
    root = tmp_path / "above" / "root"
    (root / "folder").mkdir(parents=True)
    for folder in (root, root / "folder"):
        folder.chmod(0o700)
    for mode, refused in ((0o755, False), (0o777, True), (0o1777, False)):
        (tmp_path / "above").chmod(mode)
        check_trusted.cache_clear()
        if refused:
            with pytest.raises(RefusedError, match=r"above leads there and can be written to by others \(mode 777\)"):
                check_trusted(root, root / "folder")
        else:
            check_trusted(root, root / "folder")


def test_kept_results_that_others_may_have_written_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path))
    kept.keep({"seconds": 1}, "one")
    path = kept.place("results", "one.json")
    assert kept.recall("one") == {"seconds": 1}
    path.chmod(0o666)
    assert kept.recall("one") is None
    path.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        assert kept.recall("one") is None


@pytest.mark.parametrize("folder", ["", "results"])
@pytest.mark.parametrize("whose", ["written by others", "owned by others"])
def test_kept_results_of_a_folder_of_others_are_not_believed(
    folder: str, whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They could put one result of this user's in another's place."""
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path))
    kept.keep({"seconds": 1}, "one")
    if whose == "written by others":
        (tmp_path / folder).chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(tmp_path / folder, 12345, -1)
    else:
        pytest.skip("only root gives files away")
    with pytest.warns(FlashsimWarning, match=f"what is kept of earlier runs is not used: {tmp_path / folder} .*others|belongs"):
        assert kept.recall("one") is None
    assert not is_trustworthy(kept.place("results", "one.json"))


@pytest.mark.parametrize("value, folder", [("~/x", "home/x"), ("rel", None), ("./rel", None), ("~nobody-at-all/x", None)])
def test_the_cache_is_where_its_variable_says_or_nowhere(
    value: str, folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASHSIM_CACHE", value)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if folder:
        assert cache_of("kernels") == tmp_path / folder / "kernels"
    else:
        with pytest.raises(RefusedError, match=f"^FLASHSIM_CACHE: '{value}', but a whole path is needed"):
            cache_of("kernels")


def test_a_command_says_that_its_cache_is_nowhere(tmp_path: Path) -> None:
    words = changed().split()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FLASHSIM_CACHE": "rel"}
    told = subprocess.run([sys.executable, "-m", "flashsim", *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (2, "") and not list(tmp_path.iterdir())
    assert told.stderr == "flashsim: FLASHSIM_CACHE: 'rel', but a whole path is needed, such as ~/flashsim-cache\n"


def test_names_of_files_and_columns_control_no_terminal(here: Path, flashsim: Run) -> None:
    name = "a\x1b]0;mine\x07\nb\x9b2J"
    pq.write_table(pa.table({name: [1], "k": [name]}), here / f"{name}.parquet")
    result = flashsim(["smart", "run", "SELECT * FROM t", "--table", f"t={name}.parquet", "--device", "samsung-smart-400gb"])
    assert result.exit_code == 0 and result.stdout.replace("\n", "").isprintable() and "a ]0;mine  b 2J  k\n" in result.stdout
    result = flashsim(["smart", "run", f'SELECT "{name}x" FROM t', "--table", f"t={name}.parquet", "--device", "samsung-smart-400gb"])
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and result.stderr[:-1].isprintable()


@pytest.mark.deep
def test_a_report_on_a_file_whose_name_is_no_text(here: Path, flashsim: Run) -> None:
    name = os.fsdecode(b"caf\xe9.iolog")
    Path(name).write_text("fio version 2 iolog\nf add\nf open\nf read 0 4096\nf close\n")
    result = flashsim(["trace", "info", name, "--out-dir", "report"])
    assert result.exit_code == 0, result.output
    assert "caf?.iolog" in (here / "report" / "report.html").read_text()

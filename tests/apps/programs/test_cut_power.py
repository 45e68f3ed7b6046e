"""``flashsim crash``: a planted bug is found with a short recipe, careful programs pass, and a drive that ignores flushes is blamed."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from flashsim.apps.programs import images
from flashsim.apps.programs.face.record import _drive_of

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")

CAREFUL = """
import os
for word in ("apples", "pears"):
    with open("shop.new", "w") as file:
        file.write(word * 900)
        file.flush()
        os.fsync(file.fileno())
    os.rename("shop.new", "shop")
    folder = os.open(".", os.O_RDONLY)
    os.fsync(folder)
    print(word, flush=True)
"""
CHECK = """
import os
printed = open(os.environ["FLASHSIM_PRINTED"]).read().split()
text = open("shop").read() if os.path.exists("shop") else ""
assert text in ("", "apples" * 900, "pears" * 900), f"shop has {text[:20]!r} and so on"
assert not printed or text.startswith((printed[-1], "pears")), f"{printed[-1]} lost"
"""
SQLITE = """
import sqlite3, sys
c = sqlite3.connect("bank.db", isolation_level=None)
c.execute(f"pragma synchronous={sys.argv[1]}")
c.execute("create table t(k integer primary key, v text)")
for k in range(3):
    c.execute("insert into t values (?, ?)", (k, "x" * 500 * k))
    print(k, flush=True)
"""
SQLITE_CHECK = """
import os, sqlite3
printed = open(os.environ["FLASHSIM_PRINTED"]).read().split()
c = sqlite3.connect("bank.db")
assert c.execute("pragma integrity_check").fetchone()[0] == "ok"
assert not printed or c.execute("select count(*) from t").fetchone()[0] >= len(printed), "a committed row is lost"
"""


@pytest.fixture
def crash(flashsim: Any, here: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Cut the power of a Python program in an empty folder; the exit code and what --json has."""
    outside = tmp_path_factory.mktemp("programs")

    def run(program: str, check: str, *options: str, arguments: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
        for name, text in (("program.py", program), ("check.py", check)):
            (outside / name).write_text(text)
        line = ["crash", "--check", f"{sys.executable} -S {outside / 'check.py'}", "--json", str(outside / "cuts.json"), "--force"]
        result = flashsim([*line, *options, "--", sys.executable, "-B", str(outside / "program.py"), *arguments])
        assert result.exit_code in (0, 1), result.output
        return result.exit_code, json.loads((outside / "cuts.json").read_text())

    return run


def test_a_careful_program_passes(crash: Any) -> None:
    code, told = crash(CAREFUL, CHECK, "--outcomes", "16")
    assert code == 0 and told["failed_images"] == 0 and told["cuts"] > told["images"] > 15


@pytest.mark.deep
def test_what_children_print_to_the_program_is_not_its_output(crash: Any) -> None:
    child = "import subprocess\nsubprocess.run(['echo', 'hidden'], stdout=subprocess.PIPE, check=True)\n"
    code, told = crash(child + CAREFUL, CHECK, "--outcomes", "4")
    assert code == 0, told["failures"]


def test_a_rename_before_the_sync_is_found_with_its_recipe(crash: Any) -> None:
    code, told = crash(CAREFUL.replace("os.fsync(file.fileno())", "pass"), CHECK)
    assert code == 1 and told["failed_images"] > 0
    recipe = told["failures"][0]["recipe"]
    assert 1 <= len(recipe) <= 10 and any("write(shop.new" in line for line in recipe)


def test_a_drive_that_ignores_flushes_is_blamed(crash: Any) -> None:
    code, told = crash(CAREFUL, CHECK, "--ignore-flush")
    assert code == 1 and "It was the drive" in told["verdict"] and told["with_flushes"]["failed_images"] == 0
    code, told = crash(CAREFUL, CHECK, "--ignore-flush", "--cache", "protected")
    assert code == 0


def test_a_preset_says_what_its_cache_keeps(crash: Any) -> None:
    assert crash(CAREFUL, CHECK, "--ignore-flush", "--device", "intel-x25e-64gb", "--outcomes", "10")[0] == 1
    assert crash(CAREFUL, CHECK, "--ignore-flush", "--device", "memoright-gt-32gb", "--outcomes", "10")[0] == 0


def test_images_of_a_simulated_drive_are_among_those_that_are_checked(crash: Any) -> None:
    code, told = crash(SQLITE, SQLITE_CHECK, "--outcomes", "10", "--device", "intel-x25e-64gb", arguments=("extra",))
    there = told["on_drive"]
    assert code == 0 and there["lost_durable"] == 0 and there["cuts"] > there["images"] > 10 and there["images"] < told["images"]
    code, told = crash(CAREFUL.replace("os.fsync(file.fileno())", "pass"), CHECK, "--outcomes", "10", "--device", "intel-x25e-64gb")
    assert code == 1 and told["on_drive"]["images"] > 2


@pytest.mark.parametrize(("synchronous", "code"), [("extra", 0), ("off", 1)])
def test_sqlite(crash: Any, synchronous: str, code: int) -> None:
    found, told = crash(SQLITE, SQLITE_CHECK, "--outcomes", "12", arguments=(synchronous,))
    assert found == code, told["failures"]
    assert all(len(each["recipe"]) <= 10 for each in told["failures"])


@pytest.mark.parametrize(
    ("then", "name", "code"), [("", "shop", 1), ("os.fsync(file)", "shop", 0), ("os.fsync(file); os.rename('shop', 'sold')", "sold", 1)]
)
def test_the_power_is_cut_after_the_last_print(crash: Any, then: str, name: str, code: int) -> None:
    program = f"import os\nfile = os.open('shop', os.O_RDWR | os.O_CREAT)\nos.write(file, b'apples')\n{then}\nprint('committed')\n"
    check = f"import os\nassert not open(os.environ['FLASHSIM_PRINTED']).read() or open('{name}').read() == 'apples'\n"
    assert crash(program, check)[0] == code


SYNCHRONOUS = """
import os, sys
flag = os.O_DSYNC if sys.argv[1] == "flag" else 0
file = os.open("shop", os.O_RDWR | os.O_CREAT | flag)
for letter in (b"a", b"b", b"c"):
    os.pwrite(file, letter * 4096, 0)
    if not flag:
        os.fdatasync(file)
    print(letter)
"""
UNTORN = "import os\nassert not os.path.exists('shop') or len(set(open('shop').read())) < 2, 'torn'\n"


def test_a_synchronous_write_may_be_torn_while_it_is_under_way_and_the_drive_is_not_blamed(crash: Any) -> None:
    _, other = crash(SYNCHRONOUS, UNTORN, arguments=("sync",))
    Path("shop").unlink()
    code, told = crash(SYNCHRONOUS, UNTORN, arguments=("flag",))
    assert code == 1 and told["is_complete"] and told["failed_images"] == other["failed_images"] == 7 + 2 * 14
    assert all(each["recipe"][-1].startswith("torn: call") for each in told["failures"])
    assert sum(each["count"] for each in told["failures"]) == told["failed_images"] > len(told["failures"])
    few = crash(SYNCHRONOUS, "import os\nos.path.exists('shop')\n", "--outcomes", "8", arguments=("flag",))[1]
    assert not few["is_complete"] and "drawn" in few["verdict"] and max(each["tried"] for each in few["coverage"]) == 8
    assert "It was the drive" not in crash(SYNCHRONOUS, UNTORN, "--ignore-flush", arguments=("flag",))[1]["verdict"]


TWO_FILES = """
import os
files = [os.open(name, os.O_RDWR | os.O_CREAT) for name in "ab"]
for amount in (b"1", b"2"):
    for file in files:
        os.pwrite(file, amount, 0)
        os.fsync(file)
    print(amount, flush=True)
"""


def test_a_failure_that_loses_nothing_names_the_calls_around_it(crash: Any) -> None:
    check = "import os\nassert not open(os.environ['FLASHSIM_PRINTED']).read() or open('a').read() == open('b').read()\n"
    code, told = crash(TWO_FILES, check)
    recipe = told["failures"][0]["recipe"]
    assert code == 1 and recipe[0].startswith("durable: call 5: pwrite64(b"), recipe
    assert [line.split(" call")[0] for line in recipe[1:]] == ["kept:", "not made yet:"]


MOVED = """
import os
new = os.open("../new", os.O_RDWR | os.O_CREAT)
os.write(new, b"apples")
os.rename("../new", "shop")
os.symlink("shop", "link")
os.rename("link", "door")
os.fsync(os.open(".", 0))
"""
FOLLOWED = """
import os
log = os.open("log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
os.write(log, b"pears")
os.pwrite(log, b"plums", 0)
os.link("log", "other")
os.rename("log", "other")
copy = os.open("copy", os.O_RDWR | os.O_CREAT)
os.copy_file_range(log, copy, 7, 1, 0)
os.symlink("shop", "door")
os.unlink("door")
"""


def test_files_from_outside_symbolic_links_and_copies_are_followed(crash: Any) -> None:
    (Path.cwd() / "in").mkdir()
    check = "import os\nassert not os.path.lexists('door') or open('door').read() == 'apples'\n"
    for fsync, code in (("", 1), ("os.fsync(new)\n", 0)):
        assert crash(MOVED.replace('os.rename("../', fsync + 'os.rename("../'), check, "--folder", "in")[0] == code
        for path in Path("in").iterdir():
            path.unlink()
    code, told = crash(FOLLOWED, "import os\nos.path.exists('log')\n")
    assert code == 0 and not told["missed"]


COPIED = """
import os, sys
fresh = os.open("../fresh", os.O_RDWR | os.O_CREAT)
os.write(fresh, b"apples")
copy = os.open("copy", os.O_RDWR | os.O_CREAT)
os.copy_file_range(os.open(sys.argv[1], 0), copy, 6, 0)
if sys.argv[2] in ("changed", "swapped"):
    os.pwrite(copy, b"pears", 0)
if sys.argv[2] == "swapped":
    os.rename("../one", "../away")
    os.rename("../two", "../one")
os.unlink("../fresh")
"""


def test_bytes_that_the_kernel_copies_from_outside_are_known_or_refused(crash: Any, flashsim: Any) -> None:
    Path("in").mkdir()
    for folder, content in ((".", "apples"), ("one", "apples"), ("two", "grapes")):
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "old").write_text(content)
    time.sleep(0.05)  # it is older than the run by more than a tick of the clock of files
    check = "import os\nassert not os.path.exists('copy') or open('copy').read() in ('', 'apples', 'pearss')\n"
    for source, then in (("../old", "changed"), ("../fresh", "kept")):
        code, told = crash(COPIED, check, "--whole-pages", "--folder", "in", arguments=(source, then))
        assert code == 0 and not told["missed"], told
        Path("in/copy").unlink()
    for source, then in (("fresh", "changed"), ("one/old", "swapped")):
        result = flashsim(["crash", "--check", "true", "--folder", "in", "--", sys.executable, "-c", COPIED, f"../{source}", then])
        assert result.exit_code == 2 and f"copied by the kernel from {Path.cwd()}/{source}; its bytes are lost" in result.stderr
        Path("in/copy").unlink()


NAMED_IN_BYTES = r"""
import os
os.mkdir(b"\xff")
old = os.open(b"old\xfe", os.O_WRONLY | os.O_APPEND)
os.write(old, b"apples")
os.symlink(b"../old\xfe", b"\xff/\xfd")
script = os.open(b"\xff/run", os.O_WRONLY | os.O_CREAT, 0o755)
os.write(script, b"#!/bin/sh\nexit 0\n")
os.fsync(script)
"""


def test_names_that_are_not_utf_8_have_their_bytes_and_files_their_modes(crash: Any) -> None:
    Path(os.fsdecode(b"old\xfe")).write_text("two ")
    check = "import os\nif os.path.exists(b'\\xff/run') and os.path.getsize(b'\\xff/run'):\n"
    check += "    assert os.path.exists(b'\\xff/\\xfd') and os.system(b'\\xff/run') == 0\n"
    code, told = crash(NAMED_IN_BYTES, check + "    assert open(b'old\\xfe').read()[4:], 'no apples'\n")
    assert code == 1 and not told["missed"]
    assert all(each["output"].endswith("AssertionError: no apples") for each in told["failures"])
    assert any("write(old\\udcfe" in line for each in told["failures"] for line in each["recipe"])


LOGGED = """
import os
log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(log, b"rename new to old")
os.rename("new", "old")
os.write(1, b"renamed")
"""


@pytest.mark.deep
def test_failures_with_other_last_lines_are_told_each_though_one_recipe_leads_to_another(crash: Any) -> None:
    """The toy program of ALICE (Pillai et al., OSDI 2014): its log may be lost though the rename is there, and the rename, too."""
    Path("new").write_text("pears")
    check = "import os, sys, time\nprinted = open(os.environ['FLASHSIM_PRINTED']).read()\nis_renamed = os.path.exists('old')\n"
    check += "if is_renamed and not (os.path.exists('log') and open('log').read()): sys.exit(f'{time.time_ns()} rule 1')\n"
    check += "if printed and not is_renamed: sys.exit(f'{time.time_ns()} rule 2')\n"
    code, told = crash(LOGGED, check)
    lines = {each["output"].splitlines()[-1].partition(" ")[2]: each["recipe"] for each in told["failures"]}
    assert code == 1 and lines.keys() == {"rule 1", "rule 2"}
    assert [line.split(",")[0] for line in lines["rule 1"]] == ["lost: call 2: write(log"]
    assert [line.split(",")[0] for line in lines["rule 2"]] == ["lost: call 3: rename(new"]
    assert sum(each["count"] for each in told["failures"]) == told["failed_images"]


def test_a_check_that_looks_at_nothing_that_the_program_wrote_is_refused(crash: Any, flashsim: Any) -> None:
    Path("other").write_text("apples")
    program = "open('shop', 'w').write('pears')"
    for look in ("grep -q apples other", "grep pears $FLASHSIM_PRINTED; true"):
        result = flashsim(["crash", "--check", look, "--", sys.executable, "-S", "-c", program])
        assert result.exit_code == 2 and "the check opened none of the files that the program wrote: shop" in result.stderr, look
        assert len(result.stderr.splitlines()) == 1
        Path("shop").unlink()
    assert crash(program, "import os\nos.path.exists('shop')\n")[0] == 0
    result = flashsim(["crash", "--check", "true", "--", "true"])
    assert result.exit_code == 2 and "crash: the program wrote no file in " in result.stderr


#: Memory that may be written only later is not compared.
MAPPED = """
import ctypes, mmap
with open("shop", "wb+") as file:
    file.truncate(4096)
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    memory = library.mmap(None, 4096, 1, 1, file.fileno(), ctypes.c_long(0))
    assert library.mprotect(ctypes.c_void_p(memory), 4096, 3) == 0
    ctypes.memmove(memory, b"apples", 6)
"""


def test_what_is_not_followed_is_refused_with_the_first_file_that_differs(flashsim: Any, here: Path) -> None:
    result = flashsim(["crash", "--check", "true", "--", sys.executable, "-c", MAPPED])
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1, result.output
    assert "shop: the program left a file of 4,096 B, but" in result.stderr and "not recorded: writes through memory" in result.stderr


@pytest.mark.parametrize(
    ("device", "keeps"),
    [("intel-x25e-64gb", False), ("ocz-core-60gb", False), ("kioxia-cm7-r-3.84tb", True)],
)
def test_a_drive_that_ignores_flushes_keeps_what_its_preset_keeps(device: str, keeps: bool) -> None:
    """One writes behind from its controller's own memory, and has no write buffer."""
    assert _drive_of(device, None, ignore_flush=True, whole_pages=False).keeps_flushed == keeps


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["--check", "false", "--", "true"], "it fails before any cut"),
        (["--check", "true", "--", "no-such-program"], "no program 'no-such-program'"),
        (["--check", "true", "--", "false"], "the program itself failed (exit code 1)"),
        (["--check", "true", "--folder", "nowhere", "--", "true"], "nowhere is not a folder"),
        (["--check", "true", "--cache", "large", "--", "true"], "volatile"),
        (["--check", "true", "--device", "seagull", "--", "true"], "'seagull' is unknown"),
    ],
)
def test_bad_input_is_refused_in_a_line(flashsim: Any, line: list[str], told: str) -> None:
    result = flashsim(["crash", *line])
    assert result.exit_code == 2 and told in result.stderr and len(result.stderr.splitlines()) == 1, result.output


def test_folders_that_are_no_program_s_are_refused(flashsim: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = flashsim("crash --folder / --check true -- true")
    assert result.exit_code == 2 and "holds another file system, /" in result.stderr and result.stderr.count("\n") == 1
    monkeypatch.setattr(images, "_MOST_FILES", 2)
    for name in "abc":
        Path(name).touch()
    result = flashsim("crash --check true -- true")
    assert result.exit_code == 2 and "holds more files than the 2 at most whose images are made" in result.stderr

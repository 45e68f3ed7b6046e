"""Every example in a help text and in the tutorials runs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import flashsim as fs
import flashsim.apps.papers
from flashsim.apps.papers import base as papers
from flashsim.command_line import app
from flashsim.command_table import GROUPS
from tests.apps.calibration.validation.test_under_load import row, table
from tests.commands import Run
from tests.contract.test_replacement import PLAIN
from tests.flashsim.hdd.diskspecs.drive_files import write_drive

ROOT = Path(__file__).parents[3]
#: Pages whose commands and programs all run.
EXPLANATIONS = [
    ROOT / "docs" / "explanation" / f"{name}.md"
    for name in ("compiled_loop", "page_access", "page_fetching", "parallel_io", "replacement", "smart_ssd", "ssd_extension", "strands")
]
GUIDES = (
    "benchmark-a-device",
    "calibrate-a-device",
    "choose-a-drive",
    "cut-the-power-of-a-program",
    "extend-memory-your-way",
    "fetch-rows-your-way",
    "import-a-drive",
    "join-three-relations",
    "keep-rows-by-column",
    "precondition-a-drive",
    "read-a-report",
    "record-a-program",
    "replace-pages-your-way",
    "schedule-page-accesses",
    "test-your-own-part",
    "traces",
    "use-a-buffer-pool",
    "write-for-postgresql",
)
HOW_TO = [ROOT / "docs" / "how-to" / f"{name}.md" for name in GUIDES]
PAGES = [*sorted((ROOT / "docs" / "tutorials").glob("*.md")), *EXPLANATIONS, *HOW_TO, ROOT / "docs" / "reference" / "pools.md"]
COMMANDS = (
    "",
    "reproduce",
    "join",
    "fetch",
    "export",
    "record",
    "advise",
    "fleet",
    "crash",
    "settings",
    "stores",
    "device",
    "device list",
    "device show",
    "device bench",
    "device serve",
    "device calibrate",
    "device identify",
    "device import-diskspecs",
    "device new",
    "trace",
    "trace convert",
    "trace list",
    "trace info",
    "trace replay",
    "cache",
    "cache list",
    "cache simulate",
    "cache compare",
    "cache curve",
    "cache keep",
    "pool",
    "pool list",
    "pool run",
    "pool crash",
    "pool restart",
    "smart",
    "smart run",
    "check",
    "lab",
    "lab list",
    "lab start",
    "lab check",
    "lab grade",
    "lab leaderboard",
    "validate",
    "validate hdd",
    "validate joins",
    "validate ssd",
    "doctor",
)


#: What takes long in examples, and what stands for it here; `validate ssd` runs all claims in `test_published`.
SHORTER = {
    "reproduce do2009 --scale 0.1": "reproduce do2009 --scale 0.01",
    "ssd --json": "ssd --claim amplification --scale 0.02 --json",
    "--claim first --scale 0.1": "--claim amplification --scale 0.02",
    "My drive=micron-7450-pro-960gb": "My drive=micron-p300",
    "--time 5s": "--time 1s",
    "--cpu --time 1s": "--cpu --time 200ms",
    "calibrate --cpu --out": "calibrate --cpu --time 200ms --out",
    "first.db extra 100": "first.db extra 5",
    "mtron-msd-sata3025-16gb,samsung-mcaqe32g8,": "mtron-msd-sata3025-16gb,",
    ".db extra 2": ".db extra 1",
    ".db off 2": ".db off 1",
    "--outcomes 4": "--outcomes 2",
    "python3 ": f"{sys.executable} -S -E ",  # a script that looks for a Python, or a site's packages, take longer than the program
    "@0.1 ": "@0.01 ",
    "tpch:orders@0.01": "tpch:orders@0.002",
    "tpch:customer@0.01": "tpch:customer@0.002",
    "--scale 0.02 --memory 256KiB": "--scale 0.01 --memory 256KiB",
    'random="64MiB"': 'random="8MiB"',
    'state="steady"': 'state="random:0.1"',
    'memory=["256KiB", "512KiB", "1MiB"]': 'memory=["256KiB"]',
}
#: Figures of a drive.
FIGURES = "operation,depth,figure,value\n" + "".join(
    f"read,{each}\n" for each in ("1,iops,9000", "2,iops,17800", "4,iops,35000", "8,iops,62000", "16,iops,80000", "1,p50,110us")
)
#: What identifies it.
IDENTIFY = "device identify --figures figures.csv --preset micron-p300 --out mine.toml --json mine.json"
#: A program that replaces a file as one should.
CAREFUL = """
import os
with open("shop.new", "w") as file:
    file.write("pears")
    file.flush()
    os.fsync(file.fileno())
os.rename("shop.new", "shop")
"""


def write_submissions() -> None:
    """Submissions of labs: two notebooks that are right, and a Python file."""
    for name in ("ada", "bo"):
        shutil.copy(ROOT / "labs" / "replacement.ipynb", f"replacement_{name}.ipynb")
    for name in ("mine.py", "disk-scheduling_cy.py"):
        Path(name).write_text("def sstf(waiting, head):\n    return 0\n", encoding="utf-8")


def examples(text: str) -> list[str]:
    """Lines that begin with ``flashsim``, continued lines joined."""
    joined = re.sub(r"\\\n\s*", "", text)
    return [line.strip() for line in joined.splitlines() if line.strip().startswith("flashsim ")]


def read(line: str) -> None:
    """Read a line as its command does, which then does not run."""
    words: list[str] = shlex.split(shortened(line), comments=True)[1:]
    command: Any = get_command(app)
    context = command.make_context("flashsim", words)
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, words, parent=context)


def help_of(command: str, option: str = "--help-all") -> str:
    """What a command, or a group, prints as its help."""
    option = "--help" if command in GROUPS or not command else option
    shown = CliRunner().invoke(app, [*command.split(), option], prog_name="flashsim")
    assert shown.exit_code == 0, command
    return shown.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_screen_and_names_what_it_leaves_out(command: str, here: Path) -> None:
    """A family's names stand once; options that ``--help`` leaves out are among those of ``--help-all``."""
    shown, whole = help_of(command, "--help"), help_of(command)
    assert len(shown.splitlines()) <= (80 if command in ("pool run", "advise") else 60)
    of_part, of_all = (set(re.findall(r"(?m)^  (--[\w-]+)", text)) for text in (shown, whole))
    assert of_part <= of_all and not {"--json", "--force"} & (of_all - of_part)
    assert (f"--help-all shows {len(of_all - of_part)} more options" in shown) == (of_part != of_all)
    assert whole.count("clock-pro") <= 1 and whole.count("toshiba-5400-320gb, ") == 0 and whole.count("para-hash, ") <= 1


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_summaries_of_commands_are_short_and_whole(group: str) -> None:
    rows = re.findall(r"(?m)^  ([\w-]+)  +(\S.*)$", help_of(group).partition("Commands:")[2])
    assert len(rows) > 0 and all(len(text) <= 50 and text.endswith(".") and "..." not in text for _, text in rows), rows


def test_every_help_text_fits_a_terminal_and_every_example_is_read(here: Path) -> None:
    """In help texts and on all pages; those of help texts run in the deep tier, and a run of each command in `test_terminal`."""
    lines = []
    for command in COMMANDS:
        shown = help_of(command)
        assert max(map(len, shown.splitlines())) <= 80, command
        found = examples(shown.split("Examples:")[1])
        assert found and all(line.startswith(f"flashsim {command}".strip()) for line in found), command
        lines += found
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        text = "".join(blocks).replace(".venv/bin/", "").replace(" &  ", " #  ")
        lines += [line for line in examples(text) if "--install-completion" not in line]
    for line in lines:
        try:
            read(line)
        except Exception as problem:
            pytest.fail(f"{line}\n{problem}")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_and_they_run(command: str, here: Path) -> None:
    if command in ("record", "crash", "stores") and not shutil.which("strace"):
        pytest.skip("strace is not installed")
    if command == "check":
        Path("mine.py").write_text(PLAIN)
    if command.startswith("lab"):
        write_submissions()
        if command == "lab check":
            shutil.copy("replacement_ada.ipynb", "replacement.ipynb")
    if command == "crash":
        Path("careful.py").write_text(CAREFUL)
    found = examples(help_of(command).split("Examples:")[1])
    if command.startswith(("trace", "advise", "fleet")):
        made = "join bnl --r do2009:customer@0.01 --s do2009:orders@0.01 --on c_custkey=o_custkey --device ocz-core-60gb --memory 256KiB"
        assert CliRunner().invoke(app, [*made.split(), "--trace", "bnl.parquet"]).exit_code == 0
        Path("requests.csv").write_text("Stamp,LBA,Size\n0.5,64,4096\n2,128,512\n", encoding="utf-8")
    if command == "trace replay":
        made = "pool run zipf:pages=500,each=5,write-share=1 --design lc --memory 1MB --ssd 2MB --clients 2 --time 1s"
        recorded = [*made.split(), "--log", "rates:read=9,write=999", "--trace", "pool.parquet"]
        assert CliRunner().invoke(app, recorded).exit_code == 0
    if command == "fetch":
        Path("edges.csv").write_text("r,s,weight\n1,a,3\n1,b,1\n1,c,1\n2,a,1\n2,c,5\n", encoding="utf-8")
    if command.startswith("cache"):
        Path("pages.txt").write_text("\n".join(map(str, [*range(50), *range(20)] * 20)), encoding="utf-8")
    if command == "device import-diskspecs":
        named = write_drive(here).read_text(encoding="utf-8").replace("SMALL_ST-1.x", "MY_DISK")
        Path("drive.parv").write_text(named, encoding="utf-8")
        disk = Path("small.diskspecs")
        disk.write_text(disk.read_text(encoding="utf-8").replace("SMALL_ST-1.x", "MY_DISK"), encoding="utf-8")
    if command.startswith("validate"):
        Path("measured.csv").write_text(table(row("My drive", 1000, 2000, used=2)), encoding="utf-8")
        reads = "engine,rw,bs,queue_depth,processes,iops,p50_us,p99_us\nspdk,randread,4k,1,1,16583,56,69\n"
        Path("reads.csv").write_text(reads, encoding="utf-8")
        Path("measured.trace").write_text("R Miss 564347 2 14095.270 13876.270\nW Hit 564349 4 1414.000 18746.770\n", encoding="utf-8")
    for line in found:
        if command == "device serve" and "--run" not in line:
            continue  # serves until it is told to stop
        if command == "device identify":
            assert line == f"flashsim {IDENTIFY}"  # runs for half a minute, in `test_terminal`
            continue
        result = CliRunner().invoke(app, shlex.split(shortened(line))[1:], prog_name="flashsim")
        finds_a_violation = "crash" in line and ("--without" in line or "--ignore-flush" in line)
        assert result.exit_code == int(finds_a_violation), f"{line}\n{result.output}"


def test_the_cheat_sheet_has_every_command_and_every_name() -> None:
    sheet = (ROOT / "docs" / "reference" / "cheat_sheet.md").read_text(encoding="utf-8")
    groups = {command.rpartition(" ")[0] for command in COMMANDS}
    assert set(re.findall(r"`flashsim ([a-z -]+?)(?: --help)?`", sheet)) == set(COMMANDS) - groups
    assert {getattr(fs, name) for name in re.findall(r"`fs\.(\w+)\(", sheet)} == {getattr(fs, name) for name in dir(fs) if name[0] != "_"}


def test_no_command_is_left_out(flashsim: Run) -> None:
    listed = [
        re.findall(r"^  ([\w-]+)  ", flashsim(f"{group} --help").stdout.split("Commands:")[1], re.MULTILINE)
        for group in ("", "device", "trace", "cache", "pool", "smart", "lab", "validate")
    ]
    groups = [
        f"{group} {name}".strip()
        for group, names in zip(("", "device", "trace", "cache", "pool", "smart", "lab", "validate"), listed, strict=True)
        for name in names
    ]
    assert sorted(groups) == sorted(COMMANDS[1:])


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_the_lines_of_readme_run_and_print_what_it_shows(
    here: Path, flashsim: Run, small_scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace(".venv/bin/", "")
    first, *lines = re.findall(r"(?:&& )?(flashsim .*)", "".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)))
    (shown,) = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert shown in flashsim(first.removeprefix("flashsim ")).stdout
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if file := re.match(r"# (\w+\.py)\n", block):
            Path(file[1]).write_text(block, encoding="utf-8")
        else:
            exec(block, {})
    for line in [*lines, *re.findall(r"`(flashsim trace [^`]*)`", text)]:
        _succeeds(line)


def test_the_front_page_shows_what_is_printed(flashsim: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```sh\nflashsim ([^`]*)\n```\n\n```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(shown) == text.count("```text") == 3
    for line, output in shown:
        assert output in flashsim(line.replace("\\\n", "")).stdout, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorials_run(page: Path, here: Path, request: pytest.FixtureRequest) -> None:
    text = page.read_text(encoding="utf-8")
    if re.search("flashsim (crash|record)", text) and not shutil.which("strace"):
        pytest.skip("strace is not installed")
    if "reproduce do2009" in text:
        request.getfixturevalue("small_scale")
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for description in page.parent.glob("*.diskspecs"):
        shutil.copy(description, here)
    names: dict[str, object] = {}
    for language, block in blocks:
        if language == "python":
            if file := re.match(r"# (\w+\.py)\n", block):
                Path(file[1]).write_text(block, encoding="utf-8")
            else:
                exec(compile(shortened(block), str(page), "exec"), names)
            continue
        for line in re.findall(r"^printf .*", block, re.MULTILINE):
            subprocess.run(line, shell=True, check=True)
        for line in examples(block):
            if not line.startswith("flashsim device identify"):  # runs for half a minute, in `test_terminal`
                _succeeds(line)


def test_the_guide_to_reproductions_runs(here: Path, monkeypatch: pytest.MonkeyPatch, small_scale: float) -> None:
    """Its commands, with the paper that it adds, on a cluster of one worker."""
    text = (ROOT / "docs" / "how-to" / "reproduce_a_paper.md").read_text(encoding="utf-8")
    folder = here / "slides2009"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""The backup slides."""\n')
    for name, content in re.findall(r"^```(?:toml|python)\n# ([\w.]+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(content, encoding="utf-8")
    places = [*flashsim.apps.papers.__path__, str(here)]
    monkeypatch.setattr(flashsim.apps.papers, "__path__", places)
    monkeypatch.setattr(flashsim.apps.papers.__spec__, "submodule_search_locations", places)
    assert papers.PAPERS.names() == ["do2009", "do2012", "li2009", "shin2016", "slides2009"]
    commands = examples("".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)))
    assert sum("slides2009" in line for line in commands) == 1 and sum("--cluster" in line for line in commands) == 1
    for line in commands:
        if "--cluster" in line:
            distributed = pytest.importorskip("distributed")
            with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
                _succeeds(re.sub(r"tcp:\S+", cluster.scheduler_address, line))
        else:  # other processes would not find the paper's folder here
            _succeeds(f"{line} --jobs 1" if "slides2009" in line else line)
    assert (here / "results" / "do2009" / "report.html").exists() and (here / "fig3.json").exists()


def shortened(text: str) -> str:
    """An example that measures for a shorter time, or runs at a smaller scale."""
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    return text


def _succeeds(line: str) -> None:
    line = shortened(line)
    result = CliRunner().invoke(app, shlex.split(line, comments=True)[1:], prog_name="flashsim")
    code = re.search(r"  # exit code (\d)$", line)
    assert result.exit_code == int(code[1] if code else 0), f"{line}\n{result.output}"


def test_the_guide_to_real_hardware_runs(here: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "replay-on-hardware.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for line in re.sub(r"\\\n\s*", "", "".join(blocks)).splitlines():
        if not line.startswith("flashsim "):
            subprocess.run(line, shell=True, check=True)
        elif "--engine fio" not in line or shutil.which("fio"):
            result = CliRunner().invoke(app, shlex.split(line)[1:], prog_name="flashsim")
            assert result.exit_code == 0, f"{line}\n{result.output}"
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(compile(block, "replay-on-hardware.md", "exec"), {})
    assert (here / "shown" / "comparison_read.svg").exists() and not (here / "disk.bin").exists()

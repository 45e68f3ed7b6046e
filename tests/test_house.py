"""The house: what README, CI, packaging and licence promise holds."""

from __future__ import annotations

import ast
import configparser
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

import flashsim
from flashsim.core.members import Family
from flashsim.operations import FORMER_OPTIONS, RENAMED
from tests.cases import with_each

ROOT = Path(__file__).parents[1]
PACKAGES = ("flashsim", "models", "algorithms", "traces")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
SETUP = configparser.RawConfigParser()
SETUP.read(ROOT / "setup.cfg")

#: Keys of a Parquet file's metadata, which are named like modules.
METADATA = ("flashsim.trace.version", "flashsim.trace.unknown", "flashsim.provenance")


def commands(page: str) -> list[str]:
    """The shell commands of a page's fenced blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def distributions(section: str, option: str) -> set[str]:
    """The names of the distributions that an option of setup.cfg asks for."""
    lines = SETUP.get(section, option).split()
    return {name.lower().replace("_", "-") for line in lines if (name := re.split(r"[<>=\[]", line)[0])}


def test_readme_has_two_commands_and_each_does_all_set_up() -> None:
    main, *own, test = [line for line in commands("README.md") if "[notebook]" not in line and "[docs]" not in line]
    for command in (main, test):
        assert re.match(r"python3 -m venv \.venv && \.venv/bin/pip install .+ && \.venv/bin/", command)
    assert ".venv/bin/flashsim join " in main and main.count("--device") == 3
    assert test.endswith("python -m tests")
    assert "[test]" in test
    assert [line.split()[:2] for line in own] == [
        [".venv/bin/flashsim", name] for name in ("record", "advise", "crash", "reproduce", "lab")
    ]
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110


@with_each("folder", ["tutorials", "how-to", "reference", "explanation", "decisions", "releases"])
def test_an_index_lists_every_page_by_its_title(folder: str) -> None:
    """Without Sphinx too, which would make the list of a pattern."""
    index = (ROOT / "docs" / folder / "index.md").read_text()
    links = {name: title for title, name in re.findall(r"\[([^\]]+)\]\(([^)/]+\.md)\)", index.partition("```{toctree}")[0])}
    pages = {path.name: path.read_text() for path in (ROOT / "docs" / folder).glob("*.md") if path.name != "index.md"}
    titles = {name: re.sub(r"^\d+[.:] ", "", text.partition("# ")[2].partition("\n")[0]) for name, text in pages.items()}
    assert {name: links.get(name) for name in titles} == titles


def test_what_pages_and_notebooks_import_says_what_it_is() -> None:
    """Functions and classes that a page of the documentation, a notebook or the README imports have docstrings."""
    texts = [
        (ROOT / "README.md").read_text(),
        *(path.read_text() for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts),
    ]
    texts += [path.read_text().replace("\\n", "\n") for path in (ROOT / "notebooks").glob("*.ipynb")]
    imports = re.findall(rf"from ((?:{'|'.join(PACKAGES)})[\w.]*) import \(?([\w, \n]+)", "\n".join(texts))
    members = {(module, name) for module, names in imports for name in re.findall(r"\w+", names)}
    things = {name: getattr(importlib.import_module(module), name, None) for module, name in members}
    shown = {name: thing for name, thing in things.items() if inspect.isfunction(thing) or inspect.isclass(thing)}
    assert len(shown) > 50
    assert not [name for name, thing in shown.items() if not thing.__doc__]


@pytest.mark.skipif(os.name != "posix" or not shutil.which("bash"), reason="bash is not installed")
def test_ci_runs_readmes_test_command(tmp_path: Path) -> None:
    """In a copy whose README has another command between its markers, that command runs, with the data's folder set."""
    home, data = tmp_path / "home", tmp_path / "shared" / "data"
    (home / ".ci").mkdir(parents=True)
    data.mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", home / ".ci" / "run")
    told = (ROOT / "README.md").read_text()
    test = commands("README.md")[-1]
    assert told.count(test) == 1
    (home / "README.md").write_text(told.replace(test, 'echo "data in $FLASHSIM_TEST_DATA"; exit 7'))
    (tmp_path / "dpkg-query").write_text("#!/bin/sh\nprintf installed\n")  # so that there is nothing to install
    (tmp_path / "dpkg-query").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "FLASHSIM_TEST_DATA"}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    done = subprocess.run([str(home / ".ci" / "run")], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert done.stdout.splitlines()[-1] == f"data in {data}"
    given = subprocess.run([str(home / ".ci" / "run")], env=environment | {"FLASHSIM_TEST_DATA": "mine"}, capture_output=True, text=True)
    assert given.stdout.splitlines()[-1] == "data in mine"


@pytest.mark.skipif(os.name != "posix" or not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize("works", [True, False])
def test_ci_installs_the_programs_that_judge_and_goes_on_without(works: bool, tmp_path: Path) -> None:
    """On a machine that has none of them and a package manager of the test's own."""
    home, programs = tmp_path / "home", tmp_path / "bin"
    (home / ".ci").mkdir(parents=True)
    programs.mkdir()
    shutil.copy(ROOT / ".ci" / "run", home / ".ci" / "run")
    (home / "README.md").write_text("<!-- test command -->\n```sh\necho done\n```\n<!-- end -->\n")
    log = tmp_path / "log"
    scripts = {
        "apt-get": f'echo "$@" >> {log}; exit {0 if works else 100}',
        "dpkg-query": "exit 1",
        "install": "cat >/dev/null",
        "sudo": '[ "$1" = -n ] && shift; exec "$@"',
    }
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run([str(home / ".ci" / "run")], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "done" and done.stderr == ""
    asked = [line.split() for line in log.read_text().splitlines()]
    assert "update" in asked[0]
    assert [words[-1] for words in asked[1:]] == ["fio", "blktrace", "libnbd-bin", "fuse3", "chromium", "postgresql", "strace"]
    assert done.stdout.count("could not be installed") == (0 if works else 7)


def test_every_import_is_installed_by_the_distribution_or_an_extra() -> None:
    promised = distributions("options", "install_requires")
    for extra in ("cluster", "tpch", "notebook", "testing"):
        promised |= distributions("options.extras_require", extra)
    provided = packages_distributions()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: relative import"
                names = [node.module or ""]
            else:
                continue
            for name in (name.partition(".")[0] for name in names):
                if name not in PACKAGES and name not in sys.stdlib_module_names:
                    owners = {owner.lower().replace("_", "-") for owner in provided.get(name, [name])}
                    assert owners & promised, f"{path} imports {name}, which setup.cfg does not install"


def test_every_package_and_module_opens_with_a_sentence() -> None:
    for path in SOURCES:
        said = ast.get_docstring(ast.parse(path.read_text()))
        assert said, path
        assert re.search(r"[.:]$", said.splitlines()[0]) or "\n\n" not in said, path


def test_every_folder_of_modules_is_a_package() -> None:
    for folder in {path.parent for path in SOURCES}:
        assert (folder / "__init__.py").is_file(), f"{folder} would not be installed"
    for package in PACKAGES:
        assert (ROOT / package / "py.typed").is_file()


def test_licence_and_version_are_stated_once() -> None:
    licence = (ROOT / "LICENSE").read_text()
    assert "Apache License" in licence
    assert "Version 2.0, January 2004" in licence
    assert SETUP.get("metadata", "license") == "Apache-2.0"
    assert SETUP.get("metadata", "version") == "attr: flashsim.__version__"
    assert re.fullmatch(r"\d+\.\d+\.\d+", flashsim.__version__)


def test_the_release_has_one_page_and_one_version() -> None:
    version, released = re.search(r"(?m)^## \[(\S+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text()).groups()  # type: ignore[union-attr]
    citation = (ROOT / "CITATION.cff").read_text()
    assert version == flashsim.__version__ and f"\nversion: {version}\ndate-released: {released}\n" in citation
    page = (ROOT / "docs" / "releases" / f"{version}.md").read_text()
    assert page.startswith(f"# {version}\n\nReleased on {released}.") and len(page.splitlines()) <= 90
    assert len((ROOT / "CHANGELOG.md").read_text().splitlines()) <= 60
    former = [*RENAMED, *FORMER_OPTIONS]
    assert all(re.search(rf"`[^`]*\b{name.replace('-', '[-_]')}\b", page) for name in former), former


@with_each("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text())
    assert links
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(path.name[:4]) for path in sorted((ROOT / "docs" / "decisions").glob("0*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports for types count too: what two modules need of each other belongs below both."""
    trees = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in SOURCES}
    graph: dict[str, set[str]] = {}
    for module, path in trees.items():
        imports = [each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.ImportFrom)]
        names = [(str(each.module), f"{each.module}.{alias.name}") for each in imports for alias in each.names]
        graph[module] = {name if name in trees else package for package, name in names} & trees.keys() - {module}
    TopologicalSorter(graph).prepare()  # names the first circle


def test_what_kind_a_drive_is_shows_below_the_device_s_face_alone() -> None:
    """Rooms above ask a preset or a device (`flashsim.device.presets.Preset`), and do not look which class it is made of."""
    kinds = re.compile(r"\b(Hdd|Ssd)[A-Z]\w*")
    below = [ROOT / "flashsim" / room for room in ("device", "hdd", "ssd")]
    asked = [
        f"{path.relative_to(ROOT)}:{each.lineno}"
        for path in [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]
        if not any(path.is_relative_to(room) for room in below)
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.Call) and ast.unparse(each.func) in ("isinstance", "issubclass", "type") and kinds.search(ast.unparse(each))
    ]
    assert asked == []


def classes(path: Path) -> list[str]:
    """Names of the classes at the level of a module, also under a condition, without the underscore of private ones."""
    body: list[ast.stmt] = list(ast.parse(path.read_text()).body)
    names = []
    while body:
        node = body.pop()
        if isinstance(node, ast.ClassDef):
            names.append(node.name.lstrip("_"))
        elif isinstance(node, ast.If | ast.Try | ast.With):
            body += [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
    return names


def test_a_class_s_name_occurs_once_in_the_project() -> None:
    """Members of a family whose contract says what a class of theirs is called (`flashsim.core.members.Family`) count as one place."""
    homes = [path for path in SOURCES if re.search(r"^[A-Z_]+ = Family\(", path.read_text(), re.MULTILINE)]
    modules = [importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)) for path in homes]
    families = [each for module in modules for each in vars(module).values() if isinstance(each, Family)]
    contracts = {ROOT.joinpath(*each.package.split(".")): {*each.needs, *each.usual, *chain(*each.forms)} for each in families}
    places: dict[str, list[Path]] = {}
    for path in SOURCES:
        by_contract = contracts.get(path.parent, set()) if path not in homes else set()
        for name in classes(path):
            place = path.parent if name in by_contract else path
            if place == path or place not in places.get(name, []):
                places.setdefault(name, []).append(place)
    assert len(contracts) > 20 and len(places) > 700
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def functions(path: Path) -> list[ast.FunctionDef]:
    """The functions of a module, methods and nested ones too."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]


#: Names of functions that stay: the field's adjectives beside a field of that kind, functions that students write, and nouns.
PARTICIPLES = {"joined", "measured", "pinned", "published", "bound", "recovered", "unfinished"}
IRREGULAR = "bound|broken|chosen|done|drawn|found|given|held|hidden|kept|left|lost|made|met|sent|shown|taken|told|worn|written"


def test_a_function_is_not_named_by_a_participle_alone() -> None:
    names = {function.name.strip("_") for path in SOURCES for function in functions(path)}
    assert {name for name in names if re.fullmatch(rf"[a-z]*[^e]ed|{IRREGULAR}", name)} - PARTICIPLES == set()


def test_no_kernel_takes_more_than_twelve_parameters_and_none_that_a_user_writes_more_than_five() -> None:
    """State travels in named groups; what a member of a family defines is what a user writes."""
    for path in SOURCES:
        place = path.relative_to(ROOT).as_posix()
        for function in functions(path):
            if not any("kernel" in ast.unparse(decorator) for decorator in function.decorator_list):
                continue
            parameters = len(function.args.args)
            members = re.match(r"flashsim/(ssd/(ftl|gc|wear)|hdd/scheduler)/[a-z]", place)
            written = members and function.name in ("translate", "victim", "opens", "levels", "choose")
            assert parameters <= (5 if written else 12), f"{place}: {function.name} takes {parameters}"


def test_what_pages_and_sources_name_is_there() -> None:
    """Modules, what they define, and paths of the project, where they stand as code in pages, and decisions that sources cite."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*/*.md")]
    pages = [page for page in pages if page.parent.name != "gallery"]  # made of notebooks
    spans = {(page, span) for page in pages for span in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))}
    assert len(spans) > 1_000
    gone = []
    for page, span in spans:
        if re.fullmatch(rf"(?:{'|'.join(PACKAGES)})(?:\.[a-z_]\w*)+(?<!\.py)", span) and span not in METADATA:
            parts = span.split(".")
            owner = next(found for end in range(len(parts), 0, -1) if (found := ROOT.joinpath(*parts[:end])) and _module(found))
            rest = parts[len(owner.relative_to(ROOT).parts) :]
            gone += [(page, span)] if rest and not re.search(rf"\b{rest[0]}\b", _module(owner)) else []
        elif re.fullmatch(rf"(?:{'|'.join(PACKAGES)}|tests|docs|labs|notebooks)(?:/[\w.-]+)+/?", span) and "_build" not in span:
            gone += [(page, span)] if not (ROOT / span).exists() else []
    numbers = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("0*.md")}
    cited = [(path, number) for path in SOURCES for number in re.findall(r"docs/decisions/(\d{4})", path.read_text(encoding="utf-8"))]
    assert [*gone, *(each for each in cited if each[1] not in numbers)] == []


def _module(path: Path) -> str:
    """The text of a module or package; empty if there is none."""
    files = [each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()]
    return files[0].read_text(encoding="utf-8") or " " if files else ""


def test_modules_are_short_functions_fit_a_screen_and_units_are_converted_by_their_names() -> None:
    """Commands are left out, and the front door's arguments with their docstrings: they declare what may be asked.

    Nothing is multiplied or divided by a thousand, a million or a billion of its own: `flashsim.core.units` names them.
    """
    powers = {f"{10**power}" for power in (3, 6, 9, 12)} | {f"10 ** {power}" for power in (6, 9, 12)}
    powers |= {f"{10.0**power}" for power in (3, 6, 9, 12)}
    scaling, by_hand = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod), []
    for path in SOURCES:
        place, text = path.relative_to(ROOT).as_posix(), path.read_text()
        assert text.count("\n") <= 400, f"{place} has {text.count(chr(10))} lines"
        for each in ast.walk(ast.parse(text)):
            if isinstance(each, ast.FunctionDef):
                declared = {"face", "commands", "command.py"} & {*path.parts} and ast.get_docstring(each)
                before = each.body[0].end_lineno or 0 if declared else each.lineno - 1
                lines = (each.end_lineno or 0) - before
                assert lines <= 60, f"{place}: {each.name} has {lines} lines"
            if isinstance(each, ast.BinOp) and isinstance(each.op, scaling) and path.name != "units.py":
                sides = {ast.unparse(side) for side in (each.left, each.right) if isinstance(side, ast.Constant | ast.BinOp)}
                by_hand += [f"{place}:{each.lineno}: {ast.unparse(each)}"] if powers & sides else []
    assert by_hand == []

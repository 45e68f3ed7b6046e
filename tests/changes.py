"""Which tests a change can touch: those that refer to a definition that it changes, however indirectly, or read a file that it changes.

What is loaded by name counts where a test's texts, or those of what it refers to, have the name: members of families, presets, commands.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any

from tests.definitions import ROOMS, Definition, Definitions, Module, names_of

ROOT = Path(__file__).resolve().parents[1]
#: All tests rest on these.
_EVERYTHING = ("setup.cfg", "tests/times.py")
#: A test that reads every file, one that reads all sources, and one that reads all of families and their members.
_READS_ALL, _READS_SOURCES, _READS_FAMILIES = "tests/test_house.py", "tests/test_package.py", "tests/contract/test_families.py"
#: What lists the names that a shell completes, and the text in tests of it.
_COMPLETION = {"flashsim.operations.command:values", "flashsim.operations.command:_FAMILIES"}
_COMPLETES = "_FLASHSIM_COMPLETE"
_APP, _COMMANDS = "flashsim.operations.command_line:app", "flashsim.operations.command_line:COMMANDS"
#: Tests that run on pages or notebooks, one at a time.
_BY_PAGE = {
    "tests/notebooks/test_notebooks.py": (
        "notebooks/",
        ("test_it_runs_and_gives_what_is_kept", "test_it_is_kept_lean_and_its_pictures_are_described"),
    ),
    "tests/flashsim/operations/test_examples.py": ("docs/", ("test_tutorials_run",)),
}
_WORD = re.compile(r"[\w.*-]+")
_FROM = re.compile(r"from ([\w.]+) import (\([^)]*\)|[^\n;]+)")
_FACE = re.compile(r"\bfs\.(\w+)")
_LINE = re.compile(r"(?:^|flashsim |\n)\s*(?:--allow-code )?([a-z]+)(?: ([a-z-]+))?")
_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


class Selection:
    """The tests of a tree, given by the texts of its files by path.

    What a test rests on is a set of bits: of definitions and files that it reaches, and of what their texts say, by its kind.
    """

    def __init__(self, files: Mapping[str, Callable[[], str]]) -> None:
        self.files = files
        self.paths = {module: path for path in files if (module := module_of(path))}
        self.folders = {module: str(PurePosixPath(path).parent) for module, path in self.paths.items()}
        self.tree = Definitions({module: files[path]() for module, path in self.paths.items()})
        self.commands = self._commands()
        self.names = {
            each
            for path in files
            for place in [PurePosixPath(path)]
            for each in (*place.parts, place.stem, place.suffix, f"*{place.suffix}")
        }
        self.names |= {name.replace("_", "-") for name in self.names} | {_COMPLETES, "-m"}
        self.parts = {*self.commands, *(part for command in self.commands for part in command.split())}
        self.pages = [path for path in files if not _is_room(path) and path.endswith((".md", ".ipynb"))]
        self.bits: dict[str, int] = {}
        self._reached: dict[tuple[frozenset[str], str], int] = {}
        self.edges = {
            f"{module}:{name}": self._edges(module, name) for module in self.paths for name in ("*", *self.tree.modules[module].definitions)
        }
        self.edges |= {
            f"file {path}": self._edges_of_file(path)
            for path in files
            if path in self.pages or (_is_room(path) and not path.endswith(".py"))
        }
        self.closures = self._closures()
        self.rules = [*self._rules()]

    def _commands(self) -> dict[str, str]:
        """The definition of each command."""
        module, _, name = _COMMANDS.partition(":")
        body = self.tree.modules[module].tree.body if module in self.tree.modules else []
        table: dict[str, Any] = next(
            (ast.literal_eval(node.value) for node in body if isinstance(node, ast.AnnAssign) and node.value and names_of(node) == [name]),
            {},
        )
        whole = {f"{group} {each}": at for group, places in table.items() if isinstance(places, dict) for each, at in places.items()}
        whole |= {each: at for each, at in table.items() if isinstance(at, str)}
        return {command: f"flashsim.operations.{at}" for command, at in whole.items()}

    def _edges(self, module: str, name: str) -> set[str]:
        """What a definition leads to, and what its texts say; those of tests may also be command lines, paths, code, and fixtures."""
        found, is_test = self.tree[f"{module}:{name}"], module.startswith("tests.")
        edges = {f"{module.rsplit('.', above)[0]}:" for above in range(module.count(".") + 1)} - {f"{module}:{name}"}
        if name == "*":
            edges |= {f"{module}:{each}" for each in self.tree.modules[module].definitions}
        if not found or f"{module}:{name}" in _COMPLETION:
            return edges
        edges |= {each for dotted in found.refers for each in self.tree.resolved(dotted)}
        edges |= {f"{each}?" for dotted in found.asks for each in self.tree.resolved(dotted)}
        if is_test:
            edges |= self._said(found.texts)
            if "flashsim" in found.refers:  # whatever name of it
                edges |= {f"{each}:*" for each in self.tree.below("flashsim.operations.face")}
        else:
            edges |= {f"word {word}" for text in found.texts if " " not in text for word in self.names.intersection(_WORD.findall(text))}
        if is_test or module.startswith("flashsim.testing"):
            edges |= {f"{each}:*" for dotted in found.refers if dotted.endswith(".") for each in self.tree.below(dotted[:-1])}
            edges |= {f"fixture {each}" for each in (*found.parameters, *(found.texts if is_test else ())) if each.isidentifier()}
        edges |= {f"family {found.family}"} if found.family else set()
        for dotted in found.lists | (found.refers if is_test else set()):
            for each in self.tree.resolved(dotted):
                one, place = self.tree[each], each.partition(":")[0]
                edges |= (
                    {f"listed {one.family}"}
                    if one and one.family
                    else {f"listed {self.folders[place]}"}
                    if dotted in found.lists
                    else set()
                )
        return edges

    def _edges_of_file(self, path: str) -> set[str]:
        said = self._said(_texts(path, self.files[path]()))
        return {each for each in said if not each.startswith("path ") and (path in self.pages or each.startswith("word "))}

    def _said(self, texts: Iterable[str]) -> set[str]:
        """What texts of tests, pages and notebooks say: names of things, paths, and code and command lines that run."""
        said: set[str] = set()
        for text in texts:
            words = self.names.intersection(_WORD.findall(text))
            said |= {f"word {word}" for word in words} | {f"path {word}" for word in words if " " not in text}
            dotted = {f"{package}.{name}" for package, names in _FROM.findall(text) for name in re.findall(r"\w+", names)}
            said |= {each for name in dotted | {f"flashsim.{name}" for name in _FACE.findall(text)} for each in self.tree.resolved(name)}
            said |= {f"command {each}" for one, part in _LINE.findall(text) for each in {one, f"{one} {part}"} & self.parts}
            said |= {_APP} if "flashsim " in text else set()
        return said | ({_APP} if {"word -m", "word flashsim"} <= said else set())

    def _bit(self, name: str) -> int:
        return 1 << self.bits.setdefault(name, len(self.bits))

    def _any(self, names: Iterable[str]) -> int:
        return sum({self._bit(name) for name in names})

    def _closures(self) -> dict[str, int]:
        """All that each definition and file leads to, however indirectly, but for what names in texts load."""
        order: dict[str, None] = {}
        waiting = [(name, False) for name in self.edges]
        while waiting:
            name, is_left = waiting.pop()
            if is_left:
                order[name] = None
            elif name not in self.bits:
                self._bit(name)
                waiting += [(name, True), *((each, False) for each in self.edges.get(name, ()) if each not in self.bits)]
        closures, changes = {name: self._bit(name) for name in order}, True
        while changes:
            changes = False
            for name in order:
                whole = closures[name]
                for each in self.edges.get(name, ()):
                    whole |= closures[each]
                changes |= whole != closures[name]
                closures[name] = whole
        return closures

    def _rules(self) -> Iterator[tuple[list[int], int]]:
        """What names load: the bits of which one each must be there, and those that are there then."""
        modules = [module for name, module in self.tree.modules.items() if not name.startswith("tests")]
        for family in {found.family for module in modules for found in module.definitions.values() if found.family}:
            for module in self.tree.below(family):
                name = module.removeprefix(f"{family}.").partition(".")[0]
                if name != "base" and name[0] != "_":
                    named = self._any([f"listed {family}", f"word {name}", f"word {name.replace('_', '-')}"])
                    yield [self._bit(f"family {family}"), named], self._of([f"{module}:*"])
        for command, definition in self.commands.items():
            by_word = [self._bit(f"command {part}") for part in command.split()]
            yield [self._bit(_APP), self._bit(f"command {command}")], self._of([definition])
            yield [self._bit(_APP), *by_word], self._of([definition])
        completed = {each for name in _COMPLETION for found in [self.tree[name]] if found for each in found.refers}
        yield [self._bit(f"word {_COMPLETES}")], self._of(each for name in completed for each in self.tree.resolved(name))
        in_folder = defaultdict(list)
        for definition in self.edges:
            in_folder[self.folders.get(definition.partition(":")[0], "")].append(definition)
        for path in [name.removeprefix("file ") for name in self.edges if name.startswith("file ")]:
            yield from ((groups, self._of([f"file {path}"])) for groups in self._named(path))
            owner = next((str(each) for each in PurePosixPath(path).parents if f"{each}/__init__.py" in self.files), "")
            if path not in self.pages and owner:
                yield [self._any(in_folder[owner]), *self._named_near(path, owner)], self._of([f"file {path}"])

    def _named(self, path: str) -> Iterator[list[int]]:
        """The paths in a test's own texts that name a file, or all files of its kind, each with the folder at the top."""
        place = PurePosixPath(path)
        top = [self._bit(f"path {place.parts[0]}")] if len(place.parts) > 1 and place.parts[0] != "tests" else []
        parent = self._bit(f"path {place.parent.name}")
        yield [self._bit(f"path {place.name}"), *top]
        if place.parts[0] == "tests":
            yield [parent, self._bit(f"path {place.suffix}")]
        elif top:
            yield [self._any([f"path {place.stem}", f"path *{place.suffix}"]), parent, *top]

    def _named_near(self, path: str, owner: str) -> list[int]:
        """What names one file of package data among many of its kind; the only one is read whoever reaches its folder."""
        place = PurePosixPath(path)
        if str(place.parent) == owner and (f"{owner}/base.py" not in self.files or place.stem == "claims"):
            return []
        words = [f"word {each}" for each in (place.name, place.stem, place.stem.replace("_", "-"))]
        return [self._any([*words, f"listed {owner}", f"listed {owner.replace('/', '.')}"])]

    def _of(self, names: Iterable[str]) -> int:
        whole = 0
        for name in names:
            whole |= self.closures.get(name) or self._bit(name)
        return whole

    @cached_property
    def tests(self) -> dict[str, dict[str, list[str]]]:
        """What each test rests on directly, by test file and name; a file's doctests have no name."""
        found: dict[str, dict[str, list[str]]] = {}
        for module, path in self.paths.items():
            definitions = self.tree.modules[module].definitions
            if path.startswith("tests/") and PurePosixPath(path).name.startswith("test_") and "benchmarks" not in path:
                tests = [name for name in definitions if name.startswith(("test", "Test"))]
                found[path] = {name: [f"{module}:{name}", *self._used_by_themselves(module)] for name in tests}
            elif examples := [text for each in definitions.values() for text in each.docstrings if ">>>" in text]:
                found[path] = {"": [f"{module}:*", *self._said(examples)]}
        for path, (folder, names) in _BY_PAGE.items():
            for name in [name for name in names if name in found.get(path, ())]:
                roots = found[path].pop(name)
                whole = self.reach(roots, module_of(path))
                for page in (f"file {page}" for page in self.pages if page.startswith(folder)):
                    if whole & self._bit(page):
                        found[path].setdefault(f"{name}[{PurePosixPath(page).stem}]", [*roots]).append(page)
        return found

    def _used_by_themselves(self, module: str) -> list[str]:
        """Fixtures that every test of a module has."""
        return [name for name, found in self._fixtures(module).items() if "autouse" in found.keywords]

    def _fixtures(self, module: str) -> dict[str, Definition]:
        """The fixtures that a test module sees, the nearest of a name first."""
        scope = {f"{each}:{name}": found for each in self._scope(module) for name, found in self.tree.modules[each].definitions.items()}
        return {name: found for name, found in scope.items() if "fixture" in found.decorators or found.is_variable}

    def _scope(self, module: str) -> list[str]:
        parts = module.split(".")
        above = [".".join([*parts[:length], "conftest"]) for length in range(len(parts) - 1, 0, -1)]
        return [module, *(each for each in above if each in self.tree.modules)]

    def reach(self, roots: Iterable[str], module: str) -> int:
        """All that some definitions of a module rest on; of pages only those among them, if there are any."""
        names = frozenset(roots)
        if (names, module) not in self._reached:
            self._reached[names, module] = self._reach(names, module)
        return self._reached[names, module]

    def _reach(self, names: frozenset[str], module: str) -> int:
        whole = self._of(names)
        pages = [name.removeprefix("file ") for name in names if name.startswith("file ")]
        others = ~self._any(f"file {path}" for path in self.pages if path not in pages) if pages else -1
        imports = self.tree.modules[module].imports if module.startswith("tests.") else {}
        fixtures = {name.partition(":")[2]: self._of([name]) for name in reversed(self._fixtures(module))}
        fixtures |= {name: self._of(self.tree.resolved(dotted)) for name, dotted in imports.items()}
        waiting = [*self.rules, *(([self._bit(f"fixture {name}")], more) for name, more in fixtures.items())]
        before = 0
        while before != whole:
            before, rules, waiting = whole, waiting, []
            for rule in rules:
                for group in rule[0]:
                    if not whole & group:
                        waiting.append(rule)
                        break
                else:
                    whole |= rule[1] if rule[1] & others == rule[1] else 0
        any_command = self._any(self.commands.values())
        if whole & self._bit(_APP) and not whole & any_command:
            return self._reach(names.union(self.commands.values()), module)
        return whole

    def touched(self, before: Mapping[str, str | None]) -> dict[str, dict[str, list[str]]]:
        """Causes by test, and these by test file, of a change of files, given by their texts before; None is that of a new file."""
        definitions: set[str] = set()
        for path, text in before.items():
            if module := module_of(path):
                new = self.tree.modules.get(module) or Module(module, "")
                definitions |= new.differences(None if text is None else Module(module, text))
                if path not in self.files:  # what imports it has it for a name of its package
                    definitions.add(":".join(module.rsplit(".", 1)))
        found: dict[str, dict[str, list[str]]] = {}
        of_pages = {f"file {path}" for path in self.pages}
        for path, tests in self.tests.items():
            every = {each for roots in tests.values() for each in roots if each not in of_pages}
            if not self.causes(path, every, definitions, {*before}):
                continue
            causes = {name: self.causes(path, roots, definitions, {*before}) for name, roots in tests.items()}
            found |= {path: {name: why for name, why in causes.items() if why}} if any(causes.values()) else {}
        return found

    def causes(self, path: str, roots: Iterable[str], definitions: set[str], files: set[str]) -> list[str]:
        """Which of the changed definitions and files a test rests on."""
        module = module_of(path)
        whole, scope = self.reach(roots, module), self._scope(module)
        causes = {
            each for each in definitions if whole & self._any([each, f"{each}?"]) or (each.endswith("#") and each.startswith(f"{module}:"))
        }
        hooks = {each for each in definitions if each.partition(":")[0] in scope}
        causes |= {each for each in hooks if each.endswith(":") or ":pytest_" in each}
        causes |= {each for each in files if each in _EVERYTHING or self._is_read_by(path, each)}
        for each in files - causes:
            is_named = each not in self.pages and any(all(whole & group for group in groups) for groups in self._named(each))
            causes |= {each} if whole & self._bit(f"file {each}") or is_named else set()
        return sorted(causes)

    def _is_read_by(self, test: str, path: str) -> bool:
        """True if a test reads a file as one of very many."""
        in_family = any(f"{folder}/base.py" in self.files for folder in PurePosixPath(path).parents)
        return test == _READS_ALL or (_is_room(path) and (test == _READS_SOURCES or (test == _READS_FAMILIES and in_family)))


def module_of(path: str) -> str:
    """The import name of a Python file of the project; empty if it is none."""
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__") if path.endswith(".py") and parts[0] in ROOMS else ""


def _is_room(path: str) -> bool:
    return path.partition("/")[0] in ROOMS[:-1]


def _texts(path: str, text: str) -> list[str]:
    """What of a file may name something: code of pages and notebooks, texts of TOML files."""
    if path.endswith(".ipynb"):
        return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    if path.endswith(".md"):
        return _BLOCK.findall(text)
    return re.findall(r'"([^"\s]*)"', text) if path.endswith(".toml") else [text] if path.endswith((".html", ".j2")) else []


def tree_of(root: Path) -> dict[str, Callable[[], str]]:
    """How to read each file of a working tree that Git knows or does not ignore."""
    names = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return {name: partial((root / name).read_text, encoding="utf-8", errors="replace") for name in names if (root / name).is_file()}


def texts_before(root: Path, revision: str) -> dict[str, str | None]:
    """The files of a working tree that differ from a revision, and their texts there."""
    there = {*_git(root, "ls-tree", "-r", "-z", "--name-only", revision).split("\0")}
    names = _git(root, "diff", "-z", "--name-only", "--no-renames", revision).split("\0")
    names += _git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
    return {name: _git(root, "show", f"{revision}:{name}") if name in there else None for name in filter(None, names)}


def _git(root: Path, *words: str) -> str:
    shown = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)
    return shown.stdout.decode("utf-8", "replace")


def run(revision: str, *options: str) -> int:
    """Run the tests that what differs from a revision can touch, having printed a line a cause; the exit code of pytest."""
    before = texts_before(ROOT, revision)
    selection = Selection(tree_of(ROOT))
    touched = selection.touched(before)
    for line in in_words(touched):
        print(line, flush=True)
    named = arguments(selection, touched)
    return subprocess.run([sys.executable, "-m", "pytest", *options, *named], cwd=ROOT).returncode if named else 0


def in_words(touched: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    """A line for each file that changed: which of its definitions matter, and how many tests rest on them."""
    names, tests = defaultdict(set), defaultdict(set)
    for path, causes in touched.items():
        for test, each in ((test, each) for test, why in causes.items() for each in why):
            place, _, name = each.partition(":")
            names[place].add(name)
            tests[place].add((path, test))
    lines = []
    for place in sorted(names, key=lambda place: -len(tests[place])):
        shown = ", ".join(sorted({name.rstrip("#") or "as a whole" for name in names[place]})[:5])
        files = sorted({path for path, _ in tests[place]})
        more = f" and {len(files) - 2} more" if len(files) > 3 else ""
        lines.append(f"{place} ({shown}): {len(tests[place])} tests in {', '.join(files[: 2 if more else 3])}{more}")
    return lines or ["no test rests on what changed"]


def arguments(selection: Selection, touched: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    """The words by which pytest knows the tests: a file if all of its tests are among them; a test of pages without those not touched."""
    every, words = selection.tests, []
    for path, tests in touched.items():
        if len(tests) == len(every[path]):
            words.append(path)
            continue
        functions = dict.fromkeys(name.partition("[")[0] for name in tests)
        words += [f"{path}::{name}" for name in functions]
        others = [name for name in every[path] if name not in tests and name.partition("[")[0] in functions]
        words += [word for name in others for word in ("--deselect", f"{path}::{name}")]
    return words

"""Which test files a change can touch: those that reach a changed file by imports, or by names (of members, presets, commands, pages)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path, PurePosixPath

from flashsim.core.source_files import ROOMS, SourceTree

ROOT = Path(__file__).resolve().parents[1]
#: Files on which all tests rest, and tests that read all files of a kind.
_EVERYTHING, _READERS = ("setup.cfg", "tests/times.py"), {"tests/test_house.py": "", "tests/test_package.py": ".py"}
#: Tests of which each case runs a page or notebook of a folder.
_CASES = {
    "tests/notebooks/test_notebooks.py": ("notebooks/", "test_it_runs_and_gives_what_is_kept"),
    "tests/flashsim/operations/test_examples.py": ("docs/", "test_tutorials_run"),
}
#: The module of all commands, that of what completes them (which names all families), and packages whose modules are named like values.
_COMMAND_LINE, _COMPLETION = "flashsim.command_line", "flashsim.operations.command"
_LAZY = re.compile(r"flashsim\.(operations\.face|apps\.\w+\.face|testing\.contracts)\.")
_ALL_FAMILIES = re.compile(r"_FLASHSIM_COMPLETE|\bdeclarations\(\)")
#: Names of modules, and of packages below which a formatted string names one: command lines have rules of their own.
_DOTTED = re.compile(rf"\b(?:tests|{'|'.join(ROOMS)})(?:\.\w+)+(?:(?<!\.operations)\.\{{)?")
_DOCSTRING = re.compile(r'(\A|:\n +)r?""".*?"""', re.DOTALL)
#: Imports for type checkers, and of what tests find files by.
_UNUSED = re.compile(r"^if TYPE_CHECKING:.*?\n(?=\S)|^from tests\.[^\n]* import ROOT\n", re.DOTALL | re.MULTILINE)
_STRING = re.compile(r"""#.*|\"""((?:.|\n)*?)\"""|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'""")
_FAMILY = re.compile(r"\b(?:Family|PresetFolder)(?:\[[^\]]*\])?\(\s*(?:\"([\w.]+)\")?")
#: Where members are listed, and not only asked for one name.
_LISTS = re.compile(r"^(?!.*Error\().*(?:\bfor \w+ in |(?<! in )(?<![\w.]))(?:presets|(?:\w+\.)?[A-Z][A-Z_]*)\.names\(", re.MULTILINE)
_ARGUMENT = re.compile(r"[(,]\s*[\"']?(\w+)[\"']?\s*(?=[:,)])")
_COMMAND = re.compile(r"(?:\bflashsim |^)\s*(?:--allow-code )?([a-z]+)(?=(?:[\s,]+([a-z-]+))?)", re.MULTILINE)


class Selection:
    """The tests of a tree, in a graph of modules by import name, fixtures and examples as ``module:name``, and other files by path."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.nodes = {node: text for path in files for node, text in parts(path, files[path]).items()}
        self.data = {path: PurePosixPath(path) for path in files if path in self.nodes}
        self.modules = [node for node in self.nodes if node not in self.data and ":" not in node]
        self.tree = SourceTree(dict.fromkeys(self.nodes, b""))
        self.owners = {node for node in self.modules if _FAMILY.search(self.nodes[node]) and not node.startswith("tests.")}
        self.loads = [*self._loads()]
        self.names = {name for _, names, _ in self.loads for name in names}
        self.edges = {node: self._edges(node, text) for node, text in self.nodes.items()}
        self.tests = dict(self._tests())

    def _loads(self) -> Iterator[tuple[set[str], set[str], str]]:
        """What is loaded by name: the modules that do so, the names, and the node."""
        for package in self.modules:
            for table in re.findall(r"(?ms)^COMMANDS\b[^=]*= (\{.*?\})$", self.nodes[package]):
                for name, place in ast.literal_eval(table).items():
                    for part, module in (place if isinstance(place, dict) else {"": place}).items():
                        yield {_COMMAND_LINE}, {f"flashsim {name} {part}".strip()}, f"{package}.{module.partition(':')[0]}"
        families = {package: owner for owner in self.owners for package in _FAMILY.findall(self.nodes[owner])}
        for module in self.modules:
            if _LAZY.match(module):
                names = {module.rpartition(".")[2], *re.findall(r"(?m)^class (\w+)", self.nodes[module])}
                yield {"flashsim"}, {f"import {each}" for each in names}, module
            for package, owner in families.items():
                if found := re.match(rf"{package}\.(?!base\b|_)(\w+)", module):
                    yield {owner}, {found[1], found[1].replace("_", "-"), f"*{owner}"}, module
        for path, place in self.data.items():
            package = next((".".join(each.parts) for each in place.parents if f"{each}/__init__.py" in self.files), "tests")
            modules = {each for each in self.modules if each.rpartition(".")[0] == package != "tests"}
            names = {place.name, place.stem, place.stem.replace("_", "-"), *(f"*{each}" for each in modules)}
            yield modules, set() if f"{package}.{place.stem}" in modules else names, path

    def _edges(self, node: str, text: str) -> set[str]:
        """The nodes to which one leads, and the names that it has; tests, pages and notebooks may also hold programs and command lines."""
        is_test = node.startswith("tests.") or node.endswith(":examples")
        is_run = is_test or node.endswith((".md", ".ipynb"))
        code = _UNUSED.sub("", _DOCSTRING.sub("", text))
        strings = map("".join, _STRING.findall(code)) if not node.endswith(".md") else [code]
        said = "\n".join(each for each in strings if is_run or " " not in each)
        words = {*re.findall(r"[\w.*-]+", said)}
        dotted = {*_DOTTED.findall(code)} if node != _COMPLETION else set()
        names = dotted.union(self.tree.imports_of(f"{code}\n{said if is_run else ''}".encode()))
        edges = {each for name in names for each in _prefixes(name) if each in self.nodes} - {node}
        edges |= {each for name in dotted if name.endswith(".{") for each in self.modules if each.startswith(name[:-1])}
        if is_run:
            edges |= {_COMMAND_LINE} if re.search(r"(?m)-m[\s,]*flashsim\b|^\s*flashsim ", said) else set()
            words |= {f"flashsim {one} {other}".strip() for one, rest in _COMMAND.findall(said) for other in ("", rest)}
            words |= {f"import {each}" for each in re.findall(r"\b(?:fs|flashsim)\.(\w+)", code) + re.findall(r"\b[A-Z]\w+", code)}
        if is_test:
            edges |= self.owners if _ALL_FAMILIES.search(code) else set()
            edges |= {f"{each}.conftest:{name}" for each in _prefixes(node) for name in _ARGUMENT.findall(code)} & self.nodes.keys()
            for path, place in self.data.items():  # named, or by its folder and either its stem or the kind of file
                in_folder = place.parent.name in words and not words.isdisjoint([place.stem, place.suffix, f"*{place.suffix}"])
                edges |= {path} if in_folder or place.name in words else set()
        if is_test or (".names(" in code and _LISTS.search(code)):
            words |= {f"*{each}" for each in self.owners & {node, *edges}}
        return edges | (words & self.names)

    def _tests(self) -> Iterator[tuple[str, tuple[set[str], set[str]]]]:
        """The nodes that each test file, or case of a page, rests on, and those at which what they lead to ends."""
        for path in self.files:
            module = module_of(path)
            roots, conftests = {module, f"{module}:examples"} & self.nodes.keys(), {f"{each}.conftest" for each in _prefixes(module)}
            if ("/test_" in path and "benchmarks" not in path and self.nodes.get(module)) or len(roots) > 1:
                folder, function = _CASES.get(path, ("no folder", ""))
                pages = {each for each in self.edges[module] if each.startswith(folder) and self.data[each].name not in self.nodes[module]}
                beside = {module, *conftests, *(each for each in self.edges[module] if each.startswith("tests."))}
                yield path, (roots | conftests, conftests | pages)
                yield from ((f"{path}::{function}[{self.data[page].stem}]", ({page, *beside}, beside)) for page in sorted(pages))

    def reach(self, roots: Iterable[str], ends: Collection[str]) -> set[str]:
        """All nodes that some lead to, however indirectly, but for pages among the ends: these have cases of their own."""
        reached, waiting = set[str](), {*roots}
        while waiting:
            while waiting:
                reached.add(node := waiting.pop())
                waiting |= self.edges.get(node, set()) - reached if node not in ends else set()
            waiting = {node for owners, names, node in self.loads if reached & owners and (reached & names or not names)} - reached
        return reached - (self.data.keys() & ends)

    def touched(self, before: Mapping[str, str]) -> dict[str, list[str]]:
        """The tests that a change of files can touch, and which of these; given by the texts before, empty of a new file."""
        changed, touched = {}, {}
        for path in before:
            old, new = parts(path, before[path]), parts(path, self.files[path])
            changed |= {node: path for node in {*old, *new} if path in self.data or _code(node, old) != _code(node, new)}
        for name, test in self.tests.items():
            causes = {changed[node] for node in changed.keys() & self.reach(*test)} | before.keys() & {name, *_EVERYTHING}
            causes |= {path for path in before if name in _READERS and path.endswith(_READERS[name])}
            touched |= {name: sorted(causes)} if causes else {}
        return touched


def module_of(path: str) -> str:
    """The import name of a Python file of the project; empty if it is none."""
    return path[:-3].replace("/", ".").removesuffix(".__init__") if re.match(rf"({'|'.join(ROOMS)}|tests)/.*\.py$", path) else ""


def parts(path: str, text: str) -> dict[str, str]:
    """The nodes of a file and their texts: of pages and notebooks the code, of fixtures also the imports that they need."""
    if module := module_of(path):
        if not module.endswith(".conftest"):
            examples = "\n".join(re.findall(r"(?m)^ *(?:>>>|\.\.\.) ?(.*)", text))
            return {module: text, f"{module}:examples": examples} if re.search(r"(?m)^ *>>> ", text) else {module: text}
        rest, *fixtures = re.split(r"(?m)^(?=@pytest\.fixture(?!.*autouse))", text)
        nodes, lines = {module: rest}, re.findall(r"(?m)^(?:from|import) .*\n", rest)
        for fixture in fixtures:
            words = {*re.findall(r"\w+", fixture)}
            imports = [line for line in lines if not words.isdisjoint(re.findall(r"\w+", line.partition("import ")[2]))]
            nodes |= {f"{module}:{name}": "".join([*imports, fixture]) for name in re.findall(r"(?m)^def (\w+)", fixture)}
        return nodes
    kinds = {".md": r"(?ms)^ *```.*?^ *```", ".toml": r'"[^"\s]*"', ".j2": r"(?s).+", ".ipynb": r"(?s).+"}
    return {path: "\n".join(re.findall(kinds.get(PurePosixPath(path).suffix, r"\Z"), text)) if not path.startswith("tests/") else ""}


def _code(node: str, texts: Mapping[str, str]) -> str:
    """A node without comments and layout, and without docstrings where these are no help texts; one that is no Python, as it is."""
    text = texts.get(node, "") if not node.endswith(":examples") else ""
    try:
        return ast.dump(ast.parse(text if node.startswith("flashsim.operations.") else _DOCSTRING.sub(r"\g<1>0", text)))
    except SyntaxError:
        return text


def _prefixes(name: str) -> list[str]:
    return [*accumulate(name.split("."), "{}.{}".format)]


def tree_of() -> dict[str, str]:
    """The text of each file of the working tree that Git knows or does not ignore."""
    names = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return {name: (ROOT / name).read_text("utf-8", "replace") for name in names if (ROOT / name).is_file()}


def _git(*words: str, check: bool = True) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=check, capture_output=True).stdout.decode("utf-8", "replace")


def run(revision: str, *options: str) -> int:
    """Run the tests that what differs from a revision can touch, having printed how many each file touches; the exit code of pytest."""
    names = _git("diff", "-z", "--name-only", "--no-renames", revision) + _git("ls-files", "-z", "--others", "--exclude-standard")
    before = {name: _git("show", f"{revision}:{name}", check=False) for name in names.split("\0") if name}
    selection = Selection(dict.fromkeys(before, "") | tree_of())
    touched = selection.touched(before)
    print(*(f"{path}: {sum(path in why for why in touched.values())} test files and cases" for path in before), sep="\n", flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", *options, *arguments(selection, touched)], cwd=ROOT).returncode if touched else 0


def arguments(selection: Selection, tests: Collection[str]) -> list[str]:
    """The words by which pytest knows tests: files, or functions with a case for each page, without the cases that are not among them."""
    words = dict.fromkeys(file if (file := test.partition("::")[0]) in tests else test.partition("[")[0] for test in tests)
    return [*words, *(f"--deselect={each}" for each in selection.tests if each not in tests and each.startswith(tuple(words)))]

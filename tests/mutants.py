"""Faults planted into the sources, one at a time: whether the tests that a change selects see each.

``python -m tests.mutants draw|run|table``: the faults, and what came of them, stand in ``mutants.csv``, which this program writes, but for
notes, and for the outcome ``equivalent``, which is a judgement.  A run goes on where the last one stopped.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import get_type_hints

from flashsim.core.source_files import ROOMS
from tests.changes import ROOT, Selection, arguments, tree_of
from tests.tiers import MARKS

FILE = Path(__file__).with_suffix(".csv")
#: Seconds of one test and of all tests of a mutant; what hangs is seen by that.
_OF_A_TEST, _OF_A_MUTANT = 240, 900
#: Test files that are run before all others.
_NEAR = 6
#: Lines as old as this are recent: the project is young.
_RECENT = 3 * 24 * 3600
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_SWAPPED |= {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
#: The outcome of a mutant that each tier's tests do not see, the quicker tier first.
_PASSED = {"default": "passed", "deep": "survived"}
_BEFORE = {"default": "", "deep": "passed"}
_DEFAULTS = {"int": "0", "float": "0.0", "bool": "False", "str": "''"}


@dataclass
class Mutant:
    """A fault, and what came of it."""

    id: int
    file: str
    line: int
    column: int
    operator: str
    before: str
    after: str
    recent: bool
    #: ``default`` or ``deep``, by which tests it was killed; ``passed`` until the deep ones are run; ``survived``, ``equivalent``.
    outcome: str = ""
    killer: str = ""
    seconds: float = 0.0
    note: str = ""

    def applied(self, text: str) -> str:
        """A file's text with the fault in it."""
        lines = text.encode().splitlines(keepends=True)
        start = sum(map(len, lines[: self.line - 1])) + self.column
        whole, old = text.encode(), self.before.encode()
        if whole[start : start + len(old)] != old:
            raise ValueError(f"mutant {self.id}: {self.file}:{self.line} does not read {self.before!r}")
        return (whole[:start] + self.after.encode() + whole[start + len(old) :]).decode()


def faults(function: ast.FunctionDef, text: str) -> Iterator[tuple[str, ast.AST, str]]:
    """The operator, the place and the new text of all faults that a function can have."""
    for node in _places(function):
        new: ast.AST = copy.deepcopy(node)
        match new:
            case ast.Compare(ops=[op]) if type(op) in _SWAPPED:
                new.ops = [_SWAPPED[type(op)]()]  # type: ignore[list-item]
                yield "comparison", node, f"({ast.unparse(new)})"
            case ast.BinOp(op=ast.Add() | ast.Sub()) if not isinstance(new.left, (ast.Constant, ast.JoinedStr, ast.List)):
                new.op = _SWAPPED[type(new.op)]()  # type: ignore[assignment]
                yield "plus and minus", node, f"({ast.unparse(new)})"
            case ast.BoolOp():
                new.op = _SWAPPED[type(new.op)]()  # type: ignore[assignment]
                yield "and and or", node, f"({ast.unparse(new)})"
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                yield "off by one", node, str(value + 1)
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield "condition negated", node.test, f"(not ({ast.unparse(test)}))"  # type: ignore[attr-defined]
            case ast.Expr(value=ast.Call()) | ast.AugAssign():
                yield "statement removed", node, "pass"
            case ast.Call(args=[one, other, *_]) if ast.dump(one) != ast.dump(other) and not isinstance(one, ast.Starred):
                new.args[:2] = [other, one]
                yield "arguments swapped", node, ast.unparse(new)
            case ast.Return(value=ast.AST()) if not isinstance(new.value, ast.Constant):
                yield "default returned", node, f"return {_DEFAULTS.get(ast.unparse(function.returns or ast.Constant(None)), 'None')}"


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a function but for docstrings, annotations, messages, and functions within."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if name in ("annotation", "returns", "decorator_list", "args" if isinstance(node, ast.FunctionDef) else "") or not isinstance(
                child, ast.AST
            ):
                continue
            is_message = isinstance(child, ast.Call) and re.search(r"Error$|Warning$|^print$", ast.unparse(child.func))
            if not isinstance(child, (ast.FunctionDef, ast.Raise, ast.Assert, ast.JoinedStr)) and not is_message:
                yield child
                yield from _places(child)


def draw(seed: int, count: int) -> list[Mutant]:
    """Faults at random, at most one a function, half of them in lines of the last days."""
    chance, functions = random.Random(seed), []
    for path in sorted(name for name in tree_of() if name.endswith(".py") and name.partition("/")[0] in ROOMS):
        text = (ROOT / path).read_text(encoding="utf-8")
        functions += [(path, text, node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    chance.shuffle(functions)
    drawn: list[Mutant] = []
    for path, text, function in functions:
        by_operator: dict[str, list[tuple[ast.AST, str]]] = {}
        for operator, node, after in faults(function, text):
            by_operator.setdefault(operator, []).append((node, after))
        if not by_operator:
            continue
        operator = chance.choice(sorted(by_operator))
        place, after = chance.choice(by_operator[operator])
        chosen: ast.expr = place  # type: ignore[assignment]
        is_recent = time.time() - _written(path, chosen.lineno) < _RECENT
        if sum(each.recent == is_recent for each in drawn) < count // 2:
            before = ast.get_source_segment(text, chosen) or ""
            drawn.append(Mutant(len(drawn) + 1, path, chosen.lineno, chosen.col_offset, operator, before, after, is_recent))
        if len(drawn) == count:
            break
    return drawn


def _written(path: str, line: int) -> int:
    """When a line was last written."""
    words = ["git", "blame", "--porcelain", "-L", f"{line},{line}", "--", path]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return int(re.findall(r"^author-time (\d+)", told, re.MULTILINE)[0])


def load() -> list[Mutant]:
    kinds = get_type_hints(Mutant)
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    return [Mutant(**{name: text if kinds[name] is str else ast.literal_eval(text) for name, text in row.items()}) for row in rows]


def save(mutants: list[Mutant]) -> None:
    with FILE.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, [each.name for each in fields(Mutant)], lineterminator="\n")
        table.writeheader()
        table.writerows(map(asdict, mutants))


class Copy:
    """A working tree of the last commit beside this one, in which one fault at a time is tested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder], cwd=ROOT, check=True)
        #: Tests that fail without a fault too.
        self.broken: list[str] = []

    def remove(self) -> None:
        subprocess.run(["git", "worktree", "remove", "--force", self.folder], cwd=ROOT, check=True)

    def first_failure(self, words: list[str], tier: str, seconds: float) -> str | None:
        """The first test of a tier that fails of those that words name, ``""`` if none does and None if the time does not suffice."""
        options = ["-x", "-q", "-n", "2", "-m", MARKS[tier], "--timeout", str(_OF_A_TEST), "--timeout-method", "thread"]
        options += ["-p", "no:cacheprovider"]
        options += [word for test in self.broken for word in ("--deselect", test)]
        command = [sys.executable, "-m", "pytest", *options, *words]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder), "FLASHSIM_TESTS": tier},
            start_new_session=True,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                told, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", told, re.MULTILINE)
        return "" if process.returncode in (0, 5) else failed[0] if failed else told[-300:]

    def try_out(self, mutant: Mutant, tier: str, batches: list[list[str]]) -> None:
        """Note which test of a tier kills a mutant, batch by batch."""
        file, begin = self.folder / mutant.file, time.monotonic()
        text, outcome, mutant.note = file.read_text(encoding="utf-8"), _PASSED[tier], ""
        file.write_text(mutant.applied(text), encoding="utf-8")
        for words in batches:
            failure = self.first_failure(words, tier, _OF_A_MUTANT - (time.monotonic() - begin))
            if failure is None:
                outcome, mutant.note = mutant.outcome, f"{tier} tests were not done in {_OF_A_MUTANT} s"
            elif failure:
                outcome, mutant.killer = tier, failure
            if failure != "":
                break
        file.write_text(text, encoding="utf-8")
        mutant.outcome, mutant.seconds = outcome, round(mutant.seconds + time.monotonic() - begin, 1)

    def check(self, killed: list[Mutant]) -> None:
        """Forget the outcome of mutants whose killer fails without a fault too."""
        for mutant in killed:
            if self.first_failure([mutant.killer], mutant.outcome, _OF_A_MUTANT):
                self.broken.append(mutant.killer)
                mutant.note, mutant.outcome, mutant.killer = f"{mutant.killer} fails without it too", "", ""


def run(tier: str, most: float, only: list[int]) -> None:
    """Run a tier on mutants that it has not met, for `most` seconds; mutants that touch the fewest tests come first."""
    mutants, selection, begin = load(), Selection(tree_of()), time.monotonic()
    touched = {}
    for mutant in mutants:
        if (mutant.id in only) if only else mutant.outcome == _BEFORE[tier]:
            try:
                text = selection.files[mutant.file]
                touched[mutant.id] = selection.touched({mutant.file: mutant.applied(text)})
            except (KeyError, ValueError) as problem:  # run it on the commit of the draw, or draw anew
                print(f"left out, since the sources have changed: {problem}", flush=True)
    print(f"{len(touched)} mutants to run", flush=True)
    tried = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Copy(Path(folder) / "flashsim")
        try:
            waiting = [each for each in mutants if each.id in touched]
            for mutant in sorted(waiting, key=lambda each: (each.note != "", len(touched[each.id]))):
                if time.monotonic() - begin > most:
                    break
                near = sorted(touched[mutant.id], key=lambda test: _distance(test, mutant.file))
                batches = [arguments(selection, batch) for batch in (near[:_NEAR], near[_NEAR:]) if batch]
                tree.try_out(mutant, tier, batches)
                save(mutants)
                tried.append(mutant)
                print(mutant.id, mutant.file, mutant.line, mutant.outcome or mutant.note, mutant.killer, mutant.seconds, flush=True)
            tree.check([mutant for mutant in tried if mutant.killer])
            save(mutants)
        finally:
            tree.remove()


def _distance(test: str, file: str) -> tuple[int, str]:
    """How far a test stands from a file; that of the same name is the nearest."""
    shared = set(re.findall(r"\w+", file.removesuffix(".py"))) & set(
        re.findall(r"[^\W_]+|\w+", test.removeprefix("tests/").removesuffix(".py"))
    )
    return -len(shared), test


def table(mutants: list[Mutant]) -> str:
    """How many mutants each tier killed, by room, and those that survived."""
    rooms: dict[str, Counter[str]] = {}
    for mutant in mutants:
        rooms.setdefault(mutant.file.partition("/")[0], Counter())[mutant.outcome or "not run"] += 1
    titles = ("default", "deep", "passed", "survived", "equivalent", "not run")
    lines = [f"{'':12}" + "".join(f"{title:>12}" for title in titles)]
    lines += [f"{room:12}" + "".join(f"{counts[title]:12}" for title in titles) for room, counts in sorted(rooms.items())]
    survivors = [mutant for mutant in mutants if mutant.outcome in ("survived", "equivalent")]
    return "\n".join([*lines, *(f"{each.id}: {each.file}:{each.line} {each.operator}; {each.note}" for each in survivors)])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("what", choices=("draw", "run", "table"))
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=60, help="mutants to draw")
    parser.add_argument("--tier", choices=_PASSED, default="default", help="whose tests run; deep ones on what passed")
    parser.add_argument("--seconds", type=float, default=3600, help="after so many no mutant is begun")
    parser.add_argument("ids", nargs="*", type=int, help="mutants to run, again if need be")
    given = parser.parse_intermixed_args()
    if given.what == "draw":
        save(draw(given.seed, given.count))
    elif given.what == "run":
        run(given.tier, given.seconds, given.ids)
    print(table(load()))


if __name__ == "__main__":
    main()

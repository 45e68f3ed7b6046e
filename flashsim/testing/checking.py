"""The family of a Python file, and a member's contract, run property by property without pytest's command: a verdict each, in one line."""

import ast
import multiprocessing
import re
import signal
import traceback
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from flashsim.core.activity import activity, show_workers_by
from flashsim.core.errors import FlashsimError, MissingFileError, in_one_line, shorten
from flashsim.core.families import declarations
from flashsim.core.members import Family
from flashsim.core.units import SECONDS
from flashsim.testing import CONTRACTS
from flashsim.testing.contract import Contract


def family_of(path: Path) -> Family[object]:
    """The family whose contract asks most of what a file defines.

    Raises
    ------
    MissingFileError
        There is no such file.
    FlashsimError
        The file is no Python, or a member of no family.
    """
    if not path.is_file():
        raise MissingFileError(f"no file at {path}")
    try:
        ast.parse(path.read_bytes(), path.name)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as problem:
        raise FlashsimError(f"{path} is no Python: {in_one_line(problem)}") from problem
    every: list[Family[object]] = [getattr(import_module(module), name) for _, module, name, _ in declarations()]
    family = max(every, key=lambda each: each.count_needed_names(path) or 0)
    if not family.count_needed_names(path):
        raise FlashsimError(f"{path} defines no member of any family; each family's base.py says what a member defines")
    return family


HOLDS, FAILS, SKIPPED, UNTRIED = "holds", "FAILS", "does not apply", "not tried"
#: A property that waits instead of working is ended after this many times the limit.
_PATIENCE = 10
#: The longest reason, and smallest case, that is shown whole.
_LONGEST = 300


@dataclass(frozen=True)
class PropertyVerdict:
    """Verdict on a property of a member."""

    #: The property in words.
    contract_property: str
    #: `HOLDS`, `FAILS`, `SKIPPED` or `UNTRIED`.
    verdict: str
    #: What was wrong, or why the property does not apply.
    reason: str = ""
    #: The smallest case that Hypothesis found; empty where the property has one case.
    case: str = ""


def contract_of(path: Path) -> type[Contract]:
    """The contract of the family that a file belongs to, for that file.

    Raises
    ------
    MissingFileError, FlashsimError
        There is no such file, it is a member of no family, or its family has no contract here.
    """
    family = family_of(path)
    name = family.package.rpartition(".")[2]
    if name not in CONTRACTS:
        raise FlashsimError(f"{path} is a {family.kind}, of which flashsim.testing has no contract; it has: {', '.join(sorted(CONTRACTS))}")
    kind: type[Contract] = resolve_name(f"flashsim.testing.contracts.{CONTRACTS[name]}")
    return type(kind.__name__, (kind,), {"member": str(path.resolve())})


def verdicts(contract: type[Contract], called: str = "", limit: int = 0) -> Iterator[PropertyVerdict]:
    """The properties of a contract, tried one after the other; `called` is the member's path as reasons have it.

    Within `limit`, ns of processor time, each is tried in a process of its own, which the system can end amid compiled code.
    """
    names, failed = contract.properties(), False
    with activity(f"the contract of a {contract.FAMILY.kind}") as progress:
        for done, name in enumerate(names):
            title = name.removeprefix("test_").replace("_", " ")
            progress(done, len(names), title)
            if contract.STEPWISE and failed:
                yield PropertyVerdict(title, UNTRIED)
                continue
            test = getattr(contract(), name)
            verdict = _verdict_in_time(title, test, limit) if limit else _verdict(title, test)
            failed = failed or verdict.verdict == FAILS
            yield replace(verdict, reason=verdict.reason.replace(contract.member, called or contract.member))


def _verdict_in_time(title: str, test: Any, limit: int) -> PropertyVerdict:
    processes = multiprocessing.get_context("fork")  # the test is of a class that another process could not import
    answer, told = processes.Pipe(duplex=False)
    process = processes.Process(target=_tell, args=(told, title, test, limit))
    process.start()
    told.close()
    try:
        verdict: PropertyVerdict = answer.recv()
        return verdict
    except EOFError:
        process.join()
        late = {-signal.SIGPROF: f"{limit / SECONDS:g} s of processor time", -signal.SIGALRM: f"{_PATIENCE * limit / SECONDS:g} s"}
        within = late.get(process.exitcode or 0)
        reason = f"it does not end within {within}" if within else f"it ends the process, with exit code {process.exitcode}"
        return PropertyVerdict(title, FAILS, reason)
    finally:
        process.kill()
        process.join()


def _tell(told: Connection, title: str, test: Any, limit: int) -> None:
    """A verdict from this process, which an interrupt leaves to the one that waits for it."""
    for number in (signal.SIGPROF, signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_PROF, limit / SECONDS)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE * limit / SECONDS)
    show_workers_by(lambda what: nullcontext(lambda done, total, message="": None))
    told.send(_verdict(title, test))


def _verdict(title: str, test: Any) -> PropertyVerdict:
    try:
        test()
    except pytest.skip.Exception as problem:
        return PropertyVerdict(title, SKIPPED, str(problem))
    except (Exception, pytest.fail.Exception) as problem:
        return PropertyVerdict(title, FAILS, _reason(problem), _case(problem))
    return PropertyVerdict(title, HOLDS)


def _reason(problem: BaseException) -> str:
    """A failure in one line; of an assertion without words its condition."""
    if isinstance(problem, AssertionError) and not str(problem):
        return shorten(str(traceback.extract_tb(problem.__traceback__)[-1].line), _LONGEST)
    words = str(problem) if isinstance(problem, (FlashsimError, AssertionError, pytest.fail.Exception)) else in_one_line(problem)
    return shorten(words.strip().splitlines()[0], _LONGEST)


def _case(problem: BaseException) -> str:
    """The arguments of the smallest case that fails, as Hypothesis notes them."""
    notes = "\n".join(getattr(problem, "__notes__", []))
    arguments = re.search(r"^\w[\w ]*: \w+\((.*?)^\)", notes, re.MULTILINE | re.DOTALL)
    drawn = re.findall(r"^Draw \d+ \(?(.*)", notes, re.MULTILINE)
    words = re.sub(r"self=<.*?>,\s*|data=data\(\.\.\.\),?", "", arguments[1] if arguments else "")
    parts = " ".join([words, *(each.replace(")", "", 1) for each in drawn)]).split()
    return shorten(re.sub(r"([(\[]) | ([)\]])", r"\1\2", " ".join(parts)).rstrip(","), _LONGEST)

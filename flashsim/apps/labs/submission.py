"""A submission, run in a process of its own: what it defines is called over a pipe, and limits are kept and named."""

from __future__ import annotations

import ast
import json
import os
import platform
import select
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import suppress
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

from flashsim.apps.labs import worker
from flashsim.core.errors import FlashsimError, MissingFileError
from flashsim.core.units import MILLISECONDS_A_SECOND

#: Limits of an exercise: seconds of processor time, and bytes of address space.
SECONDS, MEMORY = 10, 512 << 20
#: A submission that sleeps, or a machine that is busy, is waited for so many times as long.
_PATIENCE = 3
#: Seconds that all exercises of a submission are waited for, and those for the end of a process that is leaving.
TOGETHER, _LEAVING = 50, 1.0
#: The longest answer, bytes, and the longest number in it; the most that waits to be sent while nobody asks.
_LONGEST, _DIGITS, _WAITING = 1 << 20, 18, 1 << 16
#: The largest file of a submission, bytes; a notebook may hold pictures.
_LARGEST = 1 << 26
#: Codes of instructions, places in the record, and what a filter returns: `SECCOMP_RET_ALLOW`, `_ERRNO` with EPERM, `_KILL_PROCESS`.
_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _MACHINE = 0, 4
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050001, 0x80000000


class SubmissionError(FlashsimError):
    """A submission that breaks a limit, or fails; the message says which, or how."""


def source_of(path: Path) -> list[str]:
    """The text of a Python file; of a notebook that of each code cell for a solution, and imports of cells that hold nothing else.

    Raises
    ------
    MissingFileError
        There is no such file.
    SubmissionError
        It is no file, cannot be read, is too large, or is no notebook.
    """
    if not path.exists():
        raise MissingFileError(f"no file at {path}")
    if not path.is_file():
        raise SubmissionError(f"{path} is {'a folder' if path.is_dir() else 'no file'}; a notebook or a Python file is needed")
    if path.stat().st_size > _LARGEST:
        raise SubmissionError(f"{path} is larger than {_LARGEST >> 20} MiB")
    try:
        text = path.read_text(encoding="utf-8-sig", errors="strict" if path.suffix == ".ipynb" else "replace")
        if path.suffix != ".ipynb":
            return [text]
        cells = [each for each in json.loads(text)["cells"] if each["cell_type"] == "code"]
        sources = [("".join(each["source"]), each["metadata"].get("nbgrader", {}).get("solution")) for each in cells]
        return [part for source, solution in sources for part in ([source] if solution else _imports(source))]
    except OSError as problem:
        raise SubmissionError(f"{path} cannot be read: {problem.strerror or problem}") from problem
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise SubmissionError(f"{path} is not a notebook: {type(problem).__name__}") from problem


def _imports(source: str) -> list[str]:
    """The imports of a cell that holds nothing else, of the modules that a submission may import."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    imports = [each for each in statements if isinstance(each, ast.Import | ast.ImportFrom)]
    names = [[name.name for name in each.names] if isinstance(each, ast.Import) else [each.module or ""] for each in imports]
    offered = [{name.partition(".")[0] for name in every} <= {*worker.OFFERED} for every in names]
    return [ast.unparse(each) for each, is_offered in zip(imports, offered, strict=True) if is_offered] * (len(imports) == len(statements))


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise SubmissionError(f"its answer has a number of {len(digits)} digits")
    return int(digits)


def seal_program() -> list[tuple[int, int, int, int]]:
    """The instructions of the filter of system calls for this machine; none where there is no filter.

    It is a program of classic BPF (Linux, userspace-api/seccomp_filter): instructions of a code, two jumps and a value, on a record of the
    call's number and the machine. A call that the tables do not have ends the process, x86-64's second numbering (x32) included.
    """
    tables: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("system_calls.toml").read_text(encoding="utf-8"))
    machines, name = tables["machines"], platform.machine()
    if sys.platform != "linux" or name not in machines or sys.maxsize < 1 << 32:
        return []
    column = [*machines].index(name)
    lines = [(_LOAD, 0, 0, _MACHINE), (_EQUALS, 1, 0, machines[name]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    for table, action in (("allowed", _ALLOW), ("unpermitted", _FAIL)):
        for numbers in tables[table].values():
            if numbers[column] >= 0:
                lines += [(_EQUALS, 0, 1, numbers[column]), (_RETURN, 0, 0, action)]
    return [*lines, (_RETURN, 0, 0, _KILL)]


class SubmissionProcess:
    """A process in a group of its own, with lines to it and from it; whatever it does, nothing is waited for beyond an end.

    Parameters
    ----------
    command
        Its program and arguments.
    end
        Of all waiting, by the monotonic clock.
    late, spent
        What is raised at the end, and where the system has ended it for its processor time.
    """

    def __init__(self, command: list[str], end: float, late: str, spent: str) -> None:
        self.end, self.late, self.spent, self.unsent, self.received = end, late, spent, bytearray(), b""
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.folder.name,
            env={"PYTHONHASHSEED": "0"}, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdin and self.process.stdout
        self.into, self.out = self.process.stdin, self.process.stdout
        for each in (self.into, self.out):
            os.set_blocking(each.fileno(), False)

    def close(self) -> None:
        """Kill its group, and leave nothing of it."""
        with suppress(ProcessLookupError, PermissionError):  # they say that none is left
            os.killpg(self.process.pid, signal.SIGKILL)
        self.into.close()
        self.out.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_LEAVING)
        self.folder.cleanup()

    def send(self, line: bytes) -> None:
        """A line, which goes with the next question if it is short."""
        self.unsent += line + b"\n"
        while len(self.unsent) > _WAITING:
            self._exchange()

    def line(self) -> bytes:
        """The next line that it says."""
        while self.unsent or b"\n" not in self.received:
            self._exchange()
        if time.monotonic() > self.end:
            raise SubmissionError(self.late)
        line, _, self.received = self.received.partition(b"\n")
        return line

    def _exchange(self) -> None:
        """Wait until something can be sent or received, and do it."""
        poll, into, out = select.poll(), self.into.fileno(), self.out.fileno()
        poll.register(out, select.POLLIN)
        if self.unsent:
            poll.register(into, select.POLLOUT)
        ready = [each for each, _ in poll.poll(MILLISECONDS_A_SECOND * max(0.0, self.end - time.monotonic()))]
        if not ready or time.monotonic() > self.end:
            raise SubmissionError(self.late)
        if into in ready:
            try:
                del self.unsent[: os.write(into, self.unsent)]
            except BrokenPipeError:  # what it said last tells why
                self.unsent.clear()
        if out in ready:
            part = os.read(out, 1 << 16)
            self.received += part
            if not part:
                self.unsent.clear()
                if b"\n" not in self.received:
                    raise SubmissionError(self._leaving())
            if len(self.received) > _LONGEST:
                raise SubmissionError("stopped: its answer is longer than 1 MiB")

    def _leaving(self) -> str:
        """Why it says nothing more."""
        try:
            code = self.process.wait(_LEAVING)
        except subprocess.TimeoutExpired:
            return "stopped: it closed the pipe of its answers"
        if code == -signal.SIGSYS:
            return "stopped: it reached for what a submission must not (a system call)"
        return self.spent if code in (-signal.SIGKILL, -signal.SIGXCPU) else "stopped: its process ended"


class Submission:
    """The process of a submission; use it in a ``with`` statement.

    Parameters
    ----------
    source
        Its text, in parts: a part that fails leaves the others as they are.
    seconds
        Of processor time, from its start until it has answered everything.
    memory
        Bytes of address space.
    left
        Seconds that it is waited for at most.
    """

    def __init__(self, source: list[str], seconds: int = SECONDS, memory: int = MEMORY, left: float = TOGETHER) -> None:
        if os.name != "posix":
            raise FlashsimError("labs: submissions run on Linux and macOS alone, where a process can be limited")
        usual, late = _PATIENCE * seconds, f"more than what was left of {TOGETHER} s for all exercises"
        if left >= usual:
            late = f"more time than the {usual} s that it is waited for"
        self.end, self.late = time.monotonic() + min(usual, left), f"stopped: it took {late}"
        self.spent = f"stopped: it took more than {seconds} s of processor time"
        self.task = {"source": source, "seconds": seconds, "memory": memory, "filter": seal_program()}
        self._start()

    def _start(self) -> None:
        self.process = SubmissionProcess([sys.executable, "-S", "-s", "-B", worker.__file__], self.end, self.late, self.spent)
        self.objects, self.others = 0, dict[int, Submission]()
        try:
            self._send(self.task)
            self.sealed = bool(self._answer())
            self._answer()
        except BaseException:
            self.process.close()
            raise

    def other(self, number: int) -> Submission:
        """A process of the same submission that knows nothing of this one or of those with other numbers; it ends with this one."""
        if number not in self.others:
            another = copy(self)
            another._start()
            self.others[number] = another
        return self.others[number]

    def __enter__(self) -> Submission:
        return self

    def __exit__(self, *rest: object) -> None:
        for each in (self, *self.others.values()):
            each.process.close()

    def ask(self, name: str, *arguments: Any) -> Any:
        """Result of a function of the submission; arguments and answers are numbers, texts, lists and dictionaries."""
        self._send({"name": name, "arguments": arguments, "asked": True})
        return self._answer()

    def new(self, name: str, *arguments: Any) -> Remote:
        """An object of a class of the submission."""
        self._send({"new": name, "arguments": arguments})
        self.objects += 1
        return Remote(self, self.objects - 1)

    def _send(self, message: dict[str, Any]) -> None:
        self.process.send(json.dumps(message).encode())

    def _answer(self) -> Any:
        try:
            message = json.loads(self.process.line(), parse_int=_whole)
        except RecursionError as problem:
            raise SubmissionError("its answer is nested too deeply") from problem
        except ValueError as problem:
            raise SubmissionError("its answer is not JSON") from problem
        match message:
            case {"breach": str(kind), "what": str(what)}:
                raise SubmissionError(f"stopped: it reached for {kind} ({what})")
            case {"error": str(words)}:
                raise SubmissionError(f"it failed with {words}")
            case {"answer": answer}:
                return answer
        raise SubmissionError("its answer is none")


@cache
def seals() -> bool:
    """True where the kernel seals the process of a submission; elsewhere only what it reaches for by name stops it."""
    with Submission([]) as submission:
        return submission.sealed


class Remote:
    """An object in the process of a submission."""

    def __init__(self, submission: Submission, number: int) -> None:
        self.submission, self.number = submission, number

    def tell(self, name: str, *arguments: Any) -> None:
        """Call a method whose answer nobody needs; if it fails, the next question says so."""
        self.submission._send({"object": self.number, "name": name, "arguments": arguments, "asked": False})

    def ask(self, name: str, *arguments: Any) -> Any:
        """Result of a method."""
        self.submission._send({"object": self.number, "name": name, "arguments": arguments, "asked": True})
        return self.submission._answer()

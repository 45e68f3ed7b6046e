"""A submission, run in a process of its own: what it defines is called over a pipe, and limits are kept and named."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from flashsim.core.errors import FlashsimError, MissingFileError
from flashsim.coursework import worker

#: Limits of an exercise: seconds of processor time, and bytes of address space.
SECONDS, MEMORY = 10, 512 << 20
#: A submission that sleeps, or a machine that is busy, is waited for so many times as long.
_PATIENCE = 3
#: The longest answer, bytes, and the longest number in it.
_LONGEST, _DIGITS = 1 << 20, 18


class SubmissionError(FlashsimError):
    """A submission that breaks a limit, or fails; the message says which, or how."""


def source_of(path: Path) -> list[str]:
    """The text of a Python file, or of each code cell of a notebook that is there for a solution.

    Raises
    ------
    MissingFileError
        There is no such file.
    FlashsimError
        It is no notebook.
    """
    if not path.is_file():
        raise MissingFileError(f"no file at {path}")
    if path.suffix != ".ipynb":
        return [path.read_text(encoding="utf-8", errors="replace")]
    try:
        cells = [each for each in json.loads(path.read_text(encoding="utf-8"))["cells"] if each["cell_type"] == "code"]
        return ["".join(each["source"]) for each in cells if each["metadata"].get("nbgrader", {}).get("solution")]
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise FlashsimError(f"{path} is no notebook: {type(problem).__name__}") from problem


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise SubmissionError(f"its answer has a number of {len(digits)} digits")
    return int(digits)


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
    """

    def __init__(self, source: list[str], seconds: int = SECONDS, memory: int = MEMORY) -> None:
        if os.name != "posix":
            raise FlashsimError("labs: submissions run on Linux and macOS alone, where a process can be limited")
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-s", "-B", worker.__file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.folder.name,
            env={"PYTHONHASHSEED": "0"}, start_new_session=True,
        )  # fmt: skip
        self.seconds, self.end, self.received = seconds, time.monotonic() + _PATIENCE * seconds, b""
        self.objects = 0
        self._send({"source": source, "seconds": seconds, "memory": memory})
        self._answer()

    def __enter__(self) -> Submission:
        return self

    def __exit__(self, *rest: object) -> None:
        self.process.kill()
        self.process.communicate()
        self.folder.cleanup()

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
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            self._answer()

    def _answer(self) -> Any:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # what it said last tells why
            self.process.stdin.flush()
        message = json.loads(self._line(), parse_int=_whole)
        if "breach" in message:
            raise SubmissionError(f"stopped: it reached for {message['breach']} ({message['what']})")
        if "error" in message:
            raise SubmissionError(f"it failed with {message['error']}")
        return message["answer"]

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        while b"\n" not in self.received:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, self.end - time.monotonic()))
            part = os.read(self.process.stdout.fileno(), 1 << 16) if ready else None
            if part is None or (not part and self.process.wait() < 0):
                raise SubmissionError(f"stopped: it took more time than {self.seconds} s")
            if not part:
                raise SubmissionError("stopped: its process ended")
            self.received += part
            if len(self.received) > _LONGEST:
                raise SubmissionError("stopped: its answer is longer than 1 MiB")
        line, _, self.received = self.received.partition(b"\n")
        return line


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

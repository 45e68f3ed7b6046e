"""A check that stays alive: standard input names the images one by one, and each gets one line of output as its answer."""

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from select import select
from time import monotonic

from flashsim.apps.programs.images import PRINTED, ImageFolder

#: ``0``, or another exit code and perhaps a message.
_ANSWER = re.compile(r"0|([1-9]\d{0,2})(?:\s+(.*))?")
#: Bytes of an answer at most, letters of a wrong one that are told, and seconds in which a server ends that has closed its output.
_LONGEST, _TOLD, _ENDS = 1 << 20, 60, 1.0


class CheckServer:
    """A shell command that runs in a folder of images from the first image on, and begins again after one that it did not answer.

    A line of input has the folder of an image and, after a tab, the file of what the program had printed.  The answer is one line: ``0``,
    or another exit code and a message.  The server may take `limit` seconds per answer.
    """

    def __init__(self, check: str, folder: ImageFolder, limit: float) -> None:
        self._check, self._folder, self._limit = check, folder, limit
        self._process: subprocess.Popen[bytes] | None = None

    def look(self, image: Mapping[str, bytes], printed: bytes) -> tuple[int, str]:
        """The exit code and the message of the answer on an image; without an answer, an exit code that is not 0, and why."""
        self._folder.show(image, printed)
        process = self._process = self._process or self._start()
        code, line = self._exchange(process)
        answer = _ANSWER.fullmatch(line) if code is None else None
        if answer is None:
            self.close()
            return code or 1, line if code else f"the check server answered {line[:_TOLD]!r}, but 0 or an exit code and a message is needed"
        return int(answer[1] or 0), (answer[2] or "").replace(str(self._folder.root), ".")

    def close(self) -> None:
        """End the command, and what it has begun."""
        process, self._process = self._process, None
        if process and process.stdin and process.stdout:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.stdin.close()
            process.stdout.close()
            process.wait()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._folder.output.open("w") as errors:
            return subprocess.Popen(
                self._check,
                shell=True,
                cwd=self._folder.root,
                env=os.environ | {PRINTED: str(self._folder.printed)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                process_group=0,
                bufsize=0,
            )

    def _exchange(self, process: "subprocess.Popen[bytes]") -> tuple[int | None, str]:
        """Tell the server of the image; None and its line, or an exit code and why there is no line."""
        assert process.stdin and process.stdout
        output, data, end = process.stdout.fileno(), b"", monotonic() + self._limit
        # What is there before the question is the rest of an answer of several lines.
        if select([output], [], [], 0)[0] and (rest := os.read(output, _LONGEST)):
            return None, rest.decode(errors="replace")
        with suppress(BrokenPipeError):
            process.stdin.write(b"%b\t%b\n" % (os.fsencode(self._folder.root), os.fsencode(self._folder.printed)))
        while not data.endswith(b"\n") and len(data) < _LONGEST:
            if not select([output], [], [], max(0.0, end - monotonic()))[0]:
                return 1, f"the check took longer than {self._limit:g} s"
            if not (part := os.read(output, _LONGEST)):
                return self._end(process)
            data += part
        return None, data.decode(errors="replace").removesuffix("\n")

    def _end(self, process: "subprocess.Popen[bytes]") -> tuple[int, str]:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS)
        lines = self._folder.output.read_text(errors="replace").replace(str(self._folder.root), ".").strip().splitlines()
        return process.returncode or 1, f"the check server ended (exit code {process.returncode}) without an answer: {''.join(lines[-1:])}"

"""A command on a terminal of its own, and how long it says nothing."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Watched:
    """What a command wrote, its exit code, and its longest silence, s."""

    output: str
    code: int
    silence: float


def watch(words: list[str], folder: Path, **settings: str) -> Watched:
    """Run ``flashsim`` in a folder."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        command = [sys.executable, "-m", "flashsim", *words]
        os.execvpe(command[0], command, os.environ | {"TERM": "xterm", "COLUMNS": "120", **settings})
    output, silence, heard = b"", 0.0, time.monotonic()
    while True:
        select.select([terminal], [], [])
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # how a terminal says that nobody writes to it any more
            piece = b""
        silence, heard = max(silence, time.monotonic() - heard), time.monotonic()
        if not piece:
            break
        output += piece
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    return Watched(output.decode(errors="replace"), os.waitstatus_to_exitcode(status), silence)

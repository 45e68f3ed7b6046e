"""Processes that tests start: what they leave behind, when something holds, and what they say."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tests.yardstick import seconds


def _runs(process: int) -> bool:
    """Whether a process runs, rather than waits to be buried."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def wait_until(condition: Callable[[], bool], quiet: float = 60) -> bool:
    """Wait until a condition holds; False if it does not within what a quiet machine does in some seconds."""
    deadline = time.monotonic() + seconds(quiet)
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return holds


def end(processes: Iterable[int]) -> bool:
    """Whether all processes end; one that is killed runs until its turn."""
    every = list(processes)
    return wait_until(lambda: not any(map(_runs, every)))


def without_progress(errors: str) -> str:
    """What a command says on stderr but for lines of progress, which it prints where it takes longer than some seconds."""
    return re.sub(r"(?m)^flashsim: .* \(.*\d s\)\n", "", errors)

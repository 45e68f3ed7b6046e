"""The state of processes that tests leave behind or expect to end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def _runs(process: int) -> bool:
    """Whether a process runs, rather than waits to be buried."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def end(processes: Iterable[int], patience: float = 60) -> bool:
    """Whether all processes end within seconds; one that is killed runs until its turn."""
    deadline, left = time.monotonic() + patience, list(processes)
    while (left := [process for process in left if _runs(process)]) and time.monotonic() < deadline:
        time.sleep(0.005)
    return not left

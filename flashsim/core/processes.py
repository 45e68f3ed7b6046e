"""Processes: the cores and the memory that this one may take, and workers that end with the process that started them."""

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from flashsim.core.units import KIB

_SYSTEM, _GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
_LOOKS_EVERY = 0.5  #: Seconds after which a worker looks whether the process that started it is still there.


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_memory() -> int | None:
    """Bytes that are free by the system's account and the limits set for this process; None where the system tells nothing."""
    limits = []
    with suppress(OSError, ValueError, IndexError):
        limits.append(int(_SYSTEM.read_text().partition("MemAvailable:")[2].split()[0]) * KIB)
    with suppress(OSError, ValueError):  # "max" without a limit
        limits.append(int(_GROUP.read_text()))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        limits.append(limit)
    return min(limits, default=None)


def python_command(function: str, *arguments: str) -> list[str]:
    """The words that start a Python process which finds the same modules as this one and calls a function, ``package.module:name``.

    The arguments stand in its ``sys.argv``.
    """
    module, _, name = function.partition(":")
    start = f"import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from {module} import {name}; {name}()"
    return [sys.executable, "-c", start, json.dumps(sys.path), *arguments]


def call_watched(parent: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process that ends with the one that started it, even if that was killed.

    What a worker calls is pickled by name.  This name comes before those of a user's module: `flashsim.siblings` has seen to it that
    they are found.
    """
    _watch(parent)
    return function(*arguments)


@cache
def _watch(parent: int) -> None:
    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOKS_EVERY)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()

"""How much memory this process may still take, by the system's account and by the limits that were set for it."""

import resource
from contextlib import suppress
from pathlib import Path

from flashsim.core.units import KIB

_SYSTEM, _GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")


def free_memory() -> int | None:
    """Bytes that are free; None where the system tells nothing."""
    known = []
    with suppress(OSError, ValueError, IndexError):
        known.append(int(_SYSTEM.read_text().partition("MemAvailable:")[2].split()[0]) * KIB)
    with suppress(OSError, ValueError):  # "max" without a limit
        known.append(int(_GROUP.read_text()))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        known.append(limit)
    return min(known, default=None)

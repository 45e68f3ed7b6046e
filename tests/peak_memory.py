"""The memory of this process, and that of a started one, for programs that tests hand to ``python -c``."""

import resource
from contextlib import suppress
from pathlib import Path

from flashsim.core.units import MB

#: Defines `peak_memory`, in bytes.  What `getrusage` tells begins with the memory of the process that started this one.
PEAK_MEMORY = """
def peak_memory():
    with open("/proc/self/status") as status:
        return 1024 * int(status.read().partition("VmHWM:")[2].split()[0])
"""


def memory_mb() -> float:
    """Megabytes of memory of this process; 0 where the system does not say."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / MB
    return 0.0

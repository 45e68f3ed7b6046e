"""Settings of an operating system's memory and file system."""

from dataclasses import dataclass

from flashsim.core import parameters
from flashsim.core.units import GIB, KIB, SECONDS
from traces.calls.page_cache import PAGE


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """An operating system's memory and file system, as ``calls:memory=1GiB,limit=0.2`` has them."""

    memory: int = parameters.size("of the page cache; 0B: every call goes to the device", least=0, default=GIB)
    read_ahead: int = parameters.size("read ahead of a reader at most; 0B: nothing", least=0, default=128 * KIB)
    background: float = parameters.number("share of memory above which dirty pages are written", 0.0, 1.0, default=0.1)
    limit: float = parameters.number("share of memory above which a writer waits", 0.0, 1.0, default=0.2)
    expiry: int = parameters.duration("after which a dirty page is written", default=30 * SECONDS)
    wakeup: int = parameters.duration("between two looks for pages that have expired", least=1, default=5 * SECONDS)
    commit: int = parameters.duration("after which the journal commits a change", least=1, default=5 * SECONDS)
    journal: bool = parameters.switch("whether the file system writes a journal, and other metadata", default=True)
    warm: bool = parameters.switch("whether files were in memory before the program began", default=False)
    largest: int = parameters.size("of a request of the page cache at most", least=PAGE, default=1280 * KIB)

"""Rules that designs share for pages that move, and the keys by which designs replace pages."""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.storage.extension.design import CHECKPOINTED, DIRTY_PAGE, DROP, SEQUENTIAL, TO_DISK, TO_SSD
from flashsim.storage.extension.state import BEFORE, CHECKPOINT, FILL, LAST, Extension

_ONE_MISS = 1 << 40


@lean_kernel
def nothing(ext: Extension, page: int, flags: int) -> int:
    """A page comes into memory, and nothing else changes."""
    return 0


@lean_kernel
def give_up(ext: Extension, page: int) -> int:
    """A copy that is not the newest any more leaves its frame."""
    return DROP


@inlined_kernel
def is_admitted(ext: Extension, flags: int) -> bool:
    """True if a page that leaves memory may go to the SSD: it was read at random, or the SSD is being filled (tau)."""
    return ext.numbers[FILL] > 0 or not flags & SEQUENTIAL


@inlined_kernel
def must_reach_the_disk(ext: Extension, flags: int) -> bool:
    """True if a page is newer than on disk and has to go there, whatever the SSD takes, because of a checkpoint."""
    return flags & DIRTY_PAGE != 0 and (ext.numbers[CHECKPOINT] != 0 or flags & CHECKPOINTED != 0)


@lean_kernel
def write_back(ext: Extension, page: int, flags: int) -> int:
    """Whatever leaves memory goes to the SSD alone, but for checkpoints."""
    return TO_DISK if must_reach_the_disk(ext, flags) else TO_SSD


@lean_kernel
def lru(ext: Extension, page: int) -> int:
    """The time of the last miss, in misses."""
    return int(ext.pages[page, LAST])


@lean_kernel
def lru_2(ext: Extension, page: int) -> int:
    """The time of the last miss but one, in misses; a page that missed once goes before all others, the older first.

    Source: O'Neil, O'Neil, Weikum, "The LRU-K page replacement algorithm for database disk buffering", SIGMOD 1993.
    """
    before = int(ext.pages[page, BEFORE])
    return before + _ONE_MISS if before else int(ext.pages[page, LAST])

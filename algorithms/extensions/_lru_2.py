"""The key of LRU-2: the time of the last miss but one, in misses; a page that missed once goes before all others, the older first.

Source: O'Neil, O'Neil, Weikum, "The LRU-K page replacement algorithm for database disk buffering", SIGMOD 1993.
"""

from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.state import BEFORE, LAST, Extension

_ONE_MISS = 1 << 40


@lean_kernel
def lru_2(ext: Extension, page: int) -> int:
    before = int(ext.pages[page, BEFORE])
    return before + _ONE_MISS if before else int(ext.pages[page, LAST])

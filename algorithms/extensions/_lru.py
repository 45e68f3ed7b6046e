"""The key of LRU: the time of the last miss, in misses."""

from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.state import LAST, Extension


@lean_kernel
def lru(ext: Extension, page: int) -> int:
    return int(ext.pages[page, LAST])

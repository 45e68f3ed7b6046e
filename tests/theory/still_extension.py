"""An extension whose SSD takes pages as they leave memory until it is full, and then keeps them: what it holds no more changes."""

from __future__ import annotations

from algorithms.extensions._flows import give_up, lru, nothing
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import TO_SSD
from flashsim.storage.extension.state import FRAMES, USED, Extension

TITLE = "still"
on_fetch, on_serve, on_modify, key = nothing, nothing, give_up, lru


@lean_kernel
def on_evict(ext: Extension, page: int, flags: int) -> int:
    """While there is room."""
    return TO_SSD if ext.numbers[USED] < ext.numbers[FRAMES] else 0

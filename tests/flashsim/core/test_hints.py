"""Hints change no result, and reach the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.core.hints import prefetch
from flashsim.core.kernel import is_compiled, lean_kernel
from flashsim.core.request import Integers


@lean_kernel
def hinted_sum(values: Integers, places: Integers) -> int:
    """Hints at entries, two of them outside the array, then adds up those inside."""
    total = 0
    for place in places:
        prefetch(values, place)
    for place in places:
        if 0 <= place < len(values):
            total += values[place]
    return total


def test_a_hint_reads_nothing() -> None:
    assert hinted_sum(np.arange(1000), np.array([5, -1, 999, 10**9])) == 1004


@pytest.mark.skipif(not is_compiled(), reason="needs compiled kernels")
def test_a_hint_is_an_instruction() -> None:
    space: dict[str, Any] = {"prefetch": prefetch}
    exec("def hinted(values, place):\n    prefetch(values, place)\n    return len(values)\n", space)  # without a file: not kept compiled
    hinted: Any = lean_kernel(space["hinted"])
    assert hinted(np.arange(10), 3) == 10
    assert hinted(np.zeros((10, 2)), 3) == 10  # of a row
    assert all("call void @llvm.prefetch" in code for code in hinted.inspect_llvm().values())

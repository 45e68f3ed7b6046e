"""Seeds of drawn cases: some in every run, more in the slow set."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(first: int, count: int, *, slow: int) -> list[Any]:
    """`count` seeds from `first` on, and after them those that only the slow set takes."""
    always = range(first, first + count)
    return [*always, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(always.stop, always.stop + slow))]

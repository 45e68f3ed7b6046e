"""The two tiers of tests: what every run takes (default), and all else (deep), which a release needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any
from zlib import crc32

import pytest

#: Whether this is a run of the deep tier, as `python -m tests deep` says; processes that a run starts inherit it.
DEEP_RUN = os.environ.get("FLASHSIM_TESTS") == "deep"
deep = pytest.mark.deep


def sample(count: int, names: str, values: Iterable[Any], **more: Any) -> Callable[[Any], Any]:
    """As ``pytest.mark.parametrize``, with `count` of the values in the default tier and the others in the deep one.

    Those of the default tier are spread over all, and begin elsewhere for each test, so that of a family different members are tested.
    """
    given = list(values)
    several = "," in names

    def in_deep(value: Any) -> Any:
        if hasattr(value, "marks"):
            return pytest.param(*value.values, marks=(*value.marks, deep), id=value.id)
        return pytest.param(*value, marks=deep) if several else pytest.param(value, marks=deep)

    def decorate(test: Any) -> Any:
        first = crc32(test.__name__.encode())
        kept = {(first + number * len(given) // count) % len(given) for number in range(count)} if count < len(given) else range(len(given))
        chosen = [value if number in kept else in_deep(value) for number, value in enumerate(given)]
        return pytest.mark.parametrize(names, chosen, **more)(test)

    return decorate


def seeds(first: int, count: int, *, deep: int) -> list[Any]:
    """`count` seeds from `first` on, and after them those that only the deep tier takes."""
    always = range(first, first + count)
    return [*always, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(always.stop, always.stop + deep))]


def examples(count: int) -> int:
    """Examples that Hypothesis draws: `count` in a run of the deep tier, a tenth of them, and 3 at least, in one of the default tier."""
    return count if DEEP_RUN else max(3, count // 10)

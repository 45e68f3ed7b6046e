"""The two tiers of tests: what every run takes (default), and all else (deep), which a release needs."""

from __future__ import annotations

import os
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

#: Whether this is a run of the deep tier, as `python -m tests deep` says; processes that a run starts inherit it.
DEEP_RUN = os.environ.get("FLASHSIM_TESTS") == "deep"
deep = pytest.mark.deep
#: Which tests a run of each tier takes; properties are in both: by default with few examples.
MARKS = {"default": "not deep", "deep": "deep or hypothesis"}
_TABLES: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def mark_deep(tests: Iterable[pytest.Item], whole_files: bool) -> None:
    """Mark those of the collected tests that `tiers.toml` puts into the deep tier.

    The cases of a test that stay are spread over all, and begin elsewhere for each test, so that of a family different members are tested.

    Raises
    ------
    pytest.UsageError
        `tiers.toml` names a test that its file, which is collected as a whole, has not.
    """
    counts, deep_cases = _TABLES["counts"], _TABLES["deep_cases"]
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    names = set()
    for test in tests:
        name, _, case = test.nodeid.partition("[")
        names.add(name)
        if name in counts:
            cases[name].append(test)
        elif case[:-1] in deep_cases.get(name, ()):
            test.add_marker(deep)
    files = {name.partition("::")[0] for name in names}
    absent = [name for name in (*counts, *deep_cases) if name not in names and name.partition("::")[0] in files]
    if whole_files and absent:
        raise pytest.UsageError(f"tests/tiers.toml names tests that are not there: {', '.join(absent)}")
    for name, each in cases.items():
        first, count = crc32(name.encode()), min(counts[name], len(each))
        kept = {(first + number * len(each) // count) % len(each) for number in range(count)}
        for number, test in enumerate(each):
            if number not in kept:
                test.add_marker(deep)


def seeds(first: int, count: int, *, deep: int) -> list[Any]:
    """`count` seeds from `first` on, and after them those that only the deep tier takes."""
    always = range(first, first + count)
    return [*always, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(always.stop, always.stop + deep))]


def examples(count: int, few: int = 0) -> int:
    """Examples that Hypothesis draws: `count` in a run of the deep tier; else `few`, or a tenth of them, and 3 at least."""
    return count if DEEP_RUN else few or max(3, count // 10)

"""A file of one's own among the members that contract tests run on: ``pytest tests/contract --member FILE.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashsim.core.errors import FlashsimError
from flashsim.testing.families import family_of


def join_its_family(path: Path) -> None:
    """Add a file to its family."""
    try:
        family = family_of(path)
    except FlashsimError as problem:
        raise pytest.UsageError(f"--member: {problem}") from None
    names = [*family.names(), str(path.resolve())]
    vars(family)["names"] = lambda: names


def is_tested_by(item: pytest.Item, path: Path) -> bool:
    """Whether a test is about the file."""
    parameters = getattr(item, "callspec", None)
    values = [] if parameters is None else [each for each in parameters.params.values() if isinstance(each, str | tuple)]
    return any(str(path.resolve()) in ([each] if isinstance(each, str) else each) for each in values)

"""A file of one's own among the members that contract tests run on: ``pytest tests/contract --member FILE.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from flashsim.core.members import Family
from flashsim.core.source_files import source_tree


def declarations() -> Iterator[tuple[str, str, str, str]]:
    """Each family's package, and the module, the name and the protocol that it is bound to."""
    for module, text in source_tree().sources.items():
        for name, package, protocol in re.findall(r'^(\w+) = Family\(\s*"([\w.]+)", "[^"]*", (\w+)', text.decode(), re.MULTILINE):
            yield package, module, name, protocol


def family_of(path: Path) -> Family[object]:
    """The family whose contract asks most of what a file defines."""
    if not path.is_file():
        raise pytest.UsageError(f"--member: no file at {path}")
    every: list[Family[object]] = [getattr(import_module(module), name) for _, module, name, _ in declarations()]
    family = max(every, key=lambda each: each.asked_of(path) or 0)
    if not family.asked_of(path):
        raise pytest.UsageError(f"--member: {path} defines no member of any family; each family's base.py says what a member defines")
    return family


def join_its_family(path: Path) -> None:
    """Add a file to its family."""
    family = family_of(path)
    names = [*family.names(), str(path.resolve())]
    vars(family)["names"] = lambda: names


def is_tested_by(item: pytest.Item, path: Path) -> bool:
    """Whether a test is about the file."""
    parameters = getattr(item, "callspec", None)
    return parameters is not None and str(path.resolve()) in [value for value in parameters.params.values() if isinstance(value, str)]

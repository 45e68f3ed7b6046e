"""The family that a Python file belongs to, by what the file defines."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from flashsim.core.errors import FlashsimError, MissingFileError, in_one_line
from flashsim.core.members import Family
from flashsim.core.source_files import source_tree


def declarations() -> Iterator[tuple[str, str, str, str]]:
    """Each family's package, and the module, the name and the protocol that it is bound to."""
    for module, text in source_tree().sources.items():
        for name, package, protocol in re.findall(r'^(\w+) = Family\(\s*"([\w.]+)", "[^"]*", (\w+)', text.decode(), re.MULTILINE):
            yield package, module, name, protocol


def family_of(path: Path) -> Family[object]:
    """The family whose contract asks most of what a file defines.

    Raises
    ------
    MissingFileError
        There is no such file.
    FlashsimError
        The file is no Python, or a member of no family.
    """
    if not path.is_file():
        raise MissingFileError(f"no file at {path}")
    try:
        ast.parse(path.read_bytes(), path.name)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as problem:
        raise FlashsimError(f"{path} is no Python: {in_one_line(problem)}") from problem
    every: list[Family[object]] = [getattr(import_module(module), name) for _, module, name, _ in declarations()]
    family = max(every, key=lambda each: each.asked_of(path) or 0)
    if not family.asked_of(path):
        raise FlashsimError(f"{path} defines no member of any family; each family's base.py says what a member defines")
    return family

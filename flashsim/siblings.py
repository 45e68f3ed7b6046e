"""The check that the sibling packages, whose names are generic, are flashsim's own and not shadowed by someone else's files."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

#: The packages that stand next to ``flashsim``.
SIBLINGS = ("models", "algorithms", "traces", "experiments")


def _place(name: str) -> Path | None:
    """The file that ``import name`` would take, without importing it; the folder where there is no ``__init__.py``."""
    try:
        spec = find_spec(name)
    except ValueError:  # a module that someone put into sys.modules by hand
        return Path(getattr(sys.modules[name], "__file__", None) or f"<{name}>")
    if spec is None:
        return None
    if spec.has_location and spec.origin:
        return Path(spec.origin)
    return Path(next(iter(spec.submodule_search_locations or [f"<{name}>"])))


def shadowed(home: Path) -> str | None:
    """One line that says which sibling of the package folder `home` is shadowed or missing, or None where all is well."""
    parent = home.resolve().parent
    for name in SIBLINGS:
        found = _place(name)
        own = parent / name / "__init__.py"
        if found is None:
            return f"package '{name}' of flashsim is missing: {own} does not exist or cannot be found"
        if found.resolve() != own:
            return f"package '{name}' of flashsim is shadowed by {found}; rename that, or take its folder off Python's path"
    return None


def started_as_command() -> bool:
    """Whether this process is the command ``flashsim`` or ``python -m flashsim``."""
    script = Path(sys.argv[0]).stem if sys.argv else ""
    return script == "flashsim" or sys.orig_argv[1:3] == ["-m", "flashsim"]

"""The sibling packages, whose names are generic, beside files of the user's own that have the same names.

Where ``import models`` would take a file or package of the user's, that keeps the name, and flashsim's folder is added to its path:
``models.haas`` is then flashsim's, ``models.Mine`` the user's, and the user's code is run once the user asks for something of it
(docs/decisions/0029).
"""

import ast
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

#: The packages that stand next to ``flashsim``.
SIBLINGS = ("models", "algorithms", "traces")
#: Attributes by which a module is asked for what it holds; others with two underscores are Python's own.
_ASKING = ("__all__", "__version__")


class Shared(ModuleType):
    """A module of the user's that has a sibling's name, not run before anybody asks for what is not flashsim's."""

    _own: frozenset[str]
    _run = False

    def __init__(self, spec: ModuleSpec, own: frozenset[str]) -> None:
        super().__init__(spec.name)
        self.__dict__.update(__spec__=spec, __file__=spec.origin, __loader__=spec.loader, __package__=spec.name)
        self.__dict__.update(__path__=spec.submodule_search_locations, _own=own)

    def __getattr__(self, name: str) -> Any:
        if name not in self._own and (not name.startswith("__") or name in _ASKING):
            self._load()
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        self._load()
        return sorted(self.__dict__)

    def _load(self) -> None:
        spec = self.__spec__
        if self._run or spec is None or spec.loader is None:
            return
        self._run = True
        try:
            spec.loader.exec_module(self)
        except BaseException:
            self._run = False
            raise


def settle(home: Path) -> str | None:
    """Make every sibling of the package folder `home` importable; one line that says why one cannot be, or None where all can."""
    parent = home.resolve().parent
    for name in SIBLINGS:
        own = parent / name
        if not (own / "__init__.py").is_file():
            return f"package '{name}' of flashsim is missing: {own / '__init__.py'} does not exist or cannot be found"
        known = sys.modules.get(name)
        try:
            spec = find_spec(name)
        except ValueError:  # a module that someone put into sys.modules by hand
            spec = None
        if spec is not None and spec.origin and Path(spec.origin).resolve() == own / "__init__.py":
            continue
        if problem := _clash(spec, known, name, own):
            return problem
        assert spec is not None
        spec.submodule_search_locations = [*(spec.submodule_search_locations or []), str(own)]
        if known is None:
            sys.modules[name] = Shared(spec, _parts(own))
        else:
            known.__path__ = spec.submodule_search_locations
    return None


def _clash(spec: ModuleSpec | None, known: ModuleType | None, name: str, own: Path) -> str | None:
    """Reason why a sibling cannot share its name with what was found under it; None where it can."""
    if spec is None and known is None:
        return f"package '{name}' of flashsim is missing: {own / '__init__.py'} cannot be found on Python's path"
    advice = "rename that, or take its folder off Python's path"
    if spec is None or not spec.origin or not isinstance(spec.loader, SourceFileLoader):
        found = getattr(known, "__file__", None) or next(iter(spec.submodule_search_locations or ()) if spec else iter(()), f"<{name}>")
        return f"package '{name}' of flashsim is shadowed by {found}; {advice}"
    theirs = _names(Path(spec.origin)).union(*(_parts(Path(place)) for place in spec.submodule_search_locations or ()))
    if both := sorted(theirs & _parts(own)):
        return f"package '{name}' of flashsim is shadowed by {spec.origin}, which has a {both[0]} too; {advice}"
    return None


def _parts(folder: Path) -> frozenset[str]:
    return frozenset(each.stem for each in folder.glob("[!_]*") if each.suffix == ".py" or each.is_dir())


def _names(file: Path) -> set[str]:
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):  # told when it is run
        return set()
    outermost = [node for each in body for node in ([each] if hasattr(each, "name") else ast.walk(each))]
    named = {node.name for node in outermost if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    assigned = {node.id for node in outermost if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return named | assigned | {(node.asname or node.name).partition(".")[0] for node in outermost if isinstance(node, ast.alias)}


def foreign_system() -> str | None:
    """One line for a system without POSIX's files and signals; None on Linux and macOS."""
    if find_spec("fcntl") and find_spec("resource"):
        return None
    return "flashsim runs on Linux, and on macOS but for real files and devices; on Windows it runs in the Windows Subsystem for Linux"


def started_as_command() -> bool:
    """True if this process is the command ``flashsim`` or ``python -m flashsim``."""
    script = Path(sys.argv[0]).stem if sys.argv else ""
    return script == "flashsim" or sys.orig_argv[1:3] == ["-m", "flashsim"]

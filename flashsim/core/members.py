"""Families and their members: a member is one file or package in the family's folder, and its name is the file's name.

``base.py`` holds the family's contract; files whose names start with ``_`` are shared parts.  `_` in a file name becomes `-` in the
member's name.  A member may also be given as ``path/to/mine.py`` or come from an entry point of the group ``flashsim.<family>``.
"""

import ast
import hashlib
import importlib
import importlib.util
import os
import pkgutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, Generic, TypeVar, cast

from flashsim.core.errors import FlashsimError, MissingFileError, UnknownNameError, in_one_line

Member = TypeVar("Member")
Function = TypeVar("Function", bound=Callable[..., Any])


def optional(function: Function) -> Function:
    """Mark a function of a contract that members may leave out: as written there, it then takes their place."""
    vars(function)["optional"] = True
    return function


class Family(Generic[Member]):
    """A folder of interchangeable modules.

    Parameters
    ----------
    package
        The import name of the folder, such as ``"flashsim.ssd.gc"``.
    kind
        What an error message calls a member, such as ``"garbage collection policy"``.
    contract
        The protocol that every member's module follows; what has a value there, or is `optional`, a member may leave out.
    forms
        Where a member may take several forms, the names that each needs besides; a member has at least one of them.
    tables
        What makes a member of a TOML file in the folder, from its name and what the file says, as ``module:name``; empty where only
        modules are members.
    holds
        The file that a folder in the family's folder holds if it is a member; empty where all modules are.
    renamed
        Former names of what the contract asks for, each with its name now; a member that still defines a former one is refused.
    """

    def __init__(
        self,
        package: str,
        kind: str,
        contract: Callable[..., Member],
        forms: Sequence[Sequence[str]] = (),
        tables: str = "",
        holds: str = "",
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self.package = package
        self.kind = kind
        self.forms = forms
        self.tables = tables
        self.holds = holds
        self.renamed = renamed or {}
        self.needs, self.usual = _parts(contract)
        self.group = f"flashsim.{package.rsplit('.', 1)[-1]}"

    def names(self) -> list[str]:
        """The members' names, sorted: those in the folder and installed entry points."""
        return sorted({*self.own_names(), *(point.name for point in _entry_points(self.group))})

    def own_names(self) -> list[str]:
        """Names of the members that are files and packages in the folder, sorted."""
        places = [Path(place) for place in self._places()]
        files = {path for place in places for path in place.glob("*.py") if not self.holds}
        files |= {path.parent for place in places for path in place.glob(f"*/{self.holds or '__init__.py'}")}
        files |= {path for place in places for path in place.glob("*.toml") if self.tables}
        return sorted({path.stem.replace("_", "-") for path in files if path.stem != "base" and not path.stem.startswith("_")})

    def files(self, folder: Path) -> list[str]:
        """Paths of the Python files in a folder that define all that a member must; they are read, and not run."""
        return sorted(f"./{path.name}" for path in folder.glob("*.py") if self.is_defined_in(path))

    def is_defined_in(self, path: Path) -> bool:
        """True if a Python file defines all that a member must; the file is read, and not run."""
        return self.count_needed_names(path) is not None

    def count_needed_names(self, path: Path) -> int | None:
        """The number of names that a Python file defines because a member must; None if one is missing."""
        needs, defined = {need for need in self.needs if not need.startswith("__")}, _defined_names(path)
        forms = [len(form) for form in self.forms or [()] if defined.issuperset(form)]
        return len(needs) + max(forms) if forms and needs <= defined else None

    def load(self, name: str) -> Member:
        """Import one member, given its name or the path of a Python file.

        Raises UnknownNameError: no member has that name; MissingFileError: there is no file at that path; FlashsimError: the file cannot be
        imported, lacks part of the contract or has a former name of it.
        """
        module = self._from_file(Path(name)) if name.endswith(".py") else self._from_name(name)
        for former, name_now in self.renamed.items():
            if hasattr(module, former) and not hasattr(module, name_now):
                raise FlashsimError(f"{self.kind}: '{name}' defines {former}, which is called {name_now} now")
        missing = [need for need in self.needs if not hasattr(module, need)]
        if missing:
            raise FlashsimError(f"{self.kind}: '{name}' does not define {', '.join(missing)}")
        if self.forms and not any(all(hasattr(module, part) for part in form) for form in self.forms):
            raise FlashsimError(f"{self.kind}: '{name}' does not define {', or '.join(', '.join(form) for form in self.forms)}")
        for part, value in self.usual.items():
            if not hasattr(module, part):
                setattr(module, part, MethodType(value, module) if isinstance(value, FunctionType) else value)
        if type(module) is ModuleType:
            module.__class__ = _MemberModule
        return cast(Member, module)

    def _from_name(self, name: str) -> Any:
        for point in _entry_points(self.group):
            if point.name == name:
                return self._import_module(name, point.load)
        if not self._is_in_folder(name):
            raise UnknownNameError(self.kind, name, self.names())
        for place in self._places():
            path = Path(place) / f"{name.replace('-', '_')}.toml"
            if self.tables and path.is_file():
                return pkgutil.resolve_name(self.tables)(name, tomllib.loads(path.read_text(encoding="utf-8")))
        return self._import_module(name, lambda: importlib.import_module(f"{self.package}.{name.replace('-', '_')}"))

    def _places(self) -> list[str]:
        spec = importlib.util.find_spec(self.package)
        return list((spec.submodule_search_locations if spec else None) or [])

    def _is_in_folder(self, name: str) -> bool:
        """True if `names` lists a file or package; formulas load their members for every cost, so the folder is not read for it."""
        stem = name.replace("-", "_")
        if name in ("", "base") or not set(name).isdisjoint("_./\\") or stem.startswith("_"):
            return False
        paths = [os.path.join(place, stem) for place in self._places()]
        endings = [f"/{self.holds}"] if self.holds else [".py", "/__init__.py"] + [".toml"] * bool(self.tables)
        return any(os.path.isfile(path + ending) for path in paths for ending in endings)

    def _from_file(self, path: Path) -> ModuleType:
        if not path.is_file():
            raise MissingFileError(f"{self.kind}: no file at {path}")
        unique = f"{self.group}.{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
        return self._import_module(str(path), lambda: _execute(path, unique))

    def _import_module(self, name: str, load: Callable[[], ModuleType]) -> ModuleType:
        try:
            return load()
        except FlashsimError:
            raise
        except (Exception, SystemExit) as problem:
            raise FlashsimError(f"{self.kind}: {name} cannot be imported: {in_one_line(problem)}") from problem


class _MemberModule(ModuleType):
    """A member, which copies and pickled results name."""

    def __reduce__(self) -> tuple[Any, ...]:
        is_file = isinstance(self.__loader__, _LeavesNoTrace)
        return _member_again, (self.__name__, self.__file__ if is_file else None)


def _member_again(name: str, file: str | None) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    return _execute(Path(file), name) if file else importlib.import_module(name)


def _parts(contract: Any) -> tuple[list[str], dict[str, Any]]:
    needs: dict[str, None] = {}
    usual: dict[str, Any] = {}
    for kind in reversed(contract.__mro__):
        if not getattr(kind, "_is_protocol", False) or kind.__module__ == "typing":
            continue
        own = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
        for name, value in own.items():
            if isinstance(value, (FunctionType, property)) and not hasattr(value, "optional"):
                needs[name] = None
            else:
                usual[name] = value
        needs |= dict.fromkeys(name for name in vars(kind).get("__annotations__", {}) if name not in own)
    return list(needs), usual


def _defined_names(path: Path) -> set[str]:
    """The names that a Python file defines or imports at its top; none if it is not understood."""
    names: set[str] = set()
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return names
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            case ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
    return names


@cache
def _entry_points(group: str) -> EntryPoints:
    """The entry points of a group; looking them up reads the metadata of every installed distribution."""
    return entry_points(group=group)


class _LeavesNoTrace(SourceFileLoader):
    """A loader that writes no bytecode: a user's folder stays as it is."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0) -> None:
        """Drop the bytecode."""


def _execute(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, loader=_LeavesNoTrace(name, str(path)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

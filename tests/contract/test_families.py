"""All families: every member follows its family's protocol, as the type checker sees it."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest
from mypy import api

from flashsim.core.families import declarations
from flashsim.core.members import Family
from flashsim.core.source_files import source_tree
from tests.test_house import ROOT

#: Each family's package, and the module, the name and the protocol that it is bound to.
FAMILIES = {package: rest for package, *rest in declarations()}
#: What is given where something is wanted must be of its type.
_GIVEN = """
from collections.abc import Callable
from typing import TypeVar
Wanted = TypeVar("Wanted")
def wants(wanted: Wanted) -> Callable[[Wanted], None]:
    return print
"""


def family(package: str) -> Family[object]:
    module, name, _ = FAMILIES[package]
    found: Family[object] = getattr(import_module(module), name)
    return found


def defined(module: str) -> set[str]:
    """What a module's own text defines or imports."""
    names: set[str] = set()
    for node in ast.parse(source_tree().sources[module]).body:
        match node:
            case ast.FunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
    return names


def test_every_family_is_found() -> None:
    assert len(FAMILIES) >= 10 and {"algorithms.joins", "flashsim.ssd.gc", "traces.format"} <= set(FAMILIES)
    for package in FAMILIES:
        assert family(package).package == package and family(package).names()


def test_every_member_follows_its_protocol(tmp_path: Path) -> None:
    """Each part that a member defines is given where the protocol has it; that none is missing is checked when a member is loaded."""
    lines, parts = [_GIVEN], 0
    for number, (package, (module, _, protocol)) in enumerate(FAMILIES.items()):
        lines += [f"from {module} import {protocol} as Protocol{number}"]
        for place, name in enumerate(family(package).names()):
            member = f"{package}.{name.replace('-', '_')}"
            if family(package).tables and member not in source_tree().sources:
                continue  # a table, of which the type checker sees what it is made into
            wanted = sorted(defined(member) & {*family(package).needs, *family(package).usual})
            parts += len(wanted)
            if not all(part.isidentifier() for part in member.split(".")):  # such as 2q, which no import statement can name
                text, member = source_tree().sources[member], f"member{number}_{place}"
                (tmp_path / f"{member}.py").write_bytes(text)
            lines += [f"import {member}", f"def f{number}_{place}(protocol: Protocol{number}) -> None:"]
            lines += [f"    wants(protocol.{part})({member}.{part})" for part in wanted] or ["    pass"]
    assert parts > 2 * len(FAMILIES)
    (tmp_path / "walked.py").write_text("\n".join(lines))
    told, _, status = api.run(["--config-file", str(ROOT / "setup.cfg"), str(tmp_path / "walked.py")])
    if status:
        pytest.fail(told)

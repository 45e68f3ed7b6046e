"""The families as Markdown: of each its contract, and its members with a link and what each says of itself in a sentence."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from flashsim.core.source_files import source_tree
from flashsim.testing import CONTRACTS
from flashsim.testing.checking import declarations


def write_families(file: Path) -> None:
    """Write a section for each family, in the order of what they are called."""
    sections = [_section(getattr(import_module(module), name), f"{module}.{protocol}") for _, module, name, protocol in declarations()]
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n\n".join(sorted(sections)) + "\n", encoding="utf-8")


def _section(family: Any, protocol: str) -> str:
    room = family.package.rpartition(".")[2]
    tests = f", tested by {{class}}`~flashsim.testing.contracts.{room}.{CONTRACTS[room]}`" if room in CONTRACTS else ""
    rows = [f"| {_link(family.package, name)} | {_summary(family.load(name))} |" for name in family.names()]
    title = family.kind[0].upper() + family.kind[1:]
    lead = f"In `{family.package}`; contract {{class}}`~{protocol}`{tests}."
    return "\n".join([f"## {title}", "", lead, "", "| name | what |", "|---|---|", *rows])


def _link(package: str, name: str) -> str:
    module = f"{package}.{name.replace('-', '_')}"
    return f"{{mod}}`{name} <{module}>`" if module in source_tree().sources else f"`{name}`"


def _summary(member: Any) -> str:
    """The first paragraph of its docstring, or its title."""
    text = (member.__doc__ or getattr(member, "TITLE", "")).strip().partition("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")

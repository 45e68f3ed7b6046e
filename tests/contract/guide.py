"""The files and programs of the guide to members, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-member.md"


def write_members(folder: Path, page: Path = PAGE) -> list[str]:
    """Write a guide's files into a folder; returns its programs, in order."""
    programs = []
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        if name := re.match(r"# (\w+\.py)\n", block):
            (folder / name[1]).write_text(block, encoding="utf-8")
        else:
            programs.append(block)
    return programs


def members_of(page: Path = PAGE) -> dict[str, str]:
    """A guide's files, by name."""
    blocks = re.findall(r"^```python\n(# (\w+\.py)\n.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return {name: block for block, name in blocks}


def commands() -> list[str]:
    """The guide's command lines, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return "".join(blocks).splitlines()

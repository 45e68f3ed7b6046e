"""The files and programs of the guide to members, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-member.md"


def write_members(folder: Path) -> list[str]:
    """Write the guide's files into a folder; returns its programs, in order."""
    programs = []
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        if name := re.match(r"# (\w+\.py)\n", block):
            (folder / name[1]).write_text(block, encoding="utf-8")
        else:
            programs.append(block)
    return programs

"""The tutorial's tasks are short, and each does what it says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[4] / "docs" / "tutorials" / "from_python.md"
#: Random writes on a steady drive; a join of two tables on two devices; the formula beside; a sweep; a trace on three drives.
TASKS = ("fs.drive(", "result.phases()", "against_formula()", "fs.sweep(", "fs.replay(")


def test_every_task_takes_six_lines_at_most() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for task in TASKS:
        (block,) = (block for block in blocks if task in block)
        assert len(block.strip().splitlines()) <= 6, block

"""The table of replacement policies is what the members say of themselves."""

from __future__ import annotations

import re
from pathlib import Path

from algorithms.replacement.base import REPLACEMENT, replacement_policy

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "replacement.md"
FRAMES = 1000


def test_the_table_has_every_policy_with_its_parameters_and_memory() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    told = {row[0].strip("`"): row[1:] for row in rows if row[0].strip("`") in REPLACEMENT.names()}
    assert list(told) == REPLACEMENT.names()
    for name, (parameters, per_page, per_frame, inclusion, _) in told.items():
        policy = replacement_policy(name)
        small, large = (policy.state(frames, 100) for frames in (FRAMES, 2 * FRAMES))
        assert re.findall(r"`([\w-]+)`", parameters) == list(policy.parameters)
        assert int(per_page) == small.pages.itemsize * small.pages.shape[1]
        assert int(per_frame) == (large.words.nbytes - small.words.nbytes) / FRAMES
        assert (inclusion == "yes") == REPLACEMENT.load(name).INCLUSION

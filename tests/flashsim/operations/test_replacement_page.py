"""The table of replacement policies is what the members say of themselves."""

from __future__ import annotations

import re
from pathlib import Path

from algorithms.replacement.base import REPLACEMENT
from flashsim.core.replacement import OWN

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "replacement.md"


def test_the_table_has_every_policy_with_its_parameters_and_memory() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    told = {row[0].strip("`"): row[1:] for row in rows if row[0].strip("`") in REPLACEMENT.names()}
    assert list(told) == REPLACEMENT.names(), f"{PAGE} needs a row for each policy, in this order: {', '.join(REPLACEMENT.names())}"
    for name, (parameters, per_page, per_frame, inclusion, _) in told.items():
        member = REPLACEMENT.load(name)
        values = {parameter: declared.default for parameter, declared in member.PARAMETERS.items()}
        columns = member.COLUMNS(values) if callable(member.COLUMNS) else member.COLUMNS
        assert re.findall(r"`([\w-]+)`", parameters) == list(values)
        assert int(per_page) == 4 << (OWN + columns - 1).bit_length()  # rows are as long as a power of two
        assert int(per_frame) == 8 * member.WORDS
        assert (inclusion == "yes") == member.INCLUSION

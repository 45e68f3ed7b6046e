"""A check ends, whatever a member does."""

from __future__ import annotations

from pathlib import Path

import pytest

import flashsim as fs
from flashsim import testing
from tests.contract.test_hdd_schedulers import MINE as SCHEDULER
from tests.contract.test_replacement import PLAIN


@pytest.mark.parametrize(
    ("source", "limit", "reason"),
    [
        (
            PLAIN.replace("leaving =", "while self.pool.pinned(self.pages[0]):\n            pass\n        leaving ="),
            "0.3s",
            "does not end within 0.3 s of processor time",
        ),
        (
            SCHEDULER.replace("return", "while count:\n        candidates[0].delay += 1\n    return"),
            "1s",
            "does not end within 1 s of processor time",
        ),  # in compiled code
        (PLAIN.replace("leaving =", "__import__('time').sleep(60)\n        leaving ="), "0.3s", "does not end within 3 s"),
        (PLAIN.replace("leaving =", "__import__('os')._exit(3)\n        leaving ="), "60s", "ends the process, with exit code 3"),
    ],
)
def test_a_property_that_does_not_end_fails(source: str, limit: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "endless.py"
    path.write_text(source)
    outcome = fs.check(str(path), limit=limit)
    assert outcome.status == 1 and any(reason in each.reason for each in outcome.result)


def test_type_checkers_know_the_contract_of_every_family() -> None:
    text = Path(testing.__file__).read_text()
    places = [place.split(":") for place in testing.CONTRACTS.values()]
    imports = [f"from flashsim.testing.contracts.{module} import {name} as {name}\n" for module, name in places]
    assert [line for line in imports if line not in text] == []

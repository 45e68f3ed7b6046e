"""A check ends, whatever a member does."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name

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
    modules = {place.partition(":")[0] for place in testing.CONTRACTS.values()}
    assert [name for name in modules if f"from flashsim.testing.contracts.{name} import *" not in text] == []


def test_a_contract_stands_under_the_folder_of_its_family() -> None:
    for folder, place in testing.CONTRACTS.items():
        contract = resolve_name(f"flashsim.testing.contracts.{place}")
        assert contract.FAMILY.package.rpartition(".")[2] == folder

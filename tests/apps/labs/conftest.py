"""What tests of labs share."""

from __future__ import annotations

import pytest

from flashsim.apps.labs import grading, submission
from tests.yardstick import seconds


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Submissions are waited for in units of the yardstick; limits of processor time are those of the product."""
    for module, name in ((grading, "TOGETHER"), (submission, "TOGETHER"), (submission, "_PATIENCE"), (submission, "_LEAVING")):
        monkeypatch.setattr(module, name, seconds(getattr(module, name)))

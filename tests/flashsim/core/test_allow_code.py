"""Only a clear yes lets presets run code."""

import pytest

from flashsim.core.errors import RefusedError
from flashsim.core.preset_files import ALLOW_CODE, check_members


@pytest.mark.parametrize("answer", ["", "0", "false", "no", "off", "No", "perhaps"])
def test_everything_but_a_clear_yes_refuses_code(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW_CODE, answer)
    with pytest.raises(RefusedError, match=r"names a Python file") as refusal:
        check_members("drive", {"gc": "mine.py"})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("answer", ["1", "true", "yes", "on", "YES"])
def test_a_clear_yes_allows_code(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW_CODE, answer)
    check_members("drive", {"gc": "mine.py"})

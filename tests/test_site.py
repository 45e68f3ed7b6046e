"""The built documentation in Chromium: nothing wider than the screen, no word on the console, no network, and nothing that axe finds.

`python -m tests documentation` builds it; without it, or without Chromium, these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flashsim.command_line import COMMANDS
from tests.browser import Browser
from tests.test_house import ROOT

SITE = ROOT / "docs" / "_build" / "html"
pytestmark = [pytest.mark.deep, pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the documentation is not built")]
#: A page of each kind: words, a wide table, commands, families, pictures, formulas, a class of the reference, cards, a notebook.
PAGES = (
    "index", "reference/claims", "reference/command_line", "reference/families", "explanation/do2009", "explanation/write_amplification",
    "tutorials/from_python", "reference/generated/flashsim.device.device", "gallery", "gallery/01_joins_on_flash",
)  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_right_on_a_phone_and_a_desktop_in_light_and_dark(browser: Browser, name: str) -> None:
    for width, dark in ((400, False), (400, True), (1400, False), (1400, True)):
        page = browser.open(SITE / f"{name}.html", width, dark=dark)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert not page.messages()
        assert all(address.startswith(("file:", "data:")) for address in page.requests())
        assert page.violations(*(["color-contrast"] if dark else [])) == []  # the rest is as in the light
        page.close()


def test_every_command_and_option_has_an_anchor() -> None:
    page = (SITE / "reference" / "command_line.html").read_text(encoding="utf-8")
    members = [f"{group} {name}" for group, place in COMMANDS.items() if isinstance(place, dict) for name in place]
    for command in [*COMMANDS, *members]:
        assert f'id="flashsim-{command.replace(" ", "-")}"' in page
    assert 'id="cmdoption-flashsim-cache-simulate-policy"' in page and 'id="cmdoption-flashsim-join-memory"' in page


def test_a_page_is_usable_by_keyboard_alone(browser: Browser) -> None:
    """Every key leads to a link or field, which is shown with a frame."""
    page = browser.open(SITE / "index.html", 1400)
    reached = []
    for _ in range(12):
        for kind in ("rawKeyDown", "keyUp"):
            page.command("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.append(page.evaluate("[document.activeElement.tagName, getComputedStyle(document.activeElement).outlineStyle]"))
    assert {tag for tag, _ in reached} <= {"A", "INPUT", "BUTTON", "LABEL"} and len(reached) == 12
    assert all(outline != "none" for _, outline in reached), reached
    page.close()


def test_a_fault_is_found(browser: Browser, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<html lang=en><title>t</title><p style='color: #aaa; background: #fff'>pale</p><img src=''>", encoding="utf-8")
    page = browser.open(wrong, 400)
    assert [each.split(":")[0] for each in page.violations()] == ["color-contrast", "image-alt"]
    page.close()

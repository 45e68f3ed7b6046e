"""The report of ``flashsim reproduce do2009`` in Chromium: no network, not a word on the console, verdicts and plots painted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.command_line import app
from experiments.papers import base as papers
from tests.experiments.browser import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")

DESKTOP, PHONE = 1280, 390
#: The colour of our values in `experiments.presentation.plots`.
OURS = (0x1F, 0x4E, 0x79)
#: Elements that reach beyond the screen without a box of their own that scrolls.
OVERFLOWING = """[...document.body.querySelectorAll("*")].filter(element => !element.closest(".wide, pre, svg")
    && element.getBoundingClientRect().right > innerWidth + 1).map(element => element.tagName + " " + element.className)"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, small_scale: float) -> Path:
    """The page of the whole paper."""
    folder = tmp_path_factory.mktemp("reproduced") / "out"
    done = CliRunner().invoke(app, f"reproduce do2009 --scale {small_scale} --jobs 1 --out {folder}".split())
    assert done.exit_code == 0, done.output
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(str(CHROMIUM), tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(browser: Browser, report: Path) -> dict[int, Page]:
    return {width: browser.open(report, width) for width in (DESKTOP, PHONE)}


def painted(page: Page, box: Mapping[str, float], colour: tuple[int, int, int]) -> bool:
    """Whether a part of the page shows many shades on one ground, and some of a colour among them."""
    pixels = page.pixels(box).reshape(-1, 3).astype(int)
    _, counts = np.unique(pixels @ (1 << 16, 1 << 8, 1), return_counts=True)
    ground = counts.max() / len(pixels)
    return len(counts) >= 10 and 0.4 < ground < 0.99 and bool((np.abs(pixels - colour).max(axis=1) <= 8).sum() >= 20)


def shown(page: Page, selector: str) -> list[str]:
    """The words of matching elements, as they are rendered."""
    words: list[str] = page.evaluate(f"[...document.querySelectorAll({selector!r})].map(element => element.innerText)")
    return words


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_it_opens_without_network_and_without_a_word_on_the_console(pages: dict[int, Page], report: Path, width: int) -> None:
    assert pages[width].messages() == []
    assert pages[width].requests() == [report.as_uri()]


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_verdict_table_is_painted_above_all_else(pages: dict[int, Page], width: int) -> None:
    page = pages[width]
    (table,) = page.boxes(".verdicts")
    assert table["y"] < 500 and 0.85 * width < table["width"] <= width
    badges, names = page.boxes(".verdicts .verdict"), shown(page, ".verdicts td a")
    assert names == [claim.id for claim in papers.load("do2009").claims] and len(badges) == len(names)
    classes = page.evaluate("[...document.querySelectorAll('.verdicts .verdict')].map(element => element.classList[1])")
    for kind in set(classes):
        pixels = page.pixels(badges[classes.index(kind)]).reshape(-1, 3).astype(int)
        red, green, blue = pixels.mean(axis=0)
        assert pixels.min() < 150 < pixels.max()  # a word on its ground
        assert {"reproduced": green > red and green > blue, "fitted": min(red, green) > blue, "differs": red > max(green, blue)}.get(
            kind, True
        )
    assert page.boxes("figure")[0]["y"] >= table["y"] + table["height"]


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_four_plots_and_more_are_painted(pages: dict[int, Page], width: int) -> None:
    page = pages[width]
    plots = page.boxes("figure")
    assert len(plots) >= 4
    for plot in plots:
        assert plot["width"] > 300 and plot["height"] > 150 and plot["x"] >= 0 and plot["x"] + plot["width"] <= width
        assert painted(page, plot, OURS)


def test_a_plot_that_is_not_there_is_not_taken_for_painted(browser: Browser, report: Path) -> None:
    page = browser.open(report, DESKTOP)
    page.evaluate("document.querySelectorAll('figure svg').forEach(drawing => drawing.replaceChildren())")
    assert not any(painted(page, plot, OURS) for plot in page.boxes("figure"))
    page.close()


@pytest.mark.parametrize("width", [320, PHONE, DESKTOP])
def test_nothing_reaches_beyond_the_screen_but_tables_in_boxes_that_scroll(browser: Browser, report: Path, width: int) -> None:
    page = browser.open(report, width)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(OVERFLOWING) == []
    if width < DESKTOP:  # there are such tables
        assert page.evaluate("[...document.querySelectorAll('.wide')].some(box => box.scrollWidth > box.clientWidth)")
    page.close()


def test_links_of_verdicts_and_of_runs_open_what_they_lead_to(browser: Browser, report: Path) -> None:
    page = browser.open(report, PHONE)
    for link, target in (("a[href='#do2009-table3-io']", "#do2009-table3-io"), ("#do2009-table3-io a", "tr:target")):
        page.evaluate(f"document.querySelector({link!r}).click()")
        page.evaluate("new Promise(done => setTimeout(done, 100))")
        (box,) = page.boxes(target)
        top = page.evaluate("scrollY")
        assert box["height"] > 0 and top <= box["y"] < top + 900
    page.close()


def test_words_can_be_read_in_the_dark(browser: Browser, report: Path) -> None:
    page = browser.open(report, PHONE, dark=True)
    assert page.messages() == []
    (table,) = page.boxes(".verdicts")
    pixels = page.pixels(table).astype(int).mean(axis=2)
    assert np.median(pixels) < 60 and np.percentile(pixels, 99.5) > 180
    page.close()


def test_the_browser_would_tell_of_loading_and_of_errors(browser: Browser, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text(
        "<body><script>console.warn('told'); missing()</script><img src='http://flashsim.invalid/x.png'></body>", encoding="utf-8"
    )
    page = browser.open(wrong, DESKTOP)
    messages = " ".join(page.messages())
    assert "warning: ['told']" in messages and "exception" in messages and "ERR_" in messages
    assert page.requests() == [wrong.as_uri(), "http://flashsim.invalid/x.png"]
    page.close()

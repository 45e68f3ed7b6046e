"""Reports in Chromium: no network, not a word on the console, verdicts and plots painted, nothing that overlaps or is cut off."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from flashsim.apps.papers import base as papers
from flashsim.command_line import app
from flashsim.experiments.presentation.plots import style, svg
from flashsim.experiments.presentation.report import Report, Section
from flashsim.experiments.presentation.tables import Table
from tests.browser import Browser, Page

DESKTOP, PHONE = 1280, 390
pytestmark = pytest.mark.deep
#: The colour of our values in `flashsim.experiments.presentation.plots`.
OURS = (0x1F, 0x4E, 0x79)
#: The screens that reports are made for.
WIDTHS = 400, 1000, 1600
LAYOUT = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")
#: Commands that leave a report, by what it is of; each runs in a second or two.
COMMANDS = {
    "bench": "device bench ocz-core-60gb --quick --size 64MiB --count 32 --out bench",
    "replay": "trace replay a.txt --device ocz-core-60gb --out-dir replay",
    "real replay": "trace replay a.txt --device disk.bin --writes-as-reads --wrap --against ocz-core-60gb --out-dir real",
    "trace": "trace info a.txt --out-dir trace",
    "joins": "validate joins --path joins.bin --device intel-x25e-64gb --scale 0.01 --memory 256KiB --engine builtin --repeats 2 "
    "--allow-write --out-dir joins",
    "policies": "cache simulate zipf:pages=500,references=5000,write-share=0.3 --policy lru,arc,opt --size 1%..80% --out-dir policies",
    "comparison": "cache compare zipf:pages=500,references=5000 lru arc --size 10%,20% --out-dir comparison",
    "pools": "pool run tpc-c:warehouses=1 --design none,dw,lc --without throttle --memory 20MB --ssd 60MB --time 2s --out-dir pools",
    "calibration": "device calibrate ocz-core-60gb --time 200ms --out new.toml --out-dir calibration",
}


#: Fixture that fills a folder once for all test processes (`tests.conftest.once`).
Once = Callable[[str, Callable[[Path], None]], Path]


def run_command(line: str) -> None:
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def report(once: Once, small_scale: float) -> Path:
    """The page of the whole paper."""
    made = once("paper", lambda folder: run_command(f"reproduce do2009 --scale {small_scale} --jobs 1 --out {folder / 'out'}"))
    return made / "out" / "report.html"


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
    assert table["y"] < 500 and 0.75 * width < table["width"] <= width
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


def run_commands(folder: Path) -> None:
    random = np.random.default_rng(16)
    places, gaps = random.integers(0, 4000, 400) * 8, random.exponential(2e6, 400).cumsum().astype(int)
    lines = [f"{gap} 0 {place} {8 << number % 3} {number % 2}" for number, (gap, place) in enumerate(zip(gaps, places, strict=True))]
    (folder / "a.txt").write_text("\n".join(lines) + "\n")
    (folder / "disk.bin").write_bytes(bytes(16 << 20))
    with contextlib.chdir(folder):
        for line in COMMANDS.values():
            run_command(line)


@pytest.fixture(scope="module")
def reports(once: Once, report: Path) -> dict[str, Path]:
    """A page of every command that leaves one."""
    folder = once("reports", run_commands)
    return {"reproduction": report} | {name: folder / line.split()[-1] / "report.html" for name, line in COMMANDS.items()}


@pytest.mark.parametrize("name", ["reproduction", *COMMANDS])
def test_nothing_overlaps_or_is_cut_off_at_any_width_in_light_or_dark(browser: Browser, reports: dict[str, Path], name: str) -> None:
    for width, dark in zip(WIDTHS, (False, True, False), strict=True):  # colours move nothing
        page = browser.open(reports[name], width, dark=dark)
        page.evaluate("document.querySelectorAll('main details').forEach(part => part.open = true)")
        assert (width, page.evaluate("document.documentElement.scrollWidth")) == (width, width)
        assert (width, page.evaluate(LAYOUT)) == (width, [])
        assert page.messages() == []
        if width < max(WIDTHS):  # which shows nothing that narrower ones do not
            assert page.violations(*(["color-contrast"] if dark else [])) == []
        page.close()


@pytest.mark.parametrize(("width", "beside"), [(400, False), (1000, False), (1600, True)])
def test_the_contents_stay_in_sight_and_lead_to_every_part(browser: Browser, reports: dict[str, Path], width: int, beside: bool) -> None:
    page = browser.open(reports["reproduction"], width)
    if not beside:
        page.evaluate("document.querySelector('nav summary').click()")
    links = page.evaluate("[...document.querySelectorAll('nav a')].map(link => link.hash)")
    assert len(links) > 10 and all(box["height"] > 0 and box["x"] + box["width"] <= width for box in page.boxes("nav a"))
    page.evaluate(f"document.querySelector('nav a[href=\"{links[5]}\"]').click()")
    page.evaluate("new Promise(done => setTimeout(done, 100))")
    (target,), (contents,), top = page.boxes(links[5]), page.boxes("nav"), page.evaluate("scrollY")
    assert top > 500 and contents["y"] == top  # it came along
    assert target["y"] >= top + (0 if beside else contents["height"])  # and covers nothing
    assert beside or not page.evaluate("document.querySelector('nav details').open")
    page.close()


def test_a_printed_page_is_light_and_has_no_navigation(browser: Browser, tmp_path: Path) -> None:
    table = Table([f"column {number}" for number in range(6)], [[1e6 + number] * 6 for number in range(3)])
    (tmp_path / "report.html").write_text(Report("one", "lead", [("time", "5 ms")], [Section("Words", "so", [table])], {}).html())
    page = browser.open(tmp_path / "report.html", 700, dark=True, print_media=True)
    assert page.boxes("nav")[0]["height"] == 0 and page.evaluate("document.documentElement.scrollWidth") == 700
    assert np.median(page.pixels()) > 200 and page.evaluate(LAYOUT) == []
    page.close()


def test_a_layout_that_overlaps_is_told_of(browser: Browser, tmp_path: Path) -> None:
    with style():
        figure = Figure(figsize=(5, 3), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1])
        axes.bar([0.8], [0.3])
        for x, y, text in ((0.5, 0.5, "on a line"), (0.8, 0.1, "on a bar"), (0.2, 0.8, "one"), (0.2, 0.82, "two")):
            axes.text(x, y, text, ha="center", va="center")
        figure.text(1, 0.5, "outside", ha="center")
    wrong = tmp_path / "wrong.html"
    words = (
        "<p style='margin-bottom: -30px'>upon</p><p>below</p><div style='width: 5px; overflow: hidden'><p style='width: 9px'>cut</p></div>"
    )
    wrong.write_text(f"<!DOCTYPE html><body><main><figure>{svg(figure)}</figure>{words}</main>", encoding="utf-8")
    page = browser.open(wrong, DESKTOP)
    told = " ".join(page.evaluate(LAYOUT))
    for part in ("line line2d", ": on a line", "bar: on a bar", "one | two", "cut off: outside", "upon | below", "scrolled: DIV"):
        assert part in told
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

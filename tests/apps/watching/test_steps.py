"""Pictures in steps: as data, as SVG, as a widget, and as a page in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from flashsim.apps.watching import steps as steps_module
from flashsim.apps.watching.drive_steps import _PAGES, _WORK
from flashsim.apps.watching.flash_drawing import PAGE_COLOURS
from flashsim.apps.watching.steps import MOST_STEPS, Frame, Shape, Steps, label, legend
from flashsim.core.errors import FlashsimError, InvalidParameterError, RefusedError
from tests.browser import Browser

PICTURE = Steps(
    "Pages & <blocks>",
    (800, 60),
    [Frame(f"step {number} of <three>", [*legend({"valid": "valid"}, 4, 4), Shape(10 + 40 * number, 24, 30, 20, "valid", f"page {number}")])
     for number in range(3)],
)  # fmt: skip


def shapes_of(picture: dict[str, Any], number: int) -> list[Shape]:
    """The shapes of a frame, as the browser puts them together."""
    shapes: list[Shape] = []
    for frame in picture["frames"][: number + 1]:
        shapes = shapes[: frame["length"]] + [Shape(0, 0, 0, 0, "")] * (frame["length"] - len(shapes))
        for place, shape in frame["changes"]:
            shapes[place] = Shape(*shape)
    return shapes


def test_changes_make_every_frame() -> None:
    frames = [[label(0, 0, "a"), label(1, 1, "b")], [label(0, 0, "a")], [label(2, 2, "c"), label(1, 1, "b"), label(3, 3, "d")]]
    picture = json.loads(json.dumps(Steps("t", (9, 9), [Frame(str(n), frame) for n, frame in enumerate(frames)]).picture()))
    assert [shapes_of(picture, number) for number in range(3)] == frames


def test_one_step_is_a_picture(tmp_path: Path) -> None:
    root = ElementTree.parse(PICTURE.save(tmp_path / "step.svg", step=1)).getroot()
    assert [each.get("x") for each in root.iter("{http://www.w3.org/2000/svg}rect")] == ["4", "50"]
    assert root.get("aria-label") == "Pages & <blocks>: 1 / 2  step 1 of <three>"
    assert "step 2" in PICTURE.svg()
    assert "3 of them: Pages" in repr(PICTURE)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match=r"path: 'step.png', but the name must end in .html or .svg"):
        PICTURE.save("step.png")
    with pytest.raises(InvalidParameterError, match="step: 3, but there are steps 0 to 2"):
        PICTURE.svg(3)
    with pytest.raises(FlashsimError, match="path: cannot write"):
        PICTURE.save(tmp_path / "none" / "step.svg")
    (tmp_path / "mine.svg").write_text("kept")
    with pytest.raises(RefusedError, match="mine.svg exists"):
        PICTURE.save(tmp_path / "mine.svg")
    assert (tmp_path / "mine.svg").read_text() == "kept"
    assert "<svg" in PICTURE.save(tmp_path / "mine.svg", force=True).read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.svg"]
    for count in (0, MOST_STEPS + 1):
        with pytest.raises(InvalidParameterError, match=f"steps: {count}, but"):
            Steps("t", (1, 1), [Frame("", [])] * count)


def test_jupyter_gets_a_still_picture_without_anywidget_and_both_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_module, "find_spec", lambda name: None)
    assert set(PICTURE._repr_mimebundle_()) == {"text/plain", "image/svg+xml"}
    monkeypatch.undo()
    pytest.importorskip("anywidget")
    bundle = PICTURE._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "image/svg+xml", "text/plain"} <= set(bundle)
    widget = steps_module._widget()(picture=PICTURE.picture())
    assert widget.number == 0 and len(widget.picture["frames"]) == 3
    assert PICTURE.picture()["still"] == 2  # where the slider opens


def key(page: Any, name: str) -> None:
    for kind in ("rawKeyDown", "keyUp"):
        code = {"ArrowLeft": 37, "ArrowRight": 39}[name]
        page.command("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)


@pytest.mark.deep
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_has_a_slider_that_works(browser: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    page = browser.open(PICTURE.save(tmp_path / "steps.html"), width, dark=dark)
    x = 'Number([...document.querySelectorAll("svg rect")].at(-1).getAttribute("x"))'
    caption = 'document.querySelector(".caption").textContent'
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert (page.evaluate(x), page.evaluate(caption)) == (90, "step 2 of <three>")  # it opens at the still picture
    page.evaluate('document.querySelectorAll("button")[0].click()')
    page.evaluate('document.querySelectorAll("button")[0].click()')
    assert (page.evaluate(x), page.evaluate(caption)) == (10, "step 0 of <three>")
    (box,) = page.boxes("svg")
    first = page.pixels(box)
    page.evaluate('(slider => { slider.value = 2; slider.dispatchEvent(new Event("input")); })(document.querySelector("input"))')
    assert (page.evaluate(x), page.evaluate(caption)) == (90, "step 2 of <three>")
    assert (page.pixels(box) != first).any()
    page.evaluate('document.querySelector("input").focus()')
    key(page, "ArrowLeft")
    assert page.evaluate(x) == 50
    page.evaluate('document.querySelectorAll("button")[2].focus()')
    key(page, "ArrowRight")
    key(page, "ArrowRight")
    assert page.evaluate(x) == 90  # the last
    key(page, "ArrowLeft")
    assert page.evaluate(x) == 50
    page.evaluate('document.querySelectorAll("button")[0].click()')
    assert page.evaluate('document.querySelector("input").value') == "0"
    page.evaluate("""[...document.querySelectorAll("svg rect")].at(-1).dispatchEvent(new PointerEvent("pointerover", {bubbles: true}))""")
    assert page.evaluate('document.querySelector(".detail").textContent') == "page 0"
    page.evaluate('document.querySelectorAll("button")[1].click()')
    page.evaluate(f"new Promise(done => {{ const look = () => {x} === 90 ? done() : setTimeout(look, 50); look(); }})")
    assert not page.messages()
    assert page.violations() == []
    page.close()


#: A notebook's side of a widget: values that are set and saved, and listeners, as anywidget has them.
MODEL = """
const model = {values: {picture: PICTURE, number: 1}, saved: 0, heard: {}};
model.get = (name) => model.values[name];
model.set = (name, value) => { model.values[name] = value; };
model.save_changes = () => { model.saved += 1; };
model.on = (event, call) => { model.heard[event] = call; };
model.off = (event) => { delete model.heard[event]; };
"""


def test_a_widget_and_its_model_follow_each_other(browser: Browser, tmp_path: Path) -> None:
    script, picture = (steps_module._FILES / "steps.js").read_text(encoding="utf-8"), json.dumps(PICTURE.picture()).replace("<", "\\u003c")
    empty = tmp_path / "empty.html"
    empty.write_text(
        f'<!DOCTYPE html><title>t</title><main></main><script type="module">{script}\n{MODEL.replace("PICTURE", picture)}'
        'Object.assign(window, {model, close_widget: render({model, el: document.querySelector("main")})});</script>',
        encoding="utf-8",
    )
    page = browser.open(empty, 800)
    caption = 'document.querySelector(".caption").textContent'
    assert page.evaluate(caption) == "step 1 of <three>"
    page.evaluate('document.querySelectorAll("button")[2].click()')
    assert page.evaluate("model.get('number')") == 2 and page.evaluate("model.saved") > 0
    page.evaluate("(model.set('number', 0), model.heard['change:number']())")
    assert page.evaluate(caption) == "step 0 of <three>"
    page.evaluate("close_widget()")
    assert page.evaluate("Object.keys(model.heard).length") == 0
    assert not page.messages()
    page.close()


def test_each_kind_of_one_picture_has_a_colour_of_its_own() -> None:
    """Pages have the colours of `fs.tiny_drive`'s pictures."""
    rules = re.findall(r"^(.*) \{ fill: light-dark\((#\w+)", steps_module._text("steps.css"), re.MULTILINE)
    colours = {kind: colour for kinds, colour in rules for kind in re.findall(r"steps \.(\w+)", kinds)}
    shown = [colours[kind] for kind in (*_PAGES, *_WORK)]
    assert len(set(shown)) == len(shown)
    assert shown[: len(_PAGES)] == list(PAGE_COLOURS)

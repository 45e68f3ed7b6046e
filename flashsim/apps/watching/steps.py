"""A picture in steps: frames of rectangles and texts, shown with a slider in Jupyter and in a page of its own, and as one still picture."""

import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from flashsim.core.errors import FlashsimError, InvalidParameterError, RefusedError

_FILES = Path(__file__).with_name("templates")
#: The kind of a shape that is a text; those of rectangles are classes of ``templates/steps.css``.
TEXT = "text"
#: Steps of a picture at most: more nobody looks at, and a browser would be slow.
MOST_STEPS = 2000


class Shape(NamedTuple):
    """A rectangle, in units of the picture, with the words that a pointer shows; or a text that begins at (x, y)."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    text: str = ""


def label(x: float, y: float, text: str) -> Shape:
    return Shape(x, y, 0, 0, TEXT, text)


def legend(kinds: dict[str, str], x: float, y: float, width: float = inf) -> list[Shape]:
    """A square and a name for each kind of rectangle, in rows that end before a width."""
    shapes, left = [], x
    for kind, name in kinds.items():
        if x + 15 + 6.5 * len(name) > width:
            x, y = left, y + 16
        shapes += [Shape(x, y, 11, 11, kind, name), label(x + 15, y + 10, name)]
        x += 30 + 6.5 * len(name)
    return shapes


@dataclass(frozen=True)
class Frame:
    """Shapes of one step, and a line that says what happened."""

    caption: str
    shapes: Sequence[Shape]


class Steps:
    """A picture in steps.  Jupyter shows it with a slider if anywidget is installed, and otherwise one of its frames.

    `title` says in a line what is seen, `size` are width and height of every frame, in units of its shapes.  There are 1 to `MOST_STEPS`
    frames, others are an InvalidParameterError.  The slider opens at number `still`, which stands for all where nothing moves: the last by
    default.
    """

    def __init__(self, title: str, size: tuple[float, float], frames: Sequence[Frame], still: int = -1) -> None:
        if not 1 <= len(frames) <= MOST_STEPS:
            raise InvalidParameterError("steps", len(frames), f"a picture has 1 to {MOST_STEPS}; watch less at a time")
        self.title, self.size, self.frames, self._still = title, size, tuple(frames), still % len(frames)

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return f"<Steps, {len(self)} of them: {self.title}; .save('steps.html') writes a page with a slider, .save('step.svg') one step>"

    def picture(self) -> dict[str, Any]:
        """All frames JSON-ready: of each its caption, how many shapes it has, and those that differ from the frame before, by place."""
        frames, before = list[dict[str, Any]](), tuple[Shape, ...]()
        for frame in self.frames:
            changes = [(place, shape) for place, shape in enumerate(frame.shapes) if shape not in before[place : place + 1]]
            frames.append({"caption": frame.caption, "length": len(frame.shapes), "changes": changes})
            before = tuple(frame.shapes)
        return {"title": self.title, "width": self.size[0], "height": self.size[1], "still": self._still, "frames": frames}

    def svg(self, step: int | None = None) -> str:
        """One step as SVG, with its caption below."""
        number = self._still if step is None else step
        if not 0 <= number < len(self):
            raise InvalidParameterError("step", number, f"there are steps 0 to {len(self) - 1}")
        frame, (width, height) = self.frames[number], self.size
        caption = html.escape(f"{number} / {len(self) - 1}  {frame.caption}")
        shapes = "".join(map(_element, (*frame.shapes, label(8, height + 14, f"{number} / {len(self) - 1}  {frame.caption}"))))
        name = f"{html.escape(self.title)}: {caption}"
        size = f'viewBox="0 0 {width:g} {height + 22:g}" width="{width:g}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="flashsim-steps static" role="img" aria-label="{name}">'
        return f"{head}<style>{_text('steps.css')}</style>{shapes}</svg>"

    def save(self, path: str | PathLike[str], *, step: int | None = None, force: bool = False) -> Path:
        """Write a page with the slider (.html), which needs no network; or one step (.svg), the one of `step` if it is given.

        Refused are another suffix, a step that there is none of, and a file that exists (without `force`).
        """
        target = Path(path)
        if target.suffix not in (".html", ".svg"):
            raise InvalidParameterError("path", repr(str(path)), "the name must end in .html or .svg")
        if target.exists() and not force:
            raise RefusedError(f"path: {path} exists (force=True replaces it)")
        text = self._page() if target.suffix == ".html" else self.svg(step)
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            partial.write_text(text, encoding="utf-8")
            os.replace(partial, target)
        except OSError as problem:
            partial.unlink(missing_ok=True)
            raise FlashsimError(f"path: cannot write {path}: {problem.strerror or problem}") from problem
        return target

    def _page(self) -> str:
        title, data = html.escape(self.title), json.dumps(self.picture(), separators=(",", ":")).replace("<", "\\u003c")
        script = f'{_text("steps.js")}\ndraw(document.querySelector("main"), JSON.parse(document.querySelector("#picture").textContent));'
        return (
            '<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">\n'
            f"<title>{title}</title>\n<style>:root {{ color-scheme: light dark; }} h1 {{ font: bold 20px sans-serif; }}\n"
            f'{_text("steps.css")}</style>\n<h1>{title}</h1>\n<main></main>\n<script type="application/json" id="picture">{data}</script>\n'
            f'<script type="module">\n{script}\n</script>\n</html>\n'
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The widget, if there can be one, and the still picture for whatever shows none."""
        still = {"text/plain": repr(self), "image/svg+xml": self.svg()}
        if find_spec("anywidget") is None:
            return still
        bundle = _widget()(picture=self.picture(), number=self._still)._repr_mimebundle_()
        shown: dict[str, Any] = bundle[0] if isinstance(bundle, tuple) else bundle or {}
        return shown | still


def _element(shape: Shape) -> str:
    text = html.escape(shape.text)
    if shape.kind == TEXT:
        return f'<text x="{shape.x:g}" y="{shape.y:g}">{text}</text>'
    title = f"<title>{text}</title>" if text else ""
    return f'<rect x="{shape.x:g}" y="{shape.y:g}" width="{shape.width:g}" height="{shape.height:g}" class="{shape.kind}">{title}</rect>'


@cache
def _text(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


@cache
def _widget() -> Any:
    """The class of widgets, made when the first is shown: it is slow to import, and may not be installed."""
    traits: Any = import_module("traitlets")
    members: dict[str, Any] = {"_esm": _text("steps.js"), "_css": _text("steps.css")}
    members |= {"picture": traits.Dict().tag(sync=True), "number": traits.Int().tag(sync=True)}
    return type("StepsWidget", (import_module("anywidget").AnyWidget,), members)

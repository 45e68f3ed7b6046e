"""The form in which notebooks are kept: with their outputs, and without what differs from run to run or from machine to machine.

A code cell whose text is measured has the tag ``volatile``; one that draws a picture has its alternative text as ``alt``.
The notebook's own metadata have the sentence of its card in the gallery as ``summary``.
"""

from __future__ import annotations

import re
import tempfile
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from PIL import Image

PICTURES = ("image/png", "image/svg+xml")
TEXTS = ("text/html", "text/plain")
_ROOT = Path(__file__).parents[2]
#: Paths of this machine and addresses of objects, and what is kept in their place.
_OWN = (
    (re.compile(re.escape(tempfile.gettempdir()) + r"/[\w.-]+"), "/tmp/folder"),
    (re.compile(re.escape(str(_ROOT)) + "/?"), ""),
    (re.compile(r" at 0x[0-9a-f]+"), ""),
    (re.compile(r"<style scoped>.*?</style>\s*", re.DOTALL), ""),
)
#: A drawing, what only programs read of it, and what no eye sees of a number.
_DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)
_METADATA = re.compile(r'<metadata>.*?</metadata>|<!--.*?-->|(?<=<g) id="[^"]*_\d+"', re.DOTALL)
_FINER = re.compile(r"(\d\d\.\d|\b\d\.\d{3})\d+")
#: Attributes that are lists, and where they need no space.
_SPACED, _SPACE = re.compile(r'(?<= d=")[^"]*|(?<= style=")[^"]*'), re.compile(r" ?((?<=[\d ])[MLCQZz]|[:;]) ?")
#: A frame of an animation of Matplotlib's.
_FRAME = re.compile(r'"data:image/png;base64,([^"]+)"')


def lean(notebook: NotebookNode) -> NotebookNode:
    """Reduce an executed notebook to what is kept of it, in place."""
    notebook.metadata = {name: notebook.metadata[name] for name in ("summary",) if name in notebook.metadata} | {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {name: cell.metadata[name] for name in ("alt", "tags") if name in cell.metadata}
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, _lean_outputs(cell.outputs)
    return notebook


def outline(cell: NotebookNode) -> list[tuple[str, str]]:
    """The kind of each output of a cell, and its text unless that is volatile or a picture."""
    found = []
    for output in cell.outputs:
        kind = output.get("name") or next(kind for kind in (*PICTURES, *TEXTS) if kind in output.data)
        text = "" if kind in PICTURES or "volatile" in cell.metadata.get("tags", ()) else output.get("text") or output.data["text/plain"]
        found.append((kind, text))
    return found


def _lean_outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    kept: list[NotebookNode] = []
    for output in outputs:
        if output.get("data") == {"text/plain": ""}:
            continue  # a progress line that has gone
        if output.output_type != "stream":
            kept.append(new_output(output.output_type, data=_lean_data(output.data), **_count(output)))
        elif kept and kept[-1].get("name") == output.name:
            kept[-1].text += _portable(output.text)
        else:
            kept.append(new_output("stream", name=output.name, text=_portable(output.text)))
    return kept


def _count(output: NotebookNode) -> dict[str, Any]:
    return {"execution_count": None} if output.output_type == "execute_result" else {}


def _lean_data(data: dict[str, str]) -> dict[str, str]:
    """The smallest picture alone, or else the texts; of an animation, the frame in its middle."""
    if "<script" in data.get("text/html", "") and (frames := _FRAME.findall(data["text/html"])):
        return {"image/png": _few_colours(frames[len(frames) // 2].replace("\\\n", ""))}
    shown = {kind: (_few_colours if kind == "image/png" else _coarse)(data[kind]) for kind in PICTURES if kind in data}
    if shown:
        kind = min(shown, key=lambda kind: len(shown[kind]))
        return {kind: shown[kind]}
    return {kind: _coarse(_portable(data[kind])) for kind in TEXTS if kind in data}


def _few_colours(png: str) -> str:
    """A picture with at most 64 colours, unless it is one already."""
    picture, small = Image.open(BytesIO(b64decode(png))), BytesIO()
    if picture.mode == "P":
        return png
    picture.convert("RGB").quantize(64).save(small, "PNG", optimize=True)
    return b64encode(small.getvalue()).decode()


def _coarse(text: str) -> str:
    """A text whose drawings have no digits that no eye sees, no metadata and no line breaks."""

    def coarse(drawing: re.Match[str]) -> str:
        words = " ".join(_FINER.sub(r"\1", _METADATA.sub("", drawing[0])).split())
        return _SPACED.sub(lambda attribute: _SPACE.sub(r"\1", attribute[0]), words)

    return _DRAWING.sub(coarse, text)


def _portable(text: str) -> str:
    for pattern, instead in _OWN:
        text = pattern.sub(instead, text)
    return text

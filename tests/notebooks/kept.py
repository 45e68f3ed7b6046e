"""The form in which notebooks are kept: with their outputs, and without what differs from run to run or from machine to machine.

A code cell whose text is measured has the tag ``volatile``; one that draws a picture has its alternative text as ``alt``.
The notebook's own metadata have the sentence of its card in the gallery as ``summary``.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

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
        return {"image/png": frames[len(frames) // 2].replace("\\\n", "")}
    if pictures := [kind for kind in PICTURES if kind in data]:
        kind = min(pictures, key=lambda kind: len(data[kind]))
        return {kind: data[kind]}
    return {kind: _portable(data[kind]) for kind in TEXTS if kind in data}


def _portable(text: str) -> str:
    for pattern, instead in _OWN:
        text = pattern.sub(instead, text)
    return text

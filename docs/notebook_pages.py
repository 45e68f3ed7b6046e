"""Pages of the site made of the notebooks: their text, code and kept outputs as Markdown, their pictures as files; nothing is executed."""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any

#: Longer than any fence within an output.
FENCE = "`" * 8
#: Pictures that an output may hold, and the suffixes of their files.
PICTURES = {"image/png": ".png", "image/svg+xml": ".svg"}


def write_pages(notebooks: Path, folder: Path) -> None:
    """Make the folder anew: a page for each notebook, a file for each picture, and ``cards.md``, which the gallery includes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    cards = []
    for path in sorted(notebooks.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        page = [_cell(cell, folder, f"{path.stem}-{number:02d}") for number, cell in enumerate(notebook["cells"])]
        (folder / f"{path.stem}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
        cards.append(_card(path.stem, notebook, folder))
    (folder / "cards.md").write_text("::::{container} gallery\n" + "\n".join(cards) + "\n::::\n", encoding="utf-8")


def _card(name: str, notebook: dict[str, Any], folder: Path) -> str:
    """The first picture of a notebook, its title as a link to its page, and its summary."""
    title = "".join(notebook["cells"][0]["source"]).partition("\n")[0].removeprefix("# ")
    pictures = sorted(path for path in folder.glob(f"{name}-*") if path.suffix in PICTURES.values())
    picture = f"![](gallery/{pictures[0].name})" if pictures else ""  # no words: the title stands below
    return f":::{{container}} card\n{picture}\n\n[{title}](gallery/{name}.md)\n\n{notebook['metadata'].get('summary', '')}\n:::"


def _cell(cell: dict[str, Any], folder: Path, name: str) -> str:
    """A cell as Markdown; links into the documentation lead to its pages."""
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return source.replace("](../docs/", "](../")
    shown = [_output(output, cell, folder, f"{name}-{place:02d}") for place, output in enumerate(cell["outputs"])]
    return "\n\n".join([_block("python", source), *shown])


def _output(output: dict[str, Any], cell: dict[str, Any], folder: Path, name: str) -> str:
    """One output of a cell as Markdown: a picture, a table or text."""
    data = {kind: "".join(text) for kind, text in output.get("data", {"text/plain": output.get("text", "")}).items()}
    for kind in PICTURES.keys() & data.keys():
        file = folder / (name + PICTURES[kind])
        file.write_bytes(base64.b64decode(data[kind]) if kind == "image/png" else data[kind].encode())
        return f"![{cell['metadata'].get('alt', '')}]({file.name})"
    if "text/html" in data:  # a wide table is scrolled in its box
        if drawing := re.search(r"<svg.*?</svg>", data["text/html"], re.DOTALL):
            (folder / f"{name}.svg").write_text(drawing[0], encoding="utf-8")  # for the card
        return _block("{raw} html", f'<div class="table-wrapper output">{data["text/html"]}</div>')
    return _block("{code-block} text\n:class: output", re.sub("\x1b\\[[\\d;]*m", "", data["text/plain"]))


def _block(kind: str, text: str) -> str:
    return f"{FENCE}{kind}\n{text.rstrip()}\n{FENCE}"

"""The notebooks' questions have answers, section by section."""

from __future__ import annotations

import json
import re

import pytest

from tests.test_house import ROOT

#: Answers by notebook.
ANSWERS = dict(part.split("\n", 1) for part in (ROOT / "labs" / "answers.md").read_text(encoding="utf-8").split("\n## ")[1:])


def asking(notebook: str) -> list[str]:
    """Titles of the sections of a notebook that ask."""
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return [
        part.splitlines()[0]
        for part in re.split(r"^#+ ", text, flags=re.MULTILINE)
        if re.search(r"\*Questions?\.\*|^Questions$", part, re.MULTILINE)
    ]


def test_every_notebook_that_asks_has_answers() -> None:
    """Notebook 4 has its own, beneath each exhibit."""
    asked = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb") if asking(path.stem)}
    assert asked == ANSWERS.keys()


@pytest.mark.parametrize("notebook", ANSWERS)
def test_each_section_that_asks_has_an_answer(notebook: str) -> None:
    answers = [part.split("\n", 1) for part in ANSWERS[notebook].split("\n### ")[1:]]
    assert [title for title, _ in answers] == asking(notebook)
    assert all(len(answer.split()) > 10 for _, answer in answers)

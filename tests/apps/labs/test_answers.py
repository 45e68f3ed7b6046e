"""The notebooks' questions have answers, section by section."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.planners.base import plan
from models.five_minute_rule import break_even
from tests.cases import with_each
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


@with_each("notebook", ANSWERS)
def test_each_section_that_asks_has_an_answer(notebook: str) -> None:
    answers = [part.split("\n", 1) for part in ANSWERS[notebook].split("\n### ")[1:]]
    assert [title for title, _ in answers] == asking(notebook)
    assert all(len(answer.split()) > 10 for _, answer in answers)


def cell(notebook: str, number: int) -> str:
    """The source of a cell of a notebook."""
    return "".join(json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"][number]["source"])


@pytest.mark.parametrize(
    ("rings", "sub_buffers", "words"),
    [(12, 8, "7 calls take 68 of 96 sub-buffers each, never less than 65"), (48, 2, "17 calls take 28 of 96, and once 17")],
)
def test_answers_on_sub_buffers_count_as_the_notebook_does(rings: int, sub_buffers: int, words: str) -> None:
    source = cell("06_parallel_io", 7).replace("= 12, 8, 6", f"= {rings}, {sub_buffers}, 6")
    names: dict[str, Any] = {"np": np}
    exec(source, names)
    calls, sizes = len(names["calls"]), names["sizes"]
    least = f", never less than {sizes.min()}" if rings == 12 else f", and once {sizes.min()}"
    assert words == f"{calls} calls take {sizes.mean():.0f} of 96{' sub-buffers each' if rings == 12 else ''}{least}"
    assert words in ANSWERS["06_parallel_io"]


def test_answers_on_plans_count_fetches_as_planners_do() -> None:
    graph = PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4])
    assert [plan(graph, 2, name).fetches for name in ("as-given", "segments")] == [7, 6]
    assert "that saves one of seven" in ANSWERS["05_page_fetching"]


def test_answers_on_prices_are_those_of_the_five_minute_rule() -> None:
    flash, disk = {"accesses": 6200, "device_price": 999}, {"accesses": 83, "device_price": 80}
    cheap_flash, cheap_disk = flash | {"device_price": 99.9}, disk | {"device_price": 8}
    answer = ANSWERS["08_ssd_extension"]
    for figure, seconds in {
        "878 s; before": break_even(4096, memory_price=0.047, **flash),
        "(7,896 s)": break_even(4096, memory_price=0.03125, **disk),
        "to 88 s": break_even(4096, memory_price=0.047, **cheap_flash),
        "to 525.": break_even(4096, memory_price=0.047, **cheap_disk),
    }.items():
        assert figure in answer and f"{seconds:,.0f}" in figure
    assert break_even(4096, memory_price=0.03125, **disk) == pytest.approx(break_even(4096, memory_price=0.003125, **cheap_disk))
    assert f"{break_even(4096, memory_price=0.003125, **disk) / 3600:.0f} hours" in answer

"""Every notebook runs from its first cell to its last, and gives what is kept in it; ``--renew`` keeps what it gives now."""

from __future__ import annotations

import re
import runpy
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.notebooks.kept import PICTURES, lean, outline
from tests.processes import without_progress
from tests.yardstick import seconds

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: Bytes that all notebooks may take together.
ROOM = 3_000_000


@pytest.mark.deep
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_gives_what_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "fs.record" in path.read_text(encoding="utf-8") and not shutil.which("strace"):
        pytest.skip("strace is not installed")
    if "flashsim.apps.papers.do2009" in path.read_text(encoding="utf-8"):
        request.getfixturevalue("small_scale")  # the paper's runs that it shows, kept
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    kept = nbformat.read(path, as_version=4)
    notebook = executed(kept)
    if request.config.getoption("--renew"):
        nbformat.write(notebook, path)
        return
    assert_same(notebook, kept)


def test_one_gives_the_same_compiled_as_in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it says of its first line; so it takes a third of the time."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    kept = nbformat.read(ROOT / "notebooks" / "05_page_fetching.ipynb", as_version=4)
    switch = next(cell for cell in kept.cells if cell.source == "%env NUMBA_DISABLE_JIT=1")
    kept.cells.remove(switch)
    assert_same(executed(kept), kept)


def executed(kept: NotebookNode) -> NotebookNode:
    """A notebook run, which neither fails nor warns, in the form in which it is kept."""
    notebook = deepcopy(kept)
    whole, start, last = (round(seconds(quiet)) for quiet in (800, 60, 4))
    NotebookClient(notebook, timeout=whole, startup_timeout=start, iopub_timeout=last, kernel_name="python3").execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr" or without_progress(each.text)]
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert shown and not any(output.output_type == "error" for output in shown)
    assert not any(output.get("name") == "stderr" for output in shown)
    return lean(notebook)


def assert_same(notebook: NotebookNode, kept: NotebookNode) -> None:
    for cell, before in zip(notebook.cells, kept.cells, strict=True):
        if cell.cell_type == "code":
            assert outline(cell) == outline(before), f"cell {cell.id}; with --renew this is kept"


def test_they_are_kept_lean_and_their_pictures_are_described() -> None:
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        assert lean(deepcopy(notebook)) == notebook, path.stem
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert any(cell.outputs for cell in cells), path.stem
        drawing = {cell.id for cell in cells if any(kind in PICTURES for kind, _ in outline(cell))}
        assert {cell.id for cell in cells if cell.metadata.get("alt")} == drawing, path.stem
    assert 0 < sum(path.stat().st_size for path in NOTEBOOKS) < ROOM


def test_the_gallery_shows_them(tmp_path: Path) -> None:
    """For each a card with a picture, the title and a sentence, and a page on which each picture has its words."""
    write_pages: Callable[[Path, Path], None] = runpy.run_path(str(ROOT / "docs" / "pages.py"))["write_pages"]
    pages = tmp_path / "gallery"
    write_pages(ROOT / "notebooks", pages)
    cards = (pages / "cards.md").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        summary = nbformat.read(path, as_version=4).metadata.summary
        assert summary.endswith(".") and len(summary) < 160, path.stem
        assert f"](gallery/{path.stem}.md)\n\n{summary}\n" in cards, path.stem
        shown = re.findall(r"^!\[(.*)\]\((.+)\)$", (pages / f"{path.stem}.md").read_text(encoding="utf-8"), re.MULTILINE)
        assert all(alt and (pages / picture).exists() for alt, picture in shown), path.stem
        assert f"![](gallery/{path.stem}-" in cards, path.stem

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

from tests.notebooks.kept import PICTURES, lean, outline
from tests.processes import without_progress
from tests.yardstick import seconds

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: Bytes that all notebooks may take together.
ROOM = 3_000_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_gives_what_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "fs.record" in path.read_text(encoding="utf-8") and not shutil.which("strace"):
        pytest.skip("strace is not installed")
    if "flashsim.apps.papers.literature.do2009" in path.read_text(encoding="utf-8"):
        request.getfixturevalue("small_scale")  # the paper's runs that it shows, kept
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    kept = nbformat.read(path, as_version=4)
    notebook = deepcopy(kept)
    whole, start, last = (round(seconds(quiet)) for quiet in (800, 60, 4))
    NotebookClient(notebook, timeout=whole, startup_timeout=start, iopub_timeout=last, kernel_name="python3").execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr" or without_progress(each.text)]
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert shown and not any(output.output_type == "error" for output in shown)
    assert not any(output.get("name") == "stderr" for output in shown)
    lean(notebook)
    if request.config.getoption("--renew"):
        nbformat.write(notebook, path)
        return
    for cell, before in zip(notebook.cells, kept.cells, strict=True):
        if cell.cell_type == "code":
            assert outline(cell) == outline(before), f"cell {cell.id}; with --renew this is kept"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_lean_and_its_pictures_are_described(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert lean(deepcopy(notebook)) == notebook
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert any(cell.outputs for cell in cells)
    drawing = {cell.id for cell in cells if any(kind in PICTURES for kind, _ in outline(cell))}
    assert {cell.id for cell in cells if cell.metadata.get("alt")} == drawing


def test_all_are_small_enough_to_download() -> None:
    assert 0 < sum(path.stat().st_size for path in NOTEBOOKS) < ROOM


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages that the site shows of the notebooks."""
    write_pages: Callable[[Path, Path], None] = runpy.run_path(str(ROOT / "docs" / "notebook_pages.py"))["write_pages"]
    folder = tmp_path_factory.mktemp("site") / "gallery"
    write_pages(ROOT / "notebooks", folder)
    return folder


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_gallery_shows_it(path: Path, pages: Path) -> None:
    """A card with a picture, the title and a sentence, and a page on which each picture has its words."""
    summary = nbformat.read(path, as_version=4).metadata.summary
    assert summary.endswith(".") and len(summary) < 160
    assert f"](gallery/{path.stem}.md)\n\n{summary}\n" in (pages / "cards.md").read_text(encoding="utf-8")
    shown = re.findall(r"^!\[(.*)\]\((.+)\)$", (pages / f"{path.stem}.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert all(alt and (pages / picture).exists() for alt, picture in shown)
    assert f"![](gallery/{path.stem}-" in (pages / "cards.md").read_text(encoding="utf-8")

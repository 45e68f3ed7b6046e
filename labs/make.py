"""Make the students' notebooks of the labs' sources with nbgrader: ``python labs/make.py``, after a change of a source."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbgrader.preprocessors import CheckCellMetadata, ClearHiddenTests, ClearOutput, ClearSolutions

SOURCES = Path(__file__).parent
STUDENTS = SOURCES.parent / "flashsim" / "apps" / "labs" / "notebooks"


def student_version(source: Path) -> str:
    """A source without its solutions, hidden tests and output, as `nbgrader generate_assignment` leaves it."""
    notebook = nbformat.read(source, as_version=4)
    for step in (ClearSolutions(), ClearOutput(), CheckCellMetadata(), ClearHiddenTests()):
        notebook, _ = step.preprocess(notebook, {})
    return nbformat.writes(notebook) + "\n"


if __name__ == "__main__":
    STUDENTS.mkdir(exist_ok=True)
    for source in sorted(SOURCES.glob("*.ipynb")):
        (STUDENTS / source.name).write_text(student_version(source), encoding="utf-8")

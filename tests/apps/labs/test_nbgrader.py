"""Labs go through nbgrader's whole flow: generated, released, handed in, graded by nbgrader, and marked."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flashsim.apps.labs.grading import LABS, grade
from tests.test_house import ROOT
from tests.yardstick import seconds

#: The lab that goes through by default; all do in the deep tier.
FIRST = "replacement"
LABS_OF_NBGRADER = [each if each == FIRST else pytest.param(each, marks=pytest.mark.deep) for each in LABS.names()]


def sources(notebook: Path) -> list[tuple[str, str]]:
    return [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(notebook.read_text())["cells"]]


@pytest.mark.skipif(not importlib.util.find_spec("nbgrader"), reason="nbgrader is not installed")
@pytest.mark.parametrize("lab", LABS_OF_NBGRADER)
def test_a_lab_goes_through_nbgrader(lab: str, tmp_path: Path) -> None:
    exchange, file = tmp_path / "exchange", f"{lab}.ipynb"
    exchange.mkdir()
    exchange.chmod(0o777)
    config = f"c = get_config()\nc.CourseDirectory.course_id = 'course'\nc.Exchange.root = {str(exchange)!r}\n"
    for name, quiet in (("timeout", 30), ("startup_timeout", 60), ("iopub_timeout", 4)):
        config += f"c.Execute.{name} = {seconds(quiet):.0f}\n"
    (tmp_path / "nbgrader_config.py").write_text(config)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # nbgrader calls alembic
    environment = os.environ | {"HOME": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path / "jupyter"), "PATH": path}

    def nbgrader(step: str) -> None:
        command = [sys.executable, "-m", "nbgrader", step, lab]
        outcome = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert outcome.returncode == 0, outcome.stderr

    def put(place: str, notebook: Path) -> None:
        (tmp_path / place / lab).mkdir(parents=True)
        (tmp_path / place / lab / file).write_bytes(notebook.read_bytes())

    put("source", ROOT / "labs" / file)
    nbgrader("generate_assignment")
    nbgrader("release_assignment")
    released = exchange / "course" / "outbound" / lab / file
    assert sources(released) == sources(ROOT / "flashsim" / "apps" / "labs" / "notebooks" / file)
    put("submitted/ada", ROOT / "labs" / file)
    put("submitted/bo", released)
    nbgrader("autograde")
    points = {
        name: sum(each.points for each in grade(lab, tmp_path / "autograded" / name / lab / file, 5, instances=5)) for name in ("ada", "bo")
    }
    assert points == {"ada": 100, "bo": 0}

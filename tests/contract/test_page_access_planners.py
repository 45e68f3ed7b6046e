"""Every planner of page accesses."""

from __future__ import annotations

import pytest

from algorithms.page_access.instances import complete
from algorithms.page_access.planners.base import PLANNERS, plan
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.testing.contracts.fetching import PlannerContract

MINE = """
import numpy as np
from algorithms.page_access.belady import belady

def plan(graph, frames):
    return belady(graph, np.arange(graph.edges)[::-1], frames)
"""


@pytest.fixture(scope="class", params=[*PLANNERS.names(), "mine.py"])
def each_member(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every member, and one of a user's own."""
    request.cls.member = request.param
    if request.param == "mine.py":
        path = tmp_path_factory.mktemp("own") / "mine.py"
        path.write_text(MINE, encoding="utf-8")
        request.cls.member = str(path)


@pytest.mark.usefixtures("each_member")
class TestPlanners(PlannerContract):
    """Every member."""


def test_unfit_frames_and_names_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="frames: 1, but two pages must be in memory together"):
        plan(complete(2, 2), 1)
    with pytest.raises(UnknownNameError, match="did you mean overlap"):
        plan(complete(2, 2), 2, "overlaps")

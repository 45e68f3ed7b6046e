"""Submission queues of the SSD: commands within the depth complete out of order, and queues do not starve each other."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.request import READ, make_requests
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import PAGE, Model, drive, served

MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
#: Pages of one die each, once `two_dies` has loaded them in turn.
FIRST_DIE, SECOND_DIE = range(8), range(20, 28)


def two_dies(model: type[Model], queue_depth: int, queues: int = 1) -> Model:
    """A drive with pages 0 to 7 on one of its two dies, and pages 20 to 27 on the other."""
    device = model(drive(queue_depth=queue_depth, queues=queues))
    for page in np.stack([FIRST_DIE, SECOND_DIE], axis=1).ravel().tolist():
        device.load(page * PAGE, PAGE)
    return device


@MODELS
@pytest.mark.parametrize(
    ("queue_depth", "completed"),
    [
        # The controller takes 10 ns a command, a page 20 from the cells, 10 over the channel and 10 over the link.
        (1, [(0, 10 + 8 * 30 + 10), (1, 260 + 10 + 30 + 10)]),
        (2, [(1, 10 + 10 + 30 + 10), (0, 10 + 8 * 30 + 10)]),
    ],
)
def test_a_short_read_overtakes_a_long_one_on_another_die(model: type[Model], queue_depth: int, completed: list[tuple[int, int]]) -> None:
    requests = make_requests(READ, [FIRST_DIE[0] * PAGE, SECOND_DIE[0] * PAGE], [8 * PAGE, PAGE])
    done = served(two_dies(model, queue_depth), requests)
    assert list(zip(done["id"].tolist(), done["completed"].tolist(), strict=True)) == completed


@MODELS
def test_on_one_die_reads_complete_in_order(model: type[Model]) -> None:
    requests = make_requests(READ, [FIRST_DIE[0] * PAGE, FIRST_DIE[-1] * PAGE], [7 * PAGE, PAGE])
    assert served(two_dies(model, 8), requests)["id"].tolist() == [0, 1]


@MODELS
@pytest.mark.parametrize(("queues", "before"), [(1, 30), (2, 2)])
def test_a_long_queue_does_not_starve_another(model: type[Model], queues: int, before: int) -> None:
    """One read of a second stream finds no more before it than what the first queue has in the drive: its depth."""
    requests = make_requests(READ, FIRST_DIE[0] * PAGE, np.full(31, PAGE))
    requests["stream"][-1] = 1
    done = served(two_dies(model, queue_depth=2, queues=queues), requests)
    assert done["id"].tolist().index(30) == before


@MODELS
def test_streams_share_queues_when_there_are_more_of_them(model: type[Model]) -> None:
    """Streams 0 and 2 of two queues wait for each other, stream 1 for neither."""
    requests = make_requests(READ, np.array([FIRST_DIE[0], SECOND_DIE[0], SECOND_DIE[1]]) * PAGE, np.array([8, 1, 1]) * PAGE)
    requests["stream"] = [0, 2, 1]
    done = served(two_dies(model, queue_depth=1, queues=2), requests)
    assert done["id"].tolist() == [2, 0, 1]
    assert done["started"].tolist() == [0, 0, done["completed"][1]]

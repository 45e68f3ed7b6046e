"""Submission queues of the SSD: commands within the depth complete out of order, and queues do not starve each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.request import READ, WRITE, Completions, Integers, make_requests
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import PAGE, Model, drive, random_drive, random_workload, serve_all
from tests.cases import with_each
from tests.flashsim.ssd.drive_kinds import drive_for

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
@with_each(
    ("queue_depth", "completed"),
    [
        # The controller takes 10 ns a command, a page 20 from the cells, 10 over the channel and 10 over the link.
        (1, [(0, 10 + 8 * 30 + 10), (1, 260 + 10 + 30 + 10)]),
        (2, [(1, 10 + 10 + 30 + 10), (0, 10 + 8 * 30 + 10)]),
    ],
)
def test_a_short_read_overtakes_a_long_one_on_another_die(model: type[Model], queue_depth: int, completed: list[tuple[int, int]]) -> None:
    requests = make_requests(READ, [FIRST_DIE[0] * PAGE, SECOND_DIE[0] * PAGE], [8 * PAGE, PAGE])
    done = serve_all(two_dies(model, queue_depth), requests)
    assert list(zip(done["id"].tolist(), done["completed"].tolist(), strict=True)) == completed


@MODELS
def test_on_one_die_reads_complete_in_order(model: type[Model]) -> None:
    requests = make_requests(READ, [FIRST_DIE[0] * PAGE, FIRST_DIE[-1] * PAGE], [7 * PAGE, PAGE])
    assert serve_all(two_dies(model, 8), requests)["id"].tolist() == [0, 1]


@MODELS
@with_each(("queues", "before"), [(1, 30), (2, 2)])
def test_a_long_queue_does_not_starve_another(model: type[Model], queues: int, before: int) -> None:
    """One read of a second stream finds no more before it than what the first queue has in the drive: its depth."""
    requests = make_requests(READ, FIRST_DIE[0] * PAGE, np.full(31, PAGE))
    requests["stream"][-1] = 1
    done = serve_all(two_dies(model, queue_depth=2, queues=queues), requests)
    assert done["id"].tolist().index(30) == before


@MODELS
def test_streams_share_queues_when_there_are_more_of_them(model: type[Model]) -> None:
    """Streams 0 and 2 of two queues wait for each other, stream 1 for neither."""
    requests = make_requests(READ, np.array([FIRST_DIE[0], SECOND_DIE[0], SECOND_DIE[1]]) * PAGE, np.array([8, 1, 1]) * PAGE)
    requests["stream"] = [0, 2, 1]
    done = serve_all(two_dies(model, queue_depth=1, queues=2), requests)
    assert done["id"].tolist() == [2, 0, 1]
    assert done["started"].tolist() == [0, 0, done["completed"][1]]


def most_in_drive(done: Completions, units: Integers) -> int:
    """The most units that commands held at once, from their dispatch until they completed, which comes before the next dispatch."""
    times = np.concatenate([done["completed"], done["started"]])
    held = np.concatenate([-units[done["id"]], units[done["id"]]])
    order = np.lexsort((held, times))
    return int(np.cumsum(held[order]).max())


@MODELS
@pytest.mark.parametrize("order", ["turns", "arrival"])
@pytest.mark.parametrize("seed", range(4))
def test_never_more_units_than_slots_and_none_is_lost(model: type[Model], order: str, seed: int) -> None:
    """Of reads, writes, trims and flushes, before and after a power cut; trims and flushes take one."""
    slots = 3 + 3 * seed
    parameters = replace(drive_for(("page", "units", "levels", "handles")[seed], random_drive(seed)), endurance=0)
    device = model(replace(parameters, command_slots=slots, command_slot=PAGE, slot_order=order))
    requests, at = random_workload(seed, device.parameters, 120)
    moved = np.where(requests["operation"] <= WRITE, -(-requests["length"] // PAGE), 1)
    device.submit(requests, one_command_each(requests), at)
    device.power_cut(int(at.max()) // 2 + 100)
    done = serve_all(device, requests, device.now + at)
    done["id"] -= len(requests)
    assert len(done) == len(requests)
    assert 1 < most_in_drive(done, np.minimum(slots, np.maximum(1, moved))) <= slots
    taken = device.host.tables.scalars["slots_taken"] if hasattr(device.host, "tables") else device.host.slots_taken
    assert taken == 0


@MODELS
@with_each("order", ["turns", "arrival"])
def test_the_order_of_commands_that_wait_for_slots(model: type[Model], order: str) -> None:
    """A queue of many commands and one of few: in turn, or as they arrive."""
    requests = make_requests(READ, FIRST_DIE[0] * PAGE, np.full(12, PAGE))
    requests["stream"][9:] = 1
    device = model(drive(queue_depth=32, queues=2, command_slots=1, command_slot=PAGE, slot_order=order))
    device.load(0, PAGE)
    done = serve_all(device, requests, np.arange(12))
    started = np.argsort(done["started"][np.argsort(done["id"])]).tolist()
    assert started == list(range(12)) if order == "arrival" else started == [0, 9, 1, 10, 2, 11, *range(3, 9)]


@MODELS
def test_slots_enough_for_all_change_nothing(model: type[Model]) -> None:
    parameters = replace(random_drive(8), command_slots=0, command_slot=4096, slot_order="turns")
    requests, at = random_workload(8, parameters, 100)
    plain, bounded = (serve_all(model(replace(parameters, command_slots=count)), requests, at) for count in (0, 1 << 20))
    assert np.array_equal(plain, bounded)

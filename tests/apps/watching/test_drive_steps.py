"""A drive in steps: frames show the model's own state, and the critical holds span the run."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest

from flashsim.apps.watching import drive_steps
from flashsim.apps.watching.drive_steps import Hold, blocks_in_steps, critical_holds, timeline_in_steps
from flashsim.core.errors import InvalidParameterError
from flashsim.core.rng import generator
from flashsim.ssd.lab.clock import SteppedDrive
from flashsim.ssd.lab.drive import LabDrive

#: Few blocks, so that collection begins early.
SMALL = {"pages": 100, "blocks_per_plane": 10}


@pytest.fixture(scope="module")
def drive() -> LabDrive:
    drive = LabDrive(**SMALL)
    drive.write_all(range(drive.pages))
    drive.write_all(generator(1, "before").integers(drive.pages, size=20))
    return drive


WRITES = generator(2, "writes").integers(100, size=12).tolist()


def test_frames_show_what_the_drive_holds(drive: LabDrive) -> None:
    before = deepcopy(drive.state.mapping)
    steps = blocks_in_steps(drive.state, WRITES)
    assert (drive.state.mapping == before).all()  # it was a copy
    stepped = SteppedDrive.in_state(deepcopy(drive.state))
    for page in WRITES:
        stepped.write(page)
    captions = list(stepped.steps())
    assert [frame.caption.partition(". Requests")[0] for frame in steps.frames[1:]] == captions
    for frame in steps.frames:
        kinds = Counter(shape.kind for shape in frame.shapes if shape.text.startswith("block ") and ": " in shape.text)
        assert sum(kinds.values()) == 160  # every flash page, whatever its state
        assert kinds["valid"] + kinds["coming"] + kinds["torn"] == drive.pages
    last = Counter(shape.kind for shape in steps.frames[-1].shapes if shape.text.startswith("block "))
    assert last["valid"] == int(stepped.state.blocks.valid.sum()) == drive.pages
    assert f"complete: {len(WRITES)}, in the drive: 0, waiting: 0" in steps.frames[-1].caption
    assert stepped.state.counters.erases.sum() > 0  # collection was among it
    assert any(shape.kind == "erase" and shape.text.startswith("erase") for frame in steps.frames for shape in frame.shapes)


def test_holds_are_those_of_the_model_and_the_critical_ones_span_the_run(drive: LabDrive) -> None:
    stepped = drive_steps._begin(drive.state, WRITES)
    watch = drive_steps._Watch(stepped)
    watch.note()
    while stepped.step():
        watch.note()
    parts = [*stepped.model.dies, *stepped.model.channels, stepped.model.link, stepped.model.controller]
    busy = np.bincount([hold.server for hold in watch.holds], [hold.end - hold.begin for hold in watch.holds], len(parts))
    assert busy.tolist() == [part.busy_ns for part in parts]
    path = critical_holds(watch.holds)
    assert path[0].begin == 0 and path[-1].end == stepped.model.now
    assert all(one.end == other.begin for one, other in pairwise(path))
    steps = timeline_in_steps(drive.state, WRITES)
    bars = [shape for shape in steps.frames[-1].shapes if " to " in shape.text and shape.kind not in ("critical", "text")]
    assert len(bars) == len(watch.holds)
    assert sum(shape.text.startswith("critical: ") for shape in steps.frames[-1].shapes) == len(path)


def test_of_two_that_end_together_the_same_part_was_waited_for() -> None:
    holds = [Hold(0, "read", "", 0, 5), Hold(1, "read", "", 3, 5), Hold(1, "read", "", 5, 9)]
    assert critical_holds(holds) == holds[1:]
    assert critical_holds([]) == []


def test_what_cannot_be_watched_is_refused(drive: LabDrive) -> None:
    with pytest.raises(InvalidParameterError, match="page: 100, but the drive has logical pages 0 to 99"):
        blocks_in_steps(drive.state, [100])
    with pytest.raises(InvalidParameterError, match="flash pages: 4096, but"):
        blocks_in_steps(LabDrive(3000, blocks_per_plane=256).state, [])
    assert len(blocks_in_steps(drive.state, [])) == 1

"""Placement handles: what is written by one lies in blocks of its own, and data of different lives apart amplify writes less."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.testing.flash_drives import PAGE, check_invariants, drive

#: Four mapping units a flash page, and as large a block.
UNITS = {"page_size": 4 * PAGE, "mapping_unit": PAGE, "pages_per_block": 4, "blocks_per_plane": 380}
#: Four fifths of the writes go to a fifth of the pages.
PAGES, HOT = 8000, 1600


def written(handles: int, buffer: int, count: int, **changes: object) -> SsdEngine:
    """A drive after writes to hot pages by one handle and to cold ones by another."""
    shape: dict[str, object] = {"pages_per_block": 16, "blocks_per_plane": 300, "gc_reserve": 5, "gc_streams": 2, "queues": 2}
    model = SsdEngine(drive(capacity=PAGES * PAGE, placement_handles=handles, write_buffer=buffer * PAGE, **{**shape, **changes}))
    random = generator(5, "placement")
    is_hot = random.random(count) < 0.8
    pages = np.where(is_hot, random.integers(0, HOT, count), random.integers(HOT, PAGES, count))
    pages[:PAGES] = np.arange(PAGES)
    requests = make_requests(WRITE, pages * PAGE, PAGE)
    requests["stream"] = pages >= HOT
    model.submit(requests, one_command_each(requests), 0)
    model.advance(every=True)
    return model


@pytest.mark.parametrize(("buffer", "changes"), [(0, {}), (8, {}), (8, UNITS)])
def test_handles_fill_blocks_of_their_own(buffer: int, changes: dict[str, object]) -> None:
    """Before anything is collected no block holds pages of both."""
    model = written(2, buffer, PAGES, **changes)
    is_hot = (np.flatnonzero(model.state.mapping) < HOT).astype(int)
    block = (model.state.mapping[model.state.mapping > 0] - 1) // 16
    hot, held = (np.bincount(block, weights) for weights in (is_hot, np.ones(len(block))))
    assert all(share in (0, 1) for share in (hot[held > 0] / held[held > 0]))
    check_invariants(model)


@pytest.mark.parametrize(("buffer", "changes"), [(0, {}), (48, UNITS)])
def test_lives_apart_amplify_less(buffer: int, changes: dict[str, object]) -> None:
    together, apart = (written(handles, buffer, 160_000, **changes) for handles in (1, 2))
    assert together.statistics()["programs_host"] == pytest.approx(apart.statistics()["programs_host"], rel=0.01 if buffer else 0)
    assert apart.statistics()["programs_gc"] < 0.95 * together.statistics()["programs_gc"]
    check_invariants(apart)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"placement_handles": 2}, "placement_handles: 2, but each of the 1 queues must belong to one handle"),
        ({"placement_handles": 2, "queues": 2}, "gc_reserve: 2, but .* and 2 placement handles it must be at least 3"),
        (
            {"placement_handles": 2, "queues": 2, "gc_reserve": 3, "ftl": "dftl", "map_cache": 1024, "capacity": PAGE},
            "placement_handles: ftl 'dftl'",
        ),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(FlashsimError, match=message):
        SsdEngine(drive(**changes))

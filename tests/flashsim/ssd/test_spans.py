"""Spans of the engine: every hold of a part is told, and they account for its busy time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.core.request import FLUSH, READ, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.spans import ALL_BITS, CELLS, COMMAND, ERASE, FOLD, GC, MOVE, PROGRAM, SLC, TRANSFER, holds
from flashsim.core.spans import READ as READ_CELLS
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.testing.flash_drives import PAGE, drive, random_drive, random_workload, serve_all
from tests.cases import with_each


@with_each("seed", range(5))
def test_spans_are_the_busy_time(seed: int) -> None:
    parameters = random_drive(seed)
    engine, silent = SsdEngine(parameters), SsdEngine(parameters)
    requests, at = random_workload(seed, parameters, 200)
    engine.record_spans(True)
    assert np.array_equal(serve_all(engine, requests, at), serve_all(silent, requests, at))
    spans, told = holds(engine.spans()), engine.statistics()
    busy = [*told["die_busy_ns"], *told["channel_busy_ns"], told["link_busy_ns"], told["controller_busy_ns"]]
    length = spans["end"] - spans["begin"]
    assert np.array_equal(np.bincount(spans["server"], length, len(busy)).astype(int), busy)
    assert (length > 0).all() and (np.diff(spans["end"]) >= 0).all()
    for server in range(len(busy)):  # one hold at a time
        own = spans[spans["server"] == server]
        assert (own["begin"][1:] >= own["end"][:-1]).all()
    assert np.count_nonzero(spans["kind"] == COMMAND) == len(requests)
    assert set(spans["cause"][spans["kind"] == MOVE]) <= {GC, 4}
    assert np.count_nonzero(spans["kind"] == ERASE) >= told["flash_erases"] / parameters.planes_per_die
    assert len(engine.spans()) == len(silent.spans()) == 0


@pytest.mark.deep
def test_a_long_run_loses_no_span() -> None:
    parameters = random_drive(2)
    engine = SsdEngine(parameters)
    engine.record_spans(True)
    for seed in range(20):
        requests, at = random_workload(seed, parameters, 2000)
        serve_all(engine, requests, at + engine.now)
    spans, told = holds(engine.spans()), engine.statistics()
    assert len(spans) > 100_000
    assert int((spans["end"] - spans["begin"])[spans["server"] < parameters.dies].sum()) == sum(told["die_busy_ns"])


@with_each(
    ("choices", "programs", "reads"),
    [
        ({}, [(0, 1), (1, 1), (2, 1)] * 2, [(0, 1), (1, 1), (2, 1)]),
        ({"one_shot": True}, [(ALL_BITS, 3)] * 2, [(0, 1), (1, 1), (2, 1)]),
        ({"mapping_unit": PAGE // 4}, [(0, 4), (1, 4), (2, 4)] * 2, [(0, 4), (1, 4), (2, 4)]),
        ({"mapping_unit": PAGE // 4, "one_shot": True}, [(ALL_BITS, 12)] * 2, [(0, 4), (1, 4), (2, 4)]),
        ({"slc_cache": 6 * PAGE, "slc_idle": 1000}, [(SLC, 1)] * 6, [(SLC, 1)] * 3),
    ],
)  # fmt: skip
def test_levels_and_units_of_a_die(choices: dict[str, Any], programs: list[tuple[int, int]], reads: list[tuple[int, int]]) -> None:
    """Two word lines are written, and one is read; a cache is then folded, into all pages of word lines."""
    more = {"channels": 1, "cell": "tlc", "pages_per_block": 18, "blocks_per_plane": 12, "gc_reserve": 3, "write_buffer": 6 * PAGE}
    engine = SsdEngine(drive(**more, **choices))
    engine.record_spans(True)
    serve_all(engine, make_requests([WRITE, FLUSH, READ], [0, 0, 0], [6 * PAGE, 0, 3 * PAGE], serial=True))
    engine.advance(1_000_000)
    spans = holds(engine.spans())
    for kind, expected in ((PROGRAM, programs), (READ_CELLS, reads)):
        own = spans[(spans["server"] == 0) & (spans["kind"] == kind)]
        assert list(zip(own["level"].tolist(), own["units"].tolist(), strict=True)) == expected
    folded = spans[(spans["server"] == 0) & (spans["kind"] == MOVE) & (spans["cause"] == FOLD)]
    assert folded["level"].tolist() == ([0, 1, 2] * 2 if "slc_cache" in choices else [])
    assert (spans["level"][spans["server"] > 0] == -1).all()


@pytest.mark.parametrize("buffer", [0, 6 * PAGE])
def test_transfers_over_the_link_have_their_pages(buffer: int) -> None:
    parameters, places = drive(write_buffer=buffer), [4, 2, 5, 2]
    engine = SsdEngine(parameters)
    engine.record_spans(True)
    serve_all(engine, make_requests([WRITE] * 3 + [READ], [place * PAGE for place in places], PAGE, serial=True))
    spans = holds(engine.spans())
    link = parameters.dies + parameters.channels
    assert spans["page"][(spans["server"] == link) & (spans["kind"] == TRANSFER)].tolist() == places


@pytest.mark.parametrize("seed", range(4))
def test_a_page_crosses_its_channel_once_it_is_out_of_the_cells(seed: int) -> None:
    """Reads of cells last as long as the drive says, and the page crosses the channel of its die afterwards."""
    parameters = random_drive(seed)
    engine = SsdEngine(parameters)
    engine.load(0, parameters.capacity)
    engine.record_spans(True)
    offsets = generator(seed, "offsets").integers(0, parameters.logical_pages, 100) * parameters.unit_size
    serve_all(engine, make_requests(READ, offsets, parameters.unit_size), np.arange(100) * 1000)
    spans = engine.spans()
    cells, transfers = (spans[(spans["kind"] == kind) & (spans["die"] >= 0)] for kind in (CELLS, TRANSFER))
    assert len(cells) and set(cells["end"] - cells["begin"]) <= {parameters.read, *parameters.read_pages}
    for one in transfers:
        before = cells[(cells["die"] == one["die"]) & (cells["end"] <= one["begin"])]
        assert len(before) and (before["server"] == before["die"]).all()
        hold = spans[(spans["server"] == one["die"]) & (spans["kind"] == READ_CELLS) & (spans["end"] >= one["end"])]
        assert len(hold)

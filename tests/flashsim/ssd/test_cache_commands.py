"""Cache read and cache program: pages cross the channel while the cells work; times by hand, spans, and power cuts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import RefusedError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.spans import ERASE, PROGRAM, holds
from flashsim.core.spans import READ as READ_SPAN
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import PAGE, UNINTERRUPTED, Model, check_invariants, drive, random_drive, random_workload, serve_all
from tests.cases import with_each
from tests.property.test_ssd_equality import assert_same_state
from tests.tiers import seeds

MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
BOTH = {"cache_read": True, "cache_program": True}


def one_die(transfer: int, **changes: Any) -> SsdParameters:
    """A drive of one die with 5 ns of controller a command, 1 ns a page on the link, and `transfer` ns a page on the channel."""
    rates = {"channel_rate": PAGE * 10**9 // transfer, "link_read_rate": PAGE * 10**9, "link_write_rate": PAGE * 10**9}
    latencies = {"read_latency": 5 + 20 + transfer, "write_latency": 5 + 40 + transfer}
    return drive(**{"channels": 1, "capacity": 20 * PAGE, **rates, **latencies, **changes})


def random_cached_drive(seed: int) -> SsdParameters:
    """A random drive that has one of the two, or both."""
    return replace(random_drive(seed), multi_plane=False, **UNINTERRUPTED, cache_read=seed % 3 != 0, cache_program=seed % 3 != 1)


def command_time(model: type[Model], parameters: SsdParameters, operation: int, pages: int) -> int:
    """How long the die takes for one command of so many pages in order."""
    device = model(parameters)
    if operation == READ:
        device.load(0, parameters.capacity)
    completions = serve_all(device, make_requests(operation, 0, pages * PAGE))
    took = int(completions["completed"][0])
    return took - 5 - 1  # without the controller; one page over the link before the first program, or after the last read


@MODELS
@with_each("transfer", [4, 10, 20, 40, 50, 100])
@with_each("pages", [1, 2, 5])
def test_reads_in_order_take_the_longer_of_cells_and_channel_a_page(model: type[Model], transfer: int, pages: int) -> None:
    parameters = one_die(transfer)
    assert command_time(model, parameters, READ, pages) == pages * (20 + transfer)
    expected = 20 + pages * transfer if transfer > 20 else pages * 20 + transfer
    assert command_time(model, replace(parameters, cache_read=True), READ, pages) == expected


@MODELS
@with_each("transfer", [4, 10, 20, 40, 50, 100])
@with_each("pages", [1, 2, 5])
def test_programs_in_order_take_the_longer_of_cells_and_channel_a_page(model: type[Model], transfer: int, pages: int) -> None:
    parameters = one_die(transfer)
    assert command_time(model, parameters, WRITE, pages) == pages * (transfer + 40)
    expected = pages * transfer + 40 if transfer > 40 else transfer + pages * 40
    assert command_time(model, replace(parameters, cache_program=True), WRITE, pages) == expected


@MODELS
def test_another_kind_waits_until_the_die_is_idle(model: type[Model]) -> None:
    """Reads of 20 + 30 and a program of 30 + 40, in either order: nothing overlaps."""
    device = model(one_die(30, **BOTH))
    device.load(0, 20 * PAGE)
    requests = make_requests([READ, WRITE, READ], [0, PAGE, 2 * PAGE], PAGE)
    assert serve_all(device, requests)["completed"].tolist() == [5 + 50 + 1, 5 + 50 + 70, 5 + 50 + 70 + 50 + 1]


@MODELS
def test_a_read_that_overtakes_waits_for_what_the_cache_register_holds(model: type[Model]) -> None:
    """Programs of 10 + 40.  The read is ready at 25, when the second page is in the cache register: it goes before the third."""
    device = model(one_die(10, **BOTH, read_priority=True))
    device.load(0, 20 * PAGE)
    requests = make_requests([WRITE, READ], [0, 10 * PAGE], [3 * PAGE, PAGE])
    completions = serve_all(device, requests, np.array([0, 20]))
    second = 5 + 1 + 10 + 40 + 40
    assert completions["completed"].tolist() == [second + 20 + 10 + 1, second + 30 + 50]
    assert completions["id"].tolist() == [1, 0]


def test_busy_times_count_each_nanosecond_once() -> None:
    """Spans of one die follow one another: the second operation's begins where the first one's ends."""
    engine = SsdEngine(one_die(30, **BOTH))
    engine.load(0, 20 * PAGE)
    engine.record_spans(True)
    serve_all(engine, make_requests([READ, WRITE], [0, 10 * PAGE], 3 * PAGE))
    spans = holds(engine.spans())
    on_die = spans[spans["server"] == 0]
    reads, programs = (on_die[on_die["kind"] == kind] for kind in (READ_SPAN, PROGRAM))
    assert list(zip(reads["begin"].tolist(), reads["end"].tolist(), strict=True)) == [(5, 55), (55, 85), (85, 115)]
    assert list(zip(programs["begin"].tolist(), programs["end"].tolist(), strict=True)) == [(115, 185), (185, 225), (225, 265)]
    assert not np.any(on_die["kind"] == ERASE)
    assert engine.statistics()["die_busy_ns"] == [260]


@with_each("seed", range(10))
def test_spans_of_a_die_do_not_overlap(seed: int) -> None:
    parameters = random_cached_drive(seed)
    engine = SsdEngine(parameters)
    engine.record_spans(True)
    requests, at = random_workload(seed, parameters, 200)
    serve_all(engine, requests, at)
    spans, busy = holds(engine.spans()), engine.statistics()["die_busy_ns"]
    for die in range(parameters.dies):
        own = spans[spans["server"] == die]
        assert (own["begin"][1:] >= own["end"][:-1]).all()
        assert int((own["end"] - own["begin"]).sum()) == busy[die]


@pytest.mark.parametrize("cut", range(140))
def test_a_power_cut_loses_what_is_only_in_the_cache_register(cut: int) -> None:
    """Programs of 10 + 40: pages begin in the cells at 16, 56 and 96, and are durable 40 later; what had begun is torn."""
    pages = {}
    for model in (SsdEngine, SsdSpecification):
        device = model(one_die(10, **BOTH))
        device.submit(requests := make_requests(WRITE, 0, 3 * PAGE), one_command_each(requests), 0)
        device.power_cut(cut)
        versions = [device.version(page) for page in range(3)]
        assert versions == [page + 1 if cut >= 56 + 40 * page else 0 for page in range(3)]
        assert np.count_nonzero(device.state.spare) == sum(cut >= 16 + 40 * page for page in range(3))
        pages[model] = device.state.spare.copy()
        check_invariants(device)
    assert np.array_equal(pages[SsdEngine], pages[SsdSpecification])


@pytest.mark.parametrize("block", seeds(0, 4, deep=6))
def test_models_agree(block: int) -> None:
    for seed in range(2000 + 30 * block, 2030 + 30 * block):
        parameters = random_cached_drive(seed)
        requests, at = random_workload(seed, parameters, 50)
        engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
        for model in (engine, specification):
            model.load(0, parameters.logical_pages * 3 // 4 * PAGE)
        assert np.array_equal(serve_all(engine, requests, at), serve_all(specification, requests, at)), f"seed {seed}"
        assert_same_state(engine, specification)
        check_invariants(engine)


@pytest.mark.parametrize("block", seeds(0, 2, deep=3))
def test_models_agree_about_power_cuts(block: int) -> None:
    for seed in range(3000 + 20 * block, 3020 + 20 * block):
        parameters = random_cached_drive(seed)
        requests, at = random_workload(seed, parameters, 50)
        engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
        last = int(serve_all(SsdEngine(parameters), requests, at)["completed"].max())
        cut = int(generator(seed, "cut").integers(0, last + 1))
        for model in (engine, specification):
            model.submit(requests, one_command_each(requests), at)
            model.power_cut(cut)
        assert_same_state(engine, specification)
        check_invariants(engine)
        assert np.array_equal(serve_all(engine, requests, at + cut), serve_all(specification, requests, at + cut)), f"seed {seed}"


@pytest.mark.parametrize("name", ["cache_read", "cache_program"])
def test_what_does_not_go_together(name: str) -> None:
    with pytest.raises(RefusedError, match=f"{name}: not supported with multi_plane"):
        drive(**{name: True, "multi_plane": True})
    for suspend in ("program", "erase", "both"):
        with pytest.raises(RefusedError, match=f"{name}: not supported with suspend '{suspend}'"):
            drive(**{name: True, "read_priority": True, "suspend": suspend})

"""A power cut of a flash drive: each page reads as one of the changes that may survive, and models agree in all state.

The law of all devices is tested in `tests.contract.test_power_cut`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, TRIM, WRITE, Integers, Requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import PAGE, check_invariants, random_drive, random_workload, serve_all
from tests.flashsim.ssd.drive_kinds import KINDS, drive_for
from tests.property.test_ssd_equality import assert_same_state
from tests.tiers import seeds


def writes_behind(parameters: SsdParameters, requests: Requests, last_end: int = -1) -> set[int]:
    """Writes, in order of admission, that may be acknowledged before they are programmed, those with forced unit access never.

    A write buffer that does not write through acknowledges all others so; a controller that writes behind those of at most
    `continuation_limit` bytes, in whole flash pages, that begin where the last write ended.  A coalescing buffer takes parts of pages, and
    writes behind may have such.  `last_end` is where the write before these requests ended, -1 if there is none since power came.
    """
    size, behind = parameters.page_size, set()
    mode = parameters.write_buffer_mode if parameters.buffer_pages else "none"
    for request in np.flatnonzero(requests["operation"] == WRITE).tolist():
        offset, length = int(requests["offset"][request]), int(requests["length"][request])
        whole = offset % size == length % size == 0
        buffered = mode == "write-back" or (mode == "coalescing" and not whole)
        continued = offset == last_end and length <= parameters.continuation_limit and whole
        if (buffered or continued) and not requests["flags"][request] & FORCE_UNIT_ACCESS:
            behind.add(request)
        last_end = offset + length
    return behind


def durable_changes(parameters: SsdParameters, requests: Requests, acknowledged: set[int], last_end: int = -1) -> set[int]:
    """Which requests' changes must survive: acknowledged trims, and acknowledged writes that did not stay behind in a buffer or controller.

    Nothing stays behind in a buffer that is protected, nor after a flush that was completed.
    """
    flushed = max((request for request in acknowledged if requests["operation"][request] == FLUSH), default=-1)
    behind = set() if parameters.power_protected else writes_behind(parameters, requests, last_end)
    return {request for request in acknowledged if request not in behind or request < flushed}


def allowed_versions(parameters: SsdParameters, requests: Requests, before: Integers, durable: set[int], first_id: int) -> list[set[int]]:
    """What each logical page may read as: the outcome of its newest durable change, or of any later one.

    Written out from the contract: write ids count pages written and whole pages trimmed, in order of admission (here the order of
    requests) and then of address; a trimmed page has version 0.
    """
    allowed = [{int(version)} for version in before]
    size, next_id = parameters.unit_size, first_id
    for request, row in enumerate(requests):
        offset, end = int(row["offset"]), int(row["offset"] + row["length"])
        for page in range(offset // size, -(-end // size)):
            whole = offset <= page * size and (page + 1) * size <= end
            if row["operation"] == WRITE or (row["operation"] == TRIM and whole):
                if request in durable:
                    allowed[page].clear()
                allowed[page].add(next_id if row["operation"] == WRITE else 0)
                next_id += 1
    return allowed


@pytest.mark.parametrize("ftl", KINDS)
@pytest.mark.parametrize("seed", seeds(0, 4, deep=26))
def test_what_survives(seed: int, ftl: str) -> None:
    parameters = drive_for(ftl, replace(random_drive(seed), endurance=0))
    requests, at = random_workload(seed, parameters, 30)
    requests["dependency"], requests["stream"] = -1, 0
    at = np.sort(at)
    last = int(serve_all(SsdEngine(parameters), requests, at)["completed"].max())
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    random = generator(seed, "cut")
    loaded = int(random.integers(0, parameters.logical_pages + 1)) * parameters.unit_size
    for model in (engine, specification):
        model.load(0, loaded)
    for _ in range(3):
        began = engine.now
        cut = began + int(random.integers(0, last + 1))
        first_id = int(engine.state.control.sequence - engine.state.control.id_base) + 1
        before = np.array([engine.version(page) for page in range(parameters.logical_pages)])
        done = []
        for model in (engine, specification):
            ids = model.submit(requests, one_command_each(requests), at + began)
            done.append(model.advance(cut, every=True))
            model.power_cut(cut)
        assert np.array_equal(done[0], done[1])
        assert_same_state(engine, specification)
        check_invariants(engine)
        durable = durable_changes(parameters, requests, set((done[0]["id"] - ids[0]).tolist()))
        allowed = allowed_versions(parameters, requests, before, durable, first_id)
        for page, versions in enumerate(allowed):
            assert engine.version(page) in versions, f"page {page}"
    again = at + engine.now
    assert np.array_equal(serve_all(engine, requests, again), serve_all(specification, requests, again))
    check_invariants(engine)


@pytest.mark.parametrize("seed", range(20))
def test_a_controller_with_room_for_all_writes_behind_whatever_goes_on(seed: int) -> None:
    """And nothing else: what tests take to be durable beside it is not less than it must be."""
    parameters = replace(
        random_drive(seed), endurance=0, write_buffer=0, power_protected=False, continuation_latency=20, continuation_limit=PAGE
    )
    requests, at = random_workload(seed, parameters, 100)
    requests["dependency"], requests["stream"] = -1, 0
    parameters = replace(parameters, continuation_limit=int(requests["length"].sum()))
    engine = SsdEngine(parameters)
    serve_all(engine, requests, np.sort(at))
    behind = writes_behind(parameters, requests)
    assert engine.statistics()["continued_writes"] == len(behind) > 3


@pytest.mark.parametrize("seed", seeds(0, 8, deep=12))
def test_models_agree_after_cuts_of_several_queues(seed: int) -> None:
    """Of three queues; where it was whose turn is forgotten with them."""
    parameters = replace(random_drive(seed), endurance=0, queues=3, queue_depth=2)
    requests, at = random_workload(seed, parameters, 60)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    last = int(serve_all(SsdEngine(parameters), requests, at)["completed"].max())
    for share in (0.2, 0.5, 0.8):
        cut = engine.now + int(share * last)
        for model in (engine, specification):
            model.submit(requests, one_command_each(requests), at + model.now)
            model.power_cut(cut)
        assert_same_state(engine, specification)
        check_invariants(engine)
    again = at + engine.now
    assert np.array_equal(serve_all(engine, requests, again), serve_all(specification, requests, again))


@pytest.mark.parametrize("ftl", KINDS)
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_reads_return_the_last_write(first: int, ftl: str) -> None:
    """Without a cut the newest change of each page is what it reads as."""
    for seed in range(first, first + 10):
        parameters = drive_for(ftl, replace(random_drive(seed), endurance=0))
        requests, at = random_workload(seed, parameters, 100)
        requests["dependency"], requests["stream"] = -1, 0
        engine = SsdEngine(parameters)
        serve_all(engine, requests, np.sort(at))
        nothing = np.zeros(parameters.logical_pages, np.int64)
        allowed = allowed_versions(parameters, requests, nothing, set(range(len(requests))), 1)
        assert [{engine.version(page)} for page in range(parameters.logical_pages)] == allowed

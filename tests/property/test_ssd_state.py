"""Drives of every translation layer as state machines, and power cuts at every moment of drawn workloads."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Container
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from flashsim.core.errors import ReadOnlyDeviceError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import FLUSH, READ, SECTOR, TRIM, WRITE, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import NEVER
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl.base import FAMILY
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.drive_state import DriveState, apply
from flashsim.ssd.state.flash import PlannedOperation
from flashsim.ssd.state.flash_array import ERASE_BLOCK, MOVE_PAGE, PROGRAM_PAGE, READ_PAGE, STORE_PAGE, ZERO_PAGE
from flashsim.ssd.state.pools import next_write_id
from flashsim.ssd.state.recovery import recover
from flashsim.testing.flash_drives import PAGE, check_invariants, continue_half, drive_for, random_drive, random_workload
from tests.property.test_ssd_power_cut import allowed_versions, durable_changes
from tests.tiers import DEEP_RUN, examples, seeds

SMALL = settings(max_examples=examples(12), stateful_step_count=40 if DEEP_RUN else 20, deadline=None)
PLACES = st.floats(0, 1, exclude_max=True)
SEEDS = st.integers(0, 10**6)
LAYERS = st.sampled_from(FAMILY.names())


class StateMachine(RuleBasedStateMachine):
    """A drive without a clock: every planned operation is checked against the flash before it is carried out."""

    @initialize(seed=SEEDS, ftl=LAYERS, share=PLACES)
    def make(self, seed: int, ftl: str, share: float) -> None:
        self.parameters = drive_for(ftl, random_drive(seed))
        self.state = DriveState(self.parameters)
        self.newest = [0] * self.parameters.logical_pages
        for page in range(int(share * self.parameters.logical_pages)):
            self.write_one(page, partial=False)

    def page_at(self, place: float) -> int:
        return int(place * self.parameters.logical_pages)

    def plan(self, operation: int, page: int, partial: bool) -> list[int]:
        """Kinds of the operations that were planned and carried out."""
        rows = self.state.plan_page(operation, page, partial)
        for number, row in enumerate(rows):
            self.check(row)
            state = self.state
            apply(number, state.flash)
        return [row.kind for row in rows]

    def check(self, row: PlannedOperation) -> None:
        """Programs in order and only after an erase; copies of what is there; erases of what nobody needs."""
        state, per_block = self.state, self.parameters.pages_per_block
        place = row.place
        if row.kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
            rest = state.spare[place : (place // per_block + 1) * per_block]
            assert not rest.any()
            assert self.parameters.gc == "none" or place % per_block == 0 or state.spare[place - 1] != 0
            if row.kind == PROGRAM_PAGE:
                self.newest[row.logical] = row.write_id  # an erase later in the plan may take the version before
            if row.source >= 0:
                assert state.spare[row.source] > 0 and state.pages[row.source].spare_owner == row.logical + 1
        elif row.kind == ERASE_BLOCK:
            for flash_page in range(place * per_block, (place + 1) * per_block):
                owner, write_id = state.pages[flash_page].spare_owner, state.spare[flash_page]
                if write_id > 0 and owner <= len(self.newest) and write_id == self.newest[owner - 1]:  # it was copied
                    assert ((state.spare == write_id) & (state.pages.spare_owner == owner)).sum() > 1

    def write_one(self, page: int, partial: bool) -> None:
        if self.state.control.read_only:
            return
        assert self.plan(WRITE, page, partial).count(PROGRAM_PAGE) == 1
        self.newest[page] = self.state.version(page)
        assert self.newest[page] == max(self.newest)

    @rule(place=PLACES, count=st.integers(1, 12), partial=st.booleans())
    def write(self, place: float, count: int, partial: bool) -> None:
        first = self.page_at(place)
        for page in range(first, min(first + count, self.parameters.logical_pages)):
            self.write_one(page, partial)

    @rule(seed=SEEDS, count=st.integers(1, 60))
    def overwrite(self, seed: int, count: int) -> None:
        for page in generator(seed, "hot").integers(0, max(1, self.parameters.logical_pages // 4), count).tolist():
            self.write_one(page, partial=False)

    @rule(place=PLACES, count=st.integers(1, 12))
    def trim(self, place: float, count: int) -> None:
        first = self.page_at(place)
        for page in range(first, min(first + count, self.parameters.logical_pages)):
            self.plan(TRIM, page, False)
            self.state.trimmed[page] = next_write_id(self.state.control)
            self.newest[page] = 0

    @rule(place=PLACES)
    def read(self, place: float) -> None:
        page = self.page_at(place)
        assert [kind for kind in self.plan(READ, page, False) if kind in (READ_PAGE, ZERO_PAGE)] == [
            READ_PAGE if self.newest[page] else ZERO_PAGE
        ]

    @rule()
    def lose_power(self) -> None:
        recover(self.state)

    @invariant()
    def reads_return_the_last_write(self) -> None:
        assert [self.state.version(page) for page in range(self.parameters.logical_pages)] == self.newest

    @invariant()
    def blocks_add_up(self) -> None:
        check_invariants(SimpleNamespace(state=self.state, parameters=self.parameters))  # type: ignore[arg-type]


class EngineMachine(RuleBasedStateMachine):
    """A drive under the clock, cut off at any time: each page reads as one of the versions that it may have."""

    @initialize(seed=SEEDS, ftl=LAYERS, share=PLACES)
    def make(self, seed: int, ftl: str, share: float) -> None:
        self.parameters = drive_for(ftl, replace(random_drive(seed), endurance=0, write_buffer=0, power_protected=False))
        self.engine = SsdEngine(self.parameters)
        self.engine.load(0, int(share * self.parameters.logical_pages) * PAGE)
        self.last_end = -1  # where the last write since power came ended

    def versions(self) -> list[int]:
        return [self.engine.version(page) for page in range(self.parameters.logical_pages)]

    @rule(seed=SEEDS, count=st.integers(1, 25), share=st.one_of(st.none(), PLACES))
    def work(self, seed: int, count: int, share: float | None) -> None:
        """Requests of all kinds, to their end or until the power fails."""
        requests, at = random_workload(seed, self.parameters, count)
        requests["dependency"], requests["stream"] = -1, 0
        before, first_id, began = np.array(self.versions()), int(self.engine.state.control.sequence) + 1, self.engine.now
        at = np.sort(at) + began
        ids = self.engine.submit(requests, one_command_each(requests), at)
        cut = NEVER if share is None else began + int(share * 100 * count)
        done = self.engine.advance(cut, every=True)
        if share is not None:
            assert len(self.engine.power_cut(cut).lost) + len(done) == count
        assert self.engine.outstanding == 0
        acknowledged = set(np.flatnonzero(np.isin(ids, done["id"])).tolist())
        durable = acknowledged if share is None else durable_changes(self.parameters, requests, acknowledged, self.last_end)
        allowed = allowed_versions(self.parameters, requests, before, durable, first_id)
        assert all(version in versions for version, versions in zip(self.versions(), allowed, strict=True))
        ends = (requests["offset"] + requests["length"])[requests["operation"] == WRITE]
        self.last_end = -1 if share is not None else int(ends[-1]) if len(ends) else self.last_end

    @invariant()
    def blocks_add_up(self) -> None:
        check_invariants(self.engine)


def step(engine: SsdEngine, until: int) -> list[int]:
    """Let time pass, whatever is refused meanwhile; the ids that completed."""
    ids: list[int] = []
    while True:
        try:
            return ids + engine.advance(until, every=True)["id"].tolist()
        except ReadOnlyDeviceError:
            continue


def single_pages(seed: int, parameters: SsdParameters, count: int, in_order: bool) -> Requests:
    """Whole pages, a third of them overwritten all the time, so that garbage collection, wear levelling and merges are at work.

    If they are `in_order`, half of them follow the last one of their operation.
    """
    random = generator(seed, "pages")
    hot = random.random(count) < 0.7
    pages = np.where(
        hot, random.integers(0, max(1, parameters.logical_pages // 3), count), random.integers(0, parameters.logical_pages, count)
    )
    operations = random.choice([READ, WRITE, TRIM, FLUSH], count, p=[0.1, 0.8, 0.07, 0.03])
    offset, length = pages * PAGE // SECTOR, np.full(count, PAGE // SECTOR)
    if in_order:
        offset, length = continue_half(seed, parameters, operations, offset, length)
    return make_requests(operations, offset * SECTOR, length * SECTOR)


def assert_every_cut_keeps_what_was_durable(seed: int, ftl: str, *, only: Container[int] | None = None, in_order: bool = False) -> None:
    """All times are multiples of 10 ns: the power fails after each at which something happens, on a copy of the drive.

    If times are given the power fails at `only` these, and at the end.  There is no write buffer: all that is acknowledged is durable, but
    for short writes that go on where the last one ended, on drives that hold these in the controller; at the end, when the drive is at
    rest, these are too.
    Once blocks ran out all writes are refused, so these are the last ones; reads and trims go on.
    """
    parameters = drive_for(ftl, replace(random_drive(seed), write_buffer=0, power_protected=False))
    if in_order:
        parameters = replace(parameters, continuation_latency=20, continuation_limit=4 * PAGE)
    engine = SsdEngine(parameters)
    requests = single_pages(seed, parameters, 40, in_order)
    with contextlib.suppress(ReadOnlyDeviceError):
        engine.load(0, parameters.capacity)
        for page in generator(seed, "worn").integers(0, max(1, parameters.logical_pages // 3), 4 * parameters.logical_pages).tolist():
            engine.load(page * PAGE, PAGE)
    before = np.array([engine.version(page) for page in range(parameters.logical_pages)])
    first_id = int(engine.state.control.sequence) + 1
    ids = engine.submit(requests, one_command_each(requests), engine.now)
    whole = copy.deepcopy(engine)
    step(whole, NEVER)
    refused = int(whole.state.control.refused)
    assert not in_order or refused or whole.statistics()["continued_writes"] > 3
    assert whole.statistics()["refused_writes"] == refused and (refused == 0 or whole.state.control.read_only)
    accepted = requests.copy()
    writes = np.flatnonzero(requests["operation"] == WRITE)
    accepted["operation"][writes[len(writes) - refused :]] = READ
    done: list[int] = []
    cuts = 0
    while (event := engine.next_event) < NEVER:  # the controller writes buffered pages after the last request
        done += step(engine, engine.now + 10)
        at_rest = engine.next_event == NEVER
        skipped = event > engine.now if only is None else engine.now not in only  # nothing happened since the last cut
        if skipped and not at_rest:
            continue
        cut, cuts = copy.deepcopy(engine), cuts + 1
        lost = cut.power_cut(cut.now).lost
        assert sorted([*lost.tolist(), *done]) == ids.tolist()
        check_invariants(cut)
        acknowledged = set(np.flatnonzero(np.isin(ids, done)).tolist())
        durable = acknowledged if at_rest else durable_changes(parameters, accepted, acknowledged)
        for page, versions in enumerate(allowed_versions(parameters, accepted, before, durable, first_id)):
            assert cut.version(page) in versions, f"seed {seed}, {ftl}, at {cut.now}, page {page}"
        if cuts % 10 == 0:  # the drive works on
            cut.submit(requests, one_command_each(requests), cut.now)
            step(cut, NEVER)
            check_invariants(cut)
    assert engine.outstanding == 0


@pytest.mark.parametrize("ftl", FAMILY.names())
@pytest.mark.parametrize("seed", seeds(0, 1, deep=4))
def test_a_cut_at_every_operation(seed: int, ftl: str) -> None:
    assert_every_cut_keeps_what_was_durable(seed, ftl)


def test_a_block_of_torn_translation_pages_alone_is_free_after_a_cut() -> None:
    """Planes share their collection, and in one of them no other block is free for translation pages."""
    assert_every_cut_keeps_what_was_durable(277, "dftl", only={6020})


@pytest.mark.parametrize(("seed", "ftl", "acknowledged"), [(145, "bast", 1290), (164, "page", 140), (192, "dftl", 90)])
def test_a_page_written_behind_may_vanish_until_the_drive_is_at_rest(seed: int, ftl: str, acknowledged: int) -> None:
    """A cut when a write that goes on is acknowledged and its page still waits for its die, and one when all is programmed."""
    assert_every_cut_keeps_what_was_durable(seed, ftl, only={acknowledged})


@pytest.mark.parametrize("ftl", FAMILY.names())
@pytest.mark.parametrize("seed", seeds(5, 1, deep=1))
def test_a_cut_at_every_operation_of_pages_in_order(seed: int, ftl: str) -> None:
    """Many requests are in the drive at once, so that the controller soon has no room; or one at a time, so that it has for each."""
    assert_every_cut_keeps_what_was_durable(seed, ftl, in_order=True)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(100, 350))
def test_a_cut_at_every_operation_of_many_workloads(seed: int) -> None:
    assert_every_cut_keeps_what_was_durable(seed, FAMILY.names()[seed % len(FAMILY.names())], in_order=seed >= 300)


TestState = StateMachine.TestCase
TestState.settings = SMALL
TestEngine = EngineMachine.TestCase
TestEngine.settings = SMALL

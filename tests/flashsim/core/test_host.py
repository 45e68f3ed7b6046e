"""The compiled host queue and the specified one are the same queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core import host_queue as host_module
from flashsim.core.errors import InvalidParameterError
from flashsim.core.host import arrive, command_done, heap_pop, heap_push, next_queue, take_command
from flashsim.core.host_queue import HostQueue, one_command_each
from flashsim.core.host_specification import SpecifiedHost
from flashsim.core.request import COMMAND, READ, SECTOR, WRITE, Commands, Integers, Requests, make_requests
from flashsim.core.units import NEVER
from tests.cases import with_each
from tests.flashsim.core.fixed_device import FixedEngine, FixedSpecification, run, service_time


@dataclass(frozen=True)
class Batch:
    """One call of submit, `after` ns before its earliest arrival, and how far to advance before it."""

    requests: Requests
    commands: Commands
    delays: Integers
    wait: int


def split(requests: Requests, most: int) -> Commands:
    """Commands of at most `most` bytes."""
    rows = []
    for row, request in enumerate(requests):
        for start in range(0, int(request["length"]), most):
            rows.append((row, request["offset"] + start, min(most, request["length"] - start)))
    return np.array(rows, COMMAND)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    count = draw(st.integers(0, 8))
    integers = [draw(st.lists(st.integers(0, 9), min_size=count, max_size=count)) for _ in range(4)]
    offsets, lengths, thinks, delays = (np.array(column, np.int64) for column in integers)
    requests = make_requests(draw(st.sampled_from([READ, WRITE])), offsets * SECTOR, (lengths + 1) * SECTOR, think=thinks)
    requests["tag"] = np.arange(count) * 7
    requests["stream"] = draw(st.lists(st.integers(-4, 4), min_size=count, max_size=count))
    for row in range(count):
        requests["dependency"][row] = draw(st.integers(-1, row - 1)) if row else -1
    return Batch(requests, split(requests, draw(st.integers(1, 10)) * SECTOR), delays, draw(st.integers(0, 12)))


@given(st.lists(batches(), min_size=1, max_size=5), st.integers(1, 5), st.integers(1, 3))
def test_the_two_hosts_agree_at_every_step(work: list[Batch], depth: int, queues: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_module, "_FIRST_ROWS", 1)  # so that finished rows are dropped on the way
        engine, specification = FixedEngine(depth, queues), FixedSpecification(depth, queues)
        for batch in work:
            until = engine.now + batch.wait
            for device in (engine, specification):
                device.ids = device.submit(batch.requests, batch.commands, batch.delays + device.now)  # type: ignore[union-attr]
            assert np.array_equal(engine.ids, specification.ids)  # type: ignore[attr-defined]
            done, expected = engine.advance(until), specification.advance(until)
            assert np.array_equal(done, expected)
            assert (engine.now, engine.outstanding) == (specification.now, specification.outstanding)
        assert np.array_equal(run(engine), run(specification))
        assert engine.admitted == specification.admitted
        assert engine.outstanding == 0


@given(st.lists(batches(), min_size=1, max_size=4), st.integers(1, 5), st.integers(1, 3), st.data())
def test_any_split_into_calls_gives_the_same_times(work: list[Batch], depth: int, queues: int, data: st.DataObject) -> None:
    whole, stepped = FixedEngine(depth, queues), FixedEngine(depth, queues)
    parts = []
    start = 1
    for batch in work:
        whole.submit(batch.requests, batch.commands, batch.delays + start)
        while stepped.now < start - 1:
            parts.append(stepped.advance(data.draw(st.integers(stepped.now + 1, start - 1))))
        stepped.submit(batch.requests, batch.commands, batch.delays + start)
        start += batch.wait
    parts.append(run(stepped))
    assert np.array_equal(run(whole), np.concatenate(parts))


@given(batches(), st.integers(1, 5), st.integers(1, 3))
def test_times_follow_their_definitions(batch: Batch, depth: int, queues: int) -> None:
    engine = FixedEngine(depth, queues)
    engine.submit(batch.requests, batch.commands, batch.delays)
    done = run(engine)
    assert sorted(done["id"]) == list(range(len(batch.requests)))
    assert np.array_equal(done["tag"], batch.requests["tag"][done["id"]])
    assert np.all(np.diff(done["completed"]) >= 0)
    by_id = done[np.argsort(done["id"])]
    assert np.all(by_id["submitted"] <= by_id["started"])
    for row, request in enumerate(batch.requests):
        before = request["dependency"]
        due = batch.delays[row] if before < 0 else by_id["completed"][before] + request["think"]
        assert by_id["submitted"][row] == due
        own = batch.commands[batch.commands["request"] == row]
        times = [service_time(int(command["offset"]), int(command["length"])) for command in own]
        assert max(times) <= by_id["completed"][row] - by_id["started"][row]
        if depth == 1:
            assert by_id["completed"][row] - by_id["started"][row] == sum(times)
    order = np.lexsort((by_id["id"], by_id["submitted"]))
    for queue in range(queues):
        own = order[batch.requests["stream"][order] % queues == queue]
        assert np.all(np.diff(by_id["started"][own]) >= 0), "first come, first served"


def waiting_requests() -> tuple[Requests, Commands]:
    """Four that fill each of three queues of depth 4; then five of the first queue, one of three commands and one more, and one."""
    requests = make_requests(READ, 0, np.array([1] * 17 + [3, 1, 1]) * SECTOR)
    requests["stream"] = [0, 1, 2] * 4 + [0] * 5 + [1, 1, 2]
    return requests, split(requests, SECTOR)


#: Once all three are empty at one moment: a command of each in turn, until none waits (2) or all places are taken (1, then 0).
TURNS = [12, 17, 19, 13, 17, 14, 17, 15, 18]


def test_queues_take_turns_command_by_command() -> None:
    requests, commands = waiting_requests()
    host = HostQueue(4, 3)
    host.append(requests, commands, 0)
    for _ in requests:
        arrive(host.tables)
    filled = dispatched(host)
    assert [owner for _, owner in filled] == list(range(12))
    for command, _ in filled:
        command_done(host.tables, command)
    taken = dispatched(host)
    assert [owner for _, owner in taken] == TURNS
    command_done(host.tables, taken[0][0])
    assert [owner for _, owner in dispatched(host)] == [16]


def dispatched(host: HostQueue) -> list[tuple[int, int]]:
    """Commands and their requests, until nothing more may be dispatched."""
    taken = []
    while (queue := next_queue(host.tables)) >= 0:
        command = int(take_command(host.tables, queue))
        taken.append((command, int(host.commands[command].owner)))
    return taken


def test_specified_queues_take_turns_command_by_command() -> None:
    env, admitted = simpy.Environment(), []
    host = SpecifiedHost(env, 4, lambda request, *_: admitted.append(request), queues=3)
    host.append(*waiting_requests(), 0)
    env.run()
    assert [request.id for request in admitted] == list(range(12))
    for request in admitted[:]:
        host.command_done(request)
    env.run()
    assert [request.id for request in admitted[12:]] == TURNS
    host.command_done(admitted[12])
    env.run()
    assert [request.id for request in admitted[21:]] == [16]


@with_each("make", [FixedEngine, FixedSpecification])
@with_each("depth", [1, 2, 3])
def test_a_queue_has_its_depth_for_itself(make: type[FixedEngine], depth: int) -> None:
    requests = make_requests(READ, np.zeros(20, np.int64), SECTOR)
    requests["stream"] = [0] * 17 + [7] * 3  # of two queues the second
    device = make(depth, 2)
    device.submit(requests, one_command_each(requests), 0)
    done = run(device)
    by_id = done[np.argsort(done["id"])]
    assert by_id["started"].tolist() == [2 * (place // depth) for place in (*range(17), *range(3))]


def test_synchronous_requests_wait_for_each_other() -> None:
    engine = FixedEngine(depth=8)
    requests = make_requests(READ, np.zeros(4, np.int64), SECTOR, serial=True, think=10)
    engine.submit(requests, one_command_each(requests), 100)
    assert run(engine)["completed"].tolist() == [102, 114, 126, 138]


def test_long_work_in_small_calls_keeps_its_tables_small() -> None:
    engine, specification = FixedEngine(depth=3), FixedSpecification(depth=3)
    requests = make_requests(READ, np.arange(40) * SECTOR, SECTOR)
    for _ in range(30):
        for device in (engine, specification):
            device.submit(requests, one_command_each(requests), device.now)
        for _ in range(39):  # so that one more is outstanding after each round
            assert np.array_equal(engine.advance(), specification.advance())
    assert engine.outstanding == 30
    assert len(engine.host.tables.requests) < 500, "of 1200"
    assert np.array_equal(run(engine), run(specification))


def test_a_cleared_queue_forgets_and_goes_on() -> None:
    host = HostQueue(depth=2)
    requests = make_requests(READ, np.arange(5) * SECTOR, SECTOR, serial=True)
    host.append(requests, one_command_each(requests), 0)
    host.clear()
    assert host.outstanding == 0
    engine = FixedEngine(depth=2)
    engine.host = host
    ids = engine.submit(requests, one_command_each(requests), 0)
    assert ids.tolist() == [5, 6, 7, 8, 9]
    assert run(engine)["id"].tolist() == ids.tolist()


def backwards(requests: Requests) -> Commands:
    return one_command_each(requests)[::-1]


@with_each("make", [FixedEngine, FixedSpecification])
@with_each(
    ("change", "commands", "at", "parameter"),
    [
        ({}, one_command_each, -1, "at"),
        ({}, one_command_each, NEVER, "at"),
        ({"think": -1}, one_command_each, 0, "think"),
        ({"dependency": 2}, one_command_each, 0, "dependency"),
        ({}, backwards, 0, "commands"),
        ({}, lambda requests: one_command_each(requests)[:2], 0, "commands"),
        ({}, lambda requests: one_command_each(requests)[1:], 0, "commands"),
        ({}, lambda requests: one_command_each(requests)[[0, 2]], 0, "commands"),
    ],
)
def test_impossible_requests_are_refused(make, change, commands, at, parameter) -> None:  # type: ignore[no-untyped-def]
    requests = make_requests(READ, np.arange(3) * SECTOR, SECTOR)
    for name, value in change.items():
        requests[name][-1] = value
    device = make(1)
    with pytest.raises(InvalidParameterError, match=f"^{parameter}: "):
        device.submit(requests, commands(requests), at)
    assert device.outstanding == 0


@pytest.mark.parametrize("make", [FixedEngine, FixedSpecification])
def test_a_host_without_queues_or_room_in_them_is_refused(make: type[FixedEngine]) -> None:
    with pytest.raises(InvalidParameterError, match="depth: 0, but it must be at least 1"):
        make(0)
    with pytest.raises(InvalidParameterError, match="queues: 0, but it must be at least 1"):
        make(1, 0)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans())))
def test_the_heap_yields_the_earliest_first(steps: list[tuple[int, bool]]) -> None:
    heap, size = np.zeros((len(steps), 2), np.int64), 0
    expected: list[tuple[int, int]] = []
    for key, (time, pop) in enumerate(steps):
        if pop and size:
            assert tuple(heap[0]) == min(expected)
            expected.remove(min(expected))
            size = heap_pop(heap, size)
        else:
            expected.append((time, key))
            size = heap_push(heap, size, time, key)
    assert size == len(expected)

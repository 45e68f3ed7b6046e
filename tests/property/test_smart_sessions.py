"""Sessions inside a drive beside requests of the host: runtime and specification agree, and no sequence of commands leaks or hangs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import READ, SECTOR, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import SECONDS
from flashsim.device.smart.inside import Inside
from flashsim.device.smart.protocol import Answer, ProgramSteps, Status, Task, Verb
from flashsim.device.smart.runtime import SmartDrive
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import random_workload
from tests.flashsim.device.smart_specification import SmartSpecification
from tests.property.test_ssd_inside import inside_drive
from tests.tiers import seeds


def drawn_inside(seed: int) -> Inside:
    random = generator(seed, "smart")
    return Inside(
        memory=int(random.choice([8192, 32768, 65536])), cores=int(random.integers(1, 4)), page_work=0, tuple_work=10, column_work=10,
        match_work=10, sessions=int(random.integers(1, 4)), patience=int(random.choice([1000, 10**5, 10**6])),
    )  # fmt: skip


def drawn_task(seed: int, number: int, capacity: int) -> Task:
    """A program with up to 12 steps, some of which fit no drive, ask for too much memory, or fail at a step."""
    random = generator(seed, "task", number)
    count, sectors = int(random.integers(0, 13)), capacity // SECTOR
    lengths = np.minimum(random.integers(1, 17, count), sectors) * (random.random(count) > 0.15)
    offsets = random.integers(0, sectors - lengths + 1, count)
    lengths = lengths + (sectors if random.random() < 0.1 else 0)
    outputs = np.minimum(random.integers(1, 17, count), sectors) * (random.random(count) > 0.6)
    targets = random.integers(0, sectors - outputs + 1, count)
    work, results = 10 * random.integers(0, 30, count), random.integers(0, 700, count)
    steps = ProgramSteps(offsets * SECTOR, lengths * SECTOR, work, results, outputs * SECTOR, targets * SECTOR)
    steps = steps if random.random() < 0.4 else steps._replace(outputs=None, targets=None)
    return Task(
        steps, memory=int(random.choice([0, 1000, 30000])), threads=int(random.integers(1, 4)), parameters=int(random.integers(0, 3000)),
        ahead=int(random.integers(0, 5)), room=int(random.choice([0, 1000, 5000])),
        failure=int(random.integers(0, count)) if count and random.random() < 0.2 else -1,
    )  # fmt: skip


def conversation(drive: SmartDrive, seed: int, requests: int = 20) -> tuple[list[Answer], np.ndarray]:
    """Commands of two hosts who mind no order, one of which goes away, with ordinary requests beside them."""
    random = generator(seed, "conversation")
    host, at = random_workload(seed, drive.model.parameters, requests)  # type: ignore[attr-defined]
    drive.submit(host, one_command_each(host), at)
    heard: list[Answer] = []
    completions = []
    for number in range(int(random.integers(1, 25))):
        for _ in range(int(random.integers(0, 4))):
            own, answers = drive.advance(drive.now + 10 * int(random.integers(0, 200)))
            check_grants(drive)
            heard += answers
            completions.append(own)
        known = [answer.session for answer in heard if answer.verb is Verb.OPEN and not answer.status.is_error]
        session = int(random.choice(known[-2:])) if known and random.random() < 0.9 else number
        verb = Verb(random.choice(["open", "get", "get", "get", "close"]) if known else "open")
        if verb is Verb.OPEN:
            drive.open(drawn_task(seed, number, drive.model.capacity))
        elif verb is Verb.GET:
            drive.get(session, int(random.choice([1, 600, 10**6])))
        else:
            drive.close(session)
    while drive.busy or drive.sessions:
        own, answers = drive.advance()
        assert len(own) or answers or not drive.busy
        heard += answers
        completions.append(own)
    return heard, np.concatenate(completions)


def check_grants(drive: SmartDrive) -> None:
    """No session holds more than it was granted, and all grants are the memory that is not free."""
    for session in drive.sessions.values():
        grant = session.grant
        assert session.reading + len(session.ready) + session.at_work + session.writing <= grant.extents
        assert session.results + session.promised <= grant.room
        assert session.at_work <= grant.threads
    assert drive.free_memory + sum(session.grant.memory for session in drive.sessions.values()) == drive.inside.memory


def both(seed: int) -> list[SmartDrive]:
    parameters = replace(inside_drive(seed), endurance=0)
    return [SmartDrive(SsdEngine(parameters), drawn_inside(seed)), SmartSpecification(SsdSpecification(parameters), drawn_inside(seed))]


@pytest.mark.parametrize("block", seeds(0, 3, deep=11))
def test_models_agree_and_nothing_leaks(block: int) -> None:
    statuses, collected, requests = set(), 0, 10 if block < 3 else 20
    for seed in range(100 * block, 100 * block + 100):
        ours, theirs = both(seed)
        one, other = conversation(ours, seed, requests), conversation(theirs, seed, requests)
        assert one[0] == other[0], f"seed {seed}"
        assert np.array_equal(one[1], other[1]), f"seed {seed}"
        np.testing.assert_equal(ours.statistics(), theirs.statistics())
        for drive in (ours, theirs):
            assert not drive.sessions
            assert drive.free_memory == drive.inside.memory
        reads = make_requests(READ, 0, SECTOR)
        ours.submit(reads, one_command_each(reads), ours.now)
        assert len(ours.advance()[0]) == 1  # host I/O is served afterwards
        assert not any(answer.results for answer in one[0] if answer.status.is_error)
        statuses |= {answer.status for answer in one[0]}
        collected += ours.statistics()["programs_gc"] > 0
    assert statuses == set(Status) and collected


def test_busy_times_agree_where_the_last_transfer_ends_now() -> None:
    """It has no event of its own in the engine; in the specification others of that nanosecond come first."""
    ours, theirs = both(627)
    assert conversation(ours, 627, 20)[0] == conversation(theirs, 627, 20)[0]
    np.testing.assert_equal(ours.statistics(), theirs.statistics())


def row(work: int = 10, results: int = 0, kind: type = np.int64) -> ProgramSteps:
    return ProgramSteps(*(np.array([value], kind) for value in (0, SECTOR, work, results)))


BAD_TASKS = [
    Task(row(work=2**62)),
    Task(row(work=3600 * SECONDS + 1)),
    Task(row(kind=np.float64)),
    Task(row(kind=np.uint64)),
    Task(ProgramSteps(*([0],) * 4)),  # type: ignore[arg-type]
    Task(row()._replace(outputs=np.array([SECTOR]))),
    Task(row(results=-1)),
    Task(row(), failure=1),
    Task(row(), failure=-7),
    Task(row(), memory=0.5),  # type: ignore[arg-type]
    Task(row(), memory=2**70),
]


@pytest.mark.parametrize("task", BAD_TASKS, ids=range(len(BAD_TASKS)))
def test_a_bad_program_is_not_opened(task: Task) -> None:
    for drive in both(0):
        drive.open(task)
        assert drive.advance()[1][0].status is Status.BAD_PROGRAM
        assert drive.free_memory == drive.inside.memory


def test_parameters_lie_in_the_program_s_memory() -> None:
    for drive in both(0):
        memory, answers = drive.inside.memory, []
        for task in (Task(row(), memory, parameters=2 * memory), Task(row(), 1000, parameters=3000)):
            drive.open(task)
            answers += drive.advance()[1]
        assert [answer.status for answer in answers] == [Status.NO_MEMORY, Status.DONE]
        grant = drive.sessions[0].grant
        assert grant.memory == 3000 + grant.extents * SECTOR + grant.room
        with pytest.raises(InvalidParameterError, match="most: -5"):
            drive.get(0, -5)

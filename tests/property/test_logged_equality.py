"""A compiled system with a log and its SimPy specification ask devices for the same, and the same would survive a crash at any time."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from algorithms.restart.base import RESTARTS, restart_design
from flashsim.core.errors import FlashsimError
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import SECTOR
from flashsim.core.rng import generator
from flashsim.core.units import NEVER
from flashsim.device.station.engine import StationEngine
from flashsim.device.station.specification import StationSpecification
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.execution.pooled.logging_design import Logging
from flashsim.execution.pooled.run import PoolRun
from flashsim.execution.pooled.system import COUNTED, SSD, PoolSystem
from flashsim.experiments.crashing.histories import drawn_history
from flashsim.storage.log.durable import Durable, DurableWrite
from flashsim.storage.log.records import Record, Version
from flashsim.storage.log.recovery import Recovery
from flashsim.testing.pools import Drawn, drawn_system

EVENTS, CRASHES = 4000, 6


def plain(write: DurableWrite) -> tuple[int, tuple[Any, ...]]:
    """A write without contents of pages and values of rows."""
    return write.target, tuple((key, without_contents(each)) for key, each in write.items)


def without_contents(each: Any) -> Any:
    if isinstance(each, Version):
        return each._replace(rows=())
    if not isinstance(each, Record):
        return each
    entries = tuple(entry._replace(hardened=0) for entry in each.entries)
    return replace(each, rows=(), row=0, before=0, after=0, entries=entries, active=tuple(sorted(each.active)))


def compare(specification: LoggedSpecification, run: PoolRun, where: Any) -> Durable:
    """The same would survive; returns it."""
    durable, (image, outstanding) = specification.durable, run.image()
    for each in ("disk", "ssd"):
        ours, theirs = getattr(image, each), getattr(durable, each)
        assert [ours[key]._replace(rows=()) for key in theirs] == [value._replace(rows=()) for value in theirs.values()], (where, each)
    frames, pages = specification.system.ssd, specification.system.pages
    assert np.count_nonzero([image.on_disk(page + FIRST_PAGE).lsn for page in range(pages)]) == len(durable.disk), where
    assert [image.entry(frame) for frame in range(frames)] == [durable.entry(frame) for frame in range(frames)], where
    assert (image.boot, image.first, image.end) == (durable.boot, durable.first, durable.end), where
    expected = [plain(write) for write in specification.writes.outstanding.values()]
    assert sorted(map(plain, outstanding), key=repr) == sorted(expected, key=repr), where
    records = specification.log.records[durable.first - 1 :]
    assert [image.record(lsn) for lsn in range(durable.first, durable.first + len(records))] == list(map(without_contents, records)), where
    return image


def check(specification: LoggedSpecification, run: PoolRun, seed: Any, crashes: int = CRASHES, shuts_down: int = 0) -> Durable | None:
    """Both do the same, and the same would survive, at some times up to a number of events; returns what does, unless the log is full."""
    env, asked = specification.env, specification.devices
    events, image = 0, None
    for part in range(1, crashes + 1):
        try:
            while events < EVENTS * part // CRASHES and env.peek() < NEVER:
                env.step()
                events += 1
            until = int(env.now)
            env.run(until + 1)
        except FlashsimError as problem:
            run.run(int(env.now))
            with pytest.raises(FlashsimError, match=re.escape(str(problem))):
                run.check_log()
            return None
        run.run(until)
        requests = run.requests
        assert [row[:5] for row in requests.tolist()] == asked.requests, (seed, part)
        assert requests.cause.tolist() == asked.causes, (seed, part)
        counted = {name: run.counts[name] for name in COUNTED[:-3]}
        assert counted == {name: specification.counts[name] for name in counted}, (seed, part)
        image = compare(specification, run, (seed, part))
        if part == shuts_down:
            specification.shut_down()
            run.shut_down()
    assert run.tables.log.scalars.needed == specification.log.needed, seed
    assert run.is_down == specification.is_down, seed
    return image


def restarted(durable: Durable, logging: Logging, system: PoolSystem) -> Recovery:
    recovery = Recovery(durable, logging.restart, system.ssd, 3, image=system.page_size if logging.images else 0)
    for _ in recovery.writes():
        pass
    return recovery


def check_history(seed: int) -> int:
    """A drawn history, crashed twice in its midst, whose devices reorder; returns the records."""
    name = RESTARTS.names()[seed // 6 % len(RESTARTS.names())]
    history = drawn_history(seed, name)
    system, logging = history.parts()
    logging = replace(logging, flush_writes=1 + seed % 3, tears=seed % 5 == 0)
    specified = engine = None
    ended = 0
    for crashes in (1, 1, CRASHES):
        engines = {purpose: StationEngine(each) for purpose, each in history.stations().items()}
        run = PoolRun(system, engines, history.stream(ended), request_rows=1 << 14, logging=logging, recovered=engine)
        devices = {purpose: ([StationSpecification(each)], each.capacity) for purpose, each in history.stations().items()}
        specification = LoggedSpecification(system, devices, history.stream(ended), logging, specified)
        image = check(specification, run, (seed, ended), crashes, seed % CRASHES if crashes == CRASHES else 0)
        assert image is not None
        ended += specification.counts["transactions"]
        specified = restarted(specification.durable.copy(), logging, system)
        engine = restarted(image, logging, system)
        for part in ("frame_of", "dirty", "losers", "changed", "phases"):
            assert getattr(engine, part) == getattr(specified, part), (seed, part)
    return len(specification.log.records)


def check_system(seed: int) -> None:
    """A drawn system of pools with SSDs, disks and arrays."""
    draw = generator(seed, "logging")
    while True:
        system, engines, specified = drawn_system(seed)
        room = specified[SSD][1] if SSD in specified else NEVER
        if (SSD not in specified or len(specified[SSD][0]) == 1) and system.ssd * system.page_size + 16 * SECTOR * system.ssd <= room:
            break
        seed += 10_000
    logging = Logging(
        restart_design(str(draw.choice(RESTARTS.names()))), aborts=int(draw.choice([0, 20])), indirect=int(draw.choice([0, 3000, 100_000])),
        batch=int(draw.integers(1, 20)), chunk=int(draw.integers(1, 30)), pause=int(2 ** draw.uniform(3, 20)),
        flush_writes=int(draw.integers(1, 4)), without=("force-unit-access",) if seed % 2 else (), tears=seed % 3 == 0,
    )  # fmt: skip
    stream = Drawn(system.pages, seed)
    specification = LoggedSpecification(system, specified, stream, logging)
    check(specification, PoolRun(system, engines, stream, request_rows=1 << 16, logging=logging), seed)


@pytest.mark.parametrize("seed", range(0, 72, 3))
def test_histories_are_equal(seed: int) -> None:
    assert check_history(seed) > 20


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
def test_hundreds_of_histories_are_equal(part: int) -> None:
    for seed in range(100 + 25 * part, 125 + 25 * part):
        check_history(seed)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
def test_hundreds_of_systems_are_equal(part: int) -> None:
    for seed in range(30 * part, 30 * part + 30):
        check_system(seed)

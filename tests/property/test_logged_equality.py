"""A compiled system with a log and its SimPy specification ask devices for the same, and the same would survive a crash at any time."""

from __future__ import annotations

import re
from typing import Any

import pytest

from algorithms.restart.base import RESTARTS, restart_design
from flashsim.core.errors import FlashsimError
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import SECTOR
from flashsim.core.rng import generator
from flashsim.core.units import NEVER
from flashsim.device.station.engine import StationEngine
from flashsim.execution.pooled import tables as at
from flashsim.execution.pooled.log_image import image_of, records_of
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.execution.pooled.logging_design import Logging
from flashsim.execution.pooled.run import PoolRun
from flashsim.execution.pooled.system import COUNTED, SSD
from flashsim.storage.log import durable as survives
from flashsim.storage.log.durable import Write
from flashsim.storage.log.records import FREE, Record
from flashsim.studies.crashing.histories import drawn_history
from tests.property.test_pooled_equality import Drawn, drawn_system

EVENTS, CRASHES = 4000, 6


def flat(record: Record) -> tuple[int, ...]:
    """A record as `records_of` has it."""
    payload = [each for active in sorted(record.active) for each in (*active, 0)]
    for frame, entry in enumerate(record.entries, record.frame):
        payload += [frame, *entry[:3]] if entry.state != FREE else []
    return record.kind, record.transaction, record.chain, record.page, record.previous, record.lsn, record.frame, *payload


def written(write: Write) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """A write as `image_of` has it."""
    match write.target:
        case survives.PAGES:
            rows = tuple((page, version.lsn) for page, version in write.items)
        case survives.FRAMES:
            rows = tuple((frame, version.page, version.lsn) for frame, version in write.items)
        case survives.LOG:
            rows = tuple((lsn,) for lsn, _ in write.items)
        case _:
            rows = tuple((key, *value) for key, value in write.items)
    return write.target, rows


def compare(specification: LoggedSpecification, run: PoolRun, where: Any) -> None:
    durable, image = specification.durable, image_of(run)
    pages = range(FIRST_PAGE, FIRST_PAGE + specification.system.pages)
    assert image.disk.tolist() == [durable.on_disk(page).lsn for page in pages], where
    versions = [durable.in_frame(frame) for frame in range(specification.system.ssd)]
    assert image.frames.tolist() == [[each.page, each.lsn] for each in versions], where
    assert image.table.tolist() == [list(durable.entry(frame)) for frame in range(specification.system.ssd)], where
    assert (image.boot, image.first, image.end) == (durable.boot, durable.first, durable.end), where
    assert image.outstanding == tuple(sorted(map(written, specification.outstanding.values()))), where
    assert records_of(run) == [flat(record) for record in specification.log.records[durable.first - 1 :]], where


def full(specification: LoggedSpecification, run: PoolRun, problem: FlashsimError) -> int:
    """Both find the log full; returns the records."""
    with pytest.raises(FlashsimError, match=re.escape(str(problem))):
        run.run(int(specification.env.now))
    return len(specification.log.records)


def check(specification: LoggedSpecification, run: PoolRun, seed: Any) -> int:
    """Both do the same, and the same would survive, at some times up to a number of events or the end; returns the records."""
    env, asked = specification.env, specification.devices
    events = 0
    for part in range(1, CRASHES + 1):
        while events < EVENTS * part // CRASHES and env.peek() < NEVER:
            try:
                env.step()
            except FlashsimError as problem:
                return full(specification, run, problem)
            events += 1
        until = int(env.now)
        try:
            env.run(until + 1)
        except FlashsimError as problem:
            return full(specification, run, problem)
        run.run(until)
        requests = run.requests
        assert requests[:, : at.AFTER].tolist() == [list(each) for each in asked.requests], (seed, part)
        assert requests[:, at.AFTER].tolist() == asked.causes, (seed, part)
        counted = dict(zip(COUNTED[:-3], run.tables.series.sum(0).tolist(), strict=False))
        assert counted == {name: specification.counts[name] for name in counted}, (seed, part)
        compare(specification, run, (seed, part))
    return len(specification.log.records)


def check_history(seed: int) -> int:
    """A drawn history of a crash, whose devices reorder."""
    name = RESTARTS.names()[seed // 6 % len(RESTARTS.names())]
    history = drawn_history(seed, name)
    system, logging = history.parts()
    engines = {purpose: StationEngine(each) for purpose, each in history.stations().items()}
    run = PoolRun(system, engines, history.stream(), request_rows=1 << 14, logging=logging)
    return check(history.build(), run, seed)


def check_system(seed: int) -> int:
    """A drawn system of pools with SSDs, disks and arrays."""
    draw = generator(seed, "logging")
    while True:
        system, engines, specified = drawn_system(seed)
        room = specified[SSD][1] if SSD in specified else NEVER
        if (SSD not in specified or len(specified[SSD][0]) == 1) and system.ssd * system.page_size + 16 * SECTOR * system.ssd <= room:
            break
        seed += 10_000
    logging = Logging(
        restart_design(str(draw.choice(RESTARTS.names()))), int(draw.choice([0, 20])), int(draw.choice([0, 3000, 100_000])),
        int(draw.integers(1, 20)), int(draw.integers(1, 30)), int(2 ** draw.uniform(3, 20)),
    )  # fmt: skip
    stream = Drawn(system.pages, seed)
    specification = LoggedSpecification(system, specified, stream, logging)
    return check(specification, PoolRun(system, engines, stream, request_rows=1 << 16, logging=logging), seed)


@pytest.mark.parametrize("seed", range(0, 48, 2))
def test_histories_are_equal(seed: int) -> None:
    assert check_history(seed) > 20


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_hundreds_of_histories_are_equal(part: int) -> None:
    for seed in range(100 + 25 * part, 125 + 25 * part):
        check_history(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_hundreds_of_systems_are_equal(part: int) -> None:
    for seed in range(30 * part, 30 * part + 30):
        check_system(seed)

"""Compiled analysis and redo keep and do what recovery in plain Python does, and their memory does not grow with the log."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import numpy as np
import pytest

from algorithms.restart.base import restart_design
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import Integers
from flashsim.core.rng import generator
from flashsim.storage.log import records as log
from flashsim.storage.log.durable import Durable, Read
from flashsim.storage.log.recovery import Recovery, RedoFailureError
from flashsim.storage.log.scan import RECORD, LogScan, Records, entries, table
from flashsim.studies.crashing.histories import drawn_history
from flashsim.studies.crashing.injection import CrashReport, Injection
from tests.benchmarks.yardstick import loop_slowness


def scan_of(durable: Durable, batch: int) -> LogScan:
    """The log that recovery reads, in batches."""
    boot = durable.boot
    first = max(1, min(boot.oldest_dirty, boot.begin))
    logged = [durable.log[lsn] for lsn in range(first, durable.end)]
    records = np.array([(each.kind, each.transaction, each.chain, each.page, each.previous, each.lsn) for each in logged], RECORD)
    behind = [record for lsn, record in sorted(durable.log.items()) if lsn > boot.begin and record.kind == log.TRANSACTIONS]
    active = behind[0].active if behind else ()
    rows = np.array([(number, last) for number, _, last in active], np.int64).reshape(-1, 2) if boot.begin > 1 else None

    def batches() -> Iterator[tuple[int, Records]]:
        for place in range(0, len(records), batch):
            yield first + place, records[place : place + batch]

    return LogScan(batches, rows)


@pytest.mark.parametrize("seed", range(6))
def test_both_recover_alike(seed: int) -> None:
    """At crash points of drawn histories: the same dirty pages, losers, records done again, and versions."""
    injection, compared = Injection(drawn_history(seed, "none"), CrashReport("none", ())), 0
    for _, _, durable in injection.points(injection.history.build()):
        recovery, scan = Recovery(durable, restart_design("none"), 0, 1000), scan_of(durable, 1 + seed * 7)
        assert all(isinstance(step, Read) for step in recovery.analyse())
        scan.analyse()
        assert entries(scan.pages).tolist() == [[page, *kept] for page, kept in sorted(recovery.dirty.items())]
        assert entries(scan.transactions)[:, :2].tolist() == [list(each) for each in sorted(recovery.losers.items())]
        assert scan.scanned == recovery.phases.records_scanned
        assert all(isinstance(step, Read) for step in recovery.redo())
        versions = scan.redo(lambda pages, left=durable: np.array([left.on_disk(page).lsn for page in pages.tolist()], np.int64))
        assert versions.tolist() == [[page, recovery.pages[page].lsn] for page in sorted(recovery.dirty)]
        assert scan.redone == recovery.phases.records_redone
        compared += len(versions) > 0
    assert compared > 20


def drawn_log(records: int, pages: int) -> Records:
    """Updates of drawn pages, each with the one before, and what reached the disk."""
    draw = generator(1, "log")
    made = np.zeros(records, RECORD)
    made["kind"] = draw.choice([log.UPDATE, log.BUF_WRITE], records, p=[0.8, 0.2])
    made["page"], made["transaction"] = draw.integers(0, pages, records), draw.integers(0, 1000, records)
    updates = np.flatnonzero(made["kind"] == log.UPDATE)
    by_page = updates[np.argsort(made["page"][updates], kind="stable")]
    same = made["page"][by_page[1:]] == made["page"][by_page[:-1]]
    made["previous"][by_page[1:][same]] = by_page[:-1][same] + 1
    made["lsn"] = np.where(made["kind"] == log.BUF_WRITE, np.arange(records), 0)
    return made


def check(records: Records) -> LogScan:
    """Analysis and redo of a log in batches, of pages that were read as they were before the first record that is kept."""
    scan = LogScan(lambda: ((place + 1, records[place : place + (1 << 20)]) for place in range(0, len(records), 1 << 20)))
    scan.analyse()
    kept = entries(scan.pages)

    def read(pages: Integers) -> Integers:
        return records["previous"][kept[np.searchsorted(kept[:, 0], pages), 1] - 1]

    versions = scan.redo(read)
    assert np.array_equal(versions, kept[:, [0, 2]])
    return scan


def test_tables_grow_with_pages_and_not_with_the_log() -> None:
    few, many = check(drawn_log(200_000, 500)), check(drawn_log(400_000, 500))
    assert few.pages.rows.shape == many.pages.rows.shape == table().rows.shape
    assert check(drawn_log(100_000, 50_000)).pages.rows.shape > few.pages.rows.shape


@pytest.mark.deep
def test_ten_million_records_are_recovered() -> None:
    check(drawn_log(1000, 20))  # compiled
    records = drawn_log(10_000_000, 2_000_000)
    start = process_time()
    assert check(records).redone > 1_000_000
    assert process_time() - start < 10 * loop_slowness()


def test_what_is_missing_is_said() -> None:
    records = drawn_log(1000, 20)
    scan = LogScan(lambda: [(1, records)])
    scan.analyse()
    with pytest.raises(RedoFailureError, match=r"record \d+: page \d+ is not at"):
        scan.redo(lambda pages: np.full(len(pages), -7))
    with pytest.raises(InvalidParameterError, match="records of a log"):
        LogScan(lambda: [(1, np.zeros(3))]).analyse()  # type: ignore[list-item]

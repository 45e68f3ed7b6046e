"""A log that takes no time changes nothing: the same requests at the same nanoseconds as without one; and what a log needs is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import simpy

from algorithms.restart.base import restart_design
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.units import NEVER
from flashsim.device.station.specification import StationSpecification
from flashsim.execution.pooled.frame_table import FrameTable
from flashsim.execution.pooled.log_writer import LogWriter
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.execution.pooled.logging_design import Logging
from flashsim.execution.pooled.specification import PoolSpecification
from flashsim.execution.pooled.system import DISK, LOG, SSD
from flashsim.experiments.crashing.histories import CHECKPOINTS, EXTENSIONS, drawn_history
from flashsim.storage.log.durable import Durable, DurableWrite
from flashsim.storage.log.records import BEGIN, CLEAN, FREE, SSD_PRE_WRITE_INVALIDATE, Entry, Record, Version
from flashsim.storage.log.recovery import REPLACED, Recovery


def devices(history: Any) -> dict[int, Any]:
    """Its disk and its SSD, and no device for a log."""
    stations = history.stations()
    return {purpose: ([StationSpecification(stations[purpose])], stations[purpose].capacity) for purpose in (DISK, SSD)}


@pytest.mark.parametrize("seed", range(24))
def test_a_log_that_takes_no_time_changes_no_request(seed: int) -> None:
    history = drawn_history(seed, "none", (), EXTENSIONS[seed % 2], CHECKPOINTS[seed // 2 % 2])
    drawn = history.build()
    system, stream = drawn.system, drawn.stream
    plain = PoolSpecification(system, devices(history), stream)
    logged = LoggedSpecification(system, devices(history), stream, Logging(restart_design("none")))
    until = 0
    for _ in range(3000):
        if plain.env.peek() == NEVER:
            break
        plain.env.step()
        until = int(plain.env.now)
    plain.env.run(until + 1)
    logged.env.run(until + 1)
    assert logged.devices.requests == plain.devices.requests and logged.devices.completed == plain.devices.completed
    assert logged.counts == plain.counts and len(plain.devices.requests) > 5


def test_an_ssd_without_room_for_its_table_is_refused() -> None:
    history = drawn_history(4, "mmr")
    drawn = history.build()
    stations = history.stations()
    small = drawn.system.ssd * drawn.system.page_size
    few = {purpose: ([StationSpecification(replace(stations[purpose], capacity=small))], small) for purpose in (DISK, SSD)}
    with pytest.raises(InvalidParameterError, match="frames and their table need"):
        LoggedSpecification(drawn.system, few, drawn.stream, Logging(restart_design("mmr")))


@pytest.mark.parametrize("checkpoint", [1 << 40, 1 << 9])
def test_a_log_is_refused_if_its_device_ever_lacks_a_record_that_recovery_may_need(checkpoint: int) -> None:
    """Also while the write that takes its sectors is outstanding, where times do not depend on places on the log's device."""
    history = drawn_history(17, "none")
    drawn = history.build()
    station = replace(history.stations()[LOG], exponential=False)

    def run(room: int) -> tuple[int, bool]:
        few = devices(history) | {LOG: ([StationSpecification(station)], room)}
        system = replace(drawn.system, checkpoint=checkpoint)
        logged, lacks = LoggedSpecification(system, few, history.stream(), Logging(restart_design("none"))), False
        try:
            while logged.env.peek() < 1 << 17:
                before = logged.writes.count
                logged.env.step()
                if logged.writes.count != before:
                    after = logged.durable.copy()
                    for write in logged.writes.outstanding.values():
                        after.apply(write)
                    lacks = lacks or after.first_overwritten(after.first, after.end) > 0
        except FlashsimError as problem:
            assert lacks
            match = re.fullmatch(
                r"log: (\d+) B, but records that recovery may need take (\d+) B in this run; checkpoint more often", str(problem)
            )
            assert match and int(match[1]) == room < int(match[2])
            return int(match[2]), True
        assert not lacks
        return logged.log.needed, False

    least, _ = run(1 << 20)
    assert run(2048)[1] and not run(least)[1] and [run(least + each)[1] for each in (-1, -1024)] == [True, True]


def written_table(frames: int, restart: str, log: LogWriter) -> tuple[FrameTable, list[tuple[DurableWrite, Callable[[], object]]]]:
    """A frame table, and what it has written, with what follows when that has completed."""
    sent: list[tuple[DurableWrite, Callable[[], object]]] = []
    logging = Logging(restart_design(restart))
    return FrameTable(
        simpy.Environment(), logging, frames, log, lambda write, _, __, then: sent.append((write, then)), lambda frame: False
    ), sent


def test_a_page_waits_until_it_is_hardened_that_it_left_each_of_its_frames() -> None:
    """It was replaced in a frame, and has been modified since it was written to another one, whose sector is written sooner."""
    table, sent = written_table(20, "mmr", LogWriter(None, 0, Durable(1)))
    table.set(0, Entry(CLEAN, 9, 3))
    table.free(0, REPLACED)
    table.set(15, Entry(CLEAN, 9, 3))
    table.invalidate(9, 4)
    assert len(sent) == 2 and not table.is_page_hardened(9) and table.is_page_hardened(8)
    sent[1][1]()
    assert not table.is_page_hardened(9)
    sent[0][1]()
    assert table.is_page_hardened(9)


def test_a_page_that_is_written_to_another_frame_leaves_its_former_one() -> None:
    table, sent = written_table(20, "mmr", LogWriter(None, 0, Durable(1)))
    table.set(0, Entry(CLEAN, 9, 3))
    table.leave(9)
    assert table.entry(0).state == FREE and len(sent) == 1 and not table.is_page_hardened(9)


def test_hardened_entries_name_the_last_record_that_is_durable() -> None:
    """Records that a crash takes lend their numbers to others, of which recovery would believe that the entry is newer."""
    log = LogWriter(lambda *_: None, 1 << 20, Durable(1))
    table, sent = written_table(2, "lrr", log)
    for _ in range(3):
        log.append(Record(BEGIN))
    table.flush_after(0)
    table.env.run(1)
    assert [entry.hardened for _, entry in sent[0][0].items] == [0, 0]


def test_a_frame_of_a_page_that_recovery_finds_twice_is_hardened_or_logged_before_it_is_used_again() -> None:
    for name in ("mmr", "lrr"):
        history = drawn_history(1, name, extension="dw")
        table, pages = {0: Entry(CLEAN, 9, 0), 1: Entry(CLEAN, 9, 0)}, {0: Version(9, 0, (0,) * 4), 1: Version(9, 0, (0,) * 4)}
        recovery = Recovery(Durable(4, ssd=pages, table=table), restart_design(name), history.frames, 3)
        assert all(writes for writes in recovery.writes())
        (left,) = {0, 1} - recovery.entries.keys()
        assert recovery.durable.entry(left).state == (FREE if name == "mmr" else CLEAN)
        system = history.build(recovery)
        system.contents[10] = Version(10, 0, (0,) * 4)
        system._ask_frame(10, left)
        kinds = [record.kind for record in system.log.records]
        assert kinds == ([SSD_PRE_WRITE_INVALIDATE] if name == "lrr" else [])

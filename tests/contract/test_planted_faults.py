"""Faults planted in what hardens, writes and recovers are found by as many histories as a search draws unless told otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from flashsim.execution.pooled.frame_table import FrameTable, Hardening
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.experiments.crashing.histories import CrashHistory
from flashsim.experiments.crashing.injection import exhaustive
from flashsim.operations.face.pool_crash import _HISTORIES
from flashsim.storage.log.records import CLEAN, FREE_ENTRY
from flashsim.storage.log.recovery import MODIFIED, Recovery

#: Guards of restart designs that are switched off together.
GUARDS = [
    ("mmr", ("harden-replacement",)),
    ("mmr", ("harden-before-reuse",)),
    ("mmr", ("harden-before-write",)),
    ("mmr", ("both-writes",)),
    ("lbr", ("harden-replacement",)),
    ("lbr", ("harden-before-reuse",)),
    ("lbr", ("update-invalidates",)),
    ("lvr", ("page-id",)),
    ("lvr", ("page-lsn",)),
    ("lvr", ("checksum",)),
    ("lrr", ("harden-replacement",)),
    ("lrr", ("hardened-in-log", "complete-pass")),
    ("none", ("log-before-disk",)),
    ("none", ("writes-in-flight",)),
]


def free_without_page(self: FrameTable, frame: int, change: int) -> Hardening:
    page = self.entry(frame).page
    self.set(frame, FREE_ENTRY)
    hardening = self.harden(change, frame)
    if change == MODIFIED:
        self._of_page[page] = [hardening]
    return hardening


def free_without_record(self: FrameTable, frame: int, change: int) -> Hardening:
    freed = self._freed.copy()
    hardening = FREE(self, frame, change)
    self._freed = freed
    return hardening


def forget_all(self: LoggedSpecification, version: Any) -> None:
    self.changes.pop(version.page, None)


def after_restart_clean(self: Recovery, pages: int) -> Any:
    return ((frame, entry._replace(state=CLEAN), False) for frame, entry in self.entries.items())


def with_a_small_log(self: CrashHistory, *parts: Any, **logged: Any) -> LoggedSpecification:
    return BUILD(self, *parts, log_size=4096, **logged)


BUILD, FREE = CrashHistory.build, FrameTable.free
#: Restart designs, and what is put in the place of what: an object, its attribute, and the other.
PLANTED = {
    "a replaced page does not wait (as in the thesis)": ("mmr", FrameTable, "free", free_without_page),
    "a frame that a clean page left is used before the log says so": ("lbr", FrameTable, "free", free_without_record),
    "the same, of entries that are written when it is convenient": ("lrr", FrameTable, "free", free_without_record),
    "a page on disk forgets changes that came later": ("lvr", LoggedSpecification, "_forget_changes", forget_all),
    "no page waits for entries": ("mmr", FrameTable, "is_page_hardened", lambda self, page: True),
    "frames that are overwritten wait for no entry": ("mmr", FrameTable, "is_durable", lambda self, hardening: True),
    "after a restart no frame is newer than the disk": ("lbr", Recovery, "warm_frames", after_restart_clean),
    "the log overwrites records that recovery needs": ("lvr", CrashHistory, "build", with_a_small_log),
}


@pytest.mark.deep
@pytest.mark.parametrize(("restart", "without"), GUARDS)
def test_a_guard_that_is_off_is_found_in_the_default_budget(restart: str, without: tuple[str, ...]) -> None:
    assert exhaustive(restart, _HISTORIES, without=without, limit=0).violations


@pytest.mark.deep
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found_in_the_default_budget(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    restart, where, name, other = PLANTED[fault]
    monkeypatch.setattr(where, name, other)
    assert exhaustive(restart, _HISTORIES, limit=0).violations


def test_a_frame_that_a_clean_page_left_waits_for_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not exhaustive("lbr", 1, 4, limit=0).violations
    monkeypatch.setattr(FrameTable, "free", free_without_record)
    assert exhaustive("lbr", 1, 4, limit=0).violations

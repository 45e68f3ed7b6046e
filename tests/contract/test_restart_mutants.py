"""Thirty-two mutants of recovery and of what it rests on, each of which crashes of drawn histories tell from the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECOVERY, LOGGED = "flashsim/storage/log/recovery.py", "flashsim/execution/pooled/logged.py"
#: What a mutant does, where, and the text that stands for another.
MUTANTS = {
    "redo leaves out the first record of a page": (
        RECOVERY,
        "lsn < self.dirty.get(record.page, (self.end, 0))[0]",
        "lsn <= self.dirty.get(record.page, (self.end, 0))[0]",
    ),
    "a torn page is mended by a later version": (RECOVERY, "Version(record.page, record.previous,", "Version(record.page, lsn,"),
    "redo repeats what a page has": (RECOVERY, "if version.lsn < lsn:", "if version.lsn <= lsn:"),
    "undo follows the log and not the transaction": (RECOVERY, "following = record.chain", "following = lsn - 1"),
    "BUF_WRITE is compared with the first change": (
        RECOVERY,
        "self.dirty.get(record.page, (0, lsn))[1] <= record.lsn",
        "self.dirty.get(record.page, (0, lsn))[0] <= record.lsn",
    ),
    "winners are undone": (RECOVERY, "self.losers.pop(record.transaction, None)", "pass"),
    "a checkpoint's transactions are forgotten": (
        RECOVERY,
        "self.losers |= {number: max(last, self.losers.get(number, 0)) for number, _, last in record.active}",
        "pass",
    ),
    "undo does again": (
        RECOVERY,
        "yield from self._change(last[transaction], compensation, record.before)",
        "yield from self._change(last[transaction], compensation, record.after)",
    ),
    "changed pages leave memory before their records": (
        RECOVERY,
        "            yield from self._force()\n            yield DurableWrite(PAGES",
        "            yield DurableWrite(PAGES",
    ),
    "changed pages leave memory unwritten": (RECOVERY, "sorted(self.changed & leaving.keys())", "sorted(leaving.keys() - self.changed)"),
    "analysis begins at the checkpoint": (
        RECOVERY,
        "max(1, min(self.durable.boot.oldest_dirty, self.durable.boot.begin))",
        "max(1, self.durable.boot.begin)",
    ),
    "a redone page's copy on the SSD stays valid": (
        RECOVERY,
        "(frame := self.frame_of.get(record.page)) is not None:\n            self.drop(frame)",
        "(frame := self.frame_of.get(record.page)) is not None and False:\n            self.drop(frame)",
    ),
    "losers do not end": (RECOVERY, "self._append(Record(log.ABORT, transaction, last[transaction]))", "pass"),
    "nothing is redone": (RECOVERY, "yield from self.redo()", "yield from ()"),
    "nothing is undone": (RECOVERY, "yield from self._undo()", "yield from ()"),
    "after a restart changed pages count as clean": (LOGGED, "self.memory.resident[page] = True", "pass"),
    "after a restart checkpoints forget changed pages": (LOGGED, "self.changes[page] = list(recovered.dirty[page])", "pass"),
    "after a restart dirty frames count as clean": (RECOVERY, "entry.state == DIRTY and entry.page in self.dirty", "False"),
    "the log keeps the last record of a transaction": (
        LOGGED,
        "min((first for _, first, _ in active)",
        "min((last for _, first, last in active)",
    ),
    "an older version in a frame is believed": (RECOVERY, "(version.lsn != entry.lsn and", "(version.lsn > entry.lsn and"),
    "redo leaves a frame valid in the table's file": (RECOVERY, "if self.restart.hardens.get(MODIFIED) == IN_TABLE:", "if False:"),
    "a crash after a shutdown counts as another": (
        RECOVERY,
        'if self.durable.boot.is_shut_down and self.has("shutdown-ends"):',
        "if False:",
    ),
    "frames are not verified after a shutdown": (
        RECOVERY,
        "                self.verify(frame)\n        frames",
        "                pass\n        frames",
    ),
    "entries older than the log are believed": (
        "algorithms/restart/lvr.py",
        "max(entry.lsn, entry.hardened) >= boot.truncation",
        "max(entry.lsn, entry.hardened) + 8 >= boot.truncation",
    ),
    "an entry older by a record than what analysis reads is believed": (
        "algorithms/restart/lrr.py",
        "entry.hardened + 1 >= recovery.first_scanned",
        "entry.hardened + 2 >= recovery.first_scanned",
    ),
    "a copy older by a record than the disk is believed": (
        "algorithms/restart/lrr.py",
        "lsn > recovery.entries[frame].lsn:",
        "lsn > recovery.entries[frame].lsn + 1:",
    ),
    "after a restart a newer frame's first change is forgotten": (
        LOGGED,
        "[recovered.dirty[entry.page][0], entry.lsn]",
        "[entry.lsn, entry.lsn]",
    ),
    "the boot page is written before the checkpoint's end": (
        LOGGED,
        "yield from self._until_logged(self.log.append(Record(records.END_CHECKPOINT)))",
        "self.log.append(Record(records.END_CHECKPOINT))",
    ),
    "the log is truncated before the boot page is written": (LOGGED, "            yield written\n        else:", "        else:"),
    "the log is truncated at the checkpoint": (LOGGED, "self.writes.truncate(boot.truncation)", "self.writes.truncate(boot.begin)"),
    "a frame is free one record too early": (
        LOGGED,
        "self.table.invalidate(page, len(self.log.records) + 1)",
        "self.table.invalidate(page, len(self.log.records))",
    ),
    "a record is durable one too early": (LOGGED, "self._until(lambda: lsn < self.log.end)", "self._until(lambda: lsn <= self.log.end)"),
}
SEARCH = """
from flashsim.experiments.crashing.injection import exhaustive
from tests.contract import test_restart as tests
tests.test_verification_believes_an_entry_of_the_very_version_that_its_frame_holds()
tests.test_after_a_shutdown_frames_are_verified_when_they_are_read()
tests.test_entries_are_believed_if_every_record_since_they_were_written_is_there()
tests.test_a_copy_older_by_one_record_than_the_disk_is_not_believed()
for name in tests.NAMES:
    contract = tests.TestRestarts()
    contract.member = name
    contract.test_recovery_writes_no_page_before_the_records_that_changed_it()
    for seed, extension in ((7, "dw"), (49, "lc"), (3014, "dw")):
        assert not exhaustive(name, 1, seed, extension=extension, checkpoints="fuzzy", limit=0).violations
    assert not exhaustive(name, 20, limit=0).violations
    assert not exhaustive(name, 2, tears=True, limit=0).violations
"""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_text_of_each_mutant_stands_in_its_file_once(mutant: str) -> None:
    file, text, _ = MUTANTS[mutant]
    assert (ROOT / file).read_text().count(text) == 1


@pytest.mark.deep
def test_without_a_mutant_nothing_is_found() -> None:
    exec(SEARCH, {})


@pytest.mark.deep
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_told(mutant: str, tmp_path: Path) -> None:
    """A violation is found, or recovery fails."""
    file, text, other = MUTANTS[mutant]
    for package in ("flashsim", "models", "algorithms", "traces"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    source = (tmp_path / file).read_text()
    assert source.count(text) == 1
    (tmp_path / file).write_text(source.replace(text, other))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, ROOT)))}
    result = subprocess.run([sys.executable, "-c", SEARCH], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stdout + result.stderr

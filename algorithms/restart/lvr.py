"""Lazy-verification restart: the frame table is written chunk by chunk when it is convenient, and recovery believes nothing unseen.

Source: Do, 2012, 4.3.4, with the steps of figure 4.7.
"""

from algorithms.restart.base import BOTH_WRITES, LOG_BEFORE_SSD
from flashsim.storage.log.durable import FRAMES, DurableRead
from flashsim.storage.log.records import BUF_WRITE, Record
from flashsim.storage.log.recovery import Recovery, Steps

TITLE = "LVR, lazy-verification restart"
FLUSHES = True
#: With the end of the log before it was written; the thesis's file is 2.2 times as long as MMR's (5.13 against 2.38 s to read, 4.4.2.2).
ENTRY = 111
GUARDS = LOG_BEFORE_SSD | BOTH_WRITES
GUARDS |= {
    "page-id": "a frame whose page was replaced delivers another page (violation A)",
    "page-lsn": "a frame delivers another version than its entry says (violation B), or what is newer on the SSD counts as clean (C)",
    "checksum": "a frame that was being written at the crash delivers a torn page",
    "truncation": "a copy older than the log counts as the newest (violation D), where no pass could write its entry",
    "duplicates": "of two frames with one page the older one is found",
    "buf-write-invalidates": "redo skips what an old copy on the SSD needs, since the disk has it (pitfall 4.1)",
    "cleaner-last": "the cleaner overwrites a newer page on disk before analysis is over (pitfall 4.2)",
    "shutdown-ends": "a crash counts as a shutdown, after which frames are not verified",
    "complete-pass": "after a checkpoint hardly any frame counts as newer than the log's beginning (pitfall 4.3: slow, not wrong)",
}


def load(recovery: Recovery) -> Steps:
    """Shallow verification by the entries alone, then deep verification by the frames' pages, after a shutdown when they are read."""
    boot = recovery.durable.boot
    yield from recovery.read_table(lambda entry: max(entry.lsn, entry.hardened) >= boot.truncation or not recovery.has("truncation"))
    recovery.index()
    if boot.is_shut_down:
        recovery.unverified |= recovery.entries.keys()
        return
    frames = tuple(recovery.entries)
    yield DurableRead(FRAMES, frames)
    for frame in frames:
        recovery.verify(frame)


def meet(recovery: Recovery, lsn: int, record: Record) -> None:
    """The disk is newer than a copy on the SSD by what has been written to it."""
    if record.kind == BUF_WRITE and recovery.has("buf-write-invalidates"):
        frame = recovery.frame_of.get(record.page)
        if frame is not None and recovery.entries[frame].lsn < record.lsn:
            recovery.drop(frame)

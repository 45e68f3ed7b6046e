"""Logged-replacement restart: the frame table is written when it is convenient, and the log says which of its entries are wrong.

A design of our own, between LBR and LVR.  An entry was right when it was written.  What makes it wrong later is in the log: an update of
its page, or, of a clean frame that is replaced, a record that is on the log's device before the frame is overwritten.  So an entry that was
written since the records that analysis reads is right unless one of them says otherwise: no frame has to be verified after a crash, and the
log has neither tables nor a record for every page that is written to the SSD.
"""

from algorithms.restart.base import BEFORE_REPLACEMENT, BEFORE_REUSE, BOTH_WRITES, LOG_BEFORE_SSD
from flashsim.storage.log import records as log
from flashsim.storage.log.records import Record
from flashsim.storage.log.recovery import IN_LOG_AT_ONCE, REPLACED, Recovery, Steps

TITLE = "LRR, logged-replacement restart"
HARDENS = {REPLACED: IN_LOG_AT_ONCE}
FLUSHES = True
ENTRY = 111
GUARDS = LOG_BEFORE_SSD | BOTH_WRITES | BEFORE_REPLACEMENT | BEFORE_REUSE
GUARDS |= {
    "hardened-in-log": "an entry older than what analysis reads counts as right",
    "update-invalidates": "an old copy counts as valid though the log has an update of its page",
    "complete-pass": "after a checkpoint hardly any entry is newer than what analysis reads (pitfall 4.3: slow, not wrong)",
}


def load(recovery: Recovery) -> Steps:
    """Entries that were written since the first record of analysis."""
    yield from recovery.read_table(lambda entry: entry.hardened + 1 >= recovery.first_scanned or not recovery.has("hardened-in-log"))


def meet(recovery: Recovery, lsn: int, record: Record) -> None:
    """An entry is wrong once its frame was replaced after it was written, or its page changed."""
    if record.kind == log.SSD_PRE_WRITE_INVALIDATE:
        if (entry := recovery.entries.get(record.frame)) and lsn > entry.hardened:
            recovery.drop(record.frame)
    elif record.kind in (log.UPDATE, log.COMPENSATION) and recovery.has("update-invalidates"):
        frame = recovery.frame_of.get(record.page)
        if frame is not None and lsn > recovery.entries[frame].lsn:
            recovery.drop(frame)

"""Log-based restart: checkpoints write the frame table into the log, and what changes later are records of the log.

Source: Do, 2012, 4.3.3.  The thesis flushes the log before a page overwrites that of a clean frame, and not before a page enters a frame
that an update has freed, or whose page has been written to another frame since.  Until the record of that is on the log's device, recovery
believes that the frame holds the old page, and after a crash finds another one there: hence the guard "harden-before-reuse".  That a
page's records are on the log's device before the page is on the SSD needs no guard here: the record that the frame was written comes
behind them.

Group writing (the thesis: up to eight frames that wait share a flush of the log, or a timeout ends the wait) needs nothing of its own here:
one write of the log is outstanding at a time, the next takes along all records that wait by then, and every frame that waits for one of
them is written after it.  So frames share flushes without a limit, and none waits for a timeout.
"""

from algorithms.restart.base import BEFORE_REPLACEMENT, BEFORE_REUSE, BOTH_WRITES
from flashsim.storage.log import records as log
from flashsim.storage.log.records import CLEAN, DIRTY, Record
from flashsim.storage.log.recovery import CLEANED, IN_LOG, IN_LOG_AT_ONCE, REPLACED, WRITTEN, Recovery

TITLE = "LBR, log-based restart"
HARDENS = {REPLACED: IN_LOG_AT_ONCE, WRITTEN: IN_LOG, CLEANED: IN_LOG}
GUARDS = BOTH_WRITES | BEFORE_REPLACEMENT | BEFORE_REUSE
GUARDS |= {"update-invalidates": "an old copy counts as valid though the log has an update of its page"}


def meet(recovery: Recovery, lsn: int, record: Record) -> None:
    """From the last checkpoint on, entries follow the log."""
    if lsn < recovery.durable.boot.begin:
        return
    match record.kind:
        case log.SSD_CHECKPOINT | log.SSD_POST_WRITE:
            for frame, entry in enumerate(record.entries, record.frame):
                recovery.take(frame, entry)
            recovery.phases.entries_loaded += len(record.entries)
        case log.SSD_PRE_WRITE_INVALIDATE:
            recovery.drop(record.frame)
        case log.SSD_LAZY_CLEANED if recovery.entries.get(record.frame):
            entry = recovery.entries[record.frame]
            recovery.entries[record.frame] = entry._replace(state=CLEAN if entry.state == DIRTY else entry.state)
        case log.UPDATE | log.COMPENSATION if recovery.has("update-invalidates") and record.page in recovery.frame_of:
            recovery.drop(recovery.frame_of[record.page])

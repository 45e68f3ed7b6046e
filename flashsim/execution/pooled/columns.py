"""What stands where in the tables of a system of pools; modules that use it call it `at`."""

#: Numbers of a system.
(
    CLIENTS, THINK, PAGE_SIZE, EXPANSION, THROTTLE, LIMIT, SLACK, GROUP, CLEANERS, CHECKPOINT_EVERY, SHARP, LOG_BYTES, HAS_WORK, CHUNK,
    READ_AHEAD, INTERVAL, MOST_GOING_OUT, EXPANDS_BELOW, TRIMMING, LOG_ROOM,
    # Devices by their purposes.
    DISK_NUMBER, SSD_NUMBER, LOG_NUMBER, CPU_NUMBER,
    # What changes.
    SSD_PENDING, READY_FIRST, READY_LAST, FREE_SLOT, THINKING, SLEEPING, SLEEPS_LONGEST, CLEANING, TURN, GOAL, COMMIT_FIRST, COMMIT_LAST,
    COMMIT_BYTES, GROUP_FIRST, LOGGING, LOG_END, CHECKPOINTS_AT, CHECKPOINT_ROW, CHECKPOINT_PENDING, FLUSHING, TRANSACTION,
    TRANSACTIONS_HELD, ENDED, LOW, ASKED, BROKEN, GOING_OUT, CROWD_FIRST, CROWD_LAST, DEFERRED_FIRST, DEFERRED_LAST,
    INTERVAL_NOW, INTERVAL_ENDS, CAUSE, ASKED_FIRST, HAND_OUT_AT,
) = range(60)  # fmt: skip
SYSTEM_NUMBERS = 60

# Columns of a client: what it does when it goes on, its present reference and the one behind its last, where its scan is and ends, how
# many references wrote, requests that it waits for, pages that it holds, who waits behind it, of what kind its
# transaction is.
STATE, REFERENCE, LAST_REFERENCE, AT, BEHIND, WRITTEN, PENDING, HOLDING, NEXT_WAITING, KIND = range(10)
#: What a client does when it goes on.
BEGIN, REFER, FROM_SSD, FROM_DISK, SCANNED, WORKED, COMMITTED, GONE = range(8)
# Columns of a cleaner: what it does when it goes on, the first page of its run, its length, requests that it waits for.
RUN_FIRST, RUN_COUNT, RUN_PENDING = 1, 2, 3
LOOK, HAS_READ, HAS_WRITTEN = range(3)
# Columns of a request: who asked, or what it is, a page, how many, what is held for it, and the number of the request that whoever waits
# for it goes on after: its own, or of a processor's work the last one before.  In a free row the first is the next free one; in that of a
# deferred write, the last is one more than the row of the next deferred one.
WHO, PAGE, COUNT, HELD, NUMBER = range(5)
#: What is held for a request until it completes: nothing, the SSD's frame, or the pages against other writes to disk.
NOTHING, SSD_FRAME, DISK_PAGES = range(3)
#: Who asked: a client or a cleaner (the clients first) by its number, and these.
WRITTEN_OUT, FLUSHED, THE_LOG = -1, -2, -3

# Columns of what was asked: when, at which device, operation, offset, length, the request after whose completion it was, and when it
# completed; both -1 for none.
AT_TIME, OF_DEVICE, OPERATION, OFFSET, LENGTH, AFTER, COMPLETED = range(7)

#: Why a system stopped, besides a policy's breach of its contract: transactions end in no time.
NO_TIME_PASSES = 1

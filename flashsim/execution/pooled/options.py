"""Options of a system of pools and of its log: all that may be chosen but for sizes, policies, devices and the restart design."""

from dataclasses import dataclass

#: Values of `PoolOptions.expansion_until`.
UNTIL = ("memory", "ssd")


@dataclass(frozen=True, kw_only=True)
class PoolOptions:
    """Options of a system of pools, under one name from the command line to the engine; `PoolSystem` checks them."""

    #: How many run transactions, one after the other each.
    clients: int = 64
    #: Nanoseconds between two transactions of a client.
    think: int = 0
    #: Pages that a read from disk brings until memory is full: an aligned group of so many.
    expansion: int = 8
    #: What is full when a read from disk brings a single page again: "memory", or "ssd", filled up to `filling` (Do, 2012, 4.4.1.1).
    expansion_until: str = "memory"
    #: Share of the SSD up to which it takes all pages that leave memory (tau), in percent.
    filling: int = 95
    #: Requests that the SSD has outstanding at which all others bypass it (mu); 0 for no limit.
    throttle: int = 100
    #: Share of the SSD that may be newer than the disk (lambda), in percent; the cleaner works beyond it, down to a hundredth of a percent
    #: of the SSD below it.  At most 99 %, and a frame of each partition, stay so.
    dirty_limit: int = 50
    #: Pages of an extent that a scan reads at once.
    read_ahead: int = 32
    #: Pages that one write of the cleaner or a checkpoint holds at most (alpha).
    group: int = 32
    #: Groups that are cleaned, or written by a checkpoint, at the same time, at most; 0 for 16 a client.  All that is beyond the limit is
    #: then cleaned at once, as by a thread that never waits for what it writes: with TPC-C and lambda 10 % four a client do not keep to it
    #: where disks are half as fast again as in Do's table 3.1, and from eight on nothing changes.  What fewer write waits behind clients'
    #: reads, and for each of these several pages may have become newer.
    cleaners: int = 0
    #: Writes of pages that leave memory, or are copied from it, that may be outstanding: a miss waits while there are more; 0 for an eighth
    #: of memory.
    going_out: int = 0
    #: Parts into which the SSD's frames are divided (N).
    partitions: int = 1
    #: Nanoseconds between two checkpoints, 0 for none.
    checkpoint: int = 0
    #: A checkpoint leaves what is newer on the SSD there; otherwise it writes that to disk, too.
    fuzzy: bool = False
    #: Bytes of log of each reference that writes.
    log_bytes: int = 0
    #: Nanoseconds of processor time that a transaction takes, if there is a processor.
    work: int = 0
    #: Whether designs that tell pages read at random from those of scans may do so; if not, the SSD takes both.
    random_only: bool = True
    #: Whether a read of several pages leaves out those at either end that the SSD holds.
    trimming: bool = True


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """Options of a log of records, under one name from the command line to the engine; `Logging` has them."""

    #: Share of transactions with updates that abort, in percent.
    aborts: int = 0
    #: Nanoseconds between writes of the background writer, which takes the page that has been dirty longest; checkpoints then write no
    #: pages.  0: none, and checkpoints write them.
    indirect: int = 0
    #: Pages that BUF_WRITE records are made for at once.  Each says the version that is on disk: with the least of all 2,048, as the thesis
    #: may be read (4.2.1.1), analysis could strike off no other page than that one.
    batch: int = 2048
    #: Nanoseconds between two chunks of a restart design's flusher.
    pause: int = 500_000_000
    #: Writes of the SSD that a flush of an entry takes, one after the other.
    flush_writes: int = 1

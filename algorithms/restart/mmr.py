"""Memory-mapped restart: every change of a frame's entry that matters is written to the frame table's file at once.

Source: Do, 2012, 4.3.2, after Bhattacharjee et al., "Enhancing recovery using an SSD buffer pool extension", DaMoN 2011.
"""

from algorithms.restart.base import BEFORE_REPLACEMENT, BEFORE_REUSE, BOTH_WRITES, LOG_BEFORE_SSD
from flashsim.storage.log.recovery import CLEANED, IN_TABLE, MODIFIED, REPLACED, WRITTEN, Recovery, Steps

TITLE = "MMR, memory-mapped restart"
HARDENS = {REPLACED: IN_TABLE, WRITTEN: IN_TABLE, MODIFIED: IN_TABLE, CLEANED: IN_TABLE}
GUARDS = LOG_BEFORE_SSD | BOTH_WRITES | BEFORE_REPLACEMENT | BEFORE_REUSE
GUARDS |= {"harden-before-write": "a page reaches the disk while its old copy counts as valid (violation D)"}


def load(recovery: Recovery) -> Steps:
    """Every entry is what the file has."""
    yield from recovery.read_table()

"""Parts that a log and a restart design add to a system of pools, and what clients know of their transactions."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from flashsim.core.errors import FlashsimError
from flashsim.core.request import FORCE_UNIT_ACCESS
from flashsim.execution.pooled.options import LogOptions
from flashsim.execution.pooled.system import LOG
from flashsim.storage.log.recovery import RestartDesign


@dataclass(frozen=True)
class Logging(LogOptions):
    """A log, and what is hardened for a restart."""

    #: The restart design.
    restart: RestartDesign
    #: Entries of the frame table that a restart design's flusher, or a record of a checkpoint, writes at once.
    chunk: int = 64
    #: Guards that are switched off.
    without: Collection[str] = ()
    #: Whether a crash may tear a page that is being written to disk.  The first record of a change since a page's last write to disk began
    #: then carries the page as it was before, unless the guard "page-images" is off; SQL Server does without.
    tears: bool = False

    def has(self, guard: str) -> bool:
        return guard not in self.without

    @property
    def images(self) -> bool:
        """True if records carry images of pages."""
        return self.tears and self.has("page-images")

    def write_flags(self, purposes: Iterable[int]) -> list[int]:
        """Flags of the writes of devices, in the order of their purposes; the log's are always forced."""
        return [FORCE_UNIT_ACCESS * (each == LOG or self.has("force-unit-access")) for each in sorted(purposes)]


#: How much sooner the flusher of the frame table goes on while a checkpoint waits for it.
HURRY = 8
#: Bytes of records that are written at once, as many as SQL Server 2012 has outstanding in blocks of 60 KB; a longer record is written
#: alone.  With one block of 60 KB at a time a disk writes 10 MB/s, and commits wait for what LBR's checkpoints write.
LOG_BLOCK = 3840 << 10


def check_room(room: int, needed: int) -> None:
    """Refuse a log whose device has no room for the most that records took which recovery may have needed.

    A run goes on where they do not fit, up to its end: only then it is known how much would have done.

    Raises
    ------
    FlashsimError
        They do not fit.
    """
    if needed > room:
        raise FlashsimError(f"log: {room} B, but records that recovery may need take {needed} B in this run; checkpoint more often")


@dataclass
class RunningTransaction:
    """A transaction of a client, its records, and what it changed."""

    number: int
    first: int
    last: int
    updates: list[int] = field(default_factory=list)
    values: dict[int, int] = field(default_factory=dict)


@dataclass
class History:
    """Knowledge of clients about their transactions."""

    #: Values that acknowledged transactions left, by page and row.
    committed: dict[tuple[int, int], int] = field(default_factory=dict)
    #: Of each client whose commit is under way: the values that it would leave, by page.
    committing: dict[int, dict[int, int]] = field(default_factory=dict)

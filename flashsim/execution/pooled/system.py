"""Description of a system of pools: its sizes, its policies, its devices, and the counts of its report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from flashsim.core.errors import InvalidParameterError
from flashsim.core.policies import Policies
from flashsim.core.replacement import FIRST_PAGE, Numbers, ReplacementPolicy
from flashsim.core.request import SECTOR
from flashsim.core.units import NEVER, format_duration
from flashsim.execution.pooled.options import UNTIL, PoolOptions
from flashsim.storage.extension.state import AHEAD, FILL, FIRST_PARAMETER, ROTATES, Extension, empty_extension

#: Devices of a system, by what they are for.
DISK, SSD, LOG, CPU = range(4)
PURPOSES = ("disk", "ssd", "log", "cpu")

#: Counters, in all and of each interval of time: requests, and the pages of them, when they are made.  The last three are the SSD's frames
#: at an interval's end: those in use, those whose page is newer than on disk, and those whose page is not valid.
COUNTED = (
    "transactions", "references", "hits", "ssd_reads", "ssd_reads_newer", "disk_reads", "disk_pages_read", "disk_writes",
    "disk_pages_written", "ssd_writes", "cleanings", "cleaner_reads", "pages_cleaned", "log_writes", "bypassed", "created", "evicted",
    "evicted_dirty", "checkpoints", "table_writes", "aborted", "ssd_used", "ssd_newer", "ssd_invalid",
)  # fmt: skip

#: Groups of frames whose turn is next that are kept free of pages newer than on disk, in each partition, where frames rotate.
_GROUPS_AHEAD = 8


@dataclass(frozen=True)
class ExtensionDesign:
    """A design with its parameters."""

    #: As it was asked for.
    name: str
    #: Their values, by name, in the order in which the design declares them.
    parameters: Mapping[str, int]
    #: Addresses of its functions (`flashsim.storage.extension.design`), or the functions themselves where nothing is compiled.
    kernels: Policies
    #: Whether it can do nothing without an SSD.
    needs_ssd: bool = True
    #: Whether a page may be newer on the SSD than on disk.
    write_back: bool = False
    #: Whether the SSD's frames are taken one after the other.
    rotates: bool = False
    #: For its own use, perhaps by the values of its parameters and by pages.
    words: int | Callable[[Mapping[str, int], int], int] = 0


@dataclass(frozen=True)
class PoolSystem(PoolOptions):
    """Clients, a memory pool, and an SSD that extends it, with their options.

    Raises
    ------
    InvalidParameterError
        A value out of bounds.
    """

    #: Of the database.
    pages: int
    #: Frames of the memory pool.
    memory: int
    #: Which page leaves memory.
    policy: ReplacementPolicy
    #: What is done with the SSD.
    design: ExtensionDesign
    #: Frames of the SSD, 0 for none.
    ssd: int = 0
    #: Bytes.
    page_size: int = 8192
    #: Pages in a row on one drive: no request crosses a multiple of them.
    chunk: int = 1 << 30
    #: Nanoseconds of an interval, for each of which there are counters.
    interval: int = NEVER

    def __post_init__(self) -> None:
        least = dict.fromkeys(("pages", "clients", "expansion", "group", "read_ahead", "partitions", "chunk", "interval"), 1)
        numbers = ("ssd", *(each.name for each in fields(PoolOptions) if each.type is int))
        for name, bound in (least | {name: 0 for name in numbers if name not in least}).items():
            if (value := getattr(self, name)) < bound:
                text = format_duration(value) if name in ("think", "checkpoint", "work") else value
                raise InvalidParameterError(name, text, f"it must be at least {bound}")
        for name in ("filling", "dirty_limit"):
            if getattr(self, name) > 100:
                raise InvalidParameterError(name, getattr(self, name), "it is a share in percent")
        if self.expansion_until not in UNTIL:
            raise InvalidParameterError("expansion_until", repr(self.expansion_until), f"it must be one of {', '.join(UNTIL)}")
        if self.design.needs_ssd and self.ssd < self.partitions:
            raise InvalidParameterError("ssd", f"{self.ssd} pages", f"{self.design.name} needs {self.partitions}, one a partition")
        if self.page_size < SECTOR or self.page_size % SECTOR:
            raise InvalidParameterError("page_size", f"{self.page_size} B", f"it must be a multiple of {SECTOR} B")
        most = max(self.expansion, self.read_ahead)
        if self.memory <= self.clients * most:
            raise InvalidParameterError("memory", f"{self.memory} pages", f"{self.clients} clients may each hold {most} pages at once")

    @property
    def rows(self) -> int:
        return FIRST_PAGE + self.pages

    def chunk_of(self, page: int) -> tuple[int, int]:
        """The pages that one request may hold with a page: the first, and the one behind the last."""
        begin = (page - FIRST_PAGE) // self.chunk * self.chunk + FIRST_PAGE
        return begin, min(begin + self.chunk, self.rows)

    @property
    def dirty_limit_frames(self) -> int:
        """Frames of the SSD that may be newer than the disk.

        A hundredth of them is cleaned in any case, and one a partition: a page that leaves memory has no frame where all others are newer.
        """
        return min(self.ssd * self.dirty_limit // 100, self.ssd - max(self.partitions, self.ssd // 100))

    @property
    def expands_below(self) -> int:
        """Frames of the SSD in use below which a read from disk brings more than a page, however full memory is."""
        return self.ssd * self.filling // 100 if self.expansion_until == "ssd" else 0

    @property
    def most_going_out(self) -> int:
        """Writes that may be outstanding before a miss waits."""
        return self.going_out or max(1, self.memory // 8)

    @property
    def most_cleanings(self) -> int:
        """Groups that are cleaned at the same time, at most."""
        return self.cleaners or 16 * self.clients

    @property
    def most_requests(self) -> int:
        most_pages = max(self.expansion, self.read_ahead)
        each = 3 * most_pages + 3  # a client reads its pages, each of which lets another one leave for both devices
        return self.clients * each + 2 * self.most_going_out + self.most_cleanings * (3 * self.group + 2) + 2

    @property
    def slack(self) -> int:
        """Frames below the dirty limit at which the cleaner stops."""
        return self.ssd // 10_000

    def extension(self, table: Numbers | None = None) -> Extension:
        """The SSD, empty; see `flashsim.storage.extension.state.empty_extension`."""
        words, parameters = self.design.words, self.design.parameters
        words = words(parameters, self.pages) if callable(words) else words
        extension = empty_extension(self.pages, self.ssd, self.partitions, words, table)
        extension.numbers[FILL] = self.ssd * self.filling // 100 if self.random_only else NEVER
        extension.numbers[ROTATES] = self.design.rotates
        extension.numbers[AHEAD] = min(_GROUPS_AHEAD * self.group, max(1, self.ssd // self.partitions // 2))
        extension.numbers[FIRST_PARAMETER : FIRST_PARAMETER + len(parameters)] = list(parameters.values())
        return extension

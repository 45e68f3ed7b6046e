"""Parameters of a solid state drive: geometry, chip times, channels, host link, policies of its firmware."""

from dataclasses import dataclass
from itertools import permutations

from flashsim.core.errors import InvalidParameterError, RefusedError, check_known
from flashsim.core.parameters import count, duration, durations, number, rate, size, switch, text
from flashsim.core.request import SECTOR
from flashsim.core.units import format_duration, format_size
from flashsim.ssd.ideals import ideals_in
from flashsim.ssd.needs import unused_parameters

GROWTH_ERASES = 1000  #: What grows with wear grows with so many erases of a block.
#: Flash pages of a word line, one for each bit of a cell; none says nothing of cells.
LEVELS = {"none": 1, "slc": 1, "mlc": 2, "tlc": 3, "qlc": 4}
MOST_STEPS = 1000  #: The most steps of a program or an erase.
#: The most flash pages: numbers of pages take 32 bits, and one more than the last must fit.
MOST_FLASH_PAGES = 2**31 - 2
#: Units a second, of the slowest pace of collection.
_LEAST_PACE = 1000
_CHOICES = {
    "gc_pool": ("die", "shared"),
    "allocation": ("round-robin", "static", "dynamic"),
    "allocation_order": tuple("".join(letters) for letters in permutations("CWDP")),
    "cell": tuple(LEVELS),
    "slc_mode": ("static", "dynamic"),
    "slc_full": ("direct", "fold"),
    "slot_order": ("turns", "arrival"),
    "suspend": ("none", "program", "erase", "both"),
    "write_buffer_mode": ("write-back", "write-through", "coalescing"),
}


@dataclass(frozen=True)
class SsdParameters:
    """Declared values of one drive; make it with `flashsim.core.parameters.build`."""

    capacity: int = size("bytes that the host can address", SECTOR)
    page_size: int = size("bytes of a flash page", SECTOR)
    pages_per_block: int = count("flash pages of an erase block", 2)
    blocks_per_plane: int = count("erase blocks of a plane")
    planes_per_die: int = count("planes of a die: each has its own blocks")
    dies_per_package: int = count("dies of a package")
    packages_per_channel: int = count("packages on a channel")
    channels: int = count("flash channels of the controller")
    read: int = duration("from the cells of a page to the page register", 1)
    program: int = duration("from the page register to the cells of a page", 1)
    erase: int = duration("time to erase a block", 1)
    channel_rate: int = rate("bytes a second over one flash channel")
    link_read_rate: int = rate("bytes a second from controller to host")
    link_write_rate: int = rate("bytes a second from host to controller")
    read_latency: int = duration("time from a read command to its first byte on the host link", 1)
    write_latency: int = duration("time of a one-page write command without its transfer over the host link", 1)
    queue_depth: int = count("most commands of a submission queue in the drive at once")
    gc_reserve: int = count("free blocks that a plane keeps: it collects when its free pages are no more than that", 2)
    ftl: str = text("flash translation layer: a member's name or a Python file", "page")
    mapping_unit: int = size("bytes that an entry of the map stands for, a part of a flash page; 0 for all of it", 0, default=0)
    map_cache: int = size("bytes of the map that the controller's memory holds, for translation layers that keep it on flash", 0, default=0)
    log_blocks: int = count("log blocks of a plane, for translation layers that have them", 0, default=0)
    code_word: int = size("bytes that error correction takes at once: reads transfer whole ones; 0 for a mapping unit", 0, default=0)
    cell: str = text("bits of a cell, and so flash pages of a word line: slc, mlc, tlc or qlc; none for cells that are all alike", "none")
    read_pages: tuple[int, ...] = durations("time to read each page of a word line, from the first bit to the last; none: all take `read`")
    program_pages: tuple[int, ...] = durations("time to program each page of a word line; none: all take `program`")
    one_shot: bool = switch("whether all pages of a word line are programmed at once, in the time of `program`", default=False)
    erase_growth: int = duration("time by which an erase takes longer with every thousand that its block has had", 0, default=0)
    read_retry: float = number("probability that a page of a new block must be read once more", 0, 1, default=0.0)
    read_retry_growth: float = number("by how much it grows with every thousand erases of the block", 0, default=0.0)
    read_retry_time: int = duration("time that this takes; 0 for `read`", 0, default=0)
    slc_cache: int = size("bytes that blocks hold with one bit a cell, into which the host's writes go first; 0 for none", 0, default=0)
    slc_mode: str = text("static (blocks of a plane kept for the cache) or dynamic (free blocks, while there are enough)", "static")
    slc_full: str = text("where a write goes when it is full: direct (to all bits of a cell) or fold (a block of it moves first)", "direct")
    slc_read: int = duration("time to read a page of the cache; 0 for `read`", 0, default=0)
    slc_program: int = duration("time to program a page of the cache; 0 for `program`", 0, default=0)
    slc_idle: int = duration("time without a command after which the cache is folded, block by block; 0 for never", 0, default=0)
    gc: str = text("garbage collection policy: a member's name or a Python file; none for translation layers that merge blocks", "greedy")
    gc_choices: int = count("blocks that the policy d-choices draws", default=2)
    gc_pool: str = text("where victims are sought: die (each plane by itself) or shared (the whole drive)", "die")
    gc_streams: int = count("active blocks of a plane: 1, or 2 with one for moved pages", 1, 2, default=1)
    placement_handles: int = count(
        "active blocks of a plane for what the host writes, one a placement handle: a request's stream modulo their number", 1, 128, 1
    )
    gc_copyback: bool = switch("whether pages move within the chip, not over the channel", default=False)
    gc_slicing: bool = switch("whether a victim is emptied in slices, between host writes: by what is programmed at once", default=False)
    gc_stop: int = count("free blocks up to which a plane that collects goes on; 0 for gc_reserve", 0, default=0)
    wear: str = text("wear levelling: a member's name or a Python file", "none")
    wear_gap: int = count("erases by which a block may be behind one that comes free before static wear levelling moves it", default=16)
    endurance: int = count("erases that a block lasts; 0 for no end", 0, default=0)
    endurance_spread: float = number("standard deviation of a block's endurance, as a share of it", 0, 0.5, default=0.0)
    spare_blocks: int = count("blocks of a plane that stand in for bad ones", 0, default=0)
    factory_bad_blocks: int = count("blocks of a plane that are bad from the start", 0, default=0)
    seed: int = count("seed of what differs from block to block", 0, default=0)
    allocation: str = text("which plane takes a write: round-robin, static (by its address) or dynamic (least to do)", "round-robin")
    allocation_order: str = text("what changes fastest from plane to plane: an order of C, W, D, P (channel, package, die, plane)", "CWDP")
    read_priority: bool = switch("whether host reads overtake other work of their die", default=False)
    suspend: str = text("what a host read interrupts: none, program, erase or both", "none")
    suspend_overhead: int = duration("time to go on with what was interrupted", 0, default=0)
    suspend_stop: int = duration("time from the end of a step of what is interrupted to the reads", 0, default=0)
    suspend_progress: int = duration("least work on what was interrupted before it is again; a step in any case", 0, default=0)
    program_step: int = duration("step of a program, at whose end it can be interrupted; 0 for a tenth of `program`", 0, default=0)
    program_long_step: int = duration("the same of its longer steps", 0, default=0)
    program_long_share: float = number("share of a program's time that passes in longer steps", 0, 1, default=0.0)
    erase_step: int = duration("step of an erase, at whose end it can be interrupted; 0 for a tenth of `erase`", 0, default=0)
    multi_plane: bool = switch("whether planes of a die work together", default=False)
    cache_read: bool = switch("whether a die reads on while a page crosses the channel", default=False)
    cache_program: bool = switch("whether a page crosses the channel while its die programs the one before", default=False)
    write_buffer: int = size("bytes of the write buffer; 0 for none", 0, default=0)
    write_buffer_mode: str = text(
        "write-back (acknowledged when buffered), write-through (when programmed) or coalescing (only for parts of flash pages)",
        "write-back",
    )
    write_buffer_threshold: float = number("share of the write buffer that may wait to be written", 0, 1, default=0.5)
    write_buffer_batch: int = size("bytes that leave it at once when so many wait; 0 for what is programmed at once", 0, default=0)
    power_protected: bool = switch("whether the write buffer survives a power cut", default=False)
    collection_rate: int = rate("bytes a second, of host and moves, by which a collecting drive paces writes; 0: no pace", 0)
    collection_debt: int = size("bytes of moves that may be owed until it does", 0, default=0)
    collection_floor: int = rate("bytes a second that writes have then besides", 0)
    collection_share: float = number("share of the host's rate that writes have then at most", 0.001, 1, default=1.0)
    queues: int = count("submission queues, served in turn, each with its own queue_depth", most=65535, default=1)
    command_slots: int = count("units of commands of all queues that are in the drive at most; 0 for no bound", 0, default=0)
    command_slot: int = size("bytes of such a unit; a command has one at least, and no more than there are", SECTOR, default=4096)
    slot_order: str = text("whose command is next when queues wait for slots: turns (of the queues) or arrival (the oldest)", "turns")
    zone_size: int = size(
        "bytes of a zone of a zoned namespace, which is written in order and reset as a whole; 0 for no zones", 0, default=0
    )
    zone_open_limit: int = count("most zones that are open at once; 0 for no limit", 0, default=0)
    zone_active_limit: int = count("most zones that are open or closed, with a write pointer within; 0 for no limit", 0, default=0)
    continuation_latency: int = duration(
        "time, without the host link, of a short read or write that goes on where the last one ended; 0 for as any other", default=0
    )
    continuation_limit: int = size("most bytes of such a command, and of such writes in the controller at once", 0, default=0)
    read_submission: int = duration("time from the host's submission of a read until it arrives; requests overlap in it", 0, default=0)
    write_submission: int = duration("the same of a write, and of all else that is no read", 0, default=0)
    link_read_command: int = duration("time that a read command holds the host link besides its bytes", 0, default=0)
    link_write_command: int = duration("time that a write command holds the host link besides its bytes", 0, default=0)
    bus_rate: int = rate("bytes a second over the drive's memory bus, which all pages pass, also those of programs inside; 0: no bus", 0)
    ideal: str = text("what takes no time, in a counterfactual run (flashsim.ssd.ideals), joined by +; empty: all takes its time", "")

    def __post_init__(self) -> None:
        for name in ("page_size", "capacity", "mapping_unit", "command_slot"):
            self._need(getattr(self, name) % SECTOR == 0, name, f"it must be a multiple of {SECTOR}")
        self._need(self.page_size % self.unit_size == 0, "mapping_unit", f"a flash page, {self.page_size}, must hold whole ones")
        for name, allowed in _CHOICES.items():
            check_known(name, getattr(self, name), allowed)
        self._need(self.unit_size % (self.code_word or self.unit_size) == 0, "code_word", "a mapping unit must hold whole ones")
        ideals_in(self.ideal)
        self._check_levels()
        self._check_combinations()
        if self.group > 1:
            self._check_groups()
        if self.continuation_latency or self.continuation_limit:
            self._check_continuation()
        if self.slc_cache:
            self._check_slc()
        for name in ("collection_rate", "collection_floor"):
            self._need(not 0 < getattr(self, name) < _LEAST_PACE * self.unit_size, name, "a thousand units a second are the least")
        within = self.unit_size <= self.collection_debt <= MOST_FLASH_PAGES * self.unit_size
        self._need(not self.collection_rate or within, "collection_debt", f"it must be from a unit up to {MOST_FLASH_PAGES:,} units")
        self._check_host()
        self._check_reserve()
        self._check_capacity()
        for name, why in unused_parameters(self):
            self._need(False, name, why)

    def _need(self, holds: bool, name: str, bound: str) -> None:
        if not holds:
            raise InvalidParameterError(name, getattr(self, name), bound)

    def _check_combinations(self) -> None:
        cached = " and ".join(name for name in ("cache_read", "cache_program") if getattr(self, name))
        together, most = self.group * self.unit_size, self.write_buffer if self.write_buffer_mode == "write-back" else 0
        coalescing, paced = self.write_buffer_mode == "coalescing", self.collection_rate > 0
        copyback, overtaken = "gc_copyback: a page moves within its chip", "suspend: only a read that overtakes can interrupt"
        for chosen, refusal in (
            (self.gc_copyback and self.gc_pool == "shared", f"{copyback}, but gc_pool 'shared' moves pages between dies"),
            (self.suspend != "none" and not self.read_priority, f"{overtaken}; set read_priority"),
            (cached and self.multi_plane, f"{cached}: not supported with multi_plane"),
            (cached and self.suspend != "none", f"{cached}: not supported with suspend {self.suspend!r}"),
            (0 < self.write_buffer < self.page_size, "write_buffer: it holds less than one flash page"),
            (self.write_buffer and self.endurance, "write_buffer: not supported with an endurance; a worn-out drive could not empty it"),
            (self.power_protected and coalescing, "power_protected: not supported with a coalescing write_buffer"),
            (self.write_buffer_batch > most, "write_buffer_batch: it must be no more than a write_buffer holds, which is write-back"),
            (self.write_buffer_batch % together > 0, f"write_buffer_batch: {together} are programmed at once, and it must be whole groups"),
            (paced and not most, "collection_rate: there is no write-back write_buffer, which acknowledges writes"),
            (paced and self.gc == "none", "collection_rate: nothing is collected (gc 'none')"),
            (self.bus_rate and (self.read_submission or self.write_submission), "bus_rate: not supported with a submission time"),
        ):
            if chosen:
                raise RefusedError(refusal)

    def _check_groups(self) -> None:
        """Check that what is programmed at once can be gathered, in the write buffer, and has one place."""
        several = f"mapping_unit: {format_size(self.unit_size)}, of which a flash page holds {self.units}"
        several = several if self.units > 1 else f"one_shot: {self.levels} flash pages of a word line"
        for chosen, refusal in (
            (self.write_buffer < self.group * self.unit_size, f"a write_buffer must hold the {self.group} that are programmed at once"),
            (self.write_buffer_mode == "coalescing", "not supported with a coalescing write_buffer"),
            (self.allocation == "static", "not supported with static allocation, as units of several addresses share a flash page"),
            (self.gc_copyback, "not supported with gc_copyback, as units of several flash pages move into one"),
        ):
            if chosen:
                raise RefusedError(f"{several}: {refusal}")

    def _check_levels(self) -> None:
        """Check that each page of a word line has a time, a block whole word lines if programmed at once, and a program few steps."""
        for name in ("read_pages", "program_pages"):
            times, bound = getattr(self, name), f"with cell '{self.cell}' there must be {self.levels}, or none"
            if len(times) not in (0, self.levels):
                raise InvalidParameterError(name, f"{len(times)} durations", bound)
        if self.one_shot and (self.levels == 1 or self.program_pages):
            bound = "not supported with program_pages" if self.program_pages else f"cell '{self.cell}' has no several pages of a word line"
            raise RefusedError(f"one_shot: {bound}")
        bound = f"one_shot: a block must hold whole word lines of {self.levels}"
        self._need(not self.one_shot or self.pages_per_block % self.levels == 0, "pages_per_block", bound)
        bound = f"a program or an erase may have {MOST_STEPS:,} steps at most"
        longest = {"program_step": max(self.program, *self.program_pages, 0), "erase_step": self.erase}
        for name, step in (("program_step", self.short_step), ("erase_step", self.erase_step or self.erase)):
            if MOST_STEPS * step < longest[name]:
                raise InvalidParameterError(name, format_duration(step), bound)
        bound = f"it must be longer than a step, {format_duration(self.short_step)}, with a program_long_share, and 0 without"
        some = self.program_long_share > 0
        self._need((self.program_long_step > some * self.short_step) == some, "program_long_step", bound)

    def _check_host(self) -> None:
        """Check that zones divide the drive, and that placement handles have queues of their own."""
        whole = self.zone_size == 0 or self.capacity % self.zone_size == 0
        self._need(whole, "zone_size", f"zones must divide the capacity, {format_size(self.capacity)}")
        self._need(self.zone_size % self.unit_size == 0, "zone_size", f"it must be whole units of {format_size(self.unit_size)}")
        stripe = self.pools * self.pages_per_block * self.page_size
        blocks = self.ftl != "block" or self.zone_size % stripe == 0
        self._need(blocks, "zone_size", f"with ftl 'block' it must be whole blocks of all planes, {format_size(stripe)}")
        for name in ("zone_open_limit", "zone_active_limit"):
            zones = self.capacity // self.zone_size if self.zone_size else 0
            self._need(not self.zone_size or getattr(self, name) <= zones, name, f"the drive has {zones} zones")
        if self.zone_active_limit:
            bound = f"an open zone is active, of which there may be {self.zone_active_limit} (zone_active_limit)"
            self._need(self.zone_open_limit <= self.zone_active_limit, "zone_open_limit", bound)
        bound = f"each of the {self.queues} queues must belong to one handle: use a divisor of that"
        self._need(self.queues % self.placement_handles == 0, "placement_handles", bound)

    def _check_slc(self) -> None:
        """Check that cells have more than the one bit that the cache leaves, and that its blocks are a part of the drive."""
        for chosen, refusal in (
            (self.levels == 1, f"cell '{self.cell}' has no several bits, of which a cache could use one"),
            (self.gc_pool == "shared", "not supported with gc_pool 'shared', as a block is folded within its plane"),
            (self.gc_slicing, "not supported with gc_slicing, as blocks are folded whole"),
            (self.slc_pages == 0, f"a block of {self.pages_per_block} pages has fewer word lines than are programmed at once"),
        ):
            if chosen:
                raise RefusedError(f"slc_cache: {refusal}")
        most = self.blocks_per_plane - self.spare_blocks - self.gc_reserve - 1
        bound = f"in blocks of {self.slc_pages} pages it takes {self.slc_blocks} of a plane, which has {max(0, most)} outside its reserve"
        if self.slc_blocks > most:
            raise InvalidParameterError("slc_cache", format_size(self.slc_cache), bound)

    def _check_continuation(self) -> None:
        """Check that a continuation is quicker than another command, and that the controller can hold a page of it."""
        if not 0 < self.continuation_latency < min(self.read_latency, self.write_latency):
            bound = "with a continuation_limit it must be more than 0, and less than read_latency and write_latency"
            raise InvalidParameterError("continuation_latency", format_duration(self.continuation_latency), bound)
        if self.continuation_limit < self.page_size:
            bound = f"with a continuation_latency it must hold a flash page, {format_size(self.page_size)}"
            raise InvalidParameterError("continuation_limit", format_size(self.continuation_limit), bound)
        if self.write_buffer and self.write_buffer_mode != "coalescing":
            raise RefusedError("continuation_latency: not supported with a write_buffer, which acknowledges all writes")

    def _check_reserve(self) -> None:
        least, good, streams = 1 + self.gc_streams + self.gc_slicing, self.good_blocks, f"with {self.gc_streams} streams"
        least += (self.slc_cache > 0) + self.placement_handles - 1
        besides = " and slices" * self.gc_slicing + " and an slc_cache" * (self.slc_cache > 0)
        besides += f" and {self.placement_handles} placement handles" * (self.placement_handles > 1)
        self._need(self.gc_reserve >= least, "gc_reserve", f"{streams}{besides} it must be at least {least}")
        bad = self.factory_bad_blocks
        self._need(self.spare_blocks >= bad, "spare_blocks", f"as many as the {bad} factory_bad_blocks are needed")
        self._need(self.spare_blocks < self.blocks_per_plane, "spare_blocks", f"a plane has {self.blocks_per_plane} blocks in all")
        bound = f"a plane has {good} blocks that are not spare, and one more than the reserve is needed"
        self._need(self.gc_reserve < good, "gc_reserve", bound)
        bound = f"it must lie between gc_reserve, {self.gc_reserve}, and the {good} blocks of a plane"
        self._need(not self.gc_stop or self.gc_reserve <= self.gc_stop < good, "gc_stop", bound)

    def _check_capacity(self) -> None:
        bound = f"{self.pools} planes with blocks of {self.slots_per_block} pages may have at most {MOST_FLASH_PAGES} pages in all"
        self._need(self.pools * self.blocks_per_plane * self.slots_per_block <= MOST_FLASH_PAGES, "blocks_per_plane", bound)
        room, share = max(0, self.pool_limit), -(-self.logical_pages // self.pools)
        bound = f"the blocks outside the reserve hold {room * self.pools * self.unit_size}, and one page must stay free"
        self._need(self.logical_pages < room * self.pools, "capacity", bound)
        bound = f"with static allocation a plane takes {share} pages, and it can hold {room - 1}"
        self._need(self.allocation != "static" or share < room, "capacity", bound)

    @property
    def unit_size(self) -> int:
        """Bytes of a mapping unit: the logical page of the translation layer, and its slot in a flash page."""
        return self.mapping_unit or self.page_size

    @property
    def units(self) -> int:
        """Mapping units of a flash page."""
        return self.page_size // self.unit_size

    @property
    def group(self) -> int:
        """Mapping units that are programmed at once."""
        return self.units * (self.levels if self.one_shot else 1)

    @property
    def short_step(self) -> int:
        """Time of a step of a program that is not one of the longer ones."""
        return self.program_step or -(-self.program // 10)

    @property
    def retries(self) -> bool:
        """True if a page may have to be read once more."""
        return self.read_retry > 0 or self.read_retry_growth > 0

    @property
    def levels(self) -> int:
        """Flash pages of a word line."""
        return LEVELS[self.cell]

    @property
    def slots_per_block(self) -> int:
        """Mapping units of an erase block."""
        return self.pages_per_block * self.units

    @property
    def sectors_per_unit(self) -> int:
        return self.unit_size // SECTOR

    @property
    def buffer_pages(self) -> int:
        """Mapping units that the write buffer holds."""
        return self.write_buffer // self.unit_size

    @property
    def keeps_acknowledged(self) -> bool:
        """True if a power cut takes nothing that was acknowledged, flushed or not."""
        behind = self.continuation_latency > 0 or (self.buffer_pages > 0 and self.write_buffer_mode != "write-through")
        return self.power_protected or not behind

    @property
    def whole_page_buffer(self) -> int:
        """Bytes of a buffer that takes whole flash pages; 0 where it coalesces parts of them."""
        return 0 if self.write_buffer_mode == "coalescing" else self.write_buffer

    @property
    def continuation_pages(self) -> int:
        """Flash pages that the controller holds of writes that go on where the last one ended."""
        return self.continuation_limit // self.page_size

    @property
    def pools(self) -> int:
        return self.dies * self.planes_per_die

    @property
    def good_blocks(self) -> int:
        """Blocks of a plane that are neither spare nor kept for the SLC cache."""
        return self.blocks_per_plane - self.spare_blocks - self.own_slc_blocks

    @property
    def slc_pages(self) -> int:
        """Mapping units that a block of the SLC cache holds: those of a page of each word line, in whole groups."""
        return self.pages_per_block // self.levels * self.units // self.group * self.group

    @property
    def slc_blocks(self) -> int:
        """Blocks of a plane that the SLC cache has at most."""
        return -(-self.slc_cache // (self.pools * max(1, self.slc_pages) * self.unit_size))

    @property
    def own_slc_blocks(self) -> int:
        """Blocks of a plane that are kept for the SLC cache."""
        return self.slc_blocks if self.slc_mode == "static" else 0

    @property
    def pool_limit(self) -> int:
        """Mapping units that are valid in a plane at most (docs/decisions/0006): each block outside the reserve gains one group or more."""
        held_back = (self.gc_streams if self.gc_pool == "shared" else self.gc_streams - 1) + (self.slc_cache > 0)
        held_back += self.placement_handles - 1
        return (self.good_blocks - self.gc_reserve - held_back) * (self.slots_per_block - self.group + 1)

    @property
    def dies(self) -> int:
        return self.channels * self.packages_per_channel * self.dies_per_package

    @property
    def logical_pages(self) -> int:
        """Mapping units that the host's address space covers; the last may be covered in part."""
        return -(-self.capacity // self.unit_size)

    @property
    def usable_pages(self) -> int:
        """Mapping units outside spares and reserve: what is always free is not among them."""
        return self.pools * (self.good_blocks - self.gc_reserve) * self.slots_per_block

    @property
    def effective_overprovisioning(self) -> float:
        """Usable pages over logical ones, less 1; the reserve (free blocks and the block being filled) does not count."""
        return self.usable_pages / self.logical_pages - 1

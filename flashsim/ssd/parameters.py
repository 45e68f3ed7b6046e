"""What a solid state drive is made of: geometry, chip times, channels, host link and the policies of its firmware."""

from __future__ import annotations

from dataclasses import dataclass

from flashsim.core.errors import InvalidParameterError
from flashsim.core.parameters import count, duration, rate, size, text
from flashsim.core.request import SECTOR


@dataclass(frozen=True)
class SsdParameters:
    """Declared values of one drive; make it with `flashsim.core.parameters.build`.

    Raises
    ------
    InvalidParameterError
        The flash page is no multiple of a sector, or the drive's blocks cannot hold its capacity.
    """

    capacity: int = size("bytes that the host can address", SECTOR)
    page_size: int = size("bytes of a flash page", SECTOR)
    pages_per_block: int = count("flash pages of an erase block", 2)
    blocks_per_plane: int = count("erase blocks of a plane")
    planes_per_die: int = count("planes of a die; they add blocks, but work one at a time")
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
    queue_depth: int = count("most commands in the drive at once")
    gc_reserve: int = count("free blocks that a die keeps", 2)
    ftl: str = text("flash translation layer: a member's name or a Python file", "page")
    gc: str = text("garbage collection policy: a member's name or a Python file", "greedy")
    gc_choices: int = count("blocks that the policy d-choices draws", default=2)

    def __post_init__(self) -> None:
        """Check that the values fit together."""
        if self.page_size % SECTOR:
            raise InvalidParameterError("page_size", self.page_size, f"it must be a multiple of {SECTOR}")
        if self.capacity % SECTOR:
            raise InvalidParameterError("capacity", self.capacity, f"it must be a multiple of {SECTOR}")
        if self.gc_reserve >= self.blocks_per_die:
            raise InvalidParameterError("gc_reserve", self.gc_reserve, f"a die has {self.blocks_per_die} blocks")
        if self.logical_pages >= self.usable_pages:
            bound = f"the blocks outside the reserve hold {self.usable_pages * self.page_size}, and one page must stay free"
            raise InvalidParameterError("capacity", self.capacity, bound)
        if self.dies * self.blocks_per_die * self.pages_per_block >= 2**31 - 1:
            raise InvalidParameterError("capacity", self.capacity, "more than 2^31 flash pages are not supported")

    @property
    def blocks_per_die(self) -> int:
        """Erase blocks of a die, over all its planes."""
        return self.blocks_per_plane * self.planes_per_die

    @property
    def dies(self) -> int:
        """Dies of the drive."""
        return self.channels * self.packages_per_channel * self.dies_per_package

    @property
    def logical_pages(self) -> int:
        """Flash pages that the host's address space covers; the last may be covered in part."""
        return -(-self.capacity // self.page_size)

    @property
    def usable_pages(self) -> int:
        """Flash pages outside the reserve: what valid data may fill."""
        return self.dies * (self.blocks_per_die - self.gc_reserve) * self.pages_per_block

    @property
    def effective_overprovisioning(self) -> float:
        """Usable flash pages over logical ones, less 1; the reserve (free blocks and the block being filled) does not count."""
        return self.usable_pages / self.logical_pages - 1

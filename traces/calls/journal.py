"""The journal of a file system: changes of metadata are gathered, and committed together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, WRITE
from traces.calls.page_cache import PAGE
from traces.calls.volume import JOURNAL, METADATA
from traces.calls.waiting import Requests, Strand

#: Blocks that one descriptor block lists, and inodes of a block.
_LISTED, _INODES = 255, 16
#: A block of metadata: its kind, and which.
Block = tuple[str, Any]
#: Blocks that change when a file comes or goes.
ALLOCATION: tuple[Block, Block] = ("inodes", 0), ("groups", 0)


@dataclass
class Transaction:
    """Changes that are not committed."""

    #: When the first one came, ns, and the thread that made it.
    begin: int
    strand: Strand
    #: Metadata blocks, by number.
    blocks: set[int] = field(default_factory=set)
    #: Files with any change, and with one of size or blocks, by number, and folders by path.
    changed: set[int | str] = field(default_factory=set)
    resized: set[int | str] = field(default_factory=set)


class Journal:
    """The journal of a volume; without one, metadata are not written.

    Attributes
    ----------
    transaction
        What is not committed; None if nothing is.
    """

    def __init__(self, requests: Requests, exists: bool) -> None:
        self.transaction: Transaction | None = None
        self._requests, self._exists = requests, exists
        self._numbers: dict[Block, int] = {}
        self._place = 0

    def change(
        self, file: int, strand: Strand, time: int, is_resized: bool, folder: str | None = None, blocks: tuple[Block, ...] = ()
    ) -> None:
        """Metadata change: the file's inode, the folder that it is in, if its name changes, and further blocks, such as bitmaps."""
        if not self._exists:
            return
        if self.transaction is None:
            self.transaction = Transaction(time, replace(strand))
        own: set[Block] = {("inode", file // _INODES), *blocks, *({("folder", folder), ("inode of", folder)} if folder is not None else ())}
        self.transaction.blocks |= {self._numbers.setdefault(each, len(self._numbers) % (METADATA // PAGE)) for each in own}
        names: set[int | str] = {file} if folder is None else {file, folder}
        self.transaction.changed |= names
        if is_resized:
            self.transaction.resized |= names

    def has(self, names: set[int | str], data_only: bool) -> bool:
        """True if there are changes of these files and folders that a sync, or one of data only, has to commit."""
        if self.transaction is None:
            return False
        return bool(names & (self.transaction.resized if data_only else self.transaction.changed))

    def commit(self, strand: Strand, time: int) -> tuple[int, list[int]]:
        """Write descriptor and metadata blocks, flush, and write the commit block; the number of the last request, and the blocks."""
        if self.transaction is None:
            return strand.last, []
        blocks, self.transaction = sorted(self.transaction.blocks), None
        after = -1
        for place in self._places(len(blocks) + -(-len(blocks) // _LISTED)):
            after = self._requests.add(WRITE, place, strand, time, "journal", after)
        after = self._requests.add(FLUSH, (0, 0), strand, time, "journal", after)
        for place in self._places(1):
            after = self._requests.add(WRITE, place, strand, time, "journal", after, FORCE_UNIT_ACCESS)
        return after, blocks

    def _places(self, blocks: int) -> Iterator[tuple[int, int]]:
        """Places of the next blocks, in one piece unless the journal begins anew."""
        length = blocks * PAGE
        while length:
            piece = min(length, JOURNAL - self._place)
            yield self._place, piece
            self._place, length = (self._place + piece) % JOURNAL, length - piece

"""What every page format provides: pages of a file in bytes, from tuples and back.

A member defines ``encode_pages(relation, rows, pages, page_size)``, which lays tuples out as bytes, shape (pages, page_size);
``decode_pages(relation, data)``, which turns such an array back into `Tuples`; and ``write_database(heap_file, path, table)``,
which writes a base relation as a file that the database itself opens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from flashsim.core.members import Family
from flashsim.core.request import Integers
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.record import Bytes
from flashsim.storage.relation import Relation, Tuples

PAGE_FORMATS = Family("flashsim.storage.page", "page format", needs=("encode_pages", "decode_pages", "write_database"))


class PageFormat(Protocol):
    """A member of the family."""

    def encode_pages(self, relation: Relation, rows: Integers, pages: Integers, page_size: int) -> Bytes:
        """Pages that hold tuples ``pages[p] .. pages[p + 1] - 1`` of `rows`, shape (pages, page_size)."""

    def decode_pages(self, relation: Relation, data: Bytes) -> Tuples:
        """The tuples of pages, shape (pages, page_size), in order."""

    def write_database(self, heap_file: HeapFile, path: Path, table: str) -> None:
        """Write a base relation as a complete database."""

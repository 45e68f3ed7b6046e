"""Contract of page formats: the room of a page, and the conversion of tuples into its bytes and back.

A member defines the functions of `PageFormat`; those that are marked optional are as there, if it does not.  Pages hold cells, one a
tuple, as long as there is room; a cell is a tuple's record (`flashsim.storage.rows`) and what the format puts around it, header and
directory entry included.
"""

import re
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from flashsim.core.errors import RefusedError, SchemaError
from flashsim.core.members import Family, optional
from flashsim.core.protocols import Progress
from flashsim.core.request import Integers
from flashsim.storage.record import Bytes
from flashsim.storage.rows import RowFormat, Tuples


class PageFormat(Protocol):
    """A member of the family."""

    def check_page_size(self, page_size: int) -> None:
        """Refuse a page size, bytes, that the format does not have.

        Raises
        ------
        InvalidParameterError
            It has no such pages.
        """

    @optional
    def reserved_places(self, page_size: int) -> tuple[int, ...]:
        """Pages of a base file without tuples, such as a header, if the file is so long; from 0, ascending."""
        return ()

    def room(self, row_format: RowFormat, page_size: int) -> int:
        """Bytes of cells that a page holds."""

    @optional
    def widest_row(self, row_format: RowFormat) -> int:
        """Bytes of a page that the largest row takes where it is the only one; those of its record, if formats do not say otherwise."""
        return row_format.largest_record()

    @optional
    def largest_record(self, row_format: RowFormat, page_size: int) -> int:
        """The most of these bytes that a page has."""
        return self.room(row_format, page_size)

    def cell_sizes(self, row_format: RowFormat, tuples: Tuples) -> Integers:
        """Bytes that each tuple takes of a page's room, shape (n,)."""

    def encode_pages(self, row_format: RowFormat, tuples: Tuples, page_size: int) -> Bytes:
        """Pages that hold tuples as their boundaries say, shape (pages, page_size).

        Raises
        ------
        CapacityError
            A page would hold more than it can.
        """

    @optional
    def number_pages(self, data: Bytes, numbers: Integers) -> None:
        """Tell pages that were encoded, shape (pages, page_size), where they are in their file, from 0, if they keep it."""

    @optional
    def verify_pages(self, row_format: RowFormat, data: Bytes, numbers: Integers) -> None:
        """Refuse whole pages, shape (pages, page_size), that are not those of these numbers, or were changed, if they can tell.

        Raises
        ------
        DamagedFileError
            There is one.
        """

    @optional
    def parts(
        self, row_format: RowFormat, columns: tuple[str, ...], attributes: tuple[str, ...], page_size: int
    ) -> tuple[tuple[int, int], ...]:
        """The bytes of a page with some columns of its tuples and attributes of its rows, as (first byte, bytes) in whole sectors."""
        return ((0, page_size),)

    def decode_pages(self, row_format: RowFormat, columns: tuple[str, ...], data: Bytes) -> Tuples:
        """Some columns of the tuples of pages, shape (pages, page_size), in order; other bytes than their parts may be missing, zero.

        Raises
        ------
        DamagedFileError
            They are no pages of this format, or hold no such rows.
        """

    @optional
    def decode_values(self, row_format: RowFormat, attributes: tuple[str, ...], data: Bytes) -> pa.Table:
        """Some attributes of the rows of pages, shape (pages, page_size), in order; other bytes than their parts may be missing, zero.

        Raises
        ------
        DamagedFileError
            They are no pages of this format, or hold no such rows.
        SchemaError
            An attribute is not stored.
        """
        raise SchemaError(f"{row_format.title}: column {attributes[0]} is not stored on these pages")

    @optional
    def write_files(self, heap_file: Any, folder: Path, progress: Progress | None = None) -> None:
        """Write a base relation (`flashsim.storage.heap_file.HeapFile`) into an empty folder, as files that another program reads.

        Raises
        ------
        RefusedError
            No other program reads such pages.
        """
        raise RefusedError(f"page format: {heap_file.layout.page_format}, but no other program reads its pages")


def quote_name(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def file_name(relation: str) -> str:
    """A name for the file of a relation, of whatever name."""
    return re.sub(r"[/\0]", "_", relation).lstrip(".") or "relation"


PAGE_FORMATS = Family("flashsim.storage.page", "page format", PageFormat)

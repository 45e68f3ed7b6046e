"""Layouts: rows of one format on pages of one format and size, and which tuples then lie on which page.

That follows from the tuples' sizes alone, so that the elided form (`flashsim.storage.content`) and the byte form agree page for page.
"""

from dataclasses import dataclass, field
from functools import cached_property
from types import MethodType

import numpy as np
import pyarrow as pa

from flashsim.core.errors import CapacityError, UnknownNameError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.core.units import format_size
from flashsim.storage.page.base import PAGE_FORMATS, PageFormat
from flashsim.storage.record import Bytes
from flashsim.storage.rows import RowFormat, Tuples

PAGE_FORMAT = "sqlite"


def check_page_size(page_size: int, page_format: str = PAGE_FORMAT) -> None:
    PAGE_FORMATS.load(page_format).check_page_size(page_size)


@dataclass(frozen=True, eq=False)
class Layout:
    """Layout of the tuples of a file on its pages.

    Raises
    ------
    UnknownNameError, MissingFileError
        There is no such page format.
    InvalidParameterError
        It has no pages of that size.
    CapacityError
        Its pages do not hold the largest row.
    """

    #: What a tuple is: a relation's, or of some other format.
    row_format: RowFormat
    page_size: int
    #: A member's name, or the path of a Python file that is one.
    page_format: str = PAGE_FORMAT
    _pages: PageFormat = field(init=False, repr=False)
    _parts: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[tuple[int, int], ...]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        pages: PageFormat = PAGE_FORMATS.load(self.page_format)
        object.__setattr__(self, "_pages", pages)
        pages.check_page_size(self.page_size)
        largest, most = pages.widest_row(self.row_format), pages.largest_record(self.row_format, self.page_size)
        if largest > most:
            bound = f"a row of {self.row_format.title} takes {largest} B of the {most} B that a page holds of one row"
            raise CapacityError(f"page size: {self.page_size} B, but {bound}")

    @cached_property
    def room(self) -> int:
        return self._pages.room(self.row_format, self.page_size)

    @property
    def page_title(self) -> str:
        """Name of a page in reports: its size, and its format unless that is the usual one."""
        return format_size(self.page_size) + (f" ({self.page_format})" if self.page_format != PAGE_FORMAT else "")

    @property
    def reserved_places(self) -> tuple[int, ...]:
        return self._pages.reserved_places(self.page_size)

    @property
    def keeps_columns_apart(self) -> bool:
        """True if pages say where columns lie, so that some columns are read without the others."""
        return not isinstance(self._pages.parts, MethodType)  # as families put in what a member leaves out

    def cell_sizes(self, tuples: Tuples) -> Integers:
        return self._pages.cell_sizes(self.row_format, tuples)

    def encode(self, tuples: Tuples, numbers: Integers | None = None) -> Bytes:
        """Pages that hold tuples as their boundaries say, shape (pages, page_size).

        `numbers` are which pages of their file these are, shape (pages,); without it, the first.
        """
        data = self._pages.encode_pages(self.row_format, tuples, self.page_size)
        self._pages.number_pages(data, np.arange(len(data)) if numbers is None else numbers)
        return data

    def parts(self, columns: tuple[str, ...], attributes: tuple[str, ...] = ()) -> tuple[tuple[int, int], ...]:
        """The bytes of a page with some columns of its tuples and attributes of its rows, as (first byte, bytes) in whole sectors.

        Columns are those of tuples in memory, ``key`` and ``row`` of a relation; attributes those of the stored rows: a relation's columns,
        by the names that they have there.
        """
        parts_read = self._parts.get((columns, attributes))
        if parts_read is None:
            names = [attribute.name for attribute in self.row_format.attributes if attribute.name is not None]
            for name in attributes:
                if name not in names:
                    raise UnknownNameError(f"column of {self.row_format.title}", name, names)
            parts_read = self._parts[columns, attributes] = self._pages.parts(self.row_format, columns, attributes, self.page_size)
        return parts_read

    def verify(self, data: Bytes, numbers: Integers) -> None:
        """Refuse whole pages, shape (pages, page_size), that are not those of a file's that have these numbers, if they can tell."""
        self._pages.verify_pages(self.row_format, data, numbers)

    def decode(self, data: Bytes, columns: tuple[str, ...] | None = None) -> Tuples:
        """The tuples of pages, shape (pages, page_size), in order, or some columns of them, whose parts alone are looked at."""
        return self._pages.decode_pages(self.row_format, self.row_format.columns if columns is None else columns, data)

    def decode_values(self, data: Bytes, attributes: tuple[str, ...]) -> pa.Table:
        """Attributes of the rows of pages, shape (pages, page_size), in order, whose parts alone are looked at."""
        return self._pages.decode_values(self.row_format, attributes, data)

    def pack(self, tuples: Tuples) -> Integers:
        """The first tuple of each page when tuples are packed in order, each page filled before the next; shape (pages + 1,)."""
        firsts, _ = fill_pages(self.cell_sizes(tuples), self.room, 0)
        return np.append(firsts, len(tuples))


@kernel
def fill_pages(sizes: Integers, room: int, free: int) -> tuple[Integers, int]:
    """Begins of pages among tuples of these sizes, if `free` bytes of the page before are free; and the free bytes at the end."""
    starts = np.empty(sizes.shape[0], np.int64)
    pages = 0
    for index in range(sizes.shape[0]):
        if sizes[index] > free:
            starts[pages] = index
            pages += 1
            free = room
        free -= sizes[index]
    return starts[:pages].copy(), free

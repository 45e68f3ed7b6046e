"""The rows of a table b-tree: leaves in order, cells, and overflow chains.

Every page is visited at most once and every length is checked, so that damage ends in an error, never in a loop.
Source: "Database File Format", section 1.6 (sqlite.org/fileformat2.html).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import DamagedFileError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.page.sqlite import LOCAL_MARGIN
from flashsim.storage.record import Bytes, byte_at, get_varint

Flags = npt.NDArray[np.bool_]

_LEAF, _INTERIOR = 13, 5
_FIRST_PAGE_HEADER = 100
_DEEPEST = 20


@dataclass(frozen=True)
class Database:
    """The pages of a database.

    Parameters
    ----------
    path
        For messages.
    pages
        Shape (pages, page size); page number 1 is row 0.
    usable
        Bytes of a page that SQLite uses.
    """

    path: Path
    pages: Bytes
    usable: int

    def damaged(self, what: str) -> DamagedFileError:
        return DamagedFileError(f"{self.path}: {what}")

    def is_table(self, root: int) -> bool:
        """Whether the tree at a page is of rows with row ids."""
        return 0 < root <= len(self.pages) and self.pages[root - 1, _FIRST_PAGE_HEADER * (root == 1)] in (_LEAF, _INTERIOR)


@dataclass(frozen=True)
class TreeRows:
    """Records of a table in order of row id: record i is ``data[starts[i]:ends[i]]``; shape (rows,) each."""

    data: Bytes
    starts: Integers
    ends: Integers
    row_ids: Integers


def read_tree(database: Database, root: int) -> TreeRows:
    """The rows of the table whose tree begins at page `root`."""
    visited = np.zeros(len(database.pages) + 1, np.bool_)
    leaves = _leaves(database, root, visited)
    counts = np.zeros(len(leaves) + 1, np.int64)
    wrong = _count_cells(database.pages, leaves, database.usable, counts)
    if wrong >= 0:
        raise database.damaged(f"page {leaves[wrong]} is damaged: its cells do not fit")
    cells = np.zeros((counts[-1], len(_CELL)), np.int64)
    used = np.zeros(database.pages.shape[1], np.bool_)
    wrong = _find_cells(database.pages, leaves, database.usable, counts, cells, used)
    if wrong >= 0:
        raise database.damaged(f"page {leaves[wrong]} is damaged: a cell runs beyond it or into another")
    if (np.diff(cells[:, ROW_ID]) <= 0).any():
        raise database.damaged(f"the rows of the table at page {root} are out of order")
    starts, lengths = cells[:, START].copy(), cells[:, LENGTH]
    (long,) = np.nonzero(lengths > cells[:, LOCAL])
    flat = database.pages.reshape(-1)
    if not len(long):
        return TreeRows(flat, starts, starts + lengths, cells[:, ROW_ID].copy())
    places = len(flat) + np.concatenate([[0], np.cumsum(lengths[long])])
    if places[-1] > 2 * len(flat):
        raise database.damaged("rows are longer than the whole file")
    data = np.concatenate([flat, np.empty(places[-1] - len(flat), np.uint8)])
    wrong = _assemble(data, database.pages, database.usable, cells[long], places, visited)
    if wrong >= 0:
        raise database.damaged(f"the overflow pages of row {cells[long[wrong], ROW_ID]} are damaged")
    starts[long] = places[:-1]
    return TreeRows(data, starts, starts + lengths, cells[:, ROW_ID].copy())


#: Columns of the cell table: where the local part of a record begins in the file, its bytes, and bytes of the whole record.
ROW_ID, START, LOCAL, LENGTH = _CELL = range(4)


def _leaves(database: Database, root: int, visited: Flags) -> Integers:
    level = np.array([root], np.int64)
    used = np.zeros(database.pages.shape[1], np.bool_)
    for _ in range(_DEEPEST):
        if level.min() < 1 or level.max() > len(database.pages) or len(np.unique(level)) < len(level) or visited[level].any():
            raise database.damaged(f"the tree at page {root} refers to a page twice, or beyond the file")
        visited[level] = True
        kinds = database.pages[level - 1, np.where(level == 1, _FIRST_PAGE_HEADER, 0)]
        if (kinds == _LEAF).all():
            return level
        if not (kinds == _INTERIOR).all():
            raise database.damaged(f"the tree at page {root} holds a page of another kind")
        children = np.empty(len(level) * database.usable // 2, np.int64)
        count = _children(database.pages, level, database.usable, children, used)
        if count < 0:
            raise database.damaged(f"the tree at page {root} has a damaged interior page")
        level = children[:count].copy()
    raise database.damaged(f"the tree at page {root} is deeper than any tree can be")


@kernel
def _number(page: Bytes, at: int, length: int) -> int:
    value = 0
    for index in range(length):
        value = (value << 8) | byte_at(page, at + index)
    return value


@kernel
def _children(pages: Bytes, level: Integers, usable: int, children: Integers, used: Flags) -> int:
    """Collect the children of interior pages in order; return how many, or -1 on damage."""
    found = 0
    for index in range(level.shape[0]):
        page = pages[level[index] - 1]
        head = _FIRST_PAGE_HEADER if level[index] == 1 else 0
        cells = _number(page, head + 3, 2)
        # Only page 1, whose header takes room, may do with its right-most child.
        if head + 12 + 2 * cells > usable or (cells == 0 and head == 0):
            return -1
        used[:] = False
        for cell in range(cells):
            at = _number(page, head + 12 + 2 * cell, 2)
            if at < head + 12 + 2 * cells or at + 5 > usable:
                return -1
            children[found] = _number(page, at, 4)
            found += 1
            end = get_varint(page, at + 4, usable)[1]
            for byte in range(at, end):
                if used[byte]:
                    return -1
                used[byte] = True
            if end < 0:
                return -1
        if not _is_covered(page, head, usable, used):
            return -1
        children[found] = _number(page, head + 8, 4)
        found += 1
    return found


@kernel
def _count_cells(pages: Bytes, leaves: Integers, usable: int, counts: Integers) -> int:
    """Running sum of the cells of leaves; return the first damaged leaf, or -1."""
    for index in range(leaves.shape[0]):
        head = _FIRST_PAGE_HEADER if leaves[index] == 1 else 0
        cells = _number(pages[leaves[index] - 1], head + 3, 2)
        if head + 8 + 6 * cells > usable:  # a cell takes 4 bytes at least, its pointer 2
            return index
        counts[index + 1] = counts[index] + cells
    return -1


@kernel
def _find_cells(pages: Bytes, leaves: Integers, usable: int, counts: Integers, cells: Integers, used: Flags) -> int:
    """Fill in the cell table; return the first damaged leaf, or -1.  `used` marks the bytes of a page that cells take."""
    page_size = pages.shape[1]
    most = usable - LOCAL_MARGIN
    least = (usable - 12) * 32 // 255 - 23
    for index in range(leaves.shape[0]):
        page = pages[leaves[index] - 1]
        head = _FIRST_PAGE_HEADER if leaves[index] == 1 else 0
        count = counts[index + 1] - counts[index]
        used[:] = False
        for cell in range(count):
            begin = _number(page, head + 8 + 2 * cell, 2)
            if begin < head + 8 + 2 * count:
                return index
            length, at = get_varint(page, begin, usable)
            if at < 0 or length < 0:
                return index
            row_id, at = get_varint(page, at, usable)
            if at < 0:
                return index
            local = length
            if length > most:
                local = least + (length - least) % (usable - 4)
                if local > most:
                    local = least
            end = at + local + (4 if local < length else 0)
            if end > usable:
                return index
            for byte in range(begin, end):
                if used[byte]:
                    return index
                used[byte] = True
            row = counts[index] + cell
            cells[row, ROW_ID] = row_id
            cells[row, START] = (leaves[index] - 1) * page_size + at
            cells[row, LOCAL] = local
            cells[row, LENGTH] = length
        if not _is_covered(page, head, usable, used):
            return index
    return -1


@kernel
def _is_covered(page: Bytes, head: int, usable: int, used: Flags) -> bool:
    """Whether cells, free blocks and as many fragmented bytes as the page counts make up its cell content."""
    content = _number(page, head + 5, 2)
    if content == 0:
        content = 65536
    block = _number(page, head + 1, 2)
    while block > 0:
        size = _number(page, block + 2, 2) if block + 4 <= usable else 0
        if size < 4 or block + size > usable:
            return False
        for byte in range(block, block + size):
            if used[byte]:
                return False
            used[byte] = True
        block = _number(page, block, 2)
    fragments = byte_at(page, head + 7)
    for byte in range(usable):
        if byte < content and used[byte]:
            return False
        if byte >= content and not used[byte]:
            fragments -= 1
    return fragments == 0


@kernel
def _assemble(data: Bytes, pages: Bytes, usable: int, cells: Integers, places: Integers, visited: Flags) -> int:
    """Put together the records that overflow, record i at ``places[i]``; return the first damaged one, or -1."""
    for index in range(cells.shape[0]):
        start, local, length = cells[index, START], cells[index, LOCAL], cells[index, LENGTH]
        place = places[index]
        data[place : place + local] = data[start : start + local]
        place += local
        left = length - local
        following = _number(data, start + local, 4)
        while left > 0:
            if following < 1 or following > pages.shape[0] or visited[following]:
                return index
            visited[following] = True
            page = pages[following - 1]
            taken = min(left, usable - 4)
            data[place : place + taken] = page[4 : 4 + taken]
            place += taken
            left -= taken
            following = _number(page, 0, 4)
        if following != 0:
            return index
    return -1

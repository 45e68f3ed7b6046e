"""What strategies write to temporary files: fetching instructions, and rows that were fetched before their partners are."""

from __future__ import annotations

import numpy as np

from flashsim.storage.heap_file import HeapFile
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, Tuples

#: Pages with which sorted runs can be merged beside two frames: two runs and the output.  With fewer, strategies fetch in order.
LEAST_MEMORY = 5
#: Numbers below this take 4 bytes.
_NARROW = 1 << 31


def instructions(file: HeapFile, keys: int, rows: int) -> Layout:
    """How instructions lie on pages, such as a file has: a key and a row id, below these bounds."""
    return Layout(FixedRows("fetching instruction", _widths(keys, rows)), file.page_size, file.layout.page_format)


def fetched_rows(file: HeapFile, parts: tuple[tuple[int, int], ...] | None, keys: int | None = None) -> Layout:
    """How fetched rows of a file lie on pages: with a key below this bound, if any, and what was fetched, of an average row's size."""
    length = file.page_size if parts is None else sum(size for _, size in parts)
    rows = max(1, int(file.first_rows[-1]))
    width = min(file.layout.row_format.largest_record(), -(-length * file.pages // rows))
    widths = _widths(keys or 1, rows)
    if keys is None:
        del widths["key"]
    return Layout(FixedRows(f"fetched rows of {file.name}", widths, width), file.page_size, file.layout.page_format)


def cells(layout: Layout) -> int:
    """Tuples that a page holds."""
    one = np.zeros(1, np.int64)
    return layout.room // int(layout.cell_sizes(Tuples(dict.fromkeys(layout.row_format.columns, one)))[0])


def _widths(keys: int, rows: int) -> dict[str, int]:
    return {"key": 4 if keys <= _NARROW else 8, "row": 4 if rows <= _NARROW else 8}

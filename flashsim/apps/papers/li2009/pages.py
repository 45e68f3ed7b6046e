"""The paper's pages, as a page format: 25 tuples on 4 KB, or 250 digests of a tenth of a tuple (table II); they are counted, not made.

Of 4,096 bytes 4,000 hold tuples.  Relations say what a tuple takes.  A number of any other record takes 8 bytes, so that a digest, an
instruction to fetch and an entry of a join index take 16, a tenth of 160, and a tuple that is put aside, with two numbers, 176.
"""

from typing import Any

import numpy as np

from flashsim.core.errors import RefusedError
from flashsim.core.request import Integers
from flashsim.storage.page.sqlite import check_page_size
from flashsim.storage.relation import Relation
from flashsim.storage.rows import RowFormat, Tuples

__all__ = ["check_page_size"]

#: Bytes of a number, and the share of a page that holds tuples.
_NUMBER, _ROOM = 8, 4000 / 4096


def room(row_format: RowFormat, page_size: int) -> int:
    return int(page_size * _ROOM)


def largest_record(row_format: RowFormat, page_size: int) -> int:
    """Bytes of the largest record that a page takes; of numbers it is never larger than their own format says."""
    return page_size


def cell_sizes(row_format: RowFormat, tuples: Tuples) -> Integers:
    if isinstance(row_format, Relation):
        size = row_format.largest_record()
    else:
        size = _NUMBER * len(row_format.columns) + getattr(row_format, "padding", 0)
    return np.full(len(tuples), size, np.int64)


def _refuse(*arguments: object) -> Any:
    raise RefusedError("page format of li2009: it is for simulated devices, and its pages have no bytes")


encode_pages = decode_pages = _refuse

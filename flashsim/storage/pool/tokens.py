"""Pages that hold a token instead of tuples: which page it is, and the log sequence number of its last change."""

import numpy as np

from flashsim.core.request import Integers
from flashsim.storage.heap_file import File, TupleFile
from flashsim.storage.layout import PAGE_FORMAT, Layout
from flashsim.storage.rows import FixedRows, Tuples

_TOKEN = FixedRows("token", {"page": 8, "lsn": 8})


def token_file(name: str, pages: int, page_size: int, page_format: str = PAGE_FORMAT) -> TupleFile:
    """A base file of so many pages, none of which was ever changed.

    Raises
    ------
    UnknownNameError, MissingFileError
        There is no such page format.
    InvalidParameterError
        It has no pages of that size.
    """
    loaded = Tuples({"page": np.arange(pages), "lsn": np.zeros(pages, np.int64)})
    layout = Layout(_TOKEN, page_size, page_format)
    return TupleFile(name, layout, temporary=False, pages=pages, first_rows=np.arange(pages + 1), loaded=loaded)


def holds_tokens(file: File) -> bool:
    return file.layout.row_format is _TOKEN


def tokens(pages: Integers, lsns: Integers) -> Tuples:
    return Tuples({"page": pages, "lsn": lsns}, np.arange(len(pages) + 1))

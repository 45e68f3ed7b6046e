"""Digests: of every tuple of a relation its join key and its row id, and nothing else.

Source: Li, On, Xu, Choi and Hu, "DigestJoin" (MDM 2009), section II.
"""

from collections.abc import Sequence

import numpy as np

from algorithms.blocks import read_block, spans
from algorithms.temporaries import Output
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import File, HeapFile, TupleFile, tuple_file
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, keyed

#: Rows that are numbered in 4 bytes.
_NARROW = 1 << 31


def digest_layout(file: File, padding: int = 0) -> Layout:
    """How the digests of a file lie on pages: of the same size and format, a key code of 8 bytes and a row id of 4 or 8.

    Parameters
    ----------
    padding
        Bytes of other columns that stay with the key.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> layout = digest_layout(SimpleNamespace(tuples=150_000, page_size=4096, layout=SimpleNamespace(page_format="sqlite")))
    >>> layout.row_format.widths
    {'key': 8, 'row': 4}
    """
    rows = FixedRows("digest", {"key": 8, "row": 4 if file.tuples <= _NARROW else 8}, padding)
    return Layout(rows, file.page_size, file.layout.page_format)


def digest_pages(file: HeapFile) -> int:
    """Pages that the digests of a relation take; those of NULL keys are left out, as a catalogue that counts them foresees."""
    layout = digest_layout(file)
    a_page = layout.room // int(layout.cell_sizes(keyed(np.zeros(1, np.int64), np.zeros(1, np.int64)))[0])
    return -(-int(np.count_nonzero(file.relation.codes != NULL_KEY)) // a_page)


def project(file: File, digests: File, input_pages: int, output_pages: int, *, page_io: bool) -> Algorithm:
    """Scan a file and write its digests, without those of NULL keys.

    Parameters
    ----------
    input_pages, output_pages
        How long the buffers are.
    """
    output = Output([digests], output_pages, page_io=page_io)
    for first, pages in spans(file.pages, input_pages):
        tuples = yield from read_block(file, first, pages, page_io)
        yield from output.append(tuples, np.zeros(len(tuples), np.int64))
    yield from output.finish()


def store_digests(file: HeapFile) -> TupleFile:
    """The digests of a relation as a base file that is there before a join begins."""
    file.digests = tuple_file(f"{file.name}-digests", digest_layout(file), file.run(0, file.pages).joinable())
    return file.digests


def with_digests(files: Sequence[HeapFile]) -> tuple[HeapFile, ...]:
    """Relations, and behind them the digests of each, as a driver takes them that is to find both on the device."""
    return (*files, *(file.digests or store_digests(file) for file in dict.fromkeys(files)))


def stored_digests(file: HeapFile) -> TupleFile:
    """The digests of a relation that are there."""
    if file.digests is None:
        raise InvalidParameterError("digests stored", file.name, "its digests were not put on the device")
    return file.digests

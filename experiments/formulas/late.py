"""What the formulas of joins that fetch rows late are told of two files: rows that join, digests and the join index."""

from __future__ import annotations

import numpy as np

from algorithms.digests import digest_pages
from algorithms.join_index import join_index_rows
from algorithms.joins.base import JOINS, JoinParameters
from algorithms.page_access.plan import LEAST_FRAMES
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples
from models.join_costs.base import Late, LateSide


def late_sizes(files: tuple[HeapFile, HeapFile], parameters: JoinParameters, results: int) -> Late:
    """Sizes for `models.join_costs.base.Sizes`.

    Parameters
    ----------
    files
        The smaller is first.
    results
        Rows of the result.
    """
    r, s = (_side(file, other) for file, other in zip(files, reversed(files), strict=True))
    layout = Layout(join_index_rows(r.rows, s.rows), files[0].page_size, files[0].layout.page_format)
    least = JOINS.load(parameters.first).STREAMS_IN
    return Late(
        r,
        s,
        results,
        -(-results // _entries(layout)),
        layout.page_size,
        parameters.first,
        parameters.fetch,
        least if 0 < least <= parameters.memory - LEAST_FRAMES else 0,
        parameters.digests_stored,
        parameters.latency_ratio,
        parameters.access_ratio,
    )


def _entries(layout: Layout) -> int:
    """Entries of a join index on a page."""
    entry = Tuples({name: np.zeros(1, np.int64) for name in layout.row_format.columns})
    return layout.room // int(layout.cell_sizes(entry)[0])


def _side(file: HeapFile, other: HeapFile) -> LateSide:
    codes = file.relation.codes
    joined = np.isin(codes, other.relation.codes) & (codes != NULL_KEY)
    return LateSide(file.tuples, int(np.count_nonzero(joined)), digest_pages(file))

"""What the formulas of joins that fetch rows late are told of two files: rows that join, digests and the join index."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from algorithms.digests import digest_layout
from algorithms.joins.base import JOINS, JoinParameters
from algorithms.late_fetch import Side
from algorithms.minipages import key_column, part_bytes
from algorithms.page_access.plan import LEAST_FRAMES
from flashsim.core.errors import InvalidParameterError
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, keyed
from models.join_costs.base import Late, LateSide, Parts


def formula_of(algorithm: str) -> str:
    """What a join's file names: a member's name or a path; empty where it names none."""
    join = JOINS.load(algorithm)
    if not isinstance(join.FORMULA, str):
        raise InvalidParameterError("formula", join.FORMULA, "it must be a name or the path of a Python file")
    return str(Path(join.__file__).parent / join.FORMULA) if join.FORMULA.endswith(".py") else join.FORMULA


def late_sizes(algorithm: str, files: tuple[HeapFile, HeapFile], parameters: JoinParameters, results: int) -> Late:
    """Sizes for `models.join_costs.base.Sizes`.

    Parameters
    ----------
    files
        The smaller is first; `parameters` name columns accordingly.
    results
        Rows of the result.
    """
    r, s = (_side(file, other) for file, other in zip(files, reversed(files), strict=True))
    if "columns" in JOINS.load(algorithm).OPTIONS:
        r, s = (_by_column(side, file, parameters.wanted(label)) for side, file, label in zip((r, s), files, "RS", strict=True))
    least = JOINS.load(parameters.first).STREAMS_IN
    return Late(
        r,
        s,
        results,
        -(-results // _entries_a_page(files[0])),
        formula_of(parameters.first),
        Path(parameters.first).stem if parameters.first.endswith(".py") else parameters.first,
        parameters.fetch,
        formula_of(parameters.kernel),
        least if 0 < least <= parameters.memory - LEAST_FRAMES else 0,
        parameters.digests_stored,
        parameters.latency_ratio,
        parameters.access_ratio,
    )


def _entries_a_page(file: HeapFile, more: int = 0) -> int:
    """Entries of a join index that a page holds, with so many bytes more each."""
    return _a_page(Layout(FixedRows("join index", {"key": 4, "row": 4}, more), file.page_size, file.layout.page_format))


def _a_page(layout: Layout) -> int:
    """Tuples of one size that a page holds."""
    return layout.room // int(layout.cell_sizes(keyed(np.zeros(1, np.int64), np.zeros(1, np.int64)))[0])


def _side(file: HeapFile, other: HeapFile) -> LateSide:
    codes = file.relation.codes
    has_key = codes != NULL_KEY
    joined = np.isin(codes, other.relation.codes) & has_key
    return LateSide(file.tuples, int(np.count_nonzero(has_key)), int(np.count_nonzero(joined)), _a_page(digest_layout(file)))


def _by_column(side: LateSide, file: HeapFile, wanted: tuple[str, ...] | None) -> LateSide:
    """The same of a relation whose columns lie apart."""
    keys, fetched = key_column(file, page_io=False), Side("", file, wanted)
    scan = Parts(len(keys.parts), part_bytes(keys.parts) / file.page_size)
    fetch = Parts(1 if fetched.parts is None else len(fetched.parts), fetched.page_bytes / file.page_size, fetched.parts is None)
    return replace(side, key_pages=keys.pages, keys=scan, wanted=fetch, carried_a_page=_entries_a_page(file, fetched.width))

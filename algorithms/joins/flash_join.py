"""FlashJoin: a join kernel joins keys that are scanned alone, and a fetch kernel materialises columns of the rows that join, late.

Source: Tsirogiannis, Harizopoulos, Shah, Wiener and Graefe, "Query Processing Techniques for Solid State Drives" (SIGMOD 2009), section 4.
"""

from __future__ import annotations

from dataclasses import replace

from algorithms.joins._late import FETCHES, PAGE_FORMAT, LateJoin, allocate, prepare
from algorithms.joins.base import JOINS, JoinParameters
from algorithms.minipages import Selection, scanned
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation

__all__ = ["FETCHES", "PAGE_FORMAT", "allocate", "join"]

#: The join kernel unless another is asked for.
KERNEL = "hybrid-hash"


def join(
    r: File,
    s: File,
    parameters: JoinParameters,
    allocation: Allocation | None = None,
    *,
    r_where: Selection | None = None,
    s_where: Selection | None = None,
) -> Algorithm:
    """Join R with S; R is the smaller.

    Parameters
    ----------
    r_where, s_where
        Which rows take part; all without it.

    Raises
    ------
    InvalidParameterError
        Pages that do not keep columns apart, too little memory, for the kernel as well, or an allocation that does not fit.
    UnknownNameError
        A column is wanted that is not stored.
    """
    late = prepare("flash-join", r, s, parameters, allocation, (r_where, s_where))
    return _join(late, JOINS.load(KERNEL).join(late.r, late.s, replace(parameters, memory=late.memory)))


def _join(late: LateJoin, kernel: Algorithm) -> Algorithm:
    yield from scanned(kernel, late.fetch.append)
    yield from late.fetch.finish(sort_again=True)

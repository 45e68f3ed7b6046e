"""FlashJoin: a join kernel joins keys that are scanned alone, and a fetch kernel materialises columns of the rows that join, late.

Source: Tsirogiannis, Harizopoulos, Shah, Wiener and Graefe, "Query Processing Techniques for Solid State Drives" (SIGMOD 2009), section 4.
"""

from dataclasses import dataclass, replace
from typing import Annotated

from algorithms.joins._late import LateOptions, late_allocation, late_join
from algorithms.joins.base import JOINS, JoinParameters
from algorithms.late_fetch.columns import Selection, scan_columns
from algorithms.late_fetch.fetch import PAGE_FORMAT
from flashsim.core.errors import InvalidParameterError
from flashsim.core.options import Option
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation

__all__ = ["PAGE_FORMAT", "allocate", "check", "join"]


@dataclass(frozen=True, kw_only=True)
class FlashJoinOptions(LateOptions):
    """Options of FlashJoin."""

    kernel: Annotated[str, Option("Join that flash-join applies to the keys; hybrid-hash by default.", "JOIN", completes=("joins",))] = (
        "hybrid-hash"
    )


#: In `models.join_costs`.
FORMULA = "flash-join"
#: Rows of base relations.
FETCHES = True
OPTIONS = FlashJoinOptions
INNER = "kernel"
allocate = late_allocation


def check(parameters: JoinParameters) -> None:
    """Refuse a kernel that there is not or that does not join keys, and columns of neither relation."""
    options = parameters.options_of(FlashJoinOptions)
    options.columns_of("R")
    if JOINS.load(options.kernel).FETCHES:
        raise InvalidParameterError("kernel", options.kernel, "it fetches rows of base relations, and a kernel has only keys")


def join(
    r: File,
    s: File,
    parameters: JoinParameters,
    allocation: Allocation | None = None,
    *,
    r_where: Selection | None = None,
    s_where: Selection | None = None,
) -> Algorithm:
    """Join R with S; R is the smaller.  All rows take part that no selection (`r_where`, `s_where`) leaves out."""
    check(parameters)
    late = late_join("flash-join", r, s, parameters, allocation, (r_where, s_where))
    kernel = parameters.options_of(FlashJoinOptions).kernel
    try:
        keys = JOINS.load(kernel).join(late.r, late.s, replace(parameters, memory=late.memory, options=None))
    except InvalidParameterError as problem:
        least = f"the {late.memory} pages of memory that it has do not do ({problem})"
        raise InvalidParameterError("kernel", kernel, least) from None

    def run() -> Algorithm:
        yield from scan_columns(keys, late.fetch.append)
        yield from late.fetch.finish(sort_again=True)

    return run()

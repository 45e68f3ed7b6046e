"""Lookups of single rows of TPC-H's tables by an index on the primary key, as a join by nested loops over an index makes them.

TPC Benchmark H, standard specification, revision 3.0.1.  Rows at scale factor SF, and bytes of a row, are those of clause 4.2.5.1: SUPPLIER
10,000 SF of 159 B, PART 200,000 SF of 155 B, CUSTOMER 150,000 SF of 179 B, ORDERS 1,500,000 SF of 104 B.  What is looked up follows
clause 4.2.3:

========  ========================================================================================================================
part      L_PARTKEY of lineitems: random in 1 to 200,000 SF
supplier  L_SUPPKEY of lineitems: one of the four suppliers of a random part, by the clause's formula
customer  O_CUSTKEY of orders: random, and never a multiple of 3, for which dbgen takes the next key (after the last, the one before)
orders    L_ORDERKEY of lineitems in no order: of all orders, each in proportion to its lineitems, random in 1 to 7
lineitem  each lineitem, in no order, looks up its part, its supplier, its order, and the customer of that, one after the other
========  ========================================================================================================================

A lookup references an index page a level, from the root to a leaf, and then the page of the row.  Rows lie in pages in the order of their
keys, as many as fit without any header; an index page is full of entries of 16 bytes.  A table's pages come first and then those of its
index, from the leaves to the root; tables follow each other.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flashsim.core import errors, parameters, rng, units
from flashsim.core.request import Integers
from flashsim.core.transactions import BATCH, ReferenceBatches, References
from traces.references.base import Generated, pieces

TITLE = "lookups by index of rows of TPC-H's tables"

#: Rows at scale factor 1 and bytes of a row (clause 4.2.5.1).
_TABLES = {"part": (200_000, 155), "supplier": (10_000, 159), "orders": (1_500_000, 104), "customer": (150_000, 179)}
_LOOKUPS = ("part", "supplier", "orders", "customer", "lineitem")
_ENTRY = 16
_MOST_LINEITEMS = 7
#: Suppliers of a part.
_SUPPLIERS = 4


class _TablePlace(NamedTuple):
    """Places of a table and of its index."""

    rows: int
    page_rows: int
    first: int  # page of the table
    levels: list[int]  # the first page of each level of the index, from the leaves to the root
    end: int


@dataclass(frozen=True, kw_only=True)
class Stream(Generated):
    """See `TITLE`; nothing is written."""

    scale: float = parameters.number("scale factor of TPC-H", 0.001, 100_000, default=1.0)
    lookups: str = parameters.text("of part, supplier, orders or customer, or of all four for each lineitem", default="lineitem")
    page_size: int = parameters.size("of a page", least=512, default=4 * units.KIB)

    def __post_init__(self) -> None:
        if self.lookups not in _LOOKUPS:
            raise errors.UnknownNameError("lookups of TPC-H", self.lookups, _LOOKUPS)

    @cached_property
    def tables(self) -> dict[str, _TablePlace]:
        tables, first, fanout = {}, 0, self.page_size // _ENTRY
        for name, (rows, width) in _TABLES.items():
            rows = max(1, int(rows * self.scale))
            levels, end, entries = list[int](), first + -(-rows // (self.page_size // width)), rows
            while not levels or entries > 1:
                entries = -(-entries // fanout)
                levels.append(end)
                end += entries
            tables[name] = _TablePlace(rows, self.page_size // width, first, levels, end)
            first = end
        return tables

    @property
    def most_pages(self) -> int:
        return max(table.end for table in self.tables.values())

    def batches(self) -> ReferenceBatches:
        pending, part = self.references, 0
        while pending > 0:
            keys = self.keys(BATCH // 16, rng.generator(self.seed, "lookups", part))
            lookups = [self._pages(self.tables[name], keys[name]) for name in keys if self.lookups in (name, "lineitem")]
            pages = np.concatenate(lookups, axis=1).ravel()[:pending]
            yield from pieces(References(pages))
            pending, part = pending - len(pages), part + 1

    def keys(self, count: int, random: np.random.Generator) -> dict[str, Integers]:
        """The rows that so many lineitems look up, from 0, by table, shape (count,) each."""
        rows = {name: table.rows for name, table in self.tables.items()}
        part, orders = random.integers(0, rows["part"], count), _orders_of_lineitems(rows["orders"], count, random)
        step = rows["supplier"] // _SUPPLIERS + part // rows["supplier"]
        buyer = _mix(orders) % rows["customer"] if self.lookups == "lineitem" else random.integers(0, rows["customer"], count)
        buyer += buyer % 3 == 2
        return {
            "part": part,
            "supplier": (part + 1 + random.integers(0, _SUPPLIERS, count) * step) % rows["supplier"],
            "orders": orders,
            "customer": np.where(buyer < rows["customer"], buyer, np.maximum(rows["customer"] - 2, 0)),
        }

    def _pages(self, table: _TablePlace, keys: Integers) -> Integers:
        fanout = self.page_size // _ENTRY
        levels = [begin + keys // fanout ** (level + 1) for level, begin in enumerate(table.levels)]
        return np.stack([*levels[::-1], table.first + keys // table.page_rows], axis=1)


def _mix(keys: Integers) -> Integers:
    """31 bits of each key, which have nothing to do with it."""
    mixed = (keys.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed ^ mixed >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(33)).astype(np.int64)


def _orders_of_lineitems(rows: int, count: int, random: np.random.Generator) -> Integers:
    """Orders, each in proportion to its lineitems, of which it has 1 to 7, shape (count,)."""
    orders, pending = np.empty(count, np.int64), np.arange(count)
    while len(pending):
        orders[pending] = random.integers(0, rows, len(pending))
        pending = pending[random.integers(0, _MOST_LINEITEMS, len(pending)) > _mix(orders[pending]) % _MOST_LINEITEMS]
    return orders

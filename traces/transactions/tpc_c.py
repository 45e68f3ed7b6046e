"""TPC-C: orders, payments, deliveries and what is asked about them, by the benchmark's five transactions.

TPC Benchmark C, standard specification, revision 5.11.  What each transaction references is in `traces.transactions._tpc_c_profiles`.

===============================================================  ===========
45 % new orders, 43 % payments, 4 % each of the three others     5.2.4.2
warehouse and district of each transaction: even                 2.4.1.1
customers: NURand(1023, 1, 3000), names NURand(255, 0, 999)      2.4.1.2, 2.5.1.2
60 % of the customers are found by name                          2.5.1.2, 2.6.1.2
15 % of the payments are of customers of another warehouse       2.5.1.2
items: NURand(8191, 1, 100000), 5 to 15 an order, evenly         2.4.1.3, 2.4.1.5
1 % of the lines are supplied by another warehouse               2.4.1.5
3,000 orders a district at the start, 900 of them undelivered    4.3.3.1
===============================================================  ===========

The benchmark has minima for all but new orders; the mix is that which systems are run with.  Several rows of a page that a transaction
touches one after the other are one reference.  Not told: think and keying times, the 1 % of orders that are rolled back (2.4.1.4), and
inner pages of indexes, which stay in memory.  No client has a warehouse of its own: one is drawn for each transaction.

Rows of a warehouse and bytes of a row are those of clause 1.2.1; see `TABLES`.
Pages filled to 80 % hold 20 rows of STOCK and 9 of CUSTOMER, and a warehouse takes 98 MB; full ones hold 25 and 12, and it takes 77 MB.
The 80 % are fitted: 2,000 warehouses then take about the 200 GB that do2012, section 3.4, has for them.

CUSTOMER has an index by last and first name (16 bytes each, clause 1.3.1, and 8 of identifiers), of which only leaves are referenced.
ITEM is read only if that is asked for: its 12 MB do not grow with the warehouses, nothing writes them, and they stay in memory.

Tables follow each other, each in the order of its warehouses.  What grows has more pages behind all tables: the first new page of
ORDER-LINE of each district, one district after the other, then the second of each, and so on; likewise those of ORDER, and then those of
HISTORY, which has no primary key (clause 1.3.1) and grows at one end.  Where no page is left, the oldest that was created is made anew.
NEW-ORDER, from which deliveries take what orders put in, goes round in a district's pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, gcd, log2
from typing import ClassVar

import numpy as np

from flashsim.core import parameters, rng, units
from flashsim.core.transactions import Transactions
from traces.transactions import _tpc_c_profiles as profiles
from traces.transactions._tpc_c_profiles import DISTRICTS, PageLayout, Region
from traces.transactions.base import Metric, TransactionWorkload, rows_of_a_page

TITLE = "TPC-C's five transactions"

#: Rows of a warehouse, bytes of a row (clause 1.2.1), and whether each district has pages of its own, in the order in which tables lie.
TABLES = {
    "warehouse": (1, 89, False),
    "district": (10, 95, False),
    "customer": (30_000, 655, False),
    "names": (30_000, 40, False),
    "stock": (100_000, 306, False),
    "order": (30_000, 24, True),
    "line": (300_000, 54, True),
    "new_order": (9_000, 8, True),
    "history": (30_000, 46, True),
}
ITEM_ROWS, ITEM_BYTES = 100_000, 82
#: Pages of NEW-ORDER beyond those that its rows at the start fill: its head and its tail.
_ENDS = 2
#: Transactions whose draws are made together, and references for which there is room: they have 19 on average.
_TOGETHER, _ROOM = 4096, 4096 * 32


@dataclass(frozen=True, kw_only=True)
class Workload(TransactionWorkload):
    """See `TITLE`; without end."""

    SCALES: ClassVar[tuple[str, ...]] = ("warehouses",)
    METRIC: ClassVar[Metric] = Metric("tpmC", "new-order", profiles.NEW_ORDERS / 100, 60 * units.SECONDS)

    warehouses: float = parameters.number("warehouses; of a fraction, all have a part of their customers and stock", 0.01, 100_000)
    fill: int = parameters.count("how full pages are at the start, in percent", least=10, most=100, default=80)
    growth: float = parameters.number("orders for which there is room, over those at the start", 0, 1000, default=1.0)
    items: bool = parameters.switch("whether the table of items is read, too", default=False)

    @cached_property
    def layout(self) -> PageLayout:
        return layout(self.warehouses, self.fill, self.growth, self.items)

    @property
    def pages(self) -> int:
        return self.layout.pages

    @property
    def kinds(self) -> tuple[str, ...]:
        return profiles.KINDS

    @cached_property
    def constants(self) -> profiles.Constants:
        """Constants of the draws; of fewer customers and items A is smaller, too, so that these are drawn as unevenly."""
        customers, random = self.layout.customers, rng.generator(self.seed, "constants")
        halvings = round(log2(ITEM_ROWS / self.layout.items))
        names, ordering, items = (max(1, values >> halvings) - 1 for values in (256, 1024, 8192))
        step = next(step for step in range(max(1, round(customers * 0.618)), 2 * customers + 1) if gcd(step, customers) == 1)
        return profiles.Constants(
            key=int(random.integers(0, 1 << 31)),
            names=names,
            name_shift=int(random.integers(0, names + 1)),
            customers=ordering,
            customer_shift=int(random.integers(0, ordering + 1)),
            items=items,
            item_shift=int(random.integers(0, items + 1)),
            step=step,
            back=pow(step, -1, customers),
        )

    def customer_odds(self) -> np.ndarray:
        """The logarithm of the chance that a new order is not of a customer, shape (customers,)."""
        most, customers = self.constants.customers, self.layout.customers
        draws = np.bitwise_or.outer(np.arange(most + 1), np.arange(1, customers + 1)) + self.constants.customer_shift
        chances = np.bincount(draws.ravel() % customers, minlength=customers) / draws.size
        return np.log1p(-np.clip(chances, 1e-12, 1 - 1e-12))

    def parts(self) -> Iterator[Transactions]:
        districts = np.empty((self.layout.districts, 2), np.int64)
        districts[:] = self.layout.customers, self.layout.customers - self.layout.undelivered
        database, paid, part = profiles.Database(self.layout, self.constants, districts, self.customer_odds()), 0, 0
        while True:
            words, first = rng.generator(self.seed, "transactions", part).integers(0, 1 << 32, (_TOGETHER, profiles.WORDS)), 0
            while first < _TOGETHER:
                references, ends, kinds = np.empty((_ROOM, 3), np.int64), np.empty(_TOGETHER, np.int64), np.empty(_TOGETHER, np.int64)
                end, paid = profiles.make(database, words, first, references, ends, kinds, paid)
                ends, kinds = ends[: end - first], kinds[: end - first]
                yield Transactions(references[: ends[-1]], ends, kinds)
                first = end
            part += 1


def layout(scale: float, fill: int, growth: float, items_are_read: bool) -> PageLayout:
    """The layout of `scale` warehouses, of pages that are full to `fill` percent; ITEM has pages if it is read.

    Of a fraction all warehouses have a part of their rows: 0.1 is one with 300 customers a district.  `growth` is the orders for which
    there is room, over those at the start.
    """
    warehouses = ceil(scale)
    share = scale / warehouses
    districts, customers = warehouses * DISTRICTS, max(3, round(3000 * share))
    items = max(1, round(ITEM_ROWS * share))
    rows = {name: ceil(count * share) if count > DISTRICTS else count for name, (count, _, _) in TABLES.items()}
    rows |= {"customer": customers * DISTRICTS, "names": customers * DISTRICTS, "stock": items}
    regions, end = dict[str, Region](), 0
    for name, (_, width, apart) in TABLES.items():
        each, of_page = (rows[name] // DISTRICTS if apart else rows[name] * warehouses), rows_of_a_page(width, fill)
        pages = -(-each // of_page) + (_ENDS if name == "new_order" else 0)
        regions[name] = Region(end, of_page, pages, 0, 0)
        end += pages * (districts if apart else 1)
    of_page = rows_of_a_page(ITEM_BYTES, fill)
    regions["item"] = Region(end, of_page, -(-items // of_page) if items_are_read else 0, 0, 0)
    at_start = end = end + regions["item"].pages
    for name, apart in {"line": True, "order": True, "history": False}.items():
        most = ceil(regions[name].pages * growth * (1 if apart else districts)) + 1
        regions[name] = regions[name]._replace(grown=end, most=most)
        end += most * (districts if apart else 1)
    return PageLayout(warehouses, districts, customers, max(1, customers * 3 // 10), items, at_start, end, **regions)

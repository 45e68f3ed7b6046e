"""TPC-C: orders, payments, deliveries and what is asked about them, by the benchmark's five transactions.

TPC Benchmark C, standard specification, revision 5.11.  What each transaction references is in `traces.transactions._tpc_c_profiles`, where
tables lie in `traces.transactions._tpc_c_layout`.

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
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd, log2
from typing import ClassVar

import numpy as np

from flashsim.core.parameters import count, number, switch
from flashsim.core.rng import generator
from flashsim.core.transactions import Transactions
from flashsim.core.units import SECONDS
from traces.transactions._tpc_c_layout import ITEM_ROWS, Layout, layout
from traces.transactions._tpc_c_profiles import (
    KINDS,
    NEW_ORDERS,
    WORDS,
    Constants,
    Database,
    make,
)
from traces.transactions.base import Metric, TransactionWorkload

TITLE = "TPC-C's five transactions"

#: Transactions whose draws are made together, and references for which there is room: they have 19 on average.
_TOGETHER, _ROOM = 4096, 4096 * 32


@dataclass(frozen=True, kw_only=True)
class Workload(TransactionWorkload):
    """See `TITLE`; without end."""

    SCALES: ClassVar[tuple[str, ...]] = ("warehouses",)
    METRIC: ClassVar[Metric] = Metric("tpmC", "new-order", NEW_ORDERS / 100, 60 * SECONDS)

    warehouses: float = number("warehouses; of a fraction, all have a part of their customers and stock", 0.01, 100_000)
    fill: int = count("how full pages are at the start, in percent", least=10, most=100, default=80)
    growth: float = number("orders for which there is room, over those at the start", 0, 1000, default=1.0)
    items: bool = switch("whether the table of items is read, too", default=False)

    @cached_property
    def layout(self) -> Layout:
        return layout(self.warehouses, self.fill, self.growth, self.items)

    @property
    def pages(self) -> int:
        return self.layout.pages

    @property
    def kinds(self) -> tuple[str, ...]:
        return KINDS

    @cached_property
    def constants(self) -> Constants:
        """What draws depend on; of fewer customers and items A is smaller, too, so that these are drawn as unevenly."""
        customers, random = self.layout.customers, generator(self.seed, "constants")
        halvings = round(log2(ITEM_ROWS / self.layout.items))
        names, ordering, items = (max(1, values >> halvings) - 1 for values in (256, 1024, 8192))
        step = next(step for step in range(max(1, round(customers * 0.618)), 2 * customers + 1) if gcd(step, customers) == 1)
        return Constants(
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
        drawn = np.bitwise_or.outer(np.arange(most + 1), np.arange(1, customers + 1)) + self.constants.customer_shift
        chances = np.bincount(drawn.ravel() % customers, minlength=customers) / drawn.size
        return np.log1p(-np.clip(chances, 1e-12, 1 - 1e-12))

    def parts(self) -> Iterator[Transactions]:
        districts = np.empty((self.layout.districts, 2), np.int64)
        districts[:] = self.layout.customers, self.layout.customers - self.layout.undelivered
        database, paid, part = Database(self.layout, self.constants, districts, self.customer_odds()), 0, 0
        while True:
            words, first = generator(self.seed, "transactions", part).integers(0, 1 << 32, (_TOGETHER, WORDS)), 0
            while first < _TOGETHER:
                references, ends, kinds = np.empty((_ROOM, 3), np.int64), np.empty(_TOGETHER, np.int64), np.empty(_TOGETHER, np.int64)
                made, paid = make(database, words, first, references, ends, kinds, paid)
                ends, kinds = ends[: made - first], kinds[: made - first]
                yield Transactions(references[: ends[-1]], ends, kinds)
                first = made
            part += 1

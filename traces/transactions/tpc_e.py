"""TPC-E as a stream of references with the benchmark's mix of transactions: read mostly, over a working set that is a part of the database.

The stream is synthetic, and its parameters are fitted to do2012, section 3.4.3: every transaction references 20 pages, independently of
each other; the hottest part x of the working set gets a share x**theta of the references; some of them write.  What transactions do in
truth is not told, nor that their kinds reference different things.  The mix is that of TPC Benchmark E, standard specification,
clause 6.2.2.1; Data-Maintenance, which runs once a minute beside it, is left out.  The working set lies scattered over the database, page
by page or in groups of neighbours that are about as hot: eight of them are an extent of SQL Server, which belongs to one table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flashsim.core.parameters import count, number, size
from flashsim.core.rng import generator
from flashsim.core.transactions import COUNT, FIRST, MARKS, WRITES, Transactions
from flashsim.core.units import SECONDS
from traces.references.base import scatter
from traces.transactions.base import PAGE, Metric, TransactionWorkload

TITLE = "TPC-E's mix of transactions, over a synthetic stream of references"

#: Kinds of transactions, and the percentage of each (clause 6.2.2.1).
MIX = {
    "broker-volume": 4.9,
    "customer-position": 13.0,
    "market-feed": 1.0,
    "market-watch": 18.0,
    "security-detail": 14.0,
    "trade-lookup": 8.0,
    "trade-order": 10.1,
    "trade-result": 10.0,
    "trade-status": 19.0,
    "trade-update": 2.0,
}
#: Transactions that are drawn together.
_TOGETHER = 4096


@dataclass(frozen=True, kw_only=True)
class Workload(TransactionWorkload):
    """See `TITLE`; without end."""

    SCALES: ClassVar[tuple[str, ...]] = ("database",)
    METRIC: ClassVar[Metric] = Metric("tpsE", "trade-result", MIX["trade-result"] / 100, SECONDS)

    database: int = size("of the database; do2012 has 115, 230 and 415 GB")
    page_size: int = size("of a page", least=512, default=PAGE)
    each: int = count("references of a transaction", most=10_000, default=20)
    working_set: float = number("share of the pages that are referenced", 0, 1, default=0.63)
    theta: float = number("the hottest part x of the working set gets x**theta of the references; 1 is even", 0.001, 1, default=0.12)
    neighbours: int = count("pages in a row that are about as hot", most=1 << 20, default=1)
    write_share: float = number("share of references that write their page", 0, 1, default=0.06)

    @property
    def pages(self) -> int:
        return max(1, self.database // self.page_size)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(MIX)

    @property
    def active(self) -> int:
        return max(1, min(round(self.pages * self.working_set), self.pages // self.neighbours * self.neighbours))

    def parts(self) -> Iterator[Transactions]:
        bounds, part, together = np.cumsum(list(MIX.values())) / 100, 0, _TOGETHER * self.each
        ends = np.arange(self.each, together + 1, self.each)
        while True:
            random = generator(self.seed, "transactions", part)
            kinds = np.searchsorted(bounds[:-1], random.random(_TOGETHER), side="right")
            # An even draw's power 1 / theta: an exponential one is the negative logarithm of an even one.
            ranks = (self.active * np.exp(random.standard_exponential(together) / -self.theta)).astype(np.int64)
            references = np.empty((together, 3), np.int64)
            group, within = np.divmod(np.minimum(ranks, self.active - 1), self.neighbours)
            groups = max(1, self.pages // self.neighbours)
            references[:, FIRST], references[:, COUNT] = scatter(group, groups) * self.neighbours + within, 1
            references[:, MARKS] = (random.random(together, np.float32) < self.write_share) * WRITES
            yield Transactions(references, ends, kinds)
            part += 1

"""TPC-H: 22 queries as scans of the tables that they name and lookups of line items by key, alone or in several streams.

TPC Benchmark H, standard specification, revision 3.0.1: rows and bytes of a row are those of clause 4.2.5.1, the tables of each query those
of clauses 2.4.1 to 2.4.22 (NATION and REGION fit into a page), the order of queries in a stream that of appendix A.  Refresh functions
(clauses 2.5 and 2.6) write the pages of the orders that they insert or delete, which lie together, and those of their line items.

Fitted to do2012, section 3.4.4 and table 3.3: how full pages are, which stands for indexes, too (a unit of scale takes 1.5 GB);
and, in simulation at 3/1000 with table 3.1's rates, which share of a table a query scans (a part that lies anywhere in it) and how many
lookups queries make, to the throughput tests at scale 100 without SSD and with DW.  Scale 30 is then a prediction, and too fast without
SSD.  That ten queries make all lookups is fitted to the power tests; which ten is a guess: those that reach LINEITEM from another table's
rows; they do not scan it then.  Lookups are even over LINEITEM, and spread among the extents of the scans.  (Arithmetic in which every
lookup is a read from a device has 2,576 of them and 22 % of full pages scanned.)

A query is several transactions of some references each, which clients run side by side as a database system reads ahead: as many clients
as requests that it has outstanding.  In the throughput test the i-th queries of all streams run at the same time, their transactions mixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from flashsim.core.errors import UnknownNameError
from flashsim.core.parameters import count, number, text
from flashsim.core.request import Integers
from flashsim.core.rng import generator
from flashsim.core.transactions import COUNT, FIRST, MARKS, SCANS, WRITES, Transactions
from flashsim.core.units import SECONDS
from traces.transactions._cut import cut
from traces.transactions._pages import rows_of_a_page
from traces.transactions.base import TransactionWorkload

TITLE = "TPC-H's queries as scans and lookups"

POWER, THROUGHPUT = "power", "throughput"
#: Rows at scale factor 1 and bytes of a row (clause 4.2.5.1).
TABLES = {
    "lineitem": (6_001_215, 112),
    "orders": (1_500_000, 104),
    "partsupp": (800_000, 144),
    "part": (200_000, 155),
    "customer": (150_000, 179),
    "supplier": (10_000, 159),
}
#: The tables of each query, by their first letters: lineitem, orders, partsupp (ps), part, customer, supplier.
_QUERIES = (
    "l", "p s ps", "c o l", "o l", "c o l s", "l", "s l o c", "p s l o c", "p s l ps o", "c o l", "ps s",
    "o l", "c o", "l p", "l s", "ps p s", "l p", "c o l", "l p", "s ps p l", "s l o", "c o",
)  # fmt: skip
_LETTERS = {"l": "lineitem", "o": "orders", "ps": "partsupp", "p": "part", "c": "customer", "s": "supplier"}
#: The tables of query 1 and so on.
QUERIES = tuple(tuple(_LETTERS[letter] for letter in query.split()) for query in _QUERIES)
#: Queries that look up line items.
LOOKING_UP = frozenset({4, 5, 7, 8, 9, 10, 17, 18, 20, 21})
#: Appendix A: the power test's order, and those of the first streams of a throughput test.
ORDERS = (
    (14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12),
    (21, 3, 18, 5, 11, 7, 6, 20, 17, 12, 16, 15, 13, 10, 2, 8, 14, 19, 9, 22, 1, 4),
    (6, 17, 14, 16, 19, 10, 9, 2, 15, 8, 5, 22, 12, 7, 13, 18, 1, 4, 20, 3, 11, 21),
    (8, 5, 4, 6, 17, 7, 1, 18, 22, 14, 9, 10, 15, 11, 20, 2, 21, 19, 13, 16, 12, 3),
    (5, 21, 14, 19, 15, 17, 12, 6, 4, 9, 8, 16, 11, 2, 10, 18, 1, 13, 7, 22, 3, 20),
    (21, 15, 4, 6, 7, 16, 19, 18, 14, 22, 11, 13, 3, 1, 2, 5, 8, 20, 12, 17, 10, 9),
)
#: Streams of a throughput test from each scale on (clause 5.3.4), as far as their orders are above.
_STREAMS = {0: 2, 10: 3, 30: 4, 100: 5}
#: Orders that a refresh function inserts or deletes, for each unit of scale (clauses 2.5.2, 2.6.2).
_REFRESHED = 1500
_REFRESHES = ("rf1", "rf2")
#: Pages of an extent, at most.
_EXTENT = 64
_HOUR = 3600
#: A query's time counts as at least so much of the longest's (clause 5.4.1.4).
_LEAST_TIME = 0.001


class _Table(NamedTuple):
    """Where a table lies."""

    first: int
    pages: int
    page_rows: int


@dataclass(frozen=True, kw_only=True)
class Workload(TransactionWorkload):
    """See `TITLE`; it ends."""

    SCALES: ClassVar[tuple[str, ...]] = ("scale",)

    scale: float = number("scale factor", 0.001, 100_000)
    test: str = text("power or throughput", default=POWER)
    streams: int = count("of the throughput test; 0: the fewest that the benchmark allows", least=0, most=len(ORDERS) - 1, default=0)
    fill: int = count("how full pages are, in percent", least=10, most=100, default=74)
    scanned: float = number("share of a table that a query scans", 0, 1, default=0.08)
    lookups: float = number("of line items for each query and unit of scale, all made by ten queries", 0, 1e6, default=4500)
    step: int = count("references of a transaction, at most; 0: a query is one transaction", least=0, default=64)

    def __post_init__(self) -> None:
        if self.test not in (POWER, THROUGHPUT):
            raise UnknownNameError("test of TPC-H", self.test, (POWER, THROUGHPUT))
        if not self.streams:  # noted, so that they stay as many when the database is scaled
            object.__setattr__(self, "streams", _STREAMS[max(least for least in _STREAMS if least <= self.scale)])

    @cached_property
    def tables(self) -> dict[str, _Table]:
        """Where each table lies."""
        tables, first = {}, 0
        for name, (rows, width) in TABLES.items():
            page_rows = rows_of_a_page(width, self.fill)
            tables[name] = _Table(first, max(1, -(-round(rows * self.scale) // page_rows)), page_rows)
            first += tables[name].pages
        return tables

    @property
    def pages(self) -> int:
        """See `TransactionWorkload.pages`."""
        return sum(table.pages for table in self.tables.values())

    @property
    def kinds(self) -> tuple[str, ...]:
        """See `TransactionWorkload.kinds`."""
        return (*(f"q{query + 1}" for query in range(len(QUERIES))), *_REFRESHES)

    def parts(self) -> Iterator[Transactions]:
        """See `TransactionWorkload.parts`; a query each, or one of every stream."""
        if self.test == POWER:
            yield self._refresh(0, 0)
            yield from (self._query(0, query) for query in ORDERS[0])
            yield self._refresh(0, 1)
            return
        rounds, streams = len(QUERIES), self.streams
        for place in range(rounds):
            for stream in range(1, streams + 1):
                if (stream - 1) * rounds // streams == place:  # the stream of refresh functions goes on beside the queries
                    yield from (self._refresh(stream, function) for function in range(len(_REFRESHES)))
            yield _mixed([self._query(stream, ORDERS[stream][place]) for stream in range(1, streams + 1)])

    def _query(self, stream: int, query: int) -> Transactions:
        random = generator(self.seed, "query", stream, query)
        looks_up = query in LOOKING_UP
        tables = [self.tables[name] for name in QUERIES[query - 1] if not (looks_up and name == "lineitem")]
        extents = np.concatenate([self._scan(table, random) for table in tables])
        lookups = np.empty((round(self.lookups * self.scale * len(QUERIES) / len(LOOKING_UP)) if looks_up else 0, 3), np.int64)
        line = self.tables["lineitem"]
        lookups[:, FIRST], lookups[:, COUNT], lookups[:, MARKS] = random.integers(line.first, line.first + line.pages, len(lookups)), 1, 0
        places = np.arange(len(extents)) * len(lookups) // len(extents)
        return self._transactions(np.insert(lookups, places, extents, axis=0), query - 1)

    def _scan(self, table: _Table, random: np.random.Generator) -> Integers:
        """The extents of a part of a table, shape (n, 3)."""
        pages = max(1, round(table.pages * self.scanned))
        first = table.first + int(random.integers(0, table.pages - pages + 1))
        begins = np.arange(first, first + pages, _EXTENT)
        return np.stack([begins, np.minimum(_EXTENT, first + pages - begins), np.full(len(begins), SCANS)], axis=1)

    def _transactions(self, references: Integers, kind: int) -> Transactions:
        return cut(references, self.step or len(references), kind)

    def _refresh(self, pair: int, function: int) -> Transactions:
        """A refresh function: another part of the orders, and of their line items, for each pair of functions."""
        pages = list[Integers]()
        for table in (self.tables["orders"], self.tables["lineitem"]):
            changed = max(1, round(table.pages * _REFRESHED / TABLES["orders"][0]))
            pages.append(table.first + (pair * changed + np.arange(changed)) % table.pages)
        both = np.concatenate(pages)
        return self._transactions(np.stack([both, np.ones_like(both), np.full_like(both, WRITES)], axis=1), len(QUERIES) + function)


def _mixed(queries: Sequence[Transactions]) -> Transactions:
    """The transactions of several queries that run at the same time and end together."""
    order = np.argsort(np.concatenate([(np.arange(len(query.ends)) + 0.5) / len(query.ends) for query in queries]), kind="stable")
    parts = [part for query in queries for part in np.split(query.references, query.ends[:-1])]
    ends = np.cumsum([len(parts[number]) for number in order])
    return Transactions(
        np.concatenate([parts[number] for number in order]), ends, np.concatenate([query.kinds for query in queries])[order]
    )


def query_times(test: Workload, done: Integers, interval: int) -> dict[str, float]:
    """Seconds that each query and refresh function of a power test takes, by their names.

    Parameters
    ----------
    test
        The power test, which one transaction after the other was taken from.
    done
        How many transactions ended in each interval, shape (n,).
    interval
        Nanoseconds; times are whole intervals, at least one.
    """
    kinds = np.concatenate([batch.kinds for batch in test.batches()])
    last = np.flatnonzero(np.diff(kinds, append=-1))
    ended = np.searchsorted(np.cumsum(done), last + 1) + 1
    times = np.maximum(np.diff(ended, prepend=0), 1) * (interval / SECONDS)
    return {test.kinds[kind]: float(time) for kind, time in zip(kinds[last], times, strict=True)}


def power(scale: float, queries: Sequence[float], refreshes: Sequence[float]) -> float:
    """Power@Size of the power test (clause 5.4.1), from the times of its 22 queries and two refresh functions, in seconds.

    Examples
    --------
    >>> round(power(1, [36] * 22, [36] * 2))
    100
    """
    times = [max(time, max(queries) * _LEAST_TIME) for time in queries] + list(refreshes)
    return _HOUR * scale / exp(sum(map(log, times)) / len(times))


def throughput(scale: float, streams: int, duration: float) -> float:
    """Throughput@Size (clause 5.4.2) of so many streams that took so many seconds together."""
    return streams * len(QUERIES) * _HOUR / duration * scale


def queries_per_hour(power_at_size: float, throughput_at_size: float) -> float:
    """QphH@Size (clause 5.4.3).

    Examples
    --------
    LC at scale 30, do2012, table 3.3:

    >>> round(queries_per_hour(5978, 5601))
    5786
    """
    return sqrt(power_at_size * throughput_at_size)

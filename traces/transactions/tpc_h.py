"""TPC-H: 22 queries as scans and lookups, one after the other, and then in several streams at the same time.

TPC Benchmark H, standard specification, revision 3.0.1.

=========================================================================  =====================
power test: RF1, the queries of stream 0 one after the other, RF2          5.3.3.2
throughput test: right after it, as many streams as the scale asks for     5.3.4.1, table 11
the order of each stream's queries                                         5.3.5.4, appendix A
as many pairs of RF1 and RF2 as streams, in a stream of their own          5.3.7.6 to 5.3.7.8
0.1 % of the orders, with their line items, are inserted and deleted       2.5.1, 2.6.2, 2.7.2
Power@Size, Throughput@Size, QphH@Size                                     5.4.1 to 5.4.3
=========================================================================  =====================

A query looks rows up by a key where they are fewer than `dense` a page, and scans otherwise.  Usual are 0.24: SQL Server's optimizer takes
1/320 s for a page at random and 1/1350 s for each in a row, whatever the disks (J. Chang, "The SQL Server query optimizer").  Keys are
sorted before they are looked up, so that a page is read once.  A scan of what another stream scans goes on from where that one is, and
comes to the beginning at its end ("advanced scanning" in SQL Server 2008 Books Online, "Reading pages").  Pages are full to 92 %, with
which 30 and 100 units of scale differ as little as they can, by 3 %, from the 45 and 160 GB of do2012, section 3.4.1.2.  Not told:
processor time, and what sorts and joins write when memory does not suffice.

Indexes may hold keys and dates only (clause 1.5.7), so whoever comes from another table's rows must look up all else.  The physical design
is that of HammerDB's scripts for SQL Server: line items in the order of their dates of shipment, orders in that of their dates, all others
in that of their keys, and indexes on keys of line items, orders and suppliers.  Numbers of rows follow from the values that clause 4.2.3
draws evenly; `tests/oracle` counts them on generated tables.

A transaction is a request, an extent or a row, so that clients read ahead: as many of them as the system has requests outstanding.  In the
throughput test all streams come on by a request at a time.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, log, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from flashsim.core.errors import UnknownNameError
from flashsim.core.parameters import count, number, switch, text
from flashsim.core.request import Integers
from flashsim.core.rng import generator
from flashsim.core.transactions import SCANS, WRITES, Transactions
from traces.transactions.base import TransactionWorkload, rows_of_a_page

TITLE = "TPC-H's queries as scans and lookups"

#: Rows at scale factor 1 and bytes of a row (clause 4.2.5.1); of an index: its key, and the key or date and number that finds the row.
RELATIONS = {
    "lineitem": (6_001_215, 112),
    "orders": (1_500_000, 104),
    "partsupp": (800_000, 144),
    "part": (200_000, 155),
    "customer": (150_000, 179),
    "supplier": (10_000, 159),
    "l_orderkey": (6_001_215, 12),
    "l_partkey": (6_001_215, 12),
    "o_orderkey": (1_500_000, 12),
    "ps_suppkey": (800_000, 8),
}

#: Days on which orders are placed (clause 4.2.3), evenly; line items are shipped 1 to 121 days later.
_DAYS = 2406
_MONTH, _QUARTER, _YEAR = 30.4 / _DAYS, 91.3 / _DAYS, 365.25 / _DAYS


class Reach(NamedTuple):
    """Access path of a query to rows of a relation."""

    #: One of `RELATIONS`.
    relation: str
    #: Share of the relation between two dates in whose order it lies; the rest need not be scanned.
    part: float = 1.0
    #: Rows of a unit of scale that are found by a key; 0 if there is no index by which to come to them.
    rows: int = 0
    #: The index in which their keys stand, and how many of its pages, of a unit of scale.
    leaves: str = ""
    seeks: int = 0
    #: The part of the relation in which these rows lie.
    within: float = 1.0


def _whole(*relations: str) -> tuple[Reach, ...]:
    return tuple(map(Reach, relations))


def _of_parts(parts: int, part: float = 1.0) -> Reach:
    """Line items of so many parts, 30 each."""
    return Reach("lineitem", part, 30 * parts, "l_partkey", parts)


def _of_orders(orders: int, between: float = 1.0) -> Reach:
    """Line items of so many orders, 4 each, which were placed in a part of the time and shipped until 121 days later."""
    return Reach("lineitem", 1.0, 4 * orders, "l_orderkey", orders, min(1.0, between + 121 / _DAYS))


#: Access paths of each query, in the order of its joins; the numbers are of a unit of scale.
QUERIES: dict[int, tuple[Reach, ...]] = {
    1: (Reach("lineitem", 0.985),),  # shipped up to 60 to 120 days before the last
    2: (*_whole("part", "supplier"), Reach("partsupp", 1.0, 800)),  # a size of 50, a third word of 5
    3: (*_whole("customer"), Reach("orders", 0.486), Reach("lineitem", 0.54)),  # before and after a day of March 1995
    4: (Reach("orders", _QUARTER), _of_orders(57_000, _QUARTER)),
    5: (*_whole("supplier", "customer"), Reach("orders", _YEAR), _of_orders(45_500, _YEAR)),  # one region of 5
    6: (Reach("lineitem", _YEAR),),
    7: (*_whole("supplier", "customer"), Reach("lineitem", 2 * _YEAR), *_whole("orders")),
    8: (*_whole("part"), _of_parts(1333), *_whole("supplier", "customer"), Reach("orders", 2 * _YEAR)),  # a type of 150
    9: (*_whole("part"), _of_parts(10_860), *_whole("supplier", "partsupp", "orders")),  # 5 of 92 words of a name
    10: (Reach("orders", _QUARTER), _of_orders(57_000, _QUARTER), *_whole("customer")),
    11: (*_whole("supplier"), Reach("partsupp", 1.0, 32_000, "ps_suppkey", 400), Reach("partsupp", 1.0, 32_000, "ps_suppkey", 400)),
    12: (*_whole("lineitem"), Reach("orders", 1.0, 30_900, "o_orderkey", 30_900)),
    13: _whole("customer", "orders"),
    14: (Reach("lineitem", _MONTH), Reach("part", 1.0, 75_000)),
    15: (Reach("lineitem", _QUARTER), Reach("lineitem", _QUARTER), *_whole("supplier")),
    16: _whole("part", "partsupp", "supplier"),
    17: (*_whole("part"), _of_parts(200), _of_parts(200)),  # a brand of 25, a container of 40
    18: (*_whole("lineitem"), Reach("orders", 1.0, 60, "o_orderkey", 60), _of_orders(60), Reach("customer", 1.0, 60)),
    19: (*_whole("part"), _of_parts(480)),  # three times a brand of 25 and 4 containers of 40, 5, 10 and 15 sizes of 50
    20: (*_whole("part"), Reach("partsupp", 1.0, 2170), _of_parts(2170, _YEAR), *_whole("supplier")),  # one word of 92
    21: (*_whole("supplier", "lineitem", "orders"), _of_orders(69_500), _of_orders(69_500)),  # late ones of a nation of 25
    22: _whole("customer", "customer", "orders"),
}

#: Appendix A: the power test's order, and those of the first streams of a throughput test.
ORDERS = (
    (14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12),
    (21, 3, 18, 5, 11, 7, 6, 20, 17, 12, 16, 15, 13, 10, 2, 8, 14, 19, 9, 22, 1, 4),
    (6, 17, 14, 16, 19, 10, 9, 2, 15, 8, 5, 22, 12, 7, 13, 18, 1, 4, 20, 3, 11, 21),
    (8, 5, 4, 6, 17, 7, 1, 18, 22, 14, 9, 10, 15, 11, 20, 2, 21, 19, 13, 16, 12, 3),
    (5, 21, 14, 19, 15, 17, 12, 6, 4, 9, 8, 16, 11, 2, 10, 18, 1, 13, 7, 22, 3, 20),
    (21, 15, 4, 6, 7, 16, 19, 18, 14, 22, 11, 13, 3, 1, 2, 5, 8, 20, 12, 17, 10, 9),
)
#: Streams of a throughput test from each scale on (clause 5.3.4, table 11), as far as their orders are above.
STREAMS = {0: 2, 10: 3, 30: 4, 100: 5}

POWER, THROUGHPUT, BOTH = TESTS = ("power", "throughput", "both")
_REFRESHES = ("rf1", "rf2")
#: Kinds of transactions of a power test.
_IN_POWER = len(QUERIES) + len(_REFRESHES)
#: The share of orders and line items that a refresh function inserts or deletes.
_REFRESHED = 0.001
#: Pages of an extent, at most.
_EXTENT = 64  # as much as SQL Server reads ahead at once (Books Online, "Reading pages")
#: Requests of each stream that are made together.
_TOGETHER = 4096
_HOUR = 3600
#: A query's time counts as at least so much of the longest's (clause 5.4.1.4).
_LEAST_RATIO = 0.001
#: Seconds that no query or refresh function takes less than (clause 5.3.7.5).
_LEAST_TIME = 0.01


class _RelationPlace(NamedTuple):
    """Place of a relation."""

    first: int
    pages: int


class _Piece(NamedTuple):
    """Requests of one query to one relation: a scan of some pages from a place in them on, or (`begin` -1) pages at random."""

    kind: int
    first: int
    pages: int
    requests: int
    begin: int
    marks: int
    key: tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Workload(TransactionWorkload):
    """See `TITLE`; it ends."""

    SCALES: ClassVar[tuple[str, ...]] = ("scale",)

    scale: float = number("scale factor", 0.001, 100_000)
    test: str = text("power, throughput, or both one after the other", default=BOTH)
    streams: int = count("of the throughput test; 0: the fewest that the benchmark allows", least=0, most=len(ORDERS) - 1, default=0)
    fill: int = count("how full pages are, in percent", least=10, most=100, default=92)
    dense: float = number("rows a page, from which on a query scans instead of looking them up", 0, 1000, default=320 / 1350)
    shared: bool = switch("whether a scan goes on from where another stream's is", default=True)

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise UnknownNameError("test of TPC-H", self.test, TESTS)
        if not self.streams:  # noted, so that they stay as many when the database is scaled
            object.__setattr__(self, "streams", STREAMS[max(least for least in STREAMS if least <= self.scale)])

    @cached_property
    def relations(self) -> dict[str, _RelationPlace]:
        relations, first = {}, 0
        for name, (rows, width) in RELATIONS.items():
            relations[name] = _RelationPlace(first, max(1, -(-round(rows * self.scale) // rows_of_a_page(width, self.fill))))
            first += relations[name].pages
        return relations

    @property
    def pages(self) -> int:
        return sum(relation.pages for relation in self.relations.values())

    @property
    def kinds(self) -> tuple[str, ...]:
        """See `TransactionWorkload.kinds`: those of the power test, then the streams of the throughput test."""
        queries = (f"q{query}" for query in QUERIES)
        return (*queries, *_REFRESHES, *(f"stream {stream + 1}" for stream in range(self.streams)), "refreshes")

    def parts(self) -> Iterator[Transactions]:
        if self.test != THROUGHPUT:
            reaches = [(reach, query) for query in ORDERS[0] for reach in QUERIES[query]]
            queries = [piece for reach, query in reaches for piece in self._pieces(reach, query - 1, (0, query))]
            for piece in [*self._refresh(0, 0), *queries, *self._refresh(1, 0)]:
                yield _alone(self._requests(piece), piece.kind)
        if self.test != POWER:
            yield from self._at_once()

    def figures(self, ended: Mapping[str, float]) -> dict[str, float]:
        """See `TransactionWorkload.figures`: power, throughput and QphH at this size, as far as tests were run."""
        figures, start = dict[str, float](), 0.0
        if self.test != THROUGHPUT:
            ends = [ended[kind] for kind in (_REFRESHES[0], *(f"q{query}" for query in ORDERS[0]), _REFRESHES[1])]
            rf1, *queries, rf2 = np.diff([0.0, *ends]).tolist()
            figures["power"], start = power(self.scale, queries, [rf1, rf2]), ends[-1]
        if self.test != POWER:
            last = max(ended[kind] for kind in self.kinds[_IN_POWER:])
            figures["throughput"] = throughput(self.scale, self.streams, last - start)
        if self.test == BOTH:
            figures["QphH"] = queries_per_hour(figures["power"], figures["throughput"])
        return figures

    def _pieces(self, reach: Reach, kind: int, key: tuple[object, ...]) -> list[_Piece]:
        """The lookups, or the scan, that a query comes to rows by."""
        first, pages = self.relations[reach.relation]
        rows = round(reach.rows * self.scale)
        part = max(1, round(pages * reach.part))
        if 0 < rows < self.dense * part:
            near = max(1, round(pages * reach.within))
            begin = first + int(generator(self.seed, "part", *key, reach.relation).integers(0, pages - near + 1))
            pieces = [_Piece(kind, begin, near, _distinct(rows, near), -1, 0, (*key, reach.relation))]
            if reach.leaves:
                leaves = self.relations[reach.leaves]
                seeks = _distinct(round(reach.seeks * self.scale), leaves.pages)
                pieces.insert(0, _Piece(kind, *leaves, seeks, -1, 0, (*key, reach.leaves)))
            return pieces
        first += int(generator(self.seed, "part", *key, reach.relation).integers(0, (pages - part) // _EXTENT + 1)) * _EXTENT
        return [_Piece(kind, first, part, -(-part // _EXTENT), 0, SCANS, key)]

    def _refresh(self, function: int, pair: int, kind: int | None = None) -> list[_Piece]:
        """A refresh function: what is in the order of dates or parts changes anywhere, what is in that of orders in a row."""
        kind = len(QUERIES) + function if kind is None else kind
        pieces = []
        for name in ("orders", "lineitem", "l_partkey", "o_orderkey", "l_orderkey"):
            first, pages = self.relations[name]
            rows, changed = (max(1, round(count * _REFRESHED)) for count in (RELATIONS[name][0] * self.scale, pages))
            if name.endswith("orderkey"):
                pieces.append(_Piece(kind, first + pair * changed % (pages - changed + 1), changed, changed, 0, WRITES, ()))
            else:
                pieces.append(_Piece(kind, first, pages, _distinct(rows, pages), -1, WRITES, (_REFRESHES[function], pair, name)))
        return pieces

    def _requests(self, piece: _Piece) -> Integers:
        if piece.begin < 0:
            random = generator(self.seed, "rows", *piece.key)
            pages = piece.first + random.choice(piece.pages, piece.requests, replace=False)
        elif piece.marks & SCANS:
            pages = piece.first + (np.arange(piece.requests) + piece.begin) % piece.requests * _EXTENT
        else:
            pages = np.arange(piece.first, piece.first + piece.pages)
        counts = np.minimum(_EXTENT, piece.first + piece.pages - pages) if piece.marks & SCANS else np.ones_like(pages)
        return np.stack([pages, counts, np.full_like(pages, piece.marks)], axis=1)

    def _at_once(self) -> Iterator[Transactions]:
        """The throughput test: every stream comes on by one request after the other, and the refreshes are spread over its time."""
        streams, kind = self._plan(), _IN_POWER + self.streams
        refreshes = [piece for pair in range(1, self.streams + 1) for function in range(2) for piece in self._refresh(function, pair, kind)]
        length = max(sum(piece.requests for piece in pieces) for pieces in streams)
        rates = [*[1.0] * self.streams, sum(piece.requests for piece in refreshes) / length]
        sources = []
        for pieces, rate in zip([*streams, refreshes], rates, strict=True):
            numbers = [round((begin + _TOGETHER) * rate) - round(begin * rate) for begin in range(0, length, _TOGETHER)]
            sources.append(_cut_pieces(map(self._requests, pieces), numbers))
        for requests in zip(*sources, strict=True):
            places = [(np.arange(len(each)) + 0.5) / rate for each, rate in zip(requests, rates, strict=True)]
            order = np.argsort(np.concatenate(places), kind="stable")
            kinds = np.repeat(range(_IN_POWER, kind + 1), [len(each) for each in requests])
            yield _alone(np.concatenate(requests)[order], kinds[order])

    def _plan(self) -> list[list[_Piece]]:
        positions = dict[str, tuple[int, _Piece]]()
        streams: list[list[_Piece]] = [[] for _ in range(self.streams)]
        orders = enumerate(ORDERS[1 : self.streams + 1], 1)
        reaches = [[(reach, (stream, query)) for query in order for reach in QUERIES[query]] for stream, order in orders]
        turns = [(0, stream, 0) for stream in range(self.streams)]
        while turns:
            now, stream, place = heapq.heappop(turns)
            reach, key = reaches[stream][place]
            for piece in self._pieces(reach, _IN_POWER + stream, key):
                since, other = positions.get(reach.relation, (now, piece))
                if piece.marks & SCANS and self.shared:
                    ahead = (other.first - piece.first) // _EXTENT + (other.begin + now - since) % other.requests
                    if now < since + other.requests and 0 <= ahead < piece.requests:
                        piece = piece._replace(begin=ahead)
                    positions[reach.relation] = now, piece
                streams[stream].append(piece)
                now += piece.requests
            if place + 1 < len(reaches[stream]):
                heapq.heappush(turns, (now, stream, place + 1))
        return streams


def _cut_pieces(pieces: Iterator[Integers], numbers: Sequence[int]) -> Iterator[Integers]:
    """References of one piece after the other, so many at a time, as long as there are any."""
    rest = np.empty((0, 3), np.int64)
    for most in numbers:
        parts, rest = [rest[:most]], rest[most:]
        while (missing := most - sum(map(len, parts))) and (piece := next(pieces, None)) is not None:
            parts.append(piece[:missing])
            rest = piece[missing:]
        yield np.concatenate(parts)


def _alone(references: Integers, kinds: int | Integers) -> Transactions:
    return Transactions(references, np.arange(1, len(references) + 1), np.broadcast_to(np.int64(kinds), len(references)))


def power(scale: float, queries: Sequence[float], refreshes: Sequence[float]) -> float:
    """Power@Size of the power test (clause 5.4.1), from the times of its 22 queries and two refresh functions, in seconds.

    Examples
    --------
    >>> round(power(1, [36] * 22, [36] * 2))
    100
    """
    times = [max(time, max(queries) * _LEAST_RATIO, _LEAST_TIME) for time in queries] + [max(time, _LEAST_TIME) for time in refreshes]
    return _HOUR * scale / exp(sum(map(log, times)) / len(times))


def throughput(scale: float, streams: int, duration: float) -> float:
    """Throughput@Size (clause 5.4.2) of `streams` streams that took `duration` seconds together."""
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


def _distinct(rows: int, pages: int) -> int:
    """The pages, of a number of them, on which rows lie that are drawn evenly."""
    return max(1, round(pages * -expm1(-rows / pages)))

"""The parts of the database that TPC-H's queries read: tables and indexes, and each query's scans and lookups of rows.

TPC Benchmark H, standard specification, revision 3.0.1.  Indexes may hold keys and dates only (clause 1.5.7), so whoever comes from another
table's rows must look up all else.  The physical design is that of HammerDB's scripts for SQL Server: line items in the order of their
dates of shipment, orders in that of their dates, all others in that of their keys, and indexes on keys of line items, orders and suppliers.

Numbers of rows follow from the values that clause 4.2.3 draws evenly; `tests/oracle` counts them on generated tables.
"""

from typing import NamedTuple

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
    return tuple(Reach(relation) for relation in relations)


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

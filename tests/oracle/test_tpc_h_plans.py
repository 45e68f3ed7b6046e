"""What TPC-H's queries read, as DuckDB counts it on generated tables, with the parameters by which the benchmark validates them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import duckdb
import pytest

from flashsim.storage.source import tpch
from tests.tiers import DEEP_RUN, deep
from traces.transactions.tpc_h import QUERIES, RELATIONS, Reach

#: By default of what other tests generate too: orders and line items.
SCALE = 0.1 if DEEP_RUN else 0.01
#: Standard errors by which what is drawn may be off.
_ERRORS = 5
_TABLES = ("lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region")


Answers = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Answers]:
    """The one row that answers a query, of tables that are generated when one asks for them."""
    with duckdb.connect() as connection:
        yield partial(_answer, connection, set())


def _answer(connection: duckdb.DuckDBPyConnection, there: set[str], query: str) -> list[Any]:
    for name in _TABLES:
        if name not in there and re.search(rf"\b{name}\b", query):
            connection.register(name, tpch.open_records(f"{name}@{SCALE}").table)
            there.add(name)
    (row,) = connection.sql(query).fetchall()
    return list(row)


def of_these_tables(cases: list[tuple[Any, ...]]) -> list[Any]:
    """Cases, of which those are in the default tier that ask for orders and line items alone."""
    others = re.compile(r"\b(partsupp|part|customer|supplier|nation|region)\b")
    return [pytest.param(*case, marks=[deep] if others.search(" ".join(map(str, case))) else []) for case in cases]


def reach(query: int, relation: str, number: int = 0) -> Reach:
    return [each for each in QUERIES[query] if each.relation == relation][number]


@pytest.mark.parametrize("name", _TABLES[:6])
def test_tables_have_their_rows(ask: Answers, name: str) -> None:
    (rows,) = ask(f"SELECT count(*) FROM {name}")
    assert rows == pytest.approx(RELATIONS[name][0] * SCALE, rel=0.002)


@pytest.mark.parametrize(
    ("query", "relation", "condition"),
    [
        (1, "lineitem", "l_shipdate <= date '1998-12-01' - interval 90 day"),
        (3, "orders", "o_orderdate < date '1995-03-15'"),
        (3, "lineitem", "l_shipdate > date '1995-03-15'"),
        (4, "orders", "o_orderdate >= date '1993-07-01' AND o_orderdate < date '1993-10-01'"),
        (5, "orders", "o_orderdate >= date '1994-01-01' AND o_orderdate < date '1995-01-01'"),
        (6, "lineitem", "l_shipdate >= date '1994-01-01' AND l_shipdate < date '1995-01-01'"),
        (7, "lineitem", "l_shipdate BETWEEN date '1995-01-01' AND date '1996-12-31'"),
        (8, "orders", "o_orderdate BETWEEN date '1995-01-01' AND date '1996-12-31'"),
        (10, "orders", "o_orderdate >= date '1993-10-01' AND o_orderdate < date '1994-01-01'"),
        (14, "lineitem", "l_shipdate >= date '1995-09-01' AND l_shipdate < date '1995-10-01'"),
        (15, "lineitem", "l_shipdate >= date '1996-01-01' AND l_shipdate < date '1996-04-01'"),
        (20, "lineitem", "l_shipdate >= date '1994-01-01' AND l_shipdate < date '1995-01-01'"),
    ],
)
def test_a_range_of_dates_is_the_part_of_a_table_that_is_told(ask: Answers, query: int, relation: str, condition: str) -> None:
    found, rows = ask(f"SELECT count(*) FILTER ({condition}), count(*) FROM {relation}")
    assert found / rows == pytest.approx(reach(query, relation).part, rel=0.03)


_LINES, _PARTS = "orders JOIN lineitem ON l_orderkey = o_orderkey", "part JOIN lineitem ON l_partkey = p_partkey"
_SIZES = " OR ".join(
    f"(p_brand = '{brand}' AND p_container IN ({containers}) AND p_size BETWEEN 1 AND {most})"
    for brand, containers, most in (
        ("Brand#12", "'SM CASE', 'SM BOX', 'SM PACK', 'SM PKG'", 5),
        ("Brand#23", "'MED BAG', 'MED BOX', 'MED PKG', 'MED PACK'", 10),
        ("Brand#34", "'LG CASE', 'LG BOX', 'LG PACK', 'LG PKG'", 15),
    )
)


@pytest.mark.parametrize(
    ("query", "relation", "seeks", "source", "condition"),
    of_these_tables(
        [
            (2, "partsupp", "p_partkey", "part", "p_size = 15 AND p_type LIKE '%BRASS'"),
            (4, "lineitem", "o_orderkey", _LINES, "o_orderdate >= date '1993-07-01' AND o_orderdate < date '1993-10-01'"),
            (
                5,
                "lineitem",
                "o_orderkey",
                f"{_LINES} JOIN customer ON c_custkey = o_custkey JOIN nation ON n_nationkey = c_nationkey",
                "n_regionkey = 2 AND o_orderdate >= date '1994-01-01' AND o_orderdate < date '1995-01-01'",
            ),
            (8, "lineitem", "p_partkey", _PARTS, "p_type = 'ECONOMY ANODIZED STEEL'"),
            (9, "lineitem", "p_partkey", _PARTS, "p_name LIKE '%green%'"),
            (10, "lineitem", "o_orderkey", _LINES, "o_orderdate >= date '1993-10-01' AND o_orderdate < date '1994-01-01'"),
            (
                12,
                "orders",
                "l_orderkey",
                "lineitem",
                "l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
                "AND l_receiptdate >= date '1994-01-01' AND l_receiptdate < date '1995-01-01'",
            ),
            (17, "lineitem", "p_partkey", _PARTS, "p_brand = 'Brand#23' AND p_container = 'MED BOX'"),
            (19, "lineitem", "p_partkey", _PARTS, _SIZES),
            (20, "lineitem", "p_partkey", _PARTS, "p_name LIKE 'forest%'"),
        ]
    ),
)
def test_rows_that_are_found_by_keys_are_as_many_as_is_told(
    ask: Answers, query: int, relation: str, seeks: str, source: str, condition: str
) -> None:
    keys, rows = ask(f"SELECT count(DISTINCT {seeks}), count(*) FROM {source} WHERE {condition}")
    told = reach(query, relation)
    limit = _ERRORS / (keys**0.5)
    assert rows == pytest.approx(told.rows * SCALE, rel=limit)
    assert not told.seeks or keys == pytest.approx(told.seeks * SCALE, rel=limit)


@deep
def test_orders_of_late_line_items_of_a_nation_are_as_many_as_is_told(ask: Answers) -> None:
    """Query 21, in the mean of the 25 nations."""
    late = "l_receiptdate > l_commitdate AND o_orderstatus = 'F'"
    (orders,) = ask(
        f"SELECT count(DISTINCT (o_orderkey, s_nationkey)) / 25 FROM {_LINES} JOIN supplier ON s_suppkey = l_suppkey WHERE {late}"
    )
    assert orders == pytest.approx(reach(21, "lineitem", 1).seeks * SCALE, rel=0.03)


def test_few_orders_are_as_large_as_query_18_asks_for(ask: Answers) -> None:
    (orders,) = ask("SELECT count(*) FROM (SELECT l_orderkey FROM lineitem GROUP BY 1 HAVING sum(l_quantity) > 300)")
    assert abs(orders - reach(18, "orders").rows * SCALE) < _ERRORS * (reach(18, "orders").rows * SCALE) ** 0.5

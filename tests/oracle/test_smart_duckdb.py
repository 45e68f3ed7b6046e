"""Queries on pages return what DuckDB returns: drawn ones, on every page format, wherever operators run and over several drives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import duckdb
import pytest

from flashsim.storage.source.base import TableRecords
from flashsim.studies.smart.plan import Plan
from flashsim.studies.smart.running import run
from flashsim.studies.smart.sql import plan_of
from flashsim.studies.smart.tables import Table
from tests.oracle.smart_queries import TABLES, drawn_query, same_rows

FORMATS = ("sqlite", "postgresql", "pax")
QUERIES = 500


@cache
def stored(page_format: str) -> dict[str, Table]:
    return {name: Table.of(name, TableRecords(name, table), 8192, page_format) for name, table in TABLES.items()}


@cache
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, table in TABLES.items():
        connection.register(name, table)
    return connection


def planned(query: str, tables: dict[str, Table]) -> Plan:
    rows = {name: table.records.rows for name, table in tables.items()}
    return plan_of(query, {name: table.schema for name, table in tables.items()}, rows)


def placements(plan: Plan) -> Iterator[tuple[int, int]]:
    """Stages that may run in a drive, and drives."""
    for stages in range(plan.most_pushed + 1):
        for drives in (1, 3):
            yield stages, drives


@pytest.mark.parametrize(
    "query",
    [
        r"SELECT id FROM t WHERE word LIKE '\%' OR word LIKE 'a\_'",
        "SELECT abs(small) AS small, count(*) AS c FROM t GROUP BY small",
        "SELECT count(*) FROM t",
        "SELECT * FROM u WHERE id < 5",
        "SELECT u.*, t.id AS other FROM t JOIN u ON t.id = u.id",
        "SELECT tiny, tiny, tiny + 1 FROM u ORDER BY id DESC LIMIT 3",
        "SELECT sum(large), avg(large), min(large) FROM t",
        "SELECT t.id FROM t JOIN u USING (id) JOIN u AS v ON v.tiny = u.tiny WHERE v.id = 3",
    ],
)
def test_chosen_queries(query: str) -> None:
    tables = stored("pax")
    plan = planned(query, tables)
    for stages, drives in placements(plan):
        problem = same_rows(query, run(plan, tables, stages, drives).rows, oracle().sql(query).fetchall())
        assert not problem, f"{stages} stages on {drives} drives: {problem}"


@pytest.mark.parametrize("part", range(10))
def test_drawn_queries(part: int) -> None:
    rng = random.Random(part)
    for number in range(QUERIES // 10):
        query = drawn_query(rng)
        expected = oracle().sql(query).fetchall()
        page_format = FORMATS[number % len(FORMATS)]
        tables = stored(page_format)
        plan = planned(query, tables)
        spills = any(stage.program == "aggregation" for stage in plan.stages) and "JOIN" not in query and " IN (S" not in query
        for stages, drives in placements(plan):
            rows = run(plan, tables, stages, drives, room=2000 if spills and rng.random() < 0.3 else None).rows
            problem = same_rows(query, rows, expected)
            assert not problem, f"{query}\n{page_format}, {stages} stages on {drives} drives: {problem}"

"""Queries on pages return what DuckDB returns: drawn ones, on every page format, wherever operators run and over several drives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from functools import cache

import duckdb
import pyarrow as pa
import pytest

from flashsim.apps.smart import plans as smart_tables
from flashsim.apps.smart.plans import Plan, StoredTable, co_partitioned_stages, run
from flashsim.apps.smart.sql import plan_of
from flashsim.core.errors import FlashsimError
from flashsim.storage.source.base import TableRecords
from tests.oracle.smart_queries import TABLES, drawn_query, same_rows

FORMATS = ("sqlite", "postgresql", "pax")
QUERIES = 500


@pytest.fixture(autouse=True)
def short_extents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extents of four pages, so that the large table has several."""
    monkeypatch.setattr(smart_tables, "EXTENT", 4 * 8192)


@cache
def stored(page_format: str) -> dict[str, StoredTable]:
    tables = TABLES | ({"rare": TABLES["rare"].drop_columns("clock")} if page_format == "postgresql" else {})  # whose pages hold no times
    return {name: StoredTable.of(name, TableRecords(name, table), 8192, page_format) for name, table in tables.items()}


@cache
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, table in TABLES.items():
        connection.register(name, table)
    return connection


def planned(query: str, tables: dict[str, StoredTable]) -> Plan:
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
        "SELECT * FROM t JOIN u USING (id) WHERE id < 4",
        "SELECT T.* FROM t WHERE T.id = 3",
        "SELECT word FROM t WHERE word NOT LIKE 'a%' AND id NOT IN (1, 2) AND id NOT BETWEEN 5 AND 9",
        'SELECT id AS "order.0", tiny AS "order..1" FROM u ORDER BY tiny, 1',
        "SELECT t.id FROM t JOIN u ON t.id = u.id SEMI JOIN u AS v ON u.tiny = v.tiny WHERE t.id < 50",
        "SELECT 1 AS one FROM t HAVING 1 = 1",
        "SELECT id FROM u ORDER BY id LIMIT 9223372036854775807 OFFSET 3",
        f"SELECT id FROM t WHERE {' AND '.join(['id > 1'] * 500)} OR {' OR '.join(['id = 0'] * 500)}",
    ],
)
def test_chosen_queries(query: str) -> None:
    tables = stored("pax")
    plan = planned(query, tables)
    for stages, drives in placements(plan):
        problem = same_rows(query, run(plan, tables, stages, drives).rows, oracle().sql(query).fetchall())
        assert not problem, f"{stages} stages on {drives} drives: {problem}"


def test_sums_of_decimals_of_38_digits_are_exact_or_refused() -> None:
    """Sums of parts are beyond 38 digits, and the sum of all is not."""
    nines = Decimal("9" * 38)
    values = [*[nines] * 300, *[nines.copy_negate()] * 300, Decimal(7), None]
    table = StoredTable.of("t", TableRecords("t", pa.table({"d": pa.array(values, pa.decimal128(38, 0))})), 8192, "pax")
    plan, positive = (planned(f"SELECT sum(d) AS s, avg(d) AS a FROM t{where}", {"t": table}) for where in ("", " WHERE d > 0"))
    for stages, drives in placements(plan):
        assert run(plan, {"t": table}, stages, drives).rows.to_pylist() == [{"s": 7, "a": 7 / 601}]
    for stages, drives in placements(positive):
        with pytest.raises(FlashsimError, match=r"sum of decimal128\(38, 0\): its result has more than 38 digits"):
            run(positive, {"t": table}, stages, drives)


@pytest.mark.parametrize("page_format", FORMATS)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT single, huge, clock, blob, zoned FROM rare WHERE single < 0.5 OR huge > 9223372036854775807",
        "SELECT single = 0.1 AS a, single + 1 AS b, huge + 1 AS c, single * 2.5 AS d FROM rare",
        "SELECT min(single), max(huge), sum(huge), avg(single), min(clock), max(blob), count(nothing) FROM rare",
        "SELECT clock, count(*) AS c FROM rare GROUP BY clock",
        "SELECT blob, zoned FROM rare WHERE blob IS NOT NULL AND clock >= '05:00:00' ORDER BY huge DESC NULLS FIRST, blob, zoned LIMIT 5",
        "SELECT nothing, coalesce(huge, 1) AS h FROM rare WHERE nothing IS NULL AND short IN (-3, 4)",
        "SELECT short * short AS s, CASE WHEN short > 0 THEN single END AS c FROM rare WHERE precise < 0.5",
        "SELECT sum(precise), max(precise), avg(precise), sum(precise * short) FROM rare",
    ],
)
def test_rare_types(query: str, page_format: str) -> None:
    table = stored(page_format)["rare"]
    if "clock" in query and page_format == "postgresql":
        query = query.replace("clock >= '05:00:00'", "true").replace("clock", "short")
    plan = planned(query, {"rare": table})
    for stages, drives in placements(plan):
        problem = same_rows(query, run(plan, {"rare": table}, stages, drives).rows, oracle().sql(query).fetchall())
        assert not problem, f"{stages} stages on {drives} drives: {problem}"


@pytest.mark.parametrize("part", range(10))
def test_drawn_queries(part: int) -> None:
    """Each query on pages of rows and on pages of columns."""
    rng, early, shared = random.Random(part), 0, 0
    for number in range(QUERIES // 10):
        query = drawn_query(rng)
        expected, plan = oracle().sql(query).fetchall(), planned(query, stored("pax"))
        for page_format in (FORMATS[number % 2], "pax"):
            tables = stored(page_format)
            spills = any(stage.program == "aggregation" for stage in plan.stages) and "JOIN" not in query and " IN (S" not in query
            again = [(plan.most_pushed, 1)] * (spills or page_format == "pax")
            for stages, drives in list(placements(plan))[(page_format == "pax") :: 2] + again:
                room = 2000 if spills and rng.random() < 0.3 else None
                result = run(plan, tables, stages, drives, room=room)
                problem = same_rows(query, result.rows, expected)
                assert not problem, f"{query}\n{page_format}, {stages} stages on {drives} drives: {problem}"
                early += bool(room and stages == plan.most_pushed and any(sum(each.results) for each in result.parts))
                shared += sum(each.rows > 0 for each in result.parts) > 1
    assert early and shared


#: Columns of both sides of a join whose equal values are on one drive if both tables are partitioned by them; `flag` has two values.
ALIKE = [(each, each) for each in ("small", "word", "day", "moment", "real", "price", "flag")] + [("small", "tiny"), ("id", "small")]
#: Columns of other types, whose equal values may be on different drives.
UNLIKE = [("price", "tiny"), ("real", "small"), ("day", "moment")]


def drawn_join_of_partitions(rng: random.Random, left: str, right: str) -> str:
    """A join of two tables or three, of which all are joined by one column."""
    third = rng.random() < 0.3
    source = f"t JOIN u ON t.{left} = u.{right}{f' JOIN u AS v ON v.{right} = u.{right} AND v.id < 9' * third}"
    outputs = rng.choice(["t.id, u.id AS other", "count(*) AS n, max(u.id) AS a", "u.tiny, sum(t.id) AS s", "u.word, t.word AS w, u.small"])
    where = f" WHERE t.tiny < {rng.randrange(6)} OR u.flag" if rng.random() < 0.5 else ""
    return f"SELECT {outputs} FROM {source}{where}{' GROUP BY u.tiny' if 'sum' in outputs else ''}"


@pytest.mark.parametrize("part", range(4))
def test_drawn_joins_of_partitioned_tables(part: int) -> None:
    """Both sides by the columns that are joined, or one of them, or one by another column."""
    rng, own = random.Random(part), 0
    for _ in range(20):
        alike = rng.random() < 0.8
        left, right = rng.choice(ALIKE if alike else UNLIKE)
        query, drives = drawn_join_of_partitions(rng, left, right), rng.choice([1, 2, 3, 9])
        tables, by = dict(stored(rng.choice(FORMATS))), rng.choice([(left, right)] * 4 + [(left, None), (None, right), (left, "id")])
        for name, column in zip("tu", by, strict=True):
            if column:
                tables[name] = tables[name].partition_by(column, drives)
        plan = planned(query, tables)
        assert bool(co_partitioned_stages(plan, tables)) == (alike and by == (left, right)), query
        for stages in range(plan.most_pushed + 1):
            result = run(plan, tables, stages, drives)
            problem = same_rows(query, result.rows, oracle().sql(query).fetchall())
            assert not problem, f"{query}\n{by}, {stages} stages on {drives} drives: {problem}"
            own += len(result.own)
    assert own


def test_a_drive_that_has_all_rows() -> None:
    """Keys are fewer than drives, or there is one, beside NULL."""
    tables = {name: stored("pax")[name].partition_by("flag", 5) for name in "tu"}
    assert sum(not each.records.rows for each in tables["t"].partitions) >= 2
    query = "SELECT count(*) AS n FROM t JOIN u ON t.flag = u.flag WHERE u.flag"
    plan = planned(query, tables)
    result = run(plan, tables, plan.most_pushed, 5)
    assert result.own and not same_rows(query, result.rows, oracle().sql(query).fetchall())
    assert sum(part.rows > 0 for part in result.parts) <= 3

"""Settings of databases: hold their derivation against drives whose figures are known, and PostgreSQL's choice of plans."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

import flashsim as fs
from flashsim.apps.calibration.database_settings import DEPTHS, PAGE, SIZES, settings_of
from flashsim.core.errors import InvalidParameterError
from flashsim.device import presets
from tests import postgresql_server
from tests.commands import Run


def test_a_disks_random_page_costs_what_a_seek_a_wait_and_a_transfer_cost_over_the_transfer() -> None:
    cited = presets.load("toshiba-5400-320gb").cited.as_dict()
    transfer = PAGE * 10**9 / cited["sequential_read"]
    expected = (cited["mean_seek"] + cited["rotational_latency"] + transfer) / transfer
    values = {each.name: each for each in settings_of(presets.load("toshiba-5400-320gb"), cached=0.0)}
    cost = values["random_page_cost"]
    assert cost.formula == pytest.approx(expected) and cost.value == pytest.approx(expected, rel=0.05)
    assert cost.low <= cost.value <= cost.high and values["seq_page_cost"].value == 1
    half = {each.name: each for each in settings_of(presets.load("toshiba-5400-320gb"), cached=0.5)}["random_page_cost"]
    assert half.value == pytest.approx(cost.value / 2, rel=0.05)
    assert values["innodb_io_capacity"].value == values["innodb_io_capacity_max"].value / 2


def test_a_flash_drive_wants_many_reads_under_way_and_its_pages_cost_little() -> None:
    flash, disk = ({each.name: each for each in settings_of(presets.load(name))} for name in ("intel-x25e-64gb", "toshiba-5400-320gb"))
    assert flash["random_page_cost"].value < disk["random_page_cost"].value / 2 and flash["random_page_cost"].value >= 1
    depth = flash["effective_io_concurrency"]
    assert depth.value in DEPTHS and depth.formula is not None and depth.formula / 2 <= depth.value <= 2 * depth.formula
    assert flash["io_combine_limit"].value in SIZES
    assert flash["innodb_io_capacity_max"].value > 10 * disk["innodb_io_capacity_max"].value


def test_shares_that_are_none_are_refused(flashsim: Run) -> None:
    with pytest.raises(InvalidParameterError, match="cached"):
        settings_of(presets.load("toshiba-5400-320gb"), cached=1.0)
    done = flashsim(["settings", "no-such-drive"])
    assert done.exit_code == 2 and "no-such-drive" in done.stderr


@pytest.mark.deep
@pytest.mark.skipif(postgresql_server.programs() is None, reason="PostgreSQL is not installed")
def test_postgresql_scans_in_order_from_the_share_of_pages_on_that_is_said() -> None:
    """A bitmap scan reads pages at random; its plan gives way to a scan in order near one page of `random_page_cost`, for equal CPU."""
    rows = fs.settings("toshiba-5400-320gb", cached=0.9).as_dict()["settings"]
    cost = next(each["value"] for each in rows if each["name"] == "random_page_cost")
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        cluster = postgresql_server.Cluster(Path(folder))
        cluster.start()
        try:
            free = "SET cpu_tuple_cost=0; SET cpu_index_tuple_cost=0; SET cpu_operator_cost=0; SET enable_bitmapscan=off; "
            free += f"SET random_page_cost={cost}; SET effective_cache_size='8kB'; SET max_parallel_workers_per_gather=0;"
            cluster.run("psql", "-h", folder, "-U", "postgres", text=(
                "CREATE TABLE t (k integer, filler text); ALTER TABLE t ALTER COLUMN filler SET STORAGE PLAIN;"
                "INSERT INTO t SELECT (i * 7919) % 200000, repeat('x', 3900) FROM generate_series(0, 19999) i;"
                "CREATE INDEX ON t (k); VACUUM ANALYZE t;"
            ))  # fmt: skip
            pages = int(cluster.run("psql", "-h", folder, "-U", "postgres", "-At", text="SELECT relpages FROM pg_class WHERE relname='t'"))
            shares = []
            for share in (0.3 / cost, 3 / cost):
                query = f"{free} EXPLAIN (FORMAT JSON) SELECT * FROM t WHERE k < {round(share * 200000)};"
                plan = cluster.run("psql", "-h", folder, "-U", "postgres", "-Atq", text=query)
                shares.append(json.loads(plan)[0]["Plan"]["Node Type"])
            assert pages == 10_000 and shares == ["Index Scan", "Seq Scan"]
        finally:
            cluster.stop()

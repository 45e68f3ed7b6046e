"""Generated references have the frequencies that theory or the benchmark's definition gives them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from flashsim.core.request import Integers
from flashsim.storage.source import open_source
from traces.references import generated_trace
from traces.references.base import Zipf, scatter
from traces.references.tpch import Stream as Tpch
from traces.references.tpch import _mix
from traces.references.ycsb import _hash

#: A test of a right generator fails with this probability for a seed; seeds are fixed.
_SIGNIFICANT = 1e-4


def drawn(text: str) -> tuple[Integers, np.ndarray]:
    batches = list(generated_trace(text).batches())
    writes = [np.zeros(len(batch.pages), np.bool_) if batch.writes is None else batch.writes for batch in batches]
    return np.concatenate([batch.pages for batch in batches]), np.concatenate(writes)


def fits(counts: Integers, shares: np.ndarray) -> bool:
    """Whether counts are of these shares, by a chi-square test over cells of at least ten."""
    expected = shares / shares.sum() * counts.sum()
    cell = np.cumsum(expected) // 10
    cells = np.unique(cell, return_inverse=True)[1]
    if cells.max() == 0:
        return True
    return bool(stats.chisquare(np.bincount(cells, counts), np.bincount(cells, expected)).pvalue > _SIGNIFICANT)


@pytest.mark.parametrize("skew", [0, 0.5, 0.99, 1, 1 + 1e-12, 1.2, 3, 10])
@pytest.mark.parametrize("ranks", [1, 2, 1000])
def test_ranks_are_drawn_by_zipfs_law(skew: float, ranks: int) -> None:
    found = Zipf(ranks, skew).draw(100_000, np.random.default_rng(1))
    assert fits(np.bincount(found, minlength=ranks + 1)[1:], np.arange(1, ranks + 1.0) ** -skew)


def test_zipfs_law_holds_for_as_many_ranks_as_ever() -> None:
    """Of 10**10 ranks those up to k have H(k) / H(10**10), H being a sum that Euler and Maclaurin's formula gives."""
    found = Zipf(10**10, 0.99).draw(200_000, np.random.default_rng(1))
    edges = 10 ** np.arange(11.0)
    zeta = (
        (edges**0.01 - 1) / 0.01 + 0.5 + 0.5 * edges**-0.99 + 0.99 / 12 * (1 - edges**-1.99) - 0.99 * 1.99 * 2.99 / 720 * (1 - edges**-3.99)
    )
    counts = np.histogram(found, np.append(0.5, edges + 0.5))[0]
    assert stats.chisquare(counts, np.diff(zeta, prepend=0) / zeta[-1] * len(found)).pvalue > _SIGNIFICANT


def test_ranks_of_one_draw_may_be_others_than_of_the_next() -> None:
    ranks = np.tile([3, 50], 50_000)
    found = Zipf(ranks, 0.99).draw(len(ranks), np.random.default_rng(1))
    for place, most in enumerate((3, 50)):
        assert fits(np.bincount(found[place::2], minlength=most + 1)[1:], np.arange(1, most + 1.0) ** -0.99)


@pytest.mark.parametrize("pages", [1, 2, 3, 10, 4096, 10_007])
def test_popular_pages_are_scattered_over_all(pages: int) -> None:
    places = scatter(np.arange(pages), pages)
    assert np.array_equal(np.sort(places), np.arange(pages))
    if pages > 1000:
        gaps = np.diff(np.sort(places[:50]), append=pages)
        assert gaps.max() < 3 * pages / 50


@pytest.mark.parametrize("scrambled", ["yes", "no"])
def test_pages_are_referenced_by_zipfs_law_and_written_by_chance(scrambled: str) -> None:
    pages, writes = drawn(f"zipf:pages=2000,references=6e5,skew=1.2,write-share=0.2,scrambled={scrambled}")
    places = scatter(np.arange(2000), 2000) if scrambled == "yes" else np.arange(2000)
    assert fits(np.bincount(pages, minlength=2000)[places], np.arange(1, 2001.0) ** -1.2)
    assert stats.binomtest(int(writes.sum()), len(writes), 0.2).pvalue > _SIGNIFICANT


def test_uniform_references_are_uniform() -> None:
    assert fits(np.bincount(drawn("uniform:pages=999,references=1e5")[0]), np.ones(999))


def test_loops_and_scans() -> None:
    assert drawn("loop:pages=5,references=12")[0].tolist() == [*range(5), *range(5), 0, 1]
    assert drawn("scan:pages=5,references=12")[0].tolist() == [*range(5), *range(5), 0, 1]
    pages = drawn("scan:pages=300,length=20,references=1e6")[0].reshape(-1, 20)
    assert (np.diff(pages, axis=1) == 1).all()
    assert fits(np.bincount(pages[:, 0], minlength=281), np.ones(281))


def test_scans_come_in_between() -> None:
    pages = drawn("mixture:pages=100,scanned=30,every=50,length=20,references=7e5")[0].reshape(-1, 70)
    assert (pages[:, :50] < 100).all()
    assert np.array_equal(pages[:, 50:].ravel(), 100 + np.arange(200_000) % 30)
    assert fits(np.bincount(pages[:, :50].ravel())[scatter(np.arange(100), 100)], np.arange(1, 101.0) ** -0.99)


@pytest.mark.parametrize(
    ("workload", "writes"), [("a", 0.5), ("b", 0.05), ("c", 0), ("d", 0.05), ("e", 0.05 / (0.95 * 50.5 + 0.05)), ("f", 0.5 / 1.5)]
)
def test_workloads_of_ycsb_write_their_share(workload: str, writes: float) -> None:
    """With a record a page a scan references 50.5 pages on average, except at the end of the table; a read-modify-write two references."""
    pages, flags = drawn(f"ycsb:workload={workload},records=100000,records-per-page=1,references=4e5")
    assert flags.mean() == pytest.approx(writes, abs=4 * (max(writes, 1e-9) / 4e5) ** 0.5)
    if workload == "f":
        second = np.flatnonzero(flags)
        assert np.array_equal(pages[second], pages[second - 1]) and not flags[second - 1].any()
    if workload in "de":
        assert np.array_equal(pages[flags], np.arange(100_000, 100_000 + flags.sum())), "records are inserted one behind the other"
    assert (pages.max() >= 100_000) == (workload in "de")


def test_ycsb_reads_by_its_hashed_ranks() -> None:
    """Of 50 records: each in proportion to the ranks that are hashed to it, of which the first 10**5 are reckoned and the rest is even."""
    pages = drawn("ycsb:workload=c,records=50,records-per-page=1,references=3e5")[0]
    shares = np.bincount(_hash(np.arange(100_000)) % 50, np.arange(1, 100_001.0) ** -0.99, 50)
    rest = ((1e10**0.01 - 1e5**0.01) / 0.01) / 50
    assert fits(np.bincount(pages, minlength=50), shares + rest)


def test_the_hash_of_ycsb_is_fnv_1a() -> None:
    """In whole numbers of any size."""
    for value in (0, 1, 255, 256, 10**10 - 1):
        hashed = 0xCBF29CE484222325
        for byte in value.to_bytes(8, "little"):
            hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
        assert _hash(np.array([value]))[0] == abs(hashed - 2**64 if hashed >= 2**63 else hashed)


def test_ycsb_reads_the_latest_records_most() -> None:
    """Rank 1, the newest record, has a share of 1 / H(n); n grows by 1 % here."""
    pages, writes = drawn("ycsb:workload=d,records=100000,records-per-page=1,references=2e4")
    newest = 100_000 + np.cumsum(writes) - 1
    ranks = (newest - pages + 1)[~writes]
    assert ranks.min() == 1
    assert fits(np.bincount(np.minimum(ranks, 1001))[1:1001], np.arange(1, 1001.0) ** -0.99)


def test_lookups_of_tpch_are_distributed_by_its_clauses() -> None:
    part = drawn("tpch:scale=0.01,lookups=part,references=4e5,page-size=4KiB")[0]
    table = Tpch(scale=0.01).tables["part"]
    assert (table.rows, table.page_rows, len(table.levels)) == (2000, 26, 2)
    visits = part[: len(part) // 3 * 3].reshape(-1, 3)
    assert (visits[:, 0] == table.levels[1]).all(), "the root"
    assert fits(np.bincount(visits[:, 1] - table.levels[0]), np.array([256] * 7 + [208.0]))
    assert fits(np.bincount(visits[:, 2]), np.array([26] * 76 + [24.0])), "L_PARTKEY is uniform"


def test_keys_of_tpch_are_those_of_its_generator() -> None:
    """Of the lineitems and orders that dbgen makes at scale factor 0.01: which rows are paired, and how often each kind of key comes."""
    lineitems, orders = (open_source(f"tpch:{name}@0.01") for name in ("lineitem", "orders"))
    stream = Tpch(scale=0.01, lookups="part")
    keys = stream.keys(60_000, np.random.default_rng(1))
    theirs = [np.asarray(lineitems.key(name)) - 1 for name in ("l_partkey", "l_suppkey")]
    pairs = [np.unique(part * 100 + supplier) for part, supplier in (theirs, (keys["part"], keys["supplier"]))]
    assert all(len(some) <= 8000 for some in pairs) and len(np.union1d(*pairs)) == 8000, "each part has the same four suppliers"
    customers = np.asarray(orders.key("o_custkey")) - 1
    for found in (customers, keys["customer"]):
        assert fits(np.bincount(found % 3, minlength=3)[:2], np.array([2.0, 1])) and not (found % 3 == 2).any()
    counts = np.unique(np.asarray(lineitems.key("l_orderkey")), return_counts=True)[1]
    assert fits(np.bincount(counts, minlength=8)[1:], np.ones(7))


def test_orders_of_tpch_are_looked_up_in_proportion_to_their_lineitems() -> None:
    """With a row a page each order is looked up 1 to 7 times as often as the fewest."""
    orders = Tpch(scale=0.001, lookups="orders", page_size=512, references=4 * 10**6)
    table = orders.tables["orders"]
    pages = np.concatenate([batch.pages for batch in orders.batches()]).reshape(-1, len(table.levels) + 1)[:, -1] - table.first
    lineitems = _mix(np.arange(table.rows)) % 7 + 1
    assert fits(np.bincount(lineitems, minlength=8)[1:], np.ones(7)), "random in 1 to 7"
    assert fits(np.bincount(pages), np.bincount(np.arange(table.rows) // table.page_rows, lineitems))


def test_a_lineitem_looks_up_its_four_rows() -> None:
    stream = Tpch(scale=1.0, references=150_000)
    tables = stream.tables
    pages = np.concatenate([batch.pages for batch in stream.batches()])
    visits = pages.reshape(-1, sum(len(table.levels) + 1 for table in tables.values()))
    place = 0
    for table in tables.values():
        found = visits[:, place : place + len(table.levels) + 1]
        assert (found[:, :-1] >= table.levels[0]).all() and (found[:, :-1] < table.end).all()
        assert (found[:, -1] >= table.first).all() and (found[:, -1] < table.levels[0]).all()
        place += len(table.levels) + 1
    assert tables["orders"].rows == 1_500_000

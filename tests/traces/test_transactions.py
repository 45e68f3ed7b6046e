"""Workloads of transactions against what their benchmarks say, counted page by page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from flashsim.core.errors import InvalidParameterError
from flashsim.core.transactions import COUNT, CREATES, FIRST, MARKS, SCANS, WRITES, Transactions, TransactionStream
from flashsim.testing.contracts.workloads import first
from traces.references import generated_trace
from traces.transactions import scale_stream, workload
from traces.transactions import tpc_c as tpcc
from traces.transactions import tpc_h as tpch
from traces.transactions._tpc_c_profiles import DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL
from traces.transactions.tpc_c import layout
from traces.transactions.tpc_e import MIX
from traces.transactions.tpc_h import ORDERS

#: Standard errors by which a mean may be off.
_ERRORS = 5


def tpc_c(warehouses: float = 4, **given: object) -> tpcc.Workload:
    made = workload(f"tpc-c:warehouses={warehouses}", **given)
    assert isinstance(made, tpcc.Workload)
    return made


def of_kind(made: Transactions, kind: int) -> Iterator[np.ndarray]:
    """The references of each transaction of a kind."""
    begins = np.concatenate([[0], made.ends[:-1]])
    for number in np.flatnonzero(made.kinds == kind):
        yield made.references[begins[number] : made.ends[number]]


def in_region(stream: tpcc.Workload, pages: np.ndarray, name: str, apart: bool = False) -> np.ndarray:
    """Which pages are of a table."""
    region = getattr(stream.layout, name)
    many = stream.layout.districts if apart else 1
    at_start = (pages >= region.first) & (pages < region.first + region.pages * many)
    return at_start | (pages >= region.grown) & (pages < region.grown + region.most * many)


def nurand(a: int, shift: int, bound: int) -> np.ndarray:
    """The chance of each of NURand's values, by clause 2.1.6: how many pairs of draws have each bitwise or, by sums over subsets."""
    bits = (max(a, bound)).bit_length()
    pairs = np.zeros((2, 1 << bits), np.int64)
    pairs[0, : a + 1] = pairs[1, 1 : bound + 1] = 1
    for bit in range(bits):
        halves = pairs.reshape(2, -1, 2, 1 << bit)
        halves[:, :, 1] += halves[:, :, 0]
    counts = pairs[0] * pairs[1]
    for bit in range(bits):
        halves = counts.reshape(-1, 2, 1 << bit)
        halves[:, 1] -= halves[:, 0]
    return np.bincount((np.arange(1 << bits) + shift) % bound, counts, bound) / counts.sum()


@pytest.mark.parametrize(("fill", "stock", "customers", "megabytes"), [(80, 20, 9, 98), (100, 25, 12, 77)])
def test_a_warehouse_takes_what_its_rows_do(fill: int, stock: int, customers: int, megabytes: float) -> None:
    one = layout(1, fill, 1.0, items_are_read=False)
    assert (one.stock.page_rows, one.customer.page_rows) == (stock, customers)
    assert (one.stock.pages, one.customer.pages) == (-(-100_000 // stock), -(-30_000 // customers))
    assert one.pages_at_start * 8192 / 1e6 == pytest.approx(megabytes, abs=0.5)
    many = layout(2000, fill, 1.0, items_are_read=False)
    assert many.pages_at_start == pytest.approx(2000 * one.pages_at_start, rel=0.001)


def test_tables_of_any_scale_follow_each_other_without_gaps() -> None:
    for scale in (0.01, 0.3, 1, 2.5, 40):
        of = layout(scale, 80, 0.5, items_are_read=True)
        apart = ("order", "line", "new_order", "history")
        tables = ("warehouse", "district", "customer", "names", "stock", *apart, "item")
        pages = [getattr(of, name).pages * (of.districts if name in apart else 1) for name in tables]
        assert [getattr(of, name).first for name in tables] == [0, *np.cumsum(pages[:-1]).tolist()]
        assert sum(pages) == of.pages_at_start == of.line.grown
        assert of.line.grown + of.line.most * of.districts == of.order.grown
        assert of.order.grown + of.order.most * of.districts == of.history.grown
        assert of.history.grown + of.history.most == of.pages


def test_the_mix_and_the_references_of_a_transaction_are_those_of_the_clauses() -> None:
    stream = tpc_c()
    made = first(stream.batches(), 40_000)
    counts = np.bincount(made.kinds, minlength=5)
    assert stats.chisquare(counts, 40_000 * np.array([0.45, 0.43, 0.04, 0.04, 0.04])).pvalue > 1e-4
    sizes = np.diff(made.ends, prepend=0)
    extra = (10 - 1) / stream.layout.line.page_rows  # lines of an order that go on in the next page
    expected = {
        NEW_ORDER: 5 + 10 + 1 + extra,
        PAYMENT: 2 + 1.6 + 1,
        ORDER_STATUS: 1.6 + 1 + 1 + extra,
        DELIVERY: 10 * (3 + 1 + extra),
        STOCK_LEVEL: 1 + 200 + 1 + 199 / stream.layout.line.page_rows,
    }
    for kind, mean in expected.items():
        of = sizes[made.kinds == kind]
        assert abs(of.mean() - mean) < _ERRORS * of.std() / len(of) ** 0.5 + 0.01 * mean
    assert sizes.mean() == pytest.approx(19.2, abs=0.5)
    pages = made.references[:, FIRST]
    by_table = {  # references a transaction
        "warehouse": 0.45 + 0.43,
        "district": 0.45 + 0.43 + 0.04,
        "customer": 0.45 + 0.43 + 0.04 + 0.4,
        "names": 0.6 * 0.47,
        "stock": 4.5 + 8,
        "order": 0.45 + 0.04 + 0.4,
        "line": 0.45 * (1 + extra) + 0.04 * (1 + extra) + 0.4 * (1 + extra) + 0.04 * (1 + 199 / stream.layout.line.page_rows),
        "new_order": 0.45 + 0.4,
        "history": 0.43,
    }
    for name, expected_share in by_table.items():
        many = int(in_region(stream, pages, name, name in ("order", "line", "new_order")).sum())
        assert many / 40_000 == pytest.approx(expected_share, rel=0.03), name


@pytest.mark.parametrize("count", [20_000, pytest.param(60_000, marks=pytest.mark.deep)])
def test_items_and_customers_are_drawn_by_nurand_and_remotely_as_often_as_said(count: int) -> None:
    stream = tpc_c(items=True)
    layout_, constants = stream.layout, stream.constants
    orders = list(of_kind(first(stream.batches(), count), NEW_ORDER))
    item, customer, stock, home = [], [], [], []
    for references in orders:
        pages = references[:, FIRST]
        item.append(pages[in_region(stream, pages, "item")] - layout_.item.first)
        customer.append(pages[in_region(stream, pages, "customer")] - layout_.customer.first)
        stock.append((pages[in_region(stream, pages, "stock")] - layout_.stock.first) // (layout_.stock.pages // 4))
        home.append(np.full(len(stock[-1]), customer[-1][0] // (layout_.customer.pages // 4)))
    chances = nurand(constants.items, constants.item_shift, layout_.items)
    of_pages = np.add.reduceat(chances, np.arange(0, layout_.items, layout_.item.page_rows))
    drawn = np.concatenate(item)
    assert len(drawn) / len(orders) == pytest.approx(10, abs=_ERRORS * (10 / len(orders)) ** 0.5)
    assert stats.chisquare(np.bincount(drawn, minlength=layout_.item.pages), len(drawn) * of_pages).pvalue > 1e-4
    rows = np.arange(layout_.districts * layout_.customers) // layout_.customer.page_rows
    chances = np.tile(nurand(constants.customers, constants.customer_shift, layout_.customers), layout_.districts) / layout_.districts
    drawn = np.concatenate(customer)
    told = stats.chisquare(np.bincount(drawn, minlength=layout_.customer.pages), len(drawn) * np.bincount(rows, chances))
    assert told.pvalue > 1e-4
    remote = (np.concatenate(stock) != np.concatenate(home)).mean()
    assert remote == pytest.approx(0.01, abs=_ERRORS * (0.01 / len(np.concatenate(stock))) ** 0.5 + 0.001)


def test_lines_orders_and_history_grow_by_their_rows_and_each_page_is_created_once() -> None:
    stream = tpc_c(0.3)
    made = first(stream.batches(), 100_000)
    new = made.references[made.references[:, MARKS] & CREATES > 0]
    assert (new[:, MARKS] == WRITES | CREATES).all()
    sold, paid = (made.kinds == NEW_ORDER).sum(), (made.kinds == PAYMENT).sum()
    for name, rows, apart in (("line", 10 * sold, True), ("order", sold, True), ("history", paid, False)):
        region = getattr(stream.layout, name)
        pages = new[in_region(stream, new[:, FIRST], name, apart), FIRST]
        slack = stream.layout.districts if apart else 1
        assert abs(len(pages) - rows / region.page_rows) <= slack + 1
        room = region.most * (stream.layout.districts if apart else 1)
        assert len(set(pages.tolist())) == min(len(pages), room) if len(pages) < room / 2 else True
    grown = made.references[made.references[:, FIRST] >= stream.layout.pages_at_start, FIRST]
    unseen = np.setdiff1d(grown, new[:, FIRST])
    assert len(unseen) == 0  # nothing is referenced that was not created


@pytest.mark.parametrize("count", [30_000, pytest.param(60_000, marks=pytest.mark.deep)])
def test_deliveries_and_stock_levels_find_what_orders_are_about(count: int) -> None:
    """One warehouse: pages of stock that a stock level reads are those that its district's last 20 orders took from."""
    stream = tpc_c(1, growth=2.0)
    made = first(stream.batches(), count)
    begins, taken, found = np.concatenate([[0], made.ends[:-1]]), {}, 0
    for number, kind in enumerate(made.kinds.tolist()):
        pages = made.references[begins[number] : made.ends[number], FIRST]
        stock = set(pages[in_region(stream, pages, "stock")].tolist())
        if kind == NEW_ORDER:
            order = int(pages[3])  # one district's pages of ORDER are no other's
            district = (order - stream.layout.order.first) // stream.layout.order.pages
            if order >= stream.layout.order.grown:
                district = (order - stream.layout.order.grown) % 10
            taken.setdefault(district, []).append(stock)
        elif kind == STOCK_LEVEL and number > count // 2:
            found += any(len(each) >= 20 and set().union(*each[-20:]) == stock for each in taken.values())
    assert found == (made.kinds[count // 2 + 1 :] == STOCK_LEVEL).sum()


@pytest.mark.parametrize("neighbours", [1, 8])
def test_tpc_e_has_its_mix_and_the_power_law_of_its_working_set(neighbours: int) -> None:
    stream = workload(f"tpc-e:database=80MB,working-set=0.5,theta=0.3,write-share=0.1,neighbours={neighbours}")
    made = first(stream.batches(), 40_000)
    shares = np.array(list(MIX.values())) / 100
    assert shares.sum() == pytest.approx(1)
    assert stats.chisquare(np.bincount(made.kinds), 40_000 * shares).pvalue > 1e-4
    assert (np.diff(made.ends) == 20).all()
    assert (made.references[:, MARKS] & WRITES).mean() == pytest.approx(0.1, abs=0.002)
    counts = np.sort(np.bincount(made.references[:, FIRST], minlength=stream.pages))[::-1]
    active = round(stream.pages * 0.5)
    assert (counts > 0).sum() <= active
    assert len(np.unique(made.references[:, FIRST] // neighbours)) <= -(-active // neighbours)
    for x in (0.01, 0.1, 0.5):
        assert counts[: round(active * x)].sum() / counts.sum() == pytest.approx(x**0.3, abs=0.01)


def tpc_h(text: str) -> tpch.Workload:
    made = workload(f"tpc-h:{text}")
    assert isinstance(made, tpch.Workload)
    return made


def test_tpc_h_takes_what_the_paper_s_databases_do() -> None:
    for scale, gigabytes in ((30, 45), (100, 160)):
        assert workload(f"tpc-h:scale={scale}").pages * 8192 / 1e9 == pytest.approx(gigabytes, rel=0.04)


def test_a_power_test_runs_its_queries_between_the_two_refreshes() -> None:
    """Clause 5.3.3.2."""
    test = tpc_h("scale=0.1,test=power")
    made = first(test.batches(), 10**6)
    one_by_one = made.kinds[np.flatnonzero(np.diff(made.kinds, prepend=-1))]
    assert [test.kinds[kind] for kind in one_by_one] == ["rf1", *(f"q{query}" for query in ORDERS[0]), "rf2"]
    assert all(sorted(order) == list(range(1, 23)) for order in ORDERS)
    writes = made.references[:, MARKS] & WRITES > 0
    assert np.array_equal(writes, np.isin(made.kinds, [22, 23]))
    for kind in (22, 23):
        pages = np.concatenate(list(of_kind(made, kind)))[:, FIRST]
        for name, rows in (("orders", 150), ("lineitem", 600), ("l_partkey", 600)):  # 0.1 % of each: clause 2.5.1
            region = test.relations[name]
            assert 0.8 * rows < ((pages >= region.first) & (pages < region.first + region.pages)).sum() <= rows + 1


def test_queries_scan_what_they_must_and_look_up_where_rows_are_few() -> None:
    for dense, looking_up in (("", {2, 17, 18, 19, 20}), (",dense=3", {2, 4, 5, 8, 10, 11, 12, 17, 18, 19, 20, 21}), (",dense=0", set())):
        test = tpc_h(f"scale=0.1,test=power{dense}")
        made = first(test.batches(), 10**6)
        assert {kind + 1 for kind in made.kinds[made.references[:, MARKS] == 0]} == looking_up
        for query, table, times in ((1, "lineitem", 0.985), (13, "orders", 1), (16, "partsupp", 1), (22, "customer", 2)):
            references, region = np.concatenate(list(of_kind(made, query - 1))), test.relations[table]
            own = references[(references[:, FIRST] >= region.first) & (references[:, FIRST] < region.first + region.pages)]
            assert own[:, COUNT].sum() == pytest.approx(times * region.pages, abs=1)
            assert (own[:, FIRST] + own[:, COUNT] <= region.first + region.pages).all()
    lookups = np.concatenate(list(of_kind(first(tpc_h("scale=0.1,test=power").batches(), 10**6), 18)))
    rows = 14_400 * 0.1
    assert (lookups[:, MARKS] == 0).sum() == pytest.approx(rows + 480 * 0.1, rel=0.1)  # pages are fewer than rows


def test_streams_run_beside_each_other_and_their_refreshes_are_spread() -> None:
    """Clauses 5.3.4 and 5.3.7.6 to 5.3.7.8."""
    test = tpc_h("scale=0.1,test=throughput,streams=4")
    made = first(test.batches(), 10**7)
    counts = np.bincount(made.kinds)
    assert (counts[:24] == 0).all() and len(set(counts[24:28].tolist())) == 1
    power = first(tpc_h("scale=0.1,test=power").batches(), 10**6)
    assert counts[24] == (power.kinds < 22).sum()  # every query once in each
    assert counts[28] == 4 * (power.kinds >= 22).sum()
    for kind in range(24, 29):
        places = np.flatnonzero(made.kinds == kind)
        middle = places[len(places) // 2] / len(made.kinds)
        assert middle == pytest.approx(0.5, abs=0.01)


def test_scans_of_the_same_table_go_on_together() -> None:
    """A shared scan asks for nothing else than one alone; what another stream has just asked for is asked for again at once."""
    asked = {}
    for shared in ("yes", "no"):
        made = first(tpc_h(f"scale=1,test=throughput,streams=4,shared={shared}").batches(), 10**7)
        scans = made.references[made.references[:, MARKS] == SCANS, FIRST]
        since = pd.Series(np.arange(len(scans))).groupby(scans).diff().to_numpy()
        asked[shared] = np.sort(scans), (since <= 8).sum() / len(scans)
    assert np.array_equal(asked["yes"][0], asked["no"][0])
    assert asked["yes"][1] > 0.25 > 5 * asked["no"][1]


@pytest.mark.parametrize(("scale", "streams"), [(1, 2), (10, 3), (30, 4), (100, 5)])
def test_streams_are_those_of_the_database_that_is_scaled(scale: float, streams: int) -> None:
    small = scale_stream(workload(f"tpc-h:scale={scale}"), 0.01)
    assert small.kinds[24:] == (*(f"stream {stream + 1}" for stream in range(streams)), "refreshes")


def test_figures_are_those_of_the_times_at_which_queries_end() -> None:
    """Clauses 5.4.1 to 5.4.3: a power test whose queries take a minute each, and streams that take an hour after it."""
    test = tpc_h("scale=2,streams=3")
    order = ["rf1", *(f"q{query}" for query in ORDERS[0]), "rf2"]
    ended = {kind: 60.0 * (number + 1) for number, kind in enumerate(order)}
    ended |= dict.fromkeys(test.kinds[24:], ended["rf2"] + 3600)
    assert test.figures(ended) == pytest.approx({"power": 120, "throughput": 3 * 22 * 2, "QphH": (120 * 132) ** 0.5})
    assert set(tpc_h("scale=2,test=power").figures(ended)) == {"power"}


def test_queries_per_hour_are_what_the_paper_makes_of_its_two_tests() -> None:
    """Do2012, table 3.3: power test, throughput test, QphH, of LC, DW, TAC and no SSD, at scales 30 and 100."""
    published = {
        30: [(5978, 5601, 5787), (5917, 6643, 6269), (6386, 5639, 6001), (2733, 1229, 1832)],
        100: [(3836, 3228, 3519), (3204, 3691, 3439), (3705, 3235, 3462), (1536, 953, 1210)],
    }
    for rows in published.values():
        for power, throughput, both in rows:
            assert tpch.queries_per_hour(power, throughput) == pytest.approx(both, abs=1)
    assert tpch.throughput(30, 4, 4 * 22 * 30) == 3600
    assert tpch.power(30, [30.0] * 22, [30.0] * 2) == pytest.approx(3600)
    assert tpch.power(1, [36e4, *[1.0] * 21], [36.0] * 2) == tpch.power(1, [36e4, *[360.0] * 21], [36.0] * 2)


@pytest.mark.parametrize("text", ["zipf:pages=1000,write-share=0.3", "ycsb:workload=f,records=1000", "scan:pages=999,length=20"])
@pytest.mark.parametrize("each", [1, 7])
def test_generated_references_are_cut_into_transactions(text: str, each: int) -> None:
    stream = workload(f"{text},each={each},batch=1000")
    made = first(stream.batches(), 5001)
    source = next(generated_trace(text).batches())
    assert np.array_equal(made.references[:, FIRST], source.pages[: 5001 * each])
    if source.writes is not None:
        assert np.array_equal(made.references[:, MARKS] == WRITES, source.writes[: 5001 * each])
    assert np.array_equal(made.ends, np.arange(1, 5002) * each)


@pytest.mark.parametrize("text", ["mixture:pages=90,scanned=9,every=5,length=4", "tpch:scale=0.001", "ycsb:workload=d,records=90"])
def test_generated_references_say_how_many_pages_they_have(text: str) -> None:
    stream: TransactionStream = workload(f"{text},references=20000")
    pages = [int(batch.references[:, FIRST].max()) for batch in stream.batches()]
    assert stream.pages * 0.4 < max(pages) < stream.pages


def test_a_recorded_trace_is_cut_and_its_pages_numbered_in_their_order(tmp_path: Path) -> None:
    trace = tmp_path / "pages.csv"
    trace.write_text("page,write\n70,0\n-3,1\n9000000000000,0\n70,1\n")
    stream = workload(f"{trace}:each=3")
    batch = first(stream.batches(), 9)
    assert stream.pages == 3 and batch.ends.tolist() == [3, 4]
    assert batch.references.tolist() == [[1, 1, 0], [0, 1, WRITES], [2, 1, 0], [1, 1, WRITES]]
    assert first(stream.batches(), 9).references.tolist() == batch.references.tolist()


def test_a_recorded_block_trace_is_cut_into_pages_of_its_requests(tmp_path: Path) -> None:
    trace = tmp_path / "requests.csv"
    trace.write_text("issue,operation,offset,length\n0,write,8192,16384\n5,read,0,4096\n9,read,16384,512\n")
    stream = workload(f"{trace}:each=2")
    assert first(stream.batches(), 9).references.tolist() == [[1, 1, WRITES], [2, 1, WRITES], [0, 1, 0], [2, 1, 0]]
    with pytest.raises(InvalidParameterError, match="cannot be scaled"):
        scale_stream(stream, 2)


def test_generated_references_are_scaled() -> None:
    stream = scale_stream(workload("mixture:pages=9000,scanned=500,every=100,length=30"), 0.1)
    assert stream.pages == 950
    assert first(stream.batches(), 5000).references[:, FIRST].max() == 949

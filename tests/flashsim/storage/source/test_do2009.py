"""The paper's relations: sizes, keys by TPC-H's rule, padding, and memory."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.storage.heap_file import heap_file
from flashsim.storage.source import load_pair, open_source
from flashsim.storage.source.do2009 import PaperRecords
from tests.cases import with_each
from tests.peak_memory import PEAK_MEMORY


@with_each("page_size", [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536])
@with_each(("table", "mebibytes"), [("customer", 730), ("orders", 5 * 1024)])
def test_page_counts_are_the_papers_pro_rata(table: str, mebibytes: int, page_size: int) -> None:
    records = PaperRecords(table, 0.3)
    pages = records.published_pages(page_size)
    key = records.names[0]
    relation = load_pair(records, records, key, key)[0]
    published = mebibytes * 2**20 / page_size / 100
    packed = heap_file(relation, page_size).pages
    assert pages == round(published) or (page_size < 4096 and published < pages <= packed * 1.01)
    layout = heap_file(relation, page_size, pages)
    assert layout.pages == pages
    counts = np.diff(layout.first_rows)
    assert counts.max() - counts.min() <= 1 and counts.sum() == records.rows


def test_customers_are_a_permutation_in_random_order() -> None:
    keys = PaperRecords("customer", "0.1").keys.astype(np.int64)
    assert np.array_equal(np.sort(keys), np.arange(1, 15_001))
    assert abs(np.corrcoef(keys, np.arange(15_000))[0, 1]) < 4 / np.sqrt(15_000)


def test_orders_refer_to_customers_by_the_generators_rule() -> None:
    """Every third customer places no order; its draws go to the next one, which so has twice the share (dbgen, mk_order)."""
    keys = PaperRecords("orders", 0.1).keys.astype(np.int64)
    assert len(keys) == 150_000 and keys.min() >= 1 and keys.max() <= 15_000
    shares = np.bincount(keys % 3, minlength=3) / len(keys)
    deviation = np.sqrt(2 / 9 / len(keys))
    assert shares[0] == 0 and abs(shares[1] - 2 / 3) < 5 * deviation
    # Within either class all customers are alike: chi-squared over 100 ranges of keys.
    for remainder in (1, 2):
        counts = np.bincount(keys[keys % 3 == remainder] * 100 // 15_001, minlength=100)
        expected = counts.sum() / 100
        assert ((counts - expected) ** 2 / expected).sum() < 99 + 5 * np.sqrt(2 * 99)


def test_the_last_customer_of_a_multiple_of_three_goes_back() -> None:
    keys = PaperRecords("orders", 0.00002).keys  # three customers, thirty orders
    assert len(keys) == 30 and set(keys.tolist()) == {1, 2}


def test_seeds_decide_and_scale_factors_step_finely() -> None:
    one, again, other = PaperRecords("orders", 0.01), PaperRecords("orders", 0.01), PaperRecords("orders", 0.01, seed=1)
    assert np.array_equal(one.keys, again.keys) and not np.array_equal(one.keys, other.keys)
    for hundredths in range(1, 40):
        assert open_source(f"do2009:customer@{hundredths / 100}").rows == 1500 * hundredths


def test_padding_is_a_function_of_the_row() -> None:
    records = PaperRecords("customer", 0.01)
    all_rows = records.take(np.arange(records.rows)).column("padding").to_pylist()
    some = np.array([7, 3, 3, 1499])
    assert records.take(some).column("padding").to_pylist() == [all_rows[row] for row in some]
    assert {len(text) for text in all_rows} == {130} and len(set(all_rows)) == len(all_rows)
    assert len({text[:8] for text in all_rows}) > 0.99 * len(all_rows)


@with_each("text", ["customer@0", "customer@-1", "customer@x", "customer", "customer@nan", "orders@1e99", "orders@0.00001"])
def test_scale_factors_out_of_bounds_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameterError, match="scale factor"):
        open_source(f"do2009:{text}")


def test_unknown_tables_are_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean orders"):
        open_source("do2009:order@1")


FULL_SIZE = (
    PEAK_MEMORY
    + """
import json
import numpy as np
from flashsim.storage.heap_file import heap_file
from flashsim.storage.source import load_pair, open_source
r, s = open_source("do2009:customer@30"), open_source("do2009:orders@30")
files = []
for relation in load_pair(r, s, "c_custkey", "o_custkey"):
    files += [heap_file(relation, 8192, relation.records.published_pages(8192)), heap_file(relation, 8192)]
print(json.dumps({"rows": r.rows + s.rows, "pages": [file.pages for file in files], "peak": peak_memory()}))
"""
)


@pytest.mark.deep
def test_the_full_relations_fit_in_memory() -> None:
    done = subprocess.run([sys.executable, "-c", FULL_SIZE], capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    assert figures["rows"] == 49_500_000
    assert figures["pages"][0] == 93_440 and figures["pages"][2] == 655_360
    assert figures["peak"] < 2**30

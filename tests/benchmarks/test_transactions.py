"""Speed of workloads of transactions: a small share of the two million references a second that a system of pools takes."""

from __future__ import annotations

import time

import pytest

from traces.transactions import workload

pytestmark = pytest.mark.deep


@pytest.mark.parametrize(
    "text",
    [
        "tpc-c:warehouses=2000",
        "tpc-e:database=230GB",
        "tpc-h:scale=30,test=throughput",
        "zipf:pages=1e6,write-share=0.3",
        "uniform:pages=1e6",
        "ycsb:workload=a,records=1e6",
    ],
)
def test_ten_million_references_a_second_are_made(text: str) -> None:
    batches = workload(text).batches()
    next(batches)  # what it compiles and keeps
    made, begin = 0, time.process_time()
    for batch in batches:
        made += len(batch.references)
        if made > 3_000_000:
            break
    assert made / (time.process_time() - begin) >= 10e6

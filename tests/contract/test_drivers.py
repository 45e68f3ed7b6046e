"""One join, written once, runs in every driver: the same rows and the same requests in virtual time, on a real file, and traced."""

from __future__ import annotations

from pathlib import Path

import pytest

from algorithms.joins.base import JOINS, JoinParameters, page_format, plan
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.source.base import load_pair, open_source
from tests.contract.drivers import run_everywhere

PAGE = 4096


def files_for(join: str) -> tuple[HeapFile, HeapFile]:
    """Two relations on pages that the join takes."""
    relations = load_pair(open_source("do2009:customer@0.01"), open_source("do2009:orders@0.01"), "c_custkey", "o_custkey")
    r, s = (heap_file(relation, PAGE, page_format=page_format(join)) for relation in relations)
    return r, s


@pytest.mark.parametrize("page_io", [False, True])
@pytest.mark.parametrize("join", JOINS.names())
def test_rows_and_requests_are_the_same_in_all_drivers(join: str, page_io: bool, tmp_path: Path) -> None:
    files = files_for(join)
    rows, runs, requests = run_everywhere(lambda: plan(join, *files, JoinParameters(memory=40, page_io=page_io)), files, tmp_path)
    assert len(rows) == len(files[1].relation)  # every order has one customer
    hdd, ssd, traced, real = (run.total() for run in runs)
    assert hdd.pages * PAGE == requests.bytes or (page_format(join) == "pax" and hdd.pages * PAGE > requests.bytes)
    assert hdd.requests <= len(requests.rows)  # a file in several places takes a device request for each
    for total in (hdd, ssd):
        assert min(total.user_time, total.kernel_time, total.io_time) > 0
    assert traced.total_time == 0
    assert real.total_time > 0

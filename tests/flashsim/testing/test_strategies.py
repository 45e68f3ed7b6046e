"""Strategies draw what can be used, and shrink to small cases; fixtures are what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from algorithms.page_access.graph import PageGraph
from flashsim.core.request import WRITE
from flashsim.hdd.engine.drive import HddEngine
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.storage.heap_file import HeapFile
from flashsim.testing import strategies
from flashsim.testing.disks import serve
from flashsim.testing.flash_drives import check_invariants, serve_all
from tests.contract.guide import PAGE, write_members
from tests.tiers import examples
from traces.file.schema import SCHEMA, column

SHRINK = settings(phases=[Phase.generate, Phase.shrink], max_examples=300, deadline=None, database=None, derandomize=True)


@settings(max_examples=examples(30))
@given(st.data())
def test_drives_serve_the_requests_that_are_drawn_for_them(data: st.DataObject) -> None:
    """A flash drive keeps its invariants, and a disk completes everything."""
    flash, disk = data.draw(strategies.ssd_drives()), data.draw(strategies.disk_drives())
    engine = SsdEngine(flash)
    requests = data.draw(strategies.request_streams(flash.capacity))
    assert len(serve_all(engine, requests)) == len(requests)
    check_invariants(engine)
    drive = HddEngine(disk)
    requests = data.draw(strategies.request_streams(drive.capacity))
    assert len(serve(drive, requests)) == len(requests)


@given(strategies.traces(), strategies.relations(), strategies.page_graphs(), strategies.tables())
def test_traces_relations_and_graphs_can_be_used(batch: pa.RecordBatch, file: HeapFile, graph: PageGraph, table: pa.Table) -> None:
    assert batch.schema.equals(SCHEMA) and np.all(np.diff(column(batch, "arrival")) >= 0)
    assert file.tuples >= file.pages and graph.pages == 10 and table.num_columns >= 1


def small(strategy: st.SearchStrategy[Any], condition: Any) -> Any:
    return find(strategy, condition, settings=SHRINK)


def test_strategies_shrink_to_small_cases() -> None:
    """The least case that has what is sought, and nothing besides."""
    flash = small(strategies.ssd_drives(), lambda drive: drive.channels > 1)
    assert (flash.channels, flash.packages_per_channel, flash.dies_per_package) == (2, 1, 1)
    assert (flash.pages_per_block, flash.queue_depth, flash.gc) == (2, 1, "greedy")
    disk = small(strategies.disk_drives(), lambda drive: drive.heads > 1)
    assert disk.heads == 2 and disk.queue_depth == 1
    requests = small(strategies.request_streams(1 << 20), lambda found: np.any(found["operation"] == WRITE))
    assert requests[["operation", "offset", "length", "dependency"]].tolist() == [(WRITE, 0, 512, -1)]
    assert small(strategies.traces(), lambda batch: batch.num_rows > 1).num_rows == 2
    assert small(strategies.relations(), lambda file: file.tuples > 5).tuples == 6
    graph = small(strategies.page_graphs(), lambda found: found.edges > 1)
    assert graph.edges == 2 and max(graph.first.max(), graph.second.max()) <= 2
    history = small(strategies.crash_histories(), lambda found: any(write for each in found.transactions for _, write in each))
    assert history.transactions == (((0, True),),) and history.seed == 0


FIXTURES = """
def test_them(fresh_drive, steady_drive, pool, temporary_volume):
    import numpy as np
    assert not fresh_drive.state.blocks.valid.any() and fresh_drive.statistics()["flash_erases"] == 0
    steady_drive.write_all(range(0, steady_drive.pages, 3))
    assert steady_drive.statistics()["write_amplification"] > 1
    assert (pool.pages, pool.frames) == (100, 10)
    assert pool.refer(np.arange(12)).victims[-2:].tolist() == [0, 1]
    assert temporary_volume.laid_out_size == 0
"""


def test_the_guides_tests_and_fixtures_are_as_it_says(tmp_path: Path) -> None:
    """In a folder of their own, where no settings are but the guide's, and those of Hypothesis for CI: slow draws are no fault there."""
    assert len(write_members(tmp_path, PAGE.with_name("test-your-own-part.md"))) == 0
    (tmp_path / "test_fixtures.py").write_text(FIXTURES)
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], check=True, cwd=tmp_path, env=os.environ | {"CI": "1"})


@pytest.mark.parametrize("library", ["pytest", "hypothesis"])
def test_without_its_libraries_it_says_what_to_install(library: str) -> None:
    program = f"""
import importlib.util, sys
plain = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "{library}" else plain(name, package)
import flashsim as fs
from flashsim.core.errors import FlashsimError
for way in (lambda: __import__("flashsim.testing"), lambda: fs.check("mine.py")):
    try:
        way()
    except (ImportError, FlashsimError) as problem:
        print(problem)
"""
    lines = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.splitlines()
    assert lines == [f"flashsim.testing needs {library}; install with: pip install 'flashsim[testing]'"] * 2

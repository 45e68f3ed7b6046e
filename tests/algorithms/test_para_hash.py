"""ParaHash: strands share memory, buckets and one hash table; the rows are those of one strand, and one strand asks for the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.joins.base import BucketOptions, JoinParameters, plan
from algorithms.partitioning.base import PartitionBuffers
from algorithms.partitioning.para_hash import _most_strands, _share
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import Integers
from flashsim.device.device import Device
from flashsim.execution import cpu
from flashsim.execution.drivers import run_strands
from flashsim.execution.machine import Machine
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.source.base import load_pair, open_source
from flashsim.testing.strict_driver import oracle, relation_file, run
from tests.contract.drivers import Pairs, run_strands_everywhere
from tests.flashsim.execution.strand_programs import Kept

Tables = tuple[HeapFile, HeapFile, Integers]
JOINS = ("grace-hash", "hybrid-hash")
CPU = cpu.load("pentium-d-2009")


@pytest.fixture(scope="module", params=[False, True], ids=["even", "skewed"])
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Files of 135 and 337 pages, perhaps with one key in four tuples of ten, and the pairs of rows that join."""
    draw, folder, codes = np.random.default_rng(4), tmp_path_factory.mktemp("tables"), []
    for name, rows in (("r", 1000), ("s", 2500)):
        keys = draw.integers(0, 900, rows)
        codes.append(np.where(draw.random(rows) < 0.4, 7, keys) if request.param else keys)
        pq.write_table(pa.table({"key": codes[-1], "text": ["x" * 110] * rows}), folder / f"{name}.parquet")
    relations = load_pair(*(open_source(f"{folder}/{name}.parquet") for name in "rs"), "key", "key")
    r, s = (heap_file(relation, 1024) for relation in relations)
    return r, s, oracle(*codes)


def _parameters(strands: int, memory: int = 60, page_io: bool = False) -> JoinParameters:
    return JoinParameters(memory, page_io, options=BucketOptions("para-hash", strands=strands))


@pytest.mark.parametrize("page_io", [False, True])
@pytest.mark.parametrize("join", JOINS)
def test_one_strand_asks_for_what_traditional_partitioning_asks_for(join: str, page_io: bool, tables: Tables) -> None:
    r, s, pairs = tables
    alone = _parameters(1, 30, page_io)
    para, plain = (run(plan(join, r, s, parameters), 30) for parameters in (alone, replace(alone, options=None)))
    assert para.extents == plain.extents
    assert para.work == plain.work
    assert np.array_equal(para.pairs, plain.pairs)
    assert np.array_equal(para.sorted_pairs(), pairs)


@pytest.mark.parametrize("strands", [2, 5])
@pytest.mark.parametrize("join", JOINS)
def test_rows_are_the_same_with_every_driver(join: str, strands: int, tables: Tables, tmp_path: Path) -> None:
    r, s, expected = tables
    found, timed, others = run_strands_everywhere(lambda: plan(join, r, s, _parameters(strands)), [r, s], tmp_path)
    for pairs in found:
        assert np.array_equal(pairs, expected)
    if join == "grace-hash":  # what stays of hybrid hash in memory depends on who comes first
        counted = [run.total() for run in (timed, *others)]
        assert len({(total.reads, total.writes, total.pages_read, total.pages_written) for total in counted}) == 1
        assert counted[0].work == counted[1].work == counted[2].work
    assert [strand.strand for strand in timed.strands] == ["main", *(f"strand {number}" for number in range(1, strands + 1))]
    assert {phase.name for strand in timed.strands for phase in strand.phases} == {"partition", "join"}


@pytest.mark.parametrize("join", JOINS)
def test_pairs_are_in_the_callers_order_where_the_larger_relation_comes_first(join: str, tables: Tables) -> None:
    r, s, expected = tables
    pairs = Pairs()
    run_strands(plan(join, s, r, _parameters(3)), [s, r], Machine([Device.open("intel-x25e-64gb")], CPU), results=pairs)
    found = pairs.sorted()[:, ::-1]
    assert np.array_equal(found[np.lexsort((found[:, 1], found[:, 0]))], expected)


def test_virtual_time_gives_the_same_run_every_time() -> None:
    r, s = relation_file("r", np.arange(300) % 90), relation_file("s", np.arange(700) % 90)
    runs, sinks = [], []
    for _ in range(2):
        sinks.append(Kept())
        machine = Machine([Device.open("intel-x25e-64gb")], CPU, sinks[-1])
        runs.append(run_strands(plan("hybrid-hash", r, s, _parameters(4, 30)), [r, s], machine).as_dict())
    assert runs[0] == runs[1]
    assert sinks[0].rows == sinks[1].rows


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 30), st.integers(1, 20))
def test_strands_share_the_memory_of_one(buckets: int, output: int, input_pages: int, strands: int) -> None:
    whole = PartitionBuffers(input_pages, output if buckets else 0, buckets)
    strands = min(strands, _most_strands(whole))
    part = _share(whole, strands)
    assert part.input >= 1 and (part.output >= 1 or not buckets)
    assert strands * part.pages <= whole.pages < strands * (part.pages + 1)
    if strands == 1:
        assert part == whole


def test_strands_without_a_buffer_are_refused_before_anything_is_read(tables: Tables) -> None:
    r, s, _ = tables
    bound = r"strands: 13, but each needs a page to read and one for each of 4 buckets, and 60 pages have room for 12"
    with pytest.raises(InvalidParameterError, match=bound):
        plan("grace-hash", r, s, _parameters(13))
    with pytest.raises(InvalidParameterError, match="strands: 0, but it must be at least 1"):
        plan("grace-hash", r, s, _parameters(0))
    with pytest.raises(InvalidParameterError, match="strands: 2, but partition method traditional does not take it"):
        plan("grace-hash", r, s, JoinParameters(60, options=BucketOptions("traditional", strands=2)))


def test_more_strands_than_pages_are_as_many_as_pages() -> None:
    r, s = relation_file("r", np.arange(8)), relation_file("s", np.arange(8))
    pairs = Pairs()
    run_strands(plan("grace-hash", r, s, _parameters(15)), [r, s], Machine([Device.open("intel-x25e-64gb")], CPU), results=pairs)
    assert len(pairs.sorted()) == 8

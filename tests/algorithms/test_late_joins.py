"""Joins that materialise late: what they read of pages, each at most once in a fetch, and pipelines of two joins, against DuckDB."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.joins import flash_join
from algorithms.joins.base import JOINS, JoinParameters, plan
from algorithms.joins.flash_join import FlashJoinOptions
from algorithms.late_fetch.columns import Selection, part_bytes
from algorithms.pipelines import Onward, pipeline
from flashsim.core.errors import CapacityError, InvalidParameterError, UnknownNameError
from flashsim.execution.drivers import trace_only
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.source.base import TableRecords, load_pair, open_source
from flashsim.testing.contracts.joins import options_of
from flashsim.testing.strict_driver import AlgorithmRun, oracle, relation_file, run
from tests.contract.drivers import run_everywhere
from tests.tiers import examples

NAMES = ("rare", "flash-join")
WANTED = ("R.c_name", "S.o_totalprice", "S.o_orderstatus")
PAGE = 4096


@pytest.fixture(scope="module")
def files() -> tuple[HeapFile, HeapFile]:
    relations = load_pair(open_source("tpch:customer@0.01"), open_source("tpch:orders@0.01"), "c_custkey", "o_custkey")
    r, s = (heap_file(relation, PAGE, page_format="pax") for relation in relations)
    return r, s


def fetched(outcome: AlgorithmRun, file: HeapFile) -> Counter[int]:
    """How often each page was fetched."""
    pages: Counter[int] = Counter()
    for (kind, name, first, count), phase in zip(outcome.extents, outcome.in_phase, strict=True):
        if kind == "read" and name == file.name and phase.startswith("fetch"):
            pages.update(range(first, first + count))
    return pages


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("memory", [12, 40, 400])
def test_only_minipages_that_are_needed_are_read(name: str, memory: int, files: tuple[HeapFile, HeapFile]) -> None:
    """The key's of every page once, and of pages with a row that joins those of the columns that the result wants, once."""
    r, s = files
    outcome = run(plan(name, r, s, JoinParameters(memory, options=options_of(name, columns=WANTED))), memory)
    assert len(outcome.pairs) == len(s.relation)
    for file, rows, wanted in ((r, outcome.pairs[:, 0], WANTED[:1]), (s, outcome.pairs[:, 1], WANTED[1:])):
        parts = file.layout.parts((), tuple(column[2:] for column in wanted))
        needed = np.unique(np.searchsorted(file.first_rows, rows, side="right") - 1).tolist()
        assert fetched(outcome, file) == Counter(dict.fromkeys(needed, len(parts)))
        scanned = file.pages * part_bytes(file.layout.parts(("key",)))
        assert outcome.bytes_by_file["read", file.name] == scanned + len(needed) * part_bytes(parts)
    whole = run(plan(name, r, s, JoinParameters(memory)), memory)
    assert (
        whole.bytes_by_file["read", s.name]
        == s.pages * (part_bytes(s.layout.parts(("key",))) + PAGE)
        > 3 * outcome.bytes_by_file["read", s.name]
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_relation_of_which_nothing_is_wanted_is_not_fetched(name: str, files: tuple[HeapFile, HeapFile]) -> None:
    for columns, phases in (((), set()), (("R.c_name",), {"fetch R"}), (("S.o_comment",), {"fetch S"})):
        outcome = run(plan(name, *files, JoinParameters(16, options=options_of(name, columns=columns))), 16)
        base = {file.name for file in files}
        there = {phase for (_, name, *_), phase in zip(outcome.extents, outcome.in_phase, strict=True) if name in base}
        assert {phase for phase in there if phase.startswith("fetch")} == phases
        assert len(outcome.pairs) == len(files[1].relation)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(30))
@given(st.integers(0, 1000), st.sampled_from([1, 5, 300]), st.integers(8, 40), st.booleans(), st.sets(st.sampled_from(["R", "S"])))
def test_no_page_is_fetched_twice_in_any_memory(name: str, seed: int, domain: int, memory: int, page_io: bool, sides: set[str]) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, domain, rng.integers(0, 90)), rng.integers(0, domain, rng.integers(0, 200))
    files = [relation_file(side, codes, page_size=1024, page_format="pax") for side, codes in (("left", left), ("right", right))]
    columns = tuple(f"{side}.padding" for side in sides)
    outcome = run(plan(name, *files, JoinParameters(memory, page_io, options=options_of(name, columns=columns))), memory)
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(left, right))
    for file in files:
        assert max(fetched(outcome, file).values(), default=0) <= len(file.layout.parts((), ("padding",)))


def test_flash_scan_reads_fewer_pages_where_rows_that_qualify_lie_together(files: tuple[HeapFile, HeapFile]) -> None:
    r, s = files
    chosen = np.arange(len(s.relation)) < len(s.relation) // 10
    keys = {}
    for first in (True, False):
        where = Selection(("o_orderdate",), chosen, first)
        outcome = run(flash_join.join(r, s, JoinParameters(40, options=FlashJoinOptions(columns=())), s_where=where), 40)
        expected = oracle(r.relation.codes, s.relation.codes[chosen])
        np.testing.assert_array_equal(outcome.sorted_pairs(), expected)
        keys[first] = outcome.bytes_by_file["read", s.name]
    dates, alone = (part_bytes(s.layout.parts(*which)) for which in (((), ("o_orderdate",)), (("key",), ())))
    page = int(np.searchsorted(s.first_rows, chosen.sum(), side="right"))
    assert keys[True] == s.pages * dates + page * alone
    assert keys[False] == s.pages * part_bytes(s.layout.parts(("key",), ("o_orderdate",)))


@pytest.mark.parametrize("name", NAMES)
def test_keys_with_row_ids_may_take_more_than_rows(name: str) -> None:
    """A relation of nothing but a narrow key, in any memory: no tuple of a table that has just room is lost."""
    tables = [pa.table({"a": pa.array(np.arange(rows) % 700, pa.int16())}) for rows in (700, 3000)]
    relations = load_pair(TableRecords("r", tables[0]), TableRecords("s", tables[1]), "a", "a")
    r, s = (heap_file(relation, 512, page_format="pax") for relation in relations)
    for memory in range(10, 50, 3):
        outcome = run(plan(name, r, s, JoinParameters(memory, options=options_of(name, columns=()))), memory)
        np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(np.arange(700), np.arange(3000) % 700))


def test_any_join_of_keys_is_a_kernel(files: tuple[HeapFile, HeapFile]) -> None:
    expected = oracle(files[0].relation.codes, files[1].relation.codes)
    for kernel in JOINS.names():
        parameters = JoinParameters(24, options=FlashJoinOptions(columns=("S.o_orderdate",), kernel=kernel))
        if JOINS.load(kernel).FETCHES:
            with pytest.raises(InvalidParameterError, match=f"kernel: {kernel}, but it fetches rows"):
                plan("flash-join", *files, parameters)
            continue
        np.testing.assert_array_equal(run(plan("flash-join", *files, parameters), 24).sorted_pairs(), expected)
    with pytest.raises(InvalidParameterError, match="kernel: hybrid-hash, but the 3 pages of memory that it has do not do"):
        plan("flash-join", *files, JoinParameters(4))


def test_what_cannot_be_is_refused_before_anything_is_read(files: tuple[HeapFile, HeapFile]) -> None:
    rows = heap_file(files[0].relation, PAGE)
    for name in NAMES:
        with pytest.raises(InvalidParameterError, match="page format: sqlite, but .*customer must be on pages such as pax"):
            plan(name, rows, files[1], JoinParameters(40))
        with pytest.raises(UnknownNameError, match="column of relation orders: 'o_price' is unknown; did you mean"):
            plan(name, *files, JoinParameters(40, options=options_of(name, columns=("S.o_price",))))
        with pytest.raises(InvalidParameterError, match="columns: 'o_totalprice', but a column is named"):
            plan(name, *files, JoinParameters(40, options=options_of(name, columns=("o_totalprice",))))
        with pytest.raises(UnknownNameError, match="orders"):  # roles swap, and so do columns
            plan(name, files[1], files[0], JoinParameters(40, options=options_of(name, columns=("R.c_name",))))
    wide = relation_file("wide", np.arange(9), record=494, page_format="pax")
    with pytest.raises(CapacityError, match="row format join index"):
        plan("flash-join", wide, wide, JoinParameters(40))


def rows_of(triples: list[np.ndarray]) -> np.ndarray:
    """Sorted, shape (n, 3)."""
    found = np.concatenate([np.zeros((0, 3), np.int64), *triples])
    return found[np.lexsort(found.T[::-1])]


def chained(tables: list[pa.Table], on: tuple[str, str], then_on: tuple[str, str], page_size: int) -> tuple[HeapFile, HeapFile, Onward]:
    """Three tables as a pipeline takes them."""
    records = [TableRecords(name, table) for name, table in zip(("first", "second", "third"), tables, strict=True)]
    (r, s), (onward, t) = load_pair(records[0], records[1], *on), load_pair(records[1], records[2], *then_on)
    files = [heap_file(relation, page_size, page_format="pax") for relation in (r, s, t)]
    return files[0], files[1], Onward(onward, files[2])


def by_duckdb(tables: list[pa.Table], on: tuple[str, str], then_on: tuple[str, str]) -> np.ndarray:
    """Row ids of the joined rows."""
    with duckdb.connect() as connection:
        for name, table in zip("rst", tables, strict=True):
            connection.register(name, table.append_column(f"row_{name}", pa.array(range(len(table)), pa.int64())))
        query = f"SELECT row_r, row_s, row_t FROM r JOIN s ON r.{on[0]} = s.{on[1]} JOIN t ON s.{then_on[0]} = t.{then_on[1]} ORDER BY ALL"
        found = connection.execute(query).fetchnumpy()
    return np.column_stack([np.asarray(column, np.int64) for column in found.values()]).reshape(-1, 3)


def triples_of(algorithm: Algorithm, files: tuple[HeapFile, ...]) -> tuple[np.ndarray, int]:
    """Result rows, and bytes that were read and written."""
    found, sink = [], _Bytes()
    trace_only(algorithm, files, sink, results=lambda *rows: found.append(np.column_stack(rows)))
    return rows_of(found), sink.bytes


class _Bytes:
    """Counts them."""

    bytes = 0

    def record(self, requests: np.ndarray, *_: object) -> None:
        self.bytes += int(requests["length"].sum())

    def close(self) -> None:
        """Nothing to do."""


@pytest.fixture(scope="module")
def tpch() -> list[pa.Table]:
    sources = [open_source(f"tpch:{name}@0.01") for name in ("customer", "orders", "lineitem")]
    return [source.take(np.arange(source.rows)) for source in sources]


CUSTOMER, ORDER = ("c_custkey", "o_custkey"), ("o_orderkey", "l_orderkey")


def test_late_materialisation_pays_for_few_columns_and_few_rows(tpch: list[pa.Table]) -> None:
    """Bytes moved by two joins in a row: late is cheaper for few columns of few rows, early for all of all rows where memory holds them."""
    r, s, onward = chained(tpch, CUSTOMER, ORDER, 8192)
    expected = by_duckdb(tpch, CUSTOMER, ORDER)
    files = (r, s, onward.t)
    few = np.asarray(pc.less(tpch[0]["c_custkey"], 60))
    moved: dict[tuple[bool, bool], int] = {}
    for selective in (False, True):
        wanted = {"R": ("c_name",), "S": ("o_totalprice",), "T": ("l_comment",)} if selective else None
        where = {"R": Selection(("c_custkey",), few)} if selective else {}
        parameters = JoinParameters(64 if selective else 20_000)
        for late in (True, False):
            algorithm = pipeline(r, s, onward, parameters, columns=wanted, where=where, late=late)
            rows, moved[selective, late] = triples_of(algorithm, files)
            np.testing.assert_array_equal(rows, expected[few[expected[:, 0]]] if selective else expected)
    assert moved[True, True] < 0.75 * moved[True, False]
    assert moved[False, True] > moved[False, False]


def test_pipelines_are_the_same_in_all_drivers(tpch: list[pa.Table], tmp_path: Path) -> None:
    tables = [tpch[0], tpch[1].slice(0, 3000), tpch[2].slice(0, 6000)]
    r, s, onward = chained(tables, CUSTOMER, ORDER, 4096)
    wanted = {"R": ("c_name",), "S": (), "T": ("l_comment",)}
    for late in (True, False):

        def program(late: bool = late) -> Algorithm:
            return pipeline(r, s, onward, JoinParameters(24), columns=wanted, late=late)

        rows, _, _ = run_everywhere(program, (r, s, onward.t), tmp_path, buffered=True)
        np.testing.assert_array_equal(rows, by_duckdb(tables, CUSTOMER, ORDER))


@settings(max_examples=examples(25))
@given(st.integers(0, 1000), st.sampled_from([1, 4, 60]), st.integers(5, 40), st.booleans(), st.sampled_from(["hybrid-hash", "bnl"]))
def test_made_pipelines(seed: int, domain: int, memory: int, late: bool, kernel: str) -> None:
    """Duplicates, NULL keys, empty relations, and skew."""
    rng = np.random.default_rng(seed)

    def column(rows: int) -> pa.Array:
        return pa.array(rng.integers(0, domain, rows), mask=rng.random(rows) < 0.1)

    sizes = rng.integers(0, [15, 20, 25])
    tables = [pa.table({"a": column(rows), "b": column(rows), "c": pa.array(["x" * 40] * rows)}) for rows in sizes]
    r, s, onward = chained(tables, ("a", "a"), ("b", "b"), 1024)
    columns = {"R": ("c",), "S": ("a", "c")} if seed % 2 else None
    algorithm = pipeline(r, s, onward, JoinParameters(memory, options=FlashJoinOptions(kernel=kernel)), columns=columns, late=late)
    try:
        rows, _ = triples_of(algorithm, (r, s, onward.t))
    except InvalidParameterError:  # of the kernel, which may ask for more
        assert memory < 16
    else:
        np.testing.assert_array_equal(rows, by_duckdb(tables, ("a", "a"), ("b", "b")))

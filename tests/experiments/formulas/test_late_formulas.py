"""Formulas of joins that fetch rows late, beside such joins as they ran."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from algorithms.digests import with_digests
from algorithms.joins.base import JOINS, JoinParameters, plan
from experiments.formulas.comparison import formula, sizes_of
from experiments.runs.joining import lay_out, open_pair
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.run import Run
from flashsim.execution.trace_only import trace_only
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.source.base import TableRecords
from models.disk import Disk
from models.haas import JoinCost, counts
from models.page_fetching import least_recently_used

DISK = Disk(0, 0.1, 0.04)


@cache
def relations(selectivity: float, rows: int = 6000, page_format: str = "sqlite") -> tuple[HeapFile, HeapFile]:
    """Two relations in independent orders, whose unique keys agree for a share of the rows."""
    random = np.random.default_rng(5)
    keys = random.permutation(rows)
    others = np.where(random.random(rows) < selectivity, random.permutation(rows), rows + np.arange(rows))
    tables = (TableRecords(name, pa.table({"key": each, "p": ["x" * 140] * rows})) for name, each in (("r", keys), ("s", others)))
    r, s = open_pair(*tables, "key")
    return lay_out(r, 4096, page_format), lay_out(s, 4096, page_format)


def ran_and_told(join: str, files: tuple[HeapFile, HeapFile], parameters: JoinParameters) -> tuple[Run, JoinCost]:
    allocation = JOINS.load(join).allocate(*sorted(file.pages for file in files), parameters)
    there = with_digests(files) if parameters.digests_stored else files
    run = trace_only(plan(join, *files, parameters, allocation), there)
    told = formula(join, sizes_of(files, parameters.memory, join, parameters, run.result_rows), DISK, allocation)
    assert told is not None
    return run, told


@pytest.mark.parametrize("first", ["bnl", "sort-merge", "external-sort-merge", "grace-hash", "hybrid-hash"])
@pytest.mark.parametrize("stored", [False, True])
def test_digest_join_has_the_phases_and_pages_that_the_formula_says(first: str, stored: bool) -> None:
    """Whatever the first join is: projection, its own formula on digests, and the join index to the page; fetches at least as many."""
    run, told = ran_and_told("digest", relations(0.2), JoinParameters(24, first=first, fetch="planned", digests_stored=stored))
    counted = {phase.name: phase.total for phase in told.phases}
    assert {phase.name for phase in run.phases} == set(counted)
    assert ("project" in counted) != stored and ("index" in counted) == (first != "external-sort-merge")
    for ran in run.phases[:-1]:
        # The last page and block of each run and bucket is not full: at most three of each relation here.
        assert 0 <= ran.pages - counted[ran.name].pages <= 6
        assert 0 <= ran.requests - counted[ran.name].requests <= 6
    assert counted["fetch"].pages <= 1.01 * run.phases[-1].pages


@pytest.mark.parametrize("first", ["bnl", "sort-merge", "grace-hash", "hybrid-hash", "simple-hash"])
@pytest.mark.parametrize(("selectivity", "memory"), [(0.02, 30), (0.2, 20), (0.2, 120), (0.9, 150)])
def test_naive_fetches_of_independent_orders(first: str, selectivity: float, memory: int) -> None:
    """Sort-merge gives entries by keys, which lie anywhere, and others by scans; 5 % are the noise of some hundred fetches."""
    run, told = ran_and_told("digest", relations(selectivity), JoinParameters(memory, first=first, fetch="naive"))
    counted = {phase.name: phase.total.pages for phase in told.phases}
    assert {phase.name: phase.pages for phase in run.phases}["fetch"] == pytest.approx(counted["fetch"], rel=0.05)


@pytest.mark.parametrize("memory", [20, 120])
def test_fetches_of_block_nested_loops_without_what_they_sort(memory: int) -> None:
    """Beside fetches the phase has requests of temporary files: pages of entries written, sorted and read."""
    files = relations(0.9)
    run, told = ran_and_told("digest", files, JoinParameters(memory, fetch="blocks"))
    written = run.phases[-1].pages_written
    assert run.phases[-1].pages_read - written == pytest.approx(told.phases[-1].total.pages, rel=0.03)


@pytest.mark.parametrize("join", ["rare", "flash-join"])
@pytest.mark.parametrize("memory", [24, 60, 150])
@pytest.mark.parametrize("columns", [None, ("R.p", "S.key"), ("S.p",), ()])
def test_joins_by_column_move_what_the_formula_says(join: str, memory: int, columns: tuple[str, ...] | None) -> None:
    """The same phases: scans of minipages and passes over keys, the join index, what is put aside, and each needed page once."""
    run, told = ran_and_told(join, relations(0.3, page_format="pax"), JoinParameters(memory, columns=columns))
    counted = {phase.name: phase for phase in told.phases}
    assert {phase.name for phase in run.phases if phase.pages} <= set(counted)
    for ran in run.phases:
        # What is put aside may be written in either fetch, and the last pages and blocks of runs and buckets are not full.
        foreseen = counted[ran.name].reads.pages if ran.name in counted else 0
        assert ran.pages_read == pytest.approx(foreseen, rel=0.05, abs=6)
    written = sum(phase.pages_written for phase in run.phases)
    assert written == pytest.approx(told.writes.pages, rel=0.1, abs=12)


def test_a_cache_that_holds_all_pages_fetches_each_once() -> None:
    for pages, asked, frames, expected in ((50, 10**6, 50, 50), (50, 10**6, 2, 0.96e6), (0, 0, 2, 0)):
        assert least_recently_used([(pages, 9, asked)], frames) == pytest.approx(expected, rel=1e-3)
    files = [(40, 10, 100), (60, 10, 300)]
    assert least_recently_used(files, 10) > least_recently_used(files, 30) and least_recently_used(files, 10, 70) > 70


def test_a_first_join_of_ones_own_brings_its_formula_or_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from algorithms.joins.bnl import FORMULA, allocate, join\n")
    (tmp_path / "plain.py").write_text("from algorithms.joins.bnl import allocate, join\n")
    run, told = ran_and_told("digest", relations(0.2), JoinParameters(24, first=str(tmp_path / "mine.py")))
    assert {phase.name for phase in run.phases} == {phase.name for phase in told.phases} >= {"digest mine: join"}
    parameters = JoinParameters(24, first=str(tmp_path / "plain.py"))
    allocation = JOINS.load("digest").allocate(9, 9, parameters)
    assert formula("digest", sizes_of(relations(0.2), 24, "digest", parameters), DISK, allocation) is None


def test_a_formula_of_late_fetching_needs_rows() -> None:
    allocation = JOINS.load("digest").allocate(9, 9, JoinParameters(24))
    with pytest.raises(InvalidParameterError, match="sizes: no rows, but this formula needs rows, digests and results"):
        counts("digest", sizes_of(relations(0.2), 24), allocation)

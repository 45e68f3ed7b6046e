"""Formulas of joins that fetch rows late, beside such joins as they ran."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from algorithms.joins.base import JOINS, JoinParameters, plan
from algorithms.joins.digest import DigestOptions
from algorithms.late_fetch.columns import with_digests
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.drivers import trace_only
from flashsim.execution.run import Run
from flashsim.experiments.formulas.comparison import (
    BOUND,
    EVEN,
    SCATTERED,
    compare_join,
    comparison_table,
    formula,
    left_out,
    sizes_of,
)
from flashsim.experiments.runs.joining import JoinSetting, lay_out, open_pair, simulate_join
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.source.base import TableRecords
from models.disk import Disk
from models.haas import JoinCost, counts
from models.page_fetching import least_recently_used

DISK = Disk(0, 0.1, 0.04)


@cache
def relations(selectivity: float, rows: int = 6000, page_format: str = "sqlite", together: bool = False) -> tuple[HeapFile, HeapFile]:
    """Two relations in independent orders, whose unique keys agree for a share of the rows; or in one, with those rows first."""
    random = np.random.default_rng(5)
    keys = random.permutation(rows)
    others = np.where(random.random(rows) < selectivity, random.permutation(rows), rows + np.arange(rows))
    if together:
        keys = np.arange(rows)
        others = np.where(keys < selectivity * rows, keys, rows + keys)
    tables = (TableRecords(name, pa.table({"key": each, "p": ["x" * 140] * rows})) for name, each in (("r", keys), ("s", others)))
    r, s = open_pair(*tables, "key")
    return lay_out(r, 4096, page_format), lay_out(s, 4096, page_format)


def ran_and_told(join: str, files: tuple[HeapFile, HeapFile], parameters: JoinParameters) -> tuple[Run, JoinCost]:
    allocation = JOINS.load(join).allocate(*sorted(file.pages for file in files), parameters)
    there = with_digests(files) if getattr(parameters.options, "digests_stored", False) else files
    run = trace_only(plan(join, *files, parameters, allocation), there)
    told = formula(join, sizes_of(files, parameters.memory, join, parameters, run.result_rows), DISK, allocation)
    assert told is not None
    return run, told


@pytest.mark.parametrize("first", ["bnl", "sort-merge", "external-sort-merge", "grace-hash", "hybrid-hash"])
@pytest.mark.parametrize("stored", [False, True])
def test_digest_join_has_the_phases_and_pages_that_the_formula_says(first: str, stored: bool) -> None:
    """Whatever the first join is: projection, its own formula on digests, and the join index to the page; fetches at least as many."""
    run, told = ran_and_told(
        "digest", relations(0.2), JoinParameters(24, options=DigestOptions(first=first, digests_stored=stored, fetch="planned"))
    )
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
    run, told = ran_and_told("digest", relations(selectivity), JoinParameters(memory, options=DigestOptions(first=first, fetch="naive")))
    counted = {phase.name: phase.total.pages for phase in told.phases}
    assert {phase.name: phase.pages for phase in run.phases}["fetch"] == pytest.approx(counted["fetch"], rel=0.05)


@pytest.mark.parametrize("memory", [20, 120])
def test_fetches_of_block_nested_loops_without_what_they_sort(memory: int) -> None:
    """Beside fetches the phase has requests of temporary files: pages of entries written, sorted and read."""
    files = relations(0.9)
    run, told = ran_and_told("digest", files, JoinParameters(memory, options=DigestOptions(fetch="blocks")))
    written = run.phases[-1].pages_written
    assert run.phases[-1].pages_read - written == pytest.approx(told.phases[-1].total.pages, rel=0.03)


@pytest.mark.parametrize("join", ["rare", "flash-join"])
@pytest.mark.parametrize("memory", [24, 60, 150])
@pytest.mark.parametrize("columns", [None, ("R.p", "S.key"), ("S.p",), ()])
def test_joins_by_column_move_what_the_formula_says(join: str, memory: int, columns: tuple[str, ...] | None) -> None:
    """The same phases: scans of minipages and passes over keys, the join index, what is put aside, and each needed page once."""
    run, told = ran_and_told(
        join, relations(0.3, page_format="pax"), JoinParameters(memory, options=JOINS.load(join).OPTIONS(columns=columns))
    )
    counted = {phase.name: phase for phase in told.phases}
    assert {phase.name for phase in run.phases if phase.pages} <= set(counted)
    for ran in run.phases:
        # What is put aside may be written in either fetch, and the last pages and blocks of runs and buckets are not full.
        foreseen = counted[ran.name].reads.pages if ran.name in counted else 0
        assert ran.pages_read == pytest.approx(foreseen, rel=0.05, abs=6)
    written = sum(phase.pages_written for phase in run.phases)
    assert written == pytest.approx(told.writes.pages, rel=0.1, abs=12)


def a_row_a_page() -> tuple[HeapFile, HeapFile]:
    """Two relations with the same 400 keys in independent orders, each row on a page of its own of 512 B."""
    random = np.random.default_rng(1)
    tables = (TableRecords(name, pa.table({"key": random.permutation(400), "p": ["x" * 400] * 400})) for name in "rs")
    r, s = open_pair(*tables, "key")
    return lay_out(r, 512, "pax"), lay_out(s, 512, "pax")


def both(join: str, files: tuple[HeapFile, HeapFile], memory: int, phase: str) -> list[tuple[int, int, int, int]]:
    """Requests and pages read and written in a phase, as it ran and by the formula."""
    run, told = ran_and_told(join, files, JoinParameters(memory))
    (ran,) = (each for each in run.phases if each.name == phase)
    (counted,) = ((each.reads, each.writes) for each in told.phases if each.name == phase)
    reads, writes = counted
    return [(ran.reads, ran.writes, ran.pages_read, ran.pages_written), (reads.requests, writes.requests, reads.pages, writes.pages)]


def test_rare_in_four_pages_counted_by_hand() -> None:
    """62 entries a page of the join index: 7 pages, and with a page of memory 7 runs; a result with what was fetched of R fills a page.

    Of 7 runs 6 are written before the join ends and one after.  One can be read while entries are divided, so three at a time are merged,
    page by page: 1 + 1 + 1, 1 + 1 + 1 and 1 + 3 + 3 pages, 13 read and 13 written; 7 are read at last.  R's 400 pages are read, and 400
    results written.  Three pages of S fit beside one of results: 134 ranges, two files at first and three later: 67, 23, 8, 3 and 1
    ranges, so that results are read five times and written again four times.  A range's neighbouring pages are one request.
    """
    here = 400 + 13 + 7, 400 + 1 + 13
    assert both("rare", a_row_a_page(), 4, "fetch R") == 2 * [(*here, *here)]
    there = 134 + 5 * 400, 4 * 400
    assert both("rare", a_row_a_page(), 4, "fetch S") == 2 * [(*there, 400 + 5 * 400, 4 * 400)]


def test_flash_join_in_32_pages_counted_by_hand() -> None:
    """The index has 4 pages of memory: a run of 4 pages, written as the join goes on, and one of 3, written and read when R is fetched.

    7 of the 15 pages for merging are each run's.  Results are sorted in 16 pages: of 25 runs all but the last are written while R is
    fetched.  Then 11 of them are merged into one, which leaves 15, two pages at a time; and what is left is read page by page.
    """
    assert both("flash-join", a_row_a_page(), 32, "fetch R") == 2 * [(400 + 2, 1 + 24, 400 + 7, 3 + 24 * 16)]
    merged = 11 * 8
    assert both("flash-join", a_row_a_page(), 32, "fetch S") == 2 * [(400 + merged + 400, 1 + merged, 400 + 176 + 400, 16 + 176)]


@pytest.mark.parametrize("join", ["rare", "flash-join"])
def test_rows_that_join_and_lie_together_lie_on_fewer_pages_than_the_formula_expects(join: str) -> None:
    """The page on late fetching says so: 1,200 of 6,000 rows that join lie on every page if they lie anywhere, and here on a fifth."""
    files = relations(0.2, page_format="pax")
    ordered = relations(0.2, page_format="pax", together=True)
    ran, told = both(join, files, 60, "fetch R")
    assert ran[2] == pytest.approx(told[2], rel=0.1)
    ran, told = both(join, ordered, 60, "fetch R")
    assert ran[2] < told[2] / 2


def test_the_whole_is_compared_over_phases_that_have_a_formula() -> None:
    """Page-based fetching sorts and merges what it has fetched, for which there is none."""
    r, s = relations(0.2)
    result = simulate_join(
        JoinSetting("digest", 24, cpu=None, given={"first": "grace-hash", "fetch": "page-based"}), (r, s), ["intel-x25e-64gb"]
    )
    *phases, whole = compare_join(result)[0]
    known = [phase for phase in phases if phase.formula_io is not None]
    assert whole.phases_left_out == ("sort candidates", "merge candidates") == tuple(row.phase for row in phases if row not in known)
    assert whole.requests == sum(phase.requests for phase in phases) and whole.io == pytest.approx(sum(phase.io for phase in phases))
    told = whole.as_dict()
    for name in ("requests", "pages", "io"):
        ran, counted = (sum(getattr(phase, prefix + name) for phase in known) for prefix in ("", "formula_"))
        assert told[f"{name}_difference"] == pytest.approx(ran / counted - 1)
        assert told[f"{name}_left_out"] == pytest.approx(getattr(whole, name) - ran)
    assert "compared without sort candidates, merge candidates: there is no formula" in left_out([*phases, whole])
    assert left_out(phases[:1]) == ""


def remarks_of(algorithm: str, files: tuple[HeapFile, HeapFile], memory: int, **options: str) -> dict[str, str]:
    result = simulate_join(JoinSetting(algorithm, memory, cpu=None, given=options), files, ["intel-x25e-64gb"])
    (rows,) = compare_join(result)
    table = comparison_table(rows)
    assert ("remark" in table.columns) == any(row.remark for row in rows)
    for row, shown in zip(rows, table.to_dict("records"), strict=True):
        assert not row.remark or shown["remark"] == row.remark
        assert (shown["I/O differs by"] is None) == (row.formula_io is None or BOUND in row.remark)
    return {row.phase: row.remark for row in rows}


def test_a_bound_says_so_in_its_row_and_in_that_of_the_whole() -> None:
    """A bound may be far below, and is none at all for rows that lie together; what is counted for naive fetching is none."""
    together = "lower bound for scattered rows"
    told = remarks_of("digest", relations(0.2), 24, first="grace-hash", fetch="page-based")
    assert (told["fetch"], told["total"], told["project"]) == (BOUND, BOUND, "")
    told = remarks_of("digest", relations(0.2, together=True), 24, first="grace-hash", fetch="page-based")
    assert (told["fetch"], told["total"], told["index"]) == (together, together, "")
    assert not any(remarks_of("digest", relations(0.2), 24, first="grace-hash", fetch="naive").values())
    assert remarks_of("rare", relations(0.2, page_format="pax", together=True), 60)["fetch R"] == SCATTERED


@pytest.mark.parametrize("skewed", [False, True])
def test_a_formula_for_even_keys_says_so_where_one_key_is_frequent(skewed: bool) -> None:
    """In rows of phases that the buckets' sizes decide; nested loops do not care."""
    random = np.random.default_rng(3)
    often = np.where(random.random(6000) < 0.5 * skewed, 7, random.permutation(6000))
    tables = (TableRecords(name, pa.table({"key": each, "p": ["x" * 140] * 6000})) for name, each in (("r", np.arange(6000)), ("s", often)))
    r, s = (lay_out(each, 4096) for each in open_pair(*tables, "key"))
    expected = EVEN if skewed else ""
    told = remarks_of("simple-hash", (r, s), 60)
    assert told == {"first": expected, "further": expected, "total": expected}
    assert remarks_of("hybrid-hash", (r, s), 60) == {"partition": "", "join": expected, "total": expected}
    assert not any(remarks_of("bnl", (r, s), 60).values())


def test_a_cache_that_holds_all_pages_fetches_each_once() -> None:
    for pages, asked, frames, expected in ((50, 10**6, 50, 50), (50, 10**6, 2, 0.96e6), (0, 0, 2, 0)):
        assert least_recently_used([(pages, 9, asked)], frames) == pytest.approx(expected, rel=1e-3)
    files = [(40, 10, 100), (60, 10, 300)]
    assert least_recently_used(files, 10) > least_recently_used(files, 30) and least_recently_used(files, 10, 70) > 70


def test_a_first_join_of_ones_own_brings_its_formula_or_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from algorithms.joins.bnl import FORMULA, allocate, join\n")
    (tmp_path / "plain.py").write_text("from algorithms.joins.bnl import allocate, join\n")
    run, told = ran_and_told("digest", relations(0.2), JoinParameters(24, options=DigestOptions(first=str(tmp_path / "mine.py"))))
    assert {phase.name for phase in run.phases} == {phase.name for phase in told.phases} >= {"digest mine: join"}
    parameters = JoinParameters(24, options=DigestOptions(first=str(tmp_path / "plain.py")))
    allocation = JOINS.load("digest").allocate(9, 9, parameters)
    assert formula("digest", sizes_of(relations(0.2), 24, "digest", parameters), DISK, allocation) is None


def test_a_formula_of_late_fetching_needs_rows() -> None:
    allocation = JOINS.load("digest").allocate(9, 9, JoinParameters(24))
    with pytest.raises(InvalidParameterError, match="sizes: no rows, but this formula needs rows, digests and results"):
        counts("digest", sizes_of(relations(0.2), 24), allocation)

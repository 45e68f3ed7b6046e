"""The contract of joins: rows equal an oracle's whatever the keys, memory and buffers, and requests are the same in every driver."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from algorithms.joins.base import JOINS, JoinOptions, JoinParameters, page_format, plan
from flashsim.core.errors import InvalidParameterError
from flashsim.core.options import options_in
from flashsim.core.request import Integers
from flashsim.execution.drivers import trace_only
from flashsim.execution.requests import Work
from flashsim.experiments.formulas.comparison import formula_of, sizes_of
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.keys import NULL_KEY
from flashsim.testing.contract import Contract, examples
from flashsim.testing.strategies import key_codes
from flashsim.testing.strict_driver import AlgorithmRun, oracle, relation_file, run
from models.allocation.buffers import SimpleHashAllocation, check
from models.haas import counts

__all__ = ["JoinContract"]


def relations(name: str, r_codes: Integers, s_codes: Integers, seed: int | None = None) -> tuple[HeapFile, HeapFile]:
    """Files of rows that are all of one size, or, with a seed, of sizes from 4 to 300 bytes, on pages that the join takes."""
    sizes: Sequence[Any] = (60, 90)
    if seed is not None:
        rng = np.random.default_rng(seed)
        sizes = rng.integers(4, 300, len(r_codes)), rng.integers(4, 300, len(s_codes))
    return file(name, "r", r_codes, record=sizes[0]), file(name, "s", s_codes, record=sizes[1])


def file(name: str, relation: str, codes: Integers, **sizes: Any) -> HeapFile:
    """A relation's file on pages that the join takes."""
    return relation_file(relation, codes, page_format=page_format(name), **sizes)


def options_of(name: str, **wanted: Any) -> JoinOptions:
    """A join's options: those of the wanted that it takes, and its defaults."""
    kind = JOINS.load(name).OPTIONS
    return kind(**{option: value for option, value in wanted.items() if option in options_in(kind)})


def outcome_or_refusal(
    name: str, left: HeapFile, right: HeapFile, parameters: JoinParameters, allocation: Any = None
) -> AlgorithmRun | None:
    """The run of a join, or None if the join refuses before it starts."""
    try:
        algorithm = plan(name, left, right, parameters, allocation)
    except InvalidParameterError:
        return None
    return run(algorithm, parameters.memory)


class JoinContract(Contract):
    """Properties of a join (`algorithms.joins.base`)."""

    FAMILY = JOINS
    #: How it makes buckets, if it does.
    method: ClassVar[str] = "traditional"

    @property
    def fetches_late(self) -> bool:
        """Whether rows are fetched for results once keys have met."""
        return bool({"columns", "fetch"} & options_in(JOINS.load(self.name).OPTIONS).keys())

    def parameters(self, memory: int, *, page_io: bool = False, **wanted: Any) -> JoinParameters:
        """Parameters with those of the wanted options that the join takes."""
        return JoinParameters(memory, page_io, options=options_of(self.name, partition=self.method, **wanted))

    @examples(40)
    @given(key_codes(), key_codes(), st.integers(1, 60), st.booleans(), st.one_of(st.none(), st.integers(0, 99)))
    @example(np.full(150, 7), np.full(150, 7), 9, False, None)
    @example(np.full(150, NULL_KEY), np.full(150, NULL_KEY), 9, False, None)
    @example(np.arange(150)[::-1].copy(), np.arange(150)[::-1].copy(), 9, True, None)
    def test_rows_equal_the_oracle_s(self, left: Integers, right: Integers, memory: int, page_io: bool, seed: int | None) -> None:
        if self.fetches_late and len(oracle(left, right)) > 1000:  # rows are fetched for each result: fewer rows of the same keys
            left, right = left[:30], right[:30]
        files = relations(self.name, left, right, seed)
        outcome = outcome_or_refusal(self.name, *files, self.parameters(memory, page_io=page_io))
        if outcome is None:
            needed = np.sqrt(1.2 * max(file.pages for file in files))
            assert memory < 2 * needed + 4, "memory well above every bound is refused"
        else:
            np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(left, right))

    def test_every_memory_from_the_least_up(self) -> None:
        """More memory never turns a join impossible, and 21 pages are enough here; with and without skew."""
        for skew in (0, 0.7):
            rng, memories, sizes = np.random.default_rng(3), [*range(1, 40), 60, 100, 1000], (200, 500)
            if skew and self.name == "digest":  # fetches whole rows for every pair
                memories, sizes = [*range(1, 12), *memories[20::7]], (80, 200)
            left, right = rng.integers(0, 150, sizes[0]), rng.integers(0, 200, sizes[1])
            left, right = np.where(rng.random(sizes[0]) < skew, 5, left), np.where(rng.random(sizes[1]) < skew, 5, right)
            files, expected = relations(self.name, left, right), oracle(left, right)
            served = []
            for memory in memories:
                parameters = self.parameters(memory, columns=() if skew else None)  # half a million results, and nothing fetched for each
                outcome = outcome_or_refusal(self.name, *files, parameters)
                served.append(outcome is not None)
                if outcome is not None:
                    np.testing.assert_array_equal(outcome.sorted_pairs(), expected)
            assert served == sorted(served), "more memory never turns a join impossible"
            assert not served[0] and served[memories.index(21)]

    @examples(15)
    @given(key_codes(), key_codes(), st.integers(8, 40))
    def test_page_io_moves_the_same_pages_one_by_one(self, left: Integers, right: Integers, memory: int) -> None:
        if self.fetches_late:
            left, right = left[:30], right[:60]
        files = relations(self.name, left, right)
        blocked = outcome_or_refusal(self.name, *files, self.parameters(memory))
        paged = outcome_or_refusal(self.name, *relations(self.name, left, right), self.parameters(memory, page_io=True))
        if blocked is None or paged is None:
            assert blocked is paged is None
            return
        assert all(count == 1 for _, _, _, count in paged.extents)
        assert paged.requests == blocked.requests
        split = [(kind, of, page) for kind, of, start, count in blocked.extents for page in range(start, start + count)]
        assert split == [(kind, of, page) for kind, of, page, _ in paged.extents]
        np.testing.assert_array_equal(paged.pairs, blocked.pairs)
        assert paged.work == blocked.work and paged.phases == blocked.phases

    def test_the_same_requests_every_time_and_in_every_driver(self) -> None:
        rng = np.random.default_rng(5)
        left, right = rng.integers(0, 300, 400), rng.integers(0, 300, 900)
        parameters = self.parameters(30)
        first, second = (run(plan(self.name, *relations(self.name, left, right, 1), parameters), 30) for _ in range(2))
        assert first.extents == second.extents
        np.testing.assert_array_equal(first.pairs, second.pairs)
        files, pairs = relations(self.name, left, right, 1), list[Any]()
        traced = trace_only(plan(self.name, *files, parameters), files, results=lambda r, s: pairs.append(np.column_stack([r, s])))
        np.testing.assert_array_equal(np.concatenate(pairs), first.pairs)
        total = traced.total()
        assert (total.reads, total.pages_read) == (first.count("read"), first.pages("read"))
        assert (total.writes, total.pages_written) == (first.count("write"), first.pages("write"))
        counted = dict(total.work)
        assert counted.pop(Work.PAGE) == total.pages_read + total.pages_written  # the driver counts these, and no join does
        assert counted == first.work
        assert traced.result_rows == len(first.pairs)

    def test_roles_swap_and_columns_stay(self) -> None:
        left, right = np.arange(600) % 70, np.arange(50)
        larger, smaller = relations(self.name, left, right)
        outcome = run(plan(self.name, larger, smaller, JoinParameters(40)), 40)
        np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(left, right))
        mirrored = run(plan(self.name, smaller, larger, JoinParameters(40)), 40)
        assert mirrored.extents == outcome.extents
        np.testing.assert_array_equal(mirrored.pairs, outcome.pairs[:, ::-1])

    def test_a_relation_joins_itself(self) -> None:
        codes = np.arange(300) % 120
        staff = file(self.name, "staff", codes)
        outcome = run(plan(self.name, staff, staff, JoinParameters(30)), 30)
        np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(codes, codes))

    def test_an_empty_relation_costs_nothing(self) -> None:
        for rows in ((0, 0), (0, 50), (50, 0)):
            outcome = run(plan(self.name, *relations(self.name, np.arange(rows[0]), np.arange(rows[1])), JoinParameters(30)), 30)
            assert len(outcome.pairs) == 0 and outcome.extents == [] and outcome.phases

    def test_results_stream_out(self) -> None:
        """120,000 pairs from 800 tuples: no batch holds more than a part of them."""
        left, right = np.zeros(200, np.int64), np.zeros(600, np.int64)
        parameters = self.parameters(60, columns=())  # what is fetched after a join need not move so often here
        outcome = run(plan(self.name, *relations(self.name, left, right), parameters), 60)
        assert len(outcome.pairs) == 120_000 == len(np.unique(outcome.pairs, axis=0))
        assert max(outcome.batches) <= 1 << 16

    def test_its_formula_counts_what_a_run_asks_for(self) -> None:
        """Of keys that are drawn evenly, pages to within 7 %, and requests to 15 %, in little memory and in much.

        Where rows are fetched late the formula may count what no plan can do without.
        """
        if not (formula := formula_of(self.name)):
            pytest.skip("the join names no formula")
        rng = np.random.default_rng(1)
        left, right = rng.permutation(1200), rng.integers(0, 1200, 3000)
        for memory in (60, 400):
            files, parameters = relations(self.name, left, right), self.parameters(memory)
            run = trace_only(plan(self.name, *files, parameters), files)
            allocation = JOINS.load(self.name).allocate(files[0].pages, files[1].pages, parameters)
            phases = counts(formula, sizes_of(files, memory, self.name, parameters, run.result_rows), allocation)
            for what, most in (("pages", 1.07), ("requests", 1.15)):
                ours, told = getattr(run.total(), what), sum(getattr(phase.total, what) for phase in phases)
                told_rightly = told <= most * ours and (self.fetches_late or ours <= most * told)
                assert told_rightly, f"the formula counts {told} {what} in {memory} pages of memory, and a run has {ours}"

    @examples(25)
    @given(st.data())
    def test_any_allocation_that_fits_gives_the_same_rows(self, data: st.DataObject) -> None:
        rng = np.random.default_rng(data.draw(st.integers(0, 999)))
        left, right = rng.integers(0, 60, 120), rng.integers(0, 60, 200)
        files, memory = relations(self.name, left, right), data.draw(st.integers(3, 40))
        default = JOINS.load(self.name).allocate(files[0].pages, files[1].pages, JoinParameters(1000))
        changes: dict[str, Any] = {field.name: data.draw(st.integers(-1, 12), field.name) for field in dataclasses.fields(default)}
        allocation: Any = dataclasses.replace(default, **changes)
        outcome = outcome_or_refusal(self.name, *files, self.parameters(memory), allocation)
        if outcome is not None:
            check(allocation, memory)
            np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(left, right))

    def test_bad_parameters_are_refused_before_anything_is_read(self) -> None:
        r, s = relations(self.name, np.arange(100), np.arange(300))
        module = JOINS.load(self.name)
        fits = module.allocate(r.pages, s.pages, JoinParameters(100))
        negative: dict[str, Any] = {dataclasses.fields(fits)[-1].name: -1}
        for parameters, allocation in [
            (JoinParameters(99), fits),
            (JoinParameters(100), dataclasses.replace(fits, **negative)),
            (JoinParameters(100), SimpleHashAllocation(1, 1, 1)),
            (JoinParameters(2), None),
            (JoinParameters(0), None),
            (JoinParameters(-5), None),
            (JoinParameters(100, fudge=0.5), None),
            (JoinParameters(100, fudge=float("nan")), None),
        ]:
            with pytest.raises(InvalidParameterError):
                plan(self.name, r, s, parameters, allocation)
        with pytest.raises(InvalidParameterError, match="page size: 512 B and 1024 B, but both relations need the same"):
            plan(self.name, r, file(self.name, "s", np.arange(300), page_size=1024), JoinParameters(100))

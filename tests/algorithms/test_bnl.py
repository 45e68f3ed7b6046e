"""Block nested loops: request counts of the formula, exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.joins import bnl
from algorithms.joins.base import JoinParameters
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.requests import Work
from flashsim.testing.strict_driver import oracle, relation_file, run
from models.allocation.buffers import NestedLoopsAllocation


@pytest.mark.parametrize("memory", [3, 4, 7, 20, 61, 100, 400])
@pytest.mark.parametrize("rows", [(1, 1), (77, 400), (300, 301)])
def test_counts_are_those_of_the_formula(memory, rows):
    """TR 1148, section 3: NIO = NB (1 + ceil(|S| / M_S)), NX = |R| + NB |S|, NB = ceil(|R| F / M_R)."""
    r, s = relation_file("r", np.arange(rows[0])), relation_file("s", np.arange(rows[1]) % 50)
    parameters = JoinParameters(memory)
    allocation = bnl.allocate(r.pages, s.pages, parameters)
    outcome = run(bnl.join(r, s, parameters), memory)
    chunks = math.ceil(r.pages * 1.2 / allocation.outer - 1e-9)
    assert outcome.count() == chunks * (1 + math.ceil(s.pages / allocation.inner))
    assert outcome.pages("read") == r.pages + chunks * s.pages
    assert outcome.count(prefix="r") == chunks
    assert outcome.phases == ["join"]


@pytest.mark.parametrize("outer", range(2, 20))
def test_every_outer_buffer_gives_the_formula_s_chunks(outer):
    r, s = relation_file("r", np.arange(40)), relation_file("s", np.arange(60))
    outcome = run(bnl.join(r, s, JoinParameters(40), NestedLoopsAllocation(outer, 3)), 40)
    assert outcome.count(prefix="r") == math.ceil(r.pages * 12 / (10 * outer))
    assert max(count for _, name, _, count in outcome.extents if name == "r") * 1.2 < outer + 1.2
    np.testing.assert_array_equal(outcome.sorted_pairs(), oracle(np.arange(40), np.arange(60)))


def test_work_is_counted_by_tuple():
    r_codes, s_codes = np.arange(30), np.arange(200) % 40
    r, s = relation_file("r", r_codes), relation_file("s", s_codes)
    allocation = NestedLoopsAllocation(5, 4)
    chunks = allocation.chunks(r.pages)
    outcome = run(bnl.join(r, s, JoinParameters(9), allocation), 9)
    joined = int((s_codes < 30).sum())
    assert chunks > 1
    assert outcome.work == {
        Work.READ_TUPLE: 30 + chunks * 200,
        Work.HASH: 30 + chunks * 200,
        Work.BUILD: 30,
        Work.PROBE: chunks * 200,
        Work.COMPARE: joined,
        Work.EMIT: joined,
    }


def test_a_chunk_smaller_than_a_page_is_refused():
    r = relation_file("r", np.arange(30))
    with pytest.raises(InvalidParameterError, match=r"outer: 1 pages, but a page of R with its hash table takes 1\.2"):
        bnl.join(r, r, JoinParameters(9), NestedLoopsAllocation(1, 4))

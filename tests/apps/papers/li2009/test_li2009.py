"""The paper's runs: what lies where, which results are kept, and page accesses as its worked example counts them."""

from __future__ import annotations

from math import ceil, log

import numpy as np
import pytest

from flashsim.apps.papers.base import load
from flashsim.apps.papers.li2009.runs import BASIC, MEMORY, PAGES, FetchSetup, inputs, run_join
from flashsim.apps.papers.reproduction import HOLD, reproduce
from flashsim.experiments.judging.claims import Verdict
from flashsim.experiments.runs.jobs import Settings
from tests.cases import with_each

SCALE = 0.02


@pytest.mark.parametrize("page_size", [4096, 32768])
def test_inputs_have_the_papers_pages(page_size: int) -> None:
    for file in inputs(FetchSetup("naive", page_size=page_size), SCALE, 1):
        assert file.pages == round(PAGES * SCALE * 4096 / page_size)
        assert set(np.diff(file.first_rows)) == {25 * page_size // 4096}


@with_each("theta", [0.0, 1.0])
@with_each("same_order", [True, False])
def test_a_coin_keeps_the_share_of_results_that_is_asked_for(theta: float, same_order: bool) -> None:
    """Keys are unique, so that every tuple has at most one partner: itself, if both inputs lie in one order."""
    setup = FetchSetup("naive", 0.1, theta=theta, refilled=True, same_order=same_order)
    r, s = (file.relation.codes for file in inputs(setup, 0.2, 1))
    _, r_rows, s_rows = np.intersect1d(r, s, assume_unique=True, return_indices=True)
    assert len(r_rows) / len(r) == pytest.approx(0.1, abs=4 * (0.1 * 0.9 / len(r)) ** 0.5)
    assert (r_rows == s_rows).all() == same_order
    most = np.bincount(r_rows // 25).max()
    assert most == 25 if theta else most < 15


def accesses(method: str, selectivity: float = 0.05) -> tuple[float, float]:
    """Pages read and written at a small scale."""
    found = run_join(vars(FetchSetup(method, selectivity)), SCALE, 1)
    return found["sequential_reads"] + found["random_reads"], found["sequential_writes"] + found["random_writes"]


def test_sort_merge_and_digests_take_the_worked_examples_passes() -> None:
    pages, memory = round(PAGES * SCALE), round(MEMORY * SCALE)
    digests = ceil(pages / 10)
    passes, of_digests = (1 + ceil(log(ceil(count / memory), memory - 1)) for count in (pages, digests))
    assert accesses(BASIC) == (2 * pages * (passes + 1), 2 * pages * passes)
    read, written = accesses("naive", 0.0)
    assert (read, written) == (2 * pages + 2 * digests * (of_digests + 1), 2 * digests * (of_digests + 1))


@pytest.mark.parametrize("claim", ["fig3", pytest.param("fig6", marks=pytest.mark.deep)])
def test_exact_claims_and_a_figure_at_a_small_scale(claim: str) -> None:
    (done,) = reproduce(f"li2009/{claim}", Settings(scale=SCALE))
    (judged,) = done.judgements
    assert judged.verdict is not Verdict.NOT_ATTEMPTED and done.sections
    assert claim != "fig3" or judged.verdict is Verdict.REPRODUCED


@pytest.mark.deep
def test_all_claims_are_judged_at_the_published_size_and_half_hold() -> None:
    (done,) = reproduce("li2009", Settings(jobs=2))
    verdicts = {each.claim.id: each.verdict for each in done.judgements}
    assert Verdict.NOT_ATTEMPTED not in verdicts.values()
    assert sum(verdict in HOLD for verdict in verdicts.values()) >= 5
    assert verdicts["example"] is Verdict.FITTED and verdicts["fig3"] is Verdict.REPRODUCED
    assert all(each.claim.cause for each in done.judgements if each.verdict is Verdict.DIFFERS)
    assert len(load("li2009").claims) == 10

"""Statements of claims are put to values just inside and just outside their limits, on both sides where a statement has two."""

from __future__ import annotations

import pytest

from flashsim.apps.papers.base import load
from flashsim.experiments.judging.cells import Cell
from tests.apps.papers.made_runs import EQUAL, at_random, every_claim, judged

Values = tuple[float, ...]
_BELOW_OTHER: tuple[list[Values], list[Values]] = ([(100, 101.1)], [(100, 100.9), (101.1, 100)])
#: By claim and what a cell's name or words have: values that hold, and values that do not.
BOUNDS: dict[tuple[str, str], tuple[list[Values], list[Values]]] = {
    ("do2009/table1", "at least cost"): ([(0.9,), (-0.9,)], [(1.1,), (-1.1,)]),  # pages from the best buffer
    ("do2009/fig1-hh-best", "HH below each"): ([(100, 101.1, 200, 300)], [(100, 100.9, 200, 300), (100, 300, 200, 100.9)]),
    ("do2009/fig1-bnl", "less, s"): _BELOW_OTHER,
    ("do2009/fig1-sm-gh", "SM over GH, I/O"): ([(1.149,), (0.851,)], [(1.151,), (0.849,)]),
    ("do2009/fig1-sm-gh", "I/O of SM and GH"): _BELOW_OTHER,
    ("do2009/fig1-sm-gh", "phase 1 of"): ([(0.879,), (0.721,)], [(0.881,), (0.719,)]),
    ("do2009/fig1-cpu", "I/O below CPU time"): _BELOW_OTHER,
    ("do2009/fig1-variance", "the first less"): ([(0.1, 0.126)], [(0.1, 0.124), (0.126, 0.1)]),
    ("do2009/fig1-variance", "below 0.02"): ([(0.0199,)], [(0.0201,)]),
    ("do2009/fig2", "below 0.15"): ([(0.149,)], [(0.151,)]),
    ("do2009/fig2", "above 0.15"): ([(0.151,)], [(0.149,)]),
    ("do2009/fig3-2kb", "the first less"): _BELOW_OTHER,
    ("do2012/peak", "gains"): ([(101.1, 100, 1, 1, 1, 1)], [(100.9, 100, 1, 1, 1, 1), (100, 1, 1, 1, 1, 101.1)]),
    ("do2012/tac-waste", "TAC, 1K"): ([(1, 1, 1.1)], [(1, 1, 1), (1, 0.9, 1.1), (1.1, 1, 1)]),
    ("do2012/tac-waste", "DW and LC"): ([(0,) * 6], [(0, 0, 0, 0, 0, 0.1), (0.1, 0, 0, 0, 0, 0)]),
    ("do2012/fig3.10", "above 1.02"): ([(1.021,)], [(1.019,), (0.97,)]),
    ("do2012/fig4.10", "less than 5"): ([(4.9,), (-1,)], [(5.1,)]),
    ("do2012/fig4.13", "less than 5"): ([(4.9,), (-1,)], [(5.1,)]),
    ("do2012/fig4.13", "points more"): ([(10, 0), (20, 10)], [(9.9, 0), (0, 10)]),
    ("do2012/fig4.11-12", "1.3 to 1.8"): ([(1.01,), (2.33,)], [(1.0,), (2.35,)]),
    ("do2012/fig4.10", "5 to 7"): ([(-4.9,), (16.9,)], [(-5.1,), (17.1,)]),
    ("do2012/fig4.14-15", "each below"): (
        [(1.03, 1.011, 1), (3, 2, 1)],
        [(1.02, 1.009, 1), (1.02, 1.011, 1), (1.1, 1, 1), (2, 3, 1), (3, 1, 2)],
    ),
    ("do2012/fig5.5", "above 2"): ([(2.01,)], [(1.99,)]),
    ("do2012/pitfalls", "fails without"): ([(1, 0)], [(0, 0), (1, 1), (0, 1)]),
    ("do2012/pitfalls", "frames kept"): ([(1, 0.49), (1, 0)], [(1, 0.51), (0.49, 1)]),
    ("li2009/fig6", "k = 0.5 and k = 1"): ([(1.051, 1)], [(1.049, 1), (1, 1.051)]),
    ("li2009/fig6", "k = 1 to 4"): ([(1, 1.049, 1, 1)], [(1, 1.051, 1, 1), (1.051, 1, 1, 1)]),
    ("li2009/fig7", "page-based below each"): ([(100, 101.1, 200, 300)], [(100, 100.9, 200, 300)]),
    ("li2009/fig9", "original at most"): ([(1, 1.049), (1.2, 1)], [(1, 1.051)]),
    ("li2009/fig10-11", "falling"): ([(1.011, 1, 1, 1)], [(1.009, 1, 1, 1), (1.1, 1.2, 1, 1), (1, 1, 1, 1.1)]),
    ("li2009/fig10-11", "rising"): ([(1, 1, 1, 1.011)], [(1, 1, 1, 1.009), (1, 0.9, 1, 1.1), (1.1, 1, 1, 1)]),
    ("li2009/fig10-11", "above 1 past 8 KB"): ([(1, 1, 1.001, 1.001)], [(1, 1.001, 1.1, 1.1), (0.9, 0.9, 1, 1.1)]),
    ("li2009/fig12", "falling"): ([(1.011, 1, 1, 1, 1, 1)], [(1.009, 1, 1, 1, 1, 1)]),
    ("li2009/fig12", "sort-merge below each"): ([(100, 101.1, 200, 300)], [(100, 100.9, 200, 300)]),
    ("li2009/fig12", "gap with 256 and 8192"): ([(0, 1.1)], [(0, 0.9), (1.1, 0)]),
    ("li2009/fig13", "rising"): ([(0, 0, 0, 0, 1.1)], [(0, 0, 0, 0, 0.9), (0, 3, 2, 3, 4)]),
    ("li2009/fig13", "above 0 in most"): ([(1, 1, 1, -1, -1)], [(1, 1, 0, -1, -1)]),
    ("li2009/fig14-15", "rising"): ([(0, 0, 0, 0, 0, 1.1)], [(0, 0, 0, 0, 0, 0.9)]),
    ("li2009/fig14-15", "within 10 points"): ([(0, 5, 9.9), (9.9, 5, 0)], [(0, 5, 10.1), (10.1, 5, 0)]),
    ("shin2016/fig2", "at least 0.9"): ([(0.9,)], [(0.899,)]),
    ("shin2016/fig2", "below 0.9"): ([(0.899,)], [(0.9,)]),
    ("shin2016/fig4", "longest at most"): ([(*[1.0] * 14, 1.149)], [(*[1.0] * 14, 1.151), (1.151, *[1.0] * 14)]),
    ("shin2016/fig4", "longest at least"): ([(*[1.0] * 14, 2.0)], [(*[1.0] * 14, 1.99)]),
    ("shin2016/fig5", "the last above each"): ([(1, 1, 1.011)], [(1, 1, 1.009), (1, 1.1, 1.011)]),
    ("shin2016/fig5", "the second above"): ([(1, 1.011)], [(1, 1.009), (1.011, 1)]),
    ("shin2016/fig6", "the first at most"): ([(1.049, 1.02, 1)], [(1.051, 1.02, 1)]),
}
#: Statements without a limit.
WITHOUT_LIMIT = {("do2009/table1", "by the restored form"), ("li2009/fig3", "of")}


def _statements() -> list[tuple[str, Cell]]:
    every = ((claim.name, cell) for paper, claim in every_claim() for cell in judged(paper, claim, EQUAL).cells)
    return [(claim, cell) for claim, cell in every if not cell.is_number]


def _is_of(cell: Cell, part: str) -> bool:
    return part in cell.name or part in str(cell.published)


def test_every_statement_is_put_to_values_inside_and_outside() -> None:
    seen = set()
    for claim, cell in _statements():
        places = [(name, part) for name, part in [*BOUNDS, *WITHOUT_LIMIT] if name == claim and _is_of(cell, part)]
        assert len(places) == 1, (claim, cell.name, cell.published)
        place = places[0]
        seen.add(place)
        if place in WITHOUT_LIMIT:
            continue
        assert cell.holds is not None
        best = float(str(cell.published).split()[0]) if claim == "do2009/table1" else 0.0
        for holds, values in zip((True, False), BOUNDS[place], strict=True):
            assert [bool(cell.holds(*(best + value for value in each))) for each in values] == [holds] * len(values), (cell.name, values)
    assert seen == {*BOUNDS, *WITHOUT_LIMIT}


@pytest.mark.parametrize("seed", range(3))
def test_ratios_of_the_slides_are_compared_rank_by_rank(seed: int) -> None:
    paper = load("do2009")
    cells = judged(paper, paper.claim("slides-cpu-ratio"), at_random(3, seed)).cells
    for machine in ("HDD", "SSD"):
        own = [cell for cell in cells if cell.row == machine]
        for numbers in ([cell.published for cell in own], [cell.values[0] for cell in own]):
            assert len(own) == 8 and numbers == sorted(numbers)  # type: ignore[type-var]

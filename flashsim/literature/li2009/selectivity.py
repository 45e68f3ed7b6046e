"""Figures 7, 8 and 9: DigestJoin and sort-merge over the selectivity."""

from collections.abc import Collection

from flashsim.literature.li2009.measured import METHODS, Point, Runs, crossing, curves, jobs_of
from flashsim.literature.li2009.runs import BASIC, Setup
from flashsim.studies.judging.cells import NONE, Cell, less, number, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.runs.jobs import Job, Results, Settings

_LOW, _HIGH = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.08, 0.1), (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
_EVERY = (*_LOW, *_HIGH[1:])


def _points(figure: int, selectivities: tuple[float, ...], methods: tuple[str, ...]) -> list[Point]:
    title = f"figure {figure}: 512 pages"
    return [(title, selectivity, Setup(method, selectivity)) for method in methods for selectivity in selectivities]


#: Content of each claim's figure.
_SHOWN = {
    "fig7": _points(7, _LOW, METHODS),
    "fig8": _points(8, _HIGH, (BASIC, "page-based", "graph-based", "planned")),
    "fig9": _points(9, _EVERY, (BASIC, "graph-based", "original")),
}
#: And what else is asked for to judge it: "overall" means both figures.
_BESIDE = {"fig7": _points(7, _HIGH[1:2], ("naive",)), "fig8": _points(8, _LOW, ("page-based", "graph-based"))}


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return [job for claim in _SHOWN if claim in claims for job in jobs_of([*_SHOWN[claim], *_BESIDE.get(claim, [])], settings)]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """Where a strategy crosses sort-merge, and what else is said of it."""
    runs, limits = Runs(results), claim.limits
    method = {"fig7": "naive", "fig8": "page-based", "fig9": "original"}[claim.id]
    name, (published,) = next(iter(claim.published.items()))
    place = crossing([(selectivity, runs.over_basic(Setup(method, selectivity))) for selectivity in _EVERY])
    every = [number(name, published, place, limits["crossover"], points=True, equal=(NONE,))]
    if claim.id == "fig8":
        saved = [value for selectivity in _EVERY if (value := runs.saved(Setup("graph-based", selectivity))) is not None]
        extremes = zip(("least", "most"), claim.published["graph-based saves, least and most"], (min(saved), max(saved)), strict=True)
        return every + [
            number(f"graph-based saves, {word} %", gain, ours, limits["points"], points=True, equal=(0.0,)) for word, gain, ours in extremes
        ]
    if claim.id == "fig7":
        methods, words, holds = ["page-based", "graph-based", "naive", BASIC], "page-based below each, s", less(limits["margin"])
        below = [selectivity for selectivity in _LOW if selectivity <= limits["low"]]
    else:
        equal = 1 + limits["equal"]
        methods, words = ["graph-based", "original"], f"original at most {equal:g} times graph-based, s"
        below, holds = [each for each in _EVERY if each < published], lambda graph, original: original <= equal * graph
    return every + [
        statement(f"selectivity {selectivity:g}", words, [runs.value(Setup(each, selectivity)) for each in methods], holds)
        for selectivity in below
    ]


def sections(results: Results) -> list[Section]:
    runs = Runs(results)
    titles = {"fig7": "Low selectivities (figure 7)", "fig8": "High selectivities (figure 8)", "fig9": "The original heuristic (figure 9)"}
    return [
        section
        for claim, points in _SHOWN.items()
        for section in curves(points, lambda setup, _: runs.value(setup), titles[claim], claim, "selectivity")
    ]

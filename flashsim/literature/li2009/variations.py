"""Figures 6 and 10 to 13: k, the page size, memory and the skew of results."""

from collections.abc import Collection

from flashsim.core.units import KIB
from flashsim.literature.li2009.measured import METHODS, STRATEGIES, Point, Runs, curves, jobs_of
from flashsim.literature.li2009.runs import BASIC, Setup
from flashsim.studies.judging.cells import Cell, falling, less, number, rising, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.runs.jobs import Job, Results, Settings

_K, _KIB, _MEMORY, _THETA = (0.5, 1.0, 2.0, 3.0, 4.0), (4, 8, 16, 32), (256, 512, 1024, 2048, 4096, 8192), (0.0, 0.25, 0.5, 0.75, 1.0)
#: Selectivities of figures 10, 11 and 13.
_SELECTIVITIES = {10: 0.05, 11: 0.2, 13: 0.1}


def _paged(method: str, figure: int, kib: int) -> Setup:
    return Setup(method, _SELECTIVITIES[figure], page_size=kib * KIB)


def _skewed(method: str, theta: float) -> Setup:
    return Setup(method, _SELECTIVITIES[13], theta=theta, refilled=True)


#: Section of each claim: the title, the axis, and what the figure shows.
_SHOWN: dict[str, tuple[str, str, list[Point]]] = {
    "fig6": ("The parameter k (figure 6)", "k", [("figure 6: selectivity 0.05, 512 pages", k, Setup("graph-based", k=k)) for k in _K]),
    "fig10-11": (
        "Page sizes (figures 10 and 11)",
        "page, KB",
        [
            (f"figure {figure}: selectivity {_SELECTIVITIES[figure]:g}, 2 MB", kib, _paged(method, figure, kib))
            for figure in (10, 11)
            for method in METHODS
            for kib in _KIB
        ],
    ),
    "fig12": (
        "Memory (figure 12)",
        "memory, pages",
        [("figure 12: selectivity 0.05", memory, Setup(method, memory=memory)) for method in METHODS for memory in _MEMORY],
    ),
    "fig13": (
        "Skew (figure 13)",
        "theta",
        [("figure 13: selectivity 0.1, 512 pages", theta, _skewed(method, theta)) for method in METHODS for theta in _THETA],
    ),
}


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return [job for claim, (_, _, points) in _SHOWN.items() if claim in claims for job in jobs_of(points, settings)]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The cells of one of the figures."""
    return {"fig6": _of_k, "fig10-11": _of_pages, "fig12": _of_memory, "fig13": _of_skew}[claim.id](claim, Runs(results))


def _of_k(claim: Claim, runs: Runs) -> list[Cell]:
    """Cost of k = 0.5, and the distance between k = 1 to 4."""
    clearly, almost = 1 + claim.limits["clearly"], 1 + claim.limits["almost"]
    half, *others = (runs.value(Setup("graph-based", k=k)) for k in _K)
    return [
        statement("k = 0.5 and k = 1, s", f"more than {clearly:g} times", [half, others[0]], lambda half, one: half > clearly * one),
        statement("k = 1 to 4, s", f"within {almost:g} times", others, lambda *every: max(every) <= almost * min(every)),
    ]


def _of_pages(claim: Claim, runs: Runs) -> list[Cell]:
    """Direction of each line, and the side of 8 KB on which naive fetching loses to sort-merge."""
    margin = claim.limits["margin"]
    every = []
    for method in (BASIC, *STRATEGIES):
        words, holds = ("rising", rising(margin)) if method == "naive" else ("falling", falling(margin))
        for figure in (10, 11)[: 1 if method == BASIC else 2]:
            every.append(
                statement(f"{method}, figure {figure}, s", words, [runs.value(_paged(method, figure, kib)) for kib in _KIB], holds)
            )
    over = [runs.over_basic(_paged("naive", 10, kib)) for kib in _KIB]
    words = "above 1 past 8 KB only"
    return [*every, statement("naive over sort-merge, figure 10", words, over, lambda *sizes: max(sizes[:2]) <= 1 < min(sizes[2:]))]


def _of_memory(claim: Claim, runs: Runs) -> list[Cell]:
    """Directions of all curves, the best strategy where a table fits, and the gap between page-based and graph-based fetching."""
    margin, points, (least, *_, most) = claim.limits["margin"], claim.limits["points"], _MEMORY
    seconds = {method: {memory: runs.value(Setup(method, memory=memory)) for memory in _MEMORY} for method in (BASIC, *STRATEGIES)}
    every = [statement(f"{method}, s", "falling", list(line.values()), falling(margin)) for method, line in seconds.items()]
    last = [line[most] for line in seconds.values()]
    every.append(statement(f"sort-merge and strategies with {most} pages, s", "sort-merge below each", last, less(margin)))
    pairs = [(seconds["page-based"][memory], seconds["graph-based"][memory]) for memory in (least, most)]
    gaps = [100 * (1 - page / graph) if page is not None and graph else None for page, graph in pairs]
    (published,) = claim.published.values()
    for memory, gap, ours in zip((least, most), published, gaps, strict=True):
        every.append(number(f"gap with {memory} pages, %", gap, ours, points, points=True, equal=(0.0,)))
    return [*every, statement(f"gap with {least} and {most} pages, %", "rising", gaps, rising(claim.limits["rise"]), 0, digits=1)]


def _of_skew(claim: Claim, runs: Runs) -> list[Cell]:
    """Savings that rise with the skew, naive fetching that mostly wins, and graph-based fetching's lead, which rises too."""
    saved = {method: [runs.saved(_skewed(method, theta)) for theta in _THETA] for method in STRATEGIES}
    rise = rising(claim.limits["rise"])
    every = [statement(f"{method} saves, %", "rising", values, rise, 0, digits=1) for method, values in saved.items()]
    words = "above 0 in most cases"
    every.append(
        statement("naive saves, %", words, saved["naive"], lambda *all: 2 * sum(value > 0 for value in all) > len(all), 0, digits=1)
    )
    pairs = zip(saved["graph-based"], saved["page-based"], strict=True)
    ahead = [graph - page if graph is not None and page is not None else None for graph, page in pairs]
    return [*every, statement("graph-based before page-based, points", "rising", ahead, rise, 0, digits=1)]


def sections(results: Results) -> list[Section]:
    runs = Runs(results)
    return [
        section
        for claim, (title, axis, points) in _SHOWN.items()
        for section in curves(points, lambda setup, _: runs.value(setup), title, claim, axis)
    ]

"""Other readings of the paper, and other prices: what each makes of the crossings and gains of figures 7 to 9, and of the others."""

from collections.abc import Collection
from dataclasses import replace
from math import isnan
from typing import Any, NamedTuple

from algorithms.page_access.plan import LEAST_FRAMES
from flashsim.apps.papers.base import Entry, Job, Results, Section, Settings, Table, load
from flashsim.apps.papers.li2009.figures import STRATEGIES
from flashsim.apps.papers.li2009.runs import BASIC, DRIVES, GRAPHS, LABELS, FetchSetup, on_drives
from flashsim.experiments.judging.cells import crossing

TITLE = "What other readings and prices make of it"
#: Methods and selectivities at which each is run.
_PLACES: dict[str, tuple[float, ...]] = {"naive": (0.03, 0.05, 0.07, 0.1, 0.2), "page-based": (0.1, 0.2, 0.3, 0.4, 0.5)}
_PLACES |= {"graph-based": (0.005, 0.1, 0.2, 0.3, 0.5), "original": (0.1, 0.2, 0.3)}
_GRID = [(method, selectivity) for method, places in _PLACES.items() for selectivity in places]


class _Reading(NamedTuple):
    """A reading: its drive by number, whether both inputs lie in one order, and how graph-based fetching is made."""

    title: str
    drive: int = 0
    same_order: bool = True
    graph: str = ""

    def job(self, settings: Settings, method: str, selectivity: float = FetchSetup.selectivity) -> Job:
        """A run on one drive where inputs or graph differ, otherwise on all."""
        setup = FetchSetup(method, selectivity, same_order=self.same_order or method == BASIC)
        graph = self.graph if method in ("graph-based", "original") else ""
        drives = list(DRIVES) if setup.same_order and not graph else list(DRIVES)[:1]
        arguments: dict[str, Any] = {"setup": vars(setup), "graph": graph, "on": drives, "scale": settings.scale, "seed": settings.seed}
        return Job.of(on_drives, ", ".join(filter(None, [setup.name, graph or f"{len(drives)} drives"])), **arguments)


_AS_ASSUMED, *_DRIVES = (_Reading(name, drive) for drive, name in enumerate(DRIVES))
_OWN_ORDER = _Reading("each input in an order of its own", same_order=False)
_READINGS = [_AS_ASSUMED, _OWN_ORDER, *_DRIVES, *(_Reading(name, graph=name) for name in GRAPHS)]

#: Values of k that may matter; with 1 or more a cache has two frames anyway.
_K = (0.5, 1.0, 2.0, 4.0)
_WITH_K = [FetchSetup("graph-based"), FetchSetup("graph-based", 0.5), FetchSetup("graph-based", memory=64)]
_WITH_K += [FetchSetup("graph-based", selectivity, same_order=False) for selectivity in (FetchSetup.selectivity, 0.2)]
_WITH_K = [replace(setup, least_frames=frames) for frames in (LEAST_FRAMES, 1) for setup in _WITH_K]
_METHODS, _THETA = (BASIC, *STRATEGIES), (0.5, 1.0, 1.5, 2.0)
#: Runs near the crossings, and where two strategies are next to equal; and on how many tables and coins.
_COINS = range(3)
_SPREAD = [FetchSetup("naive", 0.08), FetchSetup("page-based", 0.3), FetchSetup("original", 0.2), FetchSetup("graph-based", 0.5)]
_SPREAD += [FetchSetup(method, selectivity) for selectivity in (0.005, 0.01) for method in ("page-based", "graph-based")]
#: Other tables by name: the header, and rows with their labels, setups and coins.
_OTHERS: dict[str, tuple[list[str], list[tuple[list[Entry], list[tuple[FetchSetup, int]]]]]] = {
    "sensitivity-k": (
        ["graph-based", *(f"k = {k:g}" for k in _K)],
        [([one.name], [(replace(one, k=k, least_frames=one.least_frames if k < 1 else LEAST_FRAMES), 0) for k in _K]) for one in _WITH_K],
    ),
    "sensitivity-skew": (
        ["theta", "beyond a page", *(LABELS[method] for method in _METHODS)],
        [
            ([theta, beyond], [(FetchSetup(method, 0.1, theta=theta, refilled=beyond == "other pages"), 0) for method in _METHODS])
            for beyond in ("lost", "other pages")
            for theta in _THETA
        ],
    ),
    "sensitivity-coins": (
        ["run", *(f"coin {coin + 1}" for coin in _COINS)],
        [([setup.name], [(setup, coin) for coin in _COINS]) for setup in _SPREAD],
    ),
}


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every reading of every method; all drives share a run."""
    readings = [reading.job(settings, *each) for reading in _READINGS for each in ((BASIC, FetchSetup.selectivity), *_GRID)]
    return readings + [setup.job(settings, coin) for _, rows in _OTHERS.values() for _, row in rows for setup, coin in row]


def sections(results: Results) -> list[Section]:
    rows: list[list[Entry]] = [["published", "0.08", "0.3", "0.2", 15.0, 64.0]]
    for reading in _READINGS:
        over: dict[str, list[tuple[float, float]]] = {method: [] for method, _ in _GRID}
        basic = results.get(reading.job(results.settings, BASIC))
        for method, place in _GRID:
            if basic and (mine := results.get(reading.job(results.settings, method, place))):
                over[method].append((place, mine[reading.drive] / basic[reading.drive]))
        if all(over.values()):
            saved = [100 * (1 - ratio) for _, ratio in over.pop("graph-based")]
            rows.append([reading.title, *map(_crossing, over.values()), min(saved), max(saved)])
    header = ["reading", "naive crosses", "page-based crosses", "original crosses", "graph-based saves least %", "most %"]
    paper, tables = load("li2009"), []
    for name, (columns, labelled) in _OTHERS.items():
        runs = [(labels, [results.get(setup.job(results.settings, coin)) for setup, coin in row]) for labels, row in labelled]
        tables.append(Table(columns, ([*labels, *(run and run["seconds"] for run in row)] for labels, row in runs), name, digits=4))
    readings = Section(TITLE, paper.text("sensitivity"), [Table(header, rows, "sensitivity", digits=1)])
    return [readings, Section("What k, memory, skew and chance change", paper.text("others"), tables)]


def _crossing(points: list[tuple[float, float]]) -> str:
    if points[0][1] > 1:
        return f"below {points[0][0]:g}"
    place = crossing(points)
    return f"above {points[-1][0]:g}" if isnan(place) else f"{place:.2f}"

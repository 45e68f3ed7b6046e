"""Other readings of the paper, and other prices: what each makes of the crossings and gains of figures 7 to 9, and of the others."""

from collections.abc import Collection
from dataclasses import replace
from math import isnan

from algorithms.page_access.plan import LEAST_FRAMES
from flashsim.literature.li2009.measured import STRATEGIES, crossing
from flashsim.literature.li2009.runs import BASIC, LABELS, Setup
from flashsim.literature.li2009.sensitivity_runs import DRIVES, GRAPHS, on_drives
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

TITLE = "What other readings and prices make of it"
#: Selectivities at which each method is run.
_GRID = {
    "naive": (0.03, 0.05, 0.07, 0.1, 0.2),
    "page-based": (0.1, 0.2, 0.3, 0.4, 0.5),
    "graph-based": (0.005, 0.1, 0.2, 0.3, 0.5),
    "original": (0.1, 0.2, 0.3),
}
_OWN_ORDER = "each input in an order of its own"
#: Values of k that may matter.
_K = (0.5, 1.0, 2.0, 4.0)
_WITH_K = [
    Setup("graph-based"),
    Setup("graph-based", 0.5),
    Setup("graph-based", memory=64),
    Setup("graph-based", same_order=False),
    Setup("graph-based", 0.2, same_order=False),
]
_WITH_K += [replace(setup, least_frames=1) for setup in _WITH_K]
_THETA = (0.5, 1.0, 1.5, 2.0)
#: Runs near the crossings, and on how many tables and coins.
_SPREAD, _COINS = [Setup("naive", 0.08), Setup("page-based", 0.3), Setup("original", 0.2), Setup("graph-based", 0.5)], 3


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every reading of every method; all drives share a run."""
    needs = [_job(settings, setup, graph) for _, setups, graph, _ in _cases() for setup in (Setup(BASIC), *setups)]
    needs += [setup.job(settings) for row in _rows_of_k() for setup in row]
    needs += [setup.job(settings) for row in _rows_of_skew() for setup in row]
    needs += [setup.job(replace(settings, seed=settings.seed + coin)) for setup in _SPREAD for coin in range(_COINS)]
    return needs


def _cases() -> list[tuple[str, list[Setup], str, int]]:
    grid = [Setup(method, selectivity) for method, selectivities in _GRID.items() for selectivity in selectivities]
    cases = [(name, grid, "", number) for number, name in enumerate(DRIVES)]
    cases.insert(1, (_OWN_ORDER, [replace(setup, same_order=False) for setup in grid], "", 0))
    return cases + [(name, grid, name, 0) for name in GRAPHS]


def _job(settings: Settings, setup: Setup, graph: str) -> Job:
    """A run on one drive where inputs or graph differ, otherwise on all."""
    graph = graph if setup.method in ("graph-based", "original") else ""
    drives = list(DRIVES) if setup.same_order and not graph else list(DRIVES)[:1]
    arguments = {"setup": vars(setup), "graph": graph, "drives": drives, "scale": settings.scale, "seed": settings.seed}
    return Job.of(on_drives, ", ".join(filter(None, [setup.name, graph or f"{len(drives)} drives"])), **arguments)


def _rows_of_k() -> list[list[Setup]]:
    """With k of 1 or more a cache has two frames anyway."""
    return [[replace(setup, k=k, least_frames=setup.least_frames if k < 1 else LEAST_FRAMES) for k in _K] for setup in _WITH_K]


def _rows_of_skew() -> list[list[Setup]]:
    """Refilled and not, sort-merge first."""
    return [
        [Setup(method, 0.1, theta=theta, refilled=refilled) for method in (BASIC, *STRATEGIES)]
        for refilled in (False, True)
        for theta in _THETA
    ]


def sections(results: Results) -> list[Section]:
    return [_readings(results), _others(results)]


def _readings(results: Results) -> Section:
    rows: list[list[Entry]] = [["published", "0.08", "0.3", "0.2", 15.0, 64.0]]
    for title, setups, graph, drive in _cases():
        basic = results.get(_job(results.settings, Setup(BASIC), ""))
        over: dict[str, list[tuple[float, float]]] = {method: [] for method in _GRID}
        for setup in setups:
            if basic and (mine := results.get(_job(results.settings, setup, graph))):
                over[setup.method].append((setup.selectivity, mine[drive] / basic[drive]))
        if all(over.values()):
            saved = [100 * (1 - ratio) for _, ratio in over["graph-based"]]
            rows.append([title, *(_crossing(over[method]) for method in ("naive", "page-based", "original")), min(saved), max(saved)])
    header = ["reading", "naive crosses", "page-based crosses", "original crosses", "graph-based saves least %", "most %"]
    text = (
        "Selectivities at which strategies become slower than sort-merge, and what graph-based fetching saves at selectivities of 0.005 to "
        "0.5, with one thing changed at a time. The drive's prices, 48 bytes a result and the order of ties were chosen with the published "
        "numbers in view."
    )
    return Section(TITLE, text, [Table(header, rows, "sensitivity", digits=1)])


def _crossing(points: list[tuple[float, float]]) -> str:
    if points[0][1] > 1:
        return f"below {points[0][0]:g}"
    place = crossing(points)
    return f"above {points[-1][0]:g}" if isnan(place) else f"{place:.2f}"


def _others(results: Results) -> Section:
    def seconds(setup: Setup, coin: int = 0) -> float | None:
        output = results.get(setup.job(replace(results.settings, seed=results.settings.seed + coin)))
        return output["seconds"] if output else None

    of_k: list[list[Entry]] = [[setup.name, *map(seconds, row)] for setup, row in zip(_WITH_K, _rows_of_k(), strict=True)]
    skew: list[list[Entry]] = [[row[1].theta, "other pages" if row[1].refilled else "lost", *map(seconds, row)] for row in _rows_of_skew()]
    coins: list[list[Entry]] = [[setup.name, *(seconds(setup, coin) for coin in range(_COINS))] for setup in _SPREAD]
    text = (
        "I/O seconds. k says how many pages the cache keeps while the graph grows: with figure 6's selectivity the graph takes 121 of 512 "
        "pages and never asks. In a cache of one frame each result fetches its two pages one after the other. What a page has no tuples "
        "for goes to other pages, or is lost. And the same on other tables with other coins."
    )
    tables = [
        Table(["graph-based", *(f"k = {k:g}" for k in _K)], of_k, "sensitivity-k", digits=3),
        Table(["theta", "beyond a page", *(LABELS[method] for method in (BASIC, *STRATEGIES))], skew, "sensitivity-skew", digits=3),
        Table(["run", *(f"coin {coin + 1}" for coin in range(_COINS))], coins, "sensitivity-coins", digits=3),
    ]
    return Section("What k, memory, skew and chance change", text, tables)

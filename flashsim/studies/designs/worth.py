"""The best division of a budget among memory, SSD and disks, and the best design for it: by formula, and the best ones simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from flashsim.core.errors import DamagedFileError, InvalidParameterError, UnknownNameError
from flashsim.core.preset_files import PresetFolder
from flashsim.core.protocols import Progress
from flashsim.core.transactions import TransactionStream
from flashsim.core.units import GB, KIB, MIB, MICROSECONDS, NEVER, SECONDS, format_size
from flashsim.execution.pooled.system import DISK, SSD
from flashsim.execution.pooled.tables import ENDED
from flashsim.pools.devices import PoolDevice, Rates
from flashsim.pools.setup import PoolSetup
from flashsim.studies.formulas.extension import LAST, Formula, TransactionReferences, last_of, service
from flashsim.studies.presentation.plots import lines, stroke
from flashsim.studies.presentation.tables import Table, same
from models.five_minute_rule import break_even
from models.pool_flows import DESIGNS, Stays
from traces.transactions import scaled, workload

PRICES = PresetFolder(Path(__file__).parent / "prices", "prices")
#: Pages of the scaled database unless a scale is asked for, and references for each of them.
_PAGES, _EACH = 1 << 15, 40
#: Sizes are rounded down to so many steps between a power of two and the next; shares of what disks leave that the SSD may have.
_STEPS, _SHARES = 4, np.arange(0, 1, 0.1)
#: Frames of memory for each client, at least.
_A_CLIENT = 16
#: The share of progress that formulas take; what is as much as the most.
_SEARCH, _AS_MUCH = 0.7, 0.995
#: Parts of the time that a run takes by formula.
_STEPS_OF_A_RUN = 50


@dataclass(frozen=True)
class Prices:
    """Dollars: a GB (10**9 bytes) of memory and of the SSD, and a disk of so many GB."""

    memory: float
    ssd: float
    disk: float
    disk_size: float

    @classmethod
    def of(cls, name: str) -> Prices:
        """The rates of a name, or of a TOML file."""
        path, document = PRICES.read(name)
        prices = {}
        for each in cls.__dataclass_fields__:
            entry = document.get(each)
            value = entry.get("value") if isinstance(entry, dict) else None
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise DamagedFileError(f"prices: {path}: [{each}] needs a value above 0")
            prices[each] = float(value)
        return cls(**prices)


@dataclass(frozen=True)
class Choice:
    """A division of a budget, and its throughput."""

    #: Dollars.
    budget: float
    cost: float
    #: Design of the extension.
    design: str
    #: Bytes.
    memory: int
    ssd: int
    #: Number of disks.
    disks: int
    #: Transactions a second; of the latter None where it was not simulated.
    formula: float
    simulated: float | None = None

    def row(self) -> dict[str, Any]:
        error = None if self.simulated is None else self.formula / self.simulated - 1
        return vars(self) | {"error": error}


@dataclass(frozen=True, kw_only=True)
class WorthStudy:
    """Parameters of a division of budgets."""

    #: Text that `traces.transactions.workload` takes, of a workload that can be scaled and has no scans.
    workload: str
    #: Dollars.
    budgets: Sequence[float]
    #: A name of `PRICES`, or a TOML file.
    prices: str = "retail-2026"
    #: Names of `models.pool_flows.DESIGNS`.
    designs: Sequence[str] = DESIGNS
    #: Rates of the disks and of the SSD; those of the disks are divided by their servers, and bought one by one.
    devices: tuple[str, str] = ("rates", "rates")
    #: Number of clients; nanoseconds a transaction that they think, and that the processor works.
    clients: int = 64
    think: int = 0
    work: int = 500 * MICROSECONDS
    #: Scale of pages and sizes; 0: one by which the database is small.
    scale: float = 0.0
    #: Designs that are simulated, the best of each budget.
    verified: int = 1
    page_size: int = 8 * KIB
    seed: int = 0

    def __post_init__(self) -> None:
        for budget in self.budgets:
            if not 0 < budget < float("inf"):
                raise InvalidParameterError("budget", budget, "an amount above 0 is needed")
        for name in self.designs:
            if name not in DESIGNS:
                raise UnknownNameError("design with a formula", name, DESIGNS)
        for purpose, text in zip(("disk", "ssd"), self.devices, strict=True):
            if not PoolDevice(purpose, text).is_rates:
                raise InvalidParameterError(purpose, text, "formulas are of rates alone")

    @cached_property
    def rates(self) -> tuple[Rates, Rates]:
        disk, ssd = (PoolDevice(purpose, text).rates() for purpose, text in zip(("disk", "ssd"), self.devices, strict=True))
        return disk, ssd

    def disks(self, count: int) -> Rates:
        rates = self.rates[0]
        share = count / rates.servers
        return replace(rates, read=max(1, round(rates.read * share)), write=max(1, round(rates.write * share)), servers=count)

    def break_even(self) -> dict[str, float]:
        """Seconds within which a page must be referenced again to be worth its place in memory, or on the SSD, instead of on disk."""
        prices, rates = Prices.of(self.prices), self.rates[0]
        dollars = {"memory": prices.memory, "ssd": prices.ssd}
        each = rates.read / rates.servers
        return {name: break_even(self.page_size, each, prices.disk, price * MIB / GB) for name, price in dollars.items()}


def worth(study: WorthStudy, progress: Progress | None = None) -> list[Choice]:
    """The best division of each budget, a row a design, the best first."""
    whole = workload(study.workload, seed=study.seed, page_size=study.page_size)
    scale = study.scale or min(1.0, _PAGES / whole.pages)
    search = _Search(study, Prices.of(study.prices), whole.pages, scaled(whole, scale), scale)
    tell = progress or (lambda done, total, message="": None)
    best: list[Choice] = []
    for number, budget in enumerate(study.budgets):
        choices, divisions = [], list(search.divisions(budget))
        for done, (memory, ssd, disks) in enumerate(divisions):
            designs = [design for design in study.designs if (design == "none") == (ssd == 0)]
            choices += [search.choice(budget, design, memory, ssd, disks) for design in designs]
            tell(number + _SEARCH * (done + 1) / len(divisions), len(study.budgets), f"${budget:,.0f} divided")
        rows = [_best([each for each in choices if each.design == design]) for design in dict.fromkeys(each.design for each in choices)]
        rows.sort(key=lambda each: -each.formula)
        for place, choice in enumerate(rows[: study.verified]):
            rows[place] = replace(choice, simulated=search.simulate(choice))
            part = _SEARCH + (1 - _SEARCH) * (place + 1) / study.verified
            tell(number + part, len(study.budgets), f"${budget:,.0f}: {choice.design} simulated")
        best += rows
    return best


def _best(choices: Sequence[Choice]) -> Choice:
    most = max(each.formula for each in choices)
    return min((each for each in choices if each.formula >= _AS_MUCH * most), key=lambda each: each.cost)


class _Search:
    """Formulas and simulations of one workload at a scale; what memory makes of the references is kept by its size."""

    def __init__(self, study: WorthStudy, prices: Prices, pages: int, stream: TransactionStream, scale: float) -> None:
        self.study, self.prices, self.pages, self.stream, self.scale = study, prices, pages, stream, scale
        transactions = TransactionReferences(stream)
        self.references = transactions.until(_EACH * stream.pages)
        self.each, self.window = transactions.each, last_of(len(self.references.pages))
        self.stays: dict[int, Stays] = {}
        self.least = _A_CLIENT * study.clients  # in a smaller memory pages that are on their way make a difference

    def divisions(self, budget: float) -> Iterator[tuple[int, int, int]]:
        prices, most = self.prices, self.stream.pages
        page = self.study.page_size / self.scale / GB  # what a frame stands for
        fewest = int(np.ceil(self.pages * self.study.page_size / (prices.disk_size * GB)))
        if fewest * prices.disk + self.least * page * prices.memory > budget:
            price = f"{fewest} disks and {format_size(round(self.least * page * GB))} of memory cost more"
            raise InvalidParameterError("budget", f"{budget:,.2f}", price)
        counts = fewest * 2.0 ** (np.arange(0, 64) / 2)
        for disks in sorted(set(np.floor(counts[counts * prices.disk < budget]).astype(int).tolist())):
            rest, sizes = budget - disks * prices.disk, set()
            for share in _SHARES:
                ssd = _rounded(min(share * rest / prices.ssd / page, most))
                memory = _rounded(min((rest - ssd * page * prices.ssd) / prices.memory / page, most))
                if memory >= self.least and (memory, ssd) not in sizes:
                    sizes.add((memory, ssd))
                    yield memory, ssd, disks

    def _setup(self, design: str, memory: int, ssd: int) -> PoolSetup:
        study, page = self.study, self.study.page_size
        options = {"clients": study.clients, "think": study.think, "work": study.work, "expansion": 1, "read_ahead": 1}
        return PoolSetup(study.workload, design, memory * page, ssd * page, NEVER, NEVER, page_size=page, options=options, scale=1)

    def choice(self, budget: float, design: str, memory: int, ssd: int, disks: int) -> Choice:
        study, prices, page = self.study, self.prices, self.study.page_size / self.scale
        system = self._setup(design, memory, ssd).system(self.stream.pages)
        formula = Formula(system, service(study.disks(disks)), service(study.rates[1]))
        if memory not in self.stays:
            self.stays[memory] = formula.stays(self.references, self.window)
        rate = formula.predict(formula.flows(self.stays[memory], self.window), self.each).throughput
        sizes = round(memory * page), round(ssd * page)
        cost = sizes[0] / GB * prices.memory + sizes[1] / GB * prices.ssd + disks * prices.disk
        return Choice(budget, cost, design, *sizes, disks, rate)

    def simulate(self, choice: Choice) -> float:
        page, study, count = self.study.page_size / self.scale, self.study, len(self.references.pages)
        setup = self._setup(choice.design, round(choice.memory / page), round(choice.ssd / page))
        rates = {DISK: study.disks(choice.disks)} | ({SSD: study.rates[1]} if setup.ssd else {})
        run = setup.build(devices={number: each.station(study.page_size) for number, each in rates.items()}, stream=self.stream)
        progress = [(0, 0, 0)]
        step = max(1, round(count / (choice.formula * self.each) * SECONDS / _STEPS_OF_A_RUN))
        while progress[-1][1] < count and not (run.tables.numbers[ENDED] and len(progress) > 2 and progress[-1][1] == progress[-2][1]):
            until = progress[-1][0] + step
            run.run(until)
            progress.append((until, run.counts["references"], run.counts["transactions"]))
        times, references, transactions = np.array(progress).T
        first = max(0, int(np.searchsorted(references, (1 - LAST) * count)) - 1)
        return float((transactions[-1] - transactions[first]) * SECONDS / (times[-1] - times[first]))


def _rounded(frames: float) -> int:
    return int(2 ** (np.floor(np.log2(frames) * _STEPS) / _STEPS)) if frames >= 1 else 0


def choices_table(choices: Sequence[Choice]) -> Table:
    """A row a budget and design."""
    columns: dict[str, Any] = {"budget, $": ("budget", "{:,.0f}".format), "design": "design"}
    columns |= {"memory": ("memory", format_size), "SSD": ("ssd", format_size), **same("disks", "formula", "simulated")}
    columns |= {"error": ("error", "{:+.1%}".format)}
    return Table.of((each.row() for each in choices), columns, digits=0)


def choices_figure(choices: Sequence[Choice]) -> Figure:
    """Transactions a second over the budget: by formula a line a design, simulated as hollow marks."""
    series = {}
    for name in dict.fromkeys(each.design for each in choices):
        mine = sorted((each for each in choices if each.design == name), key=lambda each: each.budget)
        series[name] = [each.budget for each in mine], [each.formula for each in mine]
    figure = lines(series, xlabel="budget, $", ylabel="transactions/s; simulated: hollow", ylim=(0, None))
    for number, name in enumerate(series):
        points = [(each.budget, each.simulated) for each in choices if each.design == name and each.simulated is not None]
        look = stroke(number) | {"marker": "o", "linestyle": "", "markerfacecolor": "white", "markersize": 9}
        figure.axes[0].plot(*zip(*points, strict=True), **look) if points else None
    return figure

"""A fit of a flash drive to figures: counts of its dies by trial, and times, rates and spare flash by least squares."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.stats.qmc import Sobol

from flashsim.apps.calibration.cells import STEP, UNKNOWN, Estimate, Floats, Model, Solution, cost, estimates, solve
from flashsim.apps.calibration.drive_figures import RATES, DriveFigure
from flashsim.apps.calibration.figure_runs import FigureRuns
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.request import READ
from flashsim.core.units import GB, MB, MIB, SECONDS
from flashsim.ssd.parameters import SsdParameters

#: Parameters that are fitted: the parameter of a preset that rests on each, bounds, and figures that tell it; and those that each kind of
#: figures tells.
PARAMETERS = {
    "read overhead": ("read_latency", 50.0, 1e9, "random reads of 4 KiB at the largest queue depth"),
    "read die time": ("read", 500.0, 1e9, "random reads of 4 KiB at depth 1 and at several depths"),
    "link read rate": ("link_read_rate", 0.1 * MB, 200.0 * GB, "reads in order of 128 KiB or more"),
    "channel rate": ("channel_rate", 1.0 * MB, 20.0 * GB, "random reads of 64 KiB or more at depth 1"),
    "write overhead": ("write_latency", 50.0, 1e9, "random writes of 4 KiB with free blocks at the largest queue depth"),
    "write die time": ("program", 500.0, 1e9, "the rate of random writes in the steady state"),
    "cache write time": ("slc_program", 500.0, 1e9, "the rate of writes into the empty SLC cache"),
    "link write rate": ("link_write_rate", 0.1 * MB, 200.0 * GB, "writes in order with free blocks"),
    "erase": ("erase", 10_000.0, 1e9, "the 99th percentile of steady writes"),
    "spare share": ("blocks_per_plane", 0.02, 5.0, "write amplification, or steady rates at several shares of the capacity in use"),
    "block pages": ("pages_per_block", 8.0, 8192.0, "the 99th percentile of steady writes at several rates"),
}
_READS = ("read overhead", "read die time", "link read rate", "channel rate")
_WRITES, _CACHED_WRITES = (("write overhead", die, "link write rate") for die in ("write die time", "cache write time"))
_STEADY = ("erase", "spare share", "block pages")
#: Steps of derivatives, in logarithms, of parameters that show little, or through garbage collection, which is uneven.
_LONG_STEPS = {
    "spare share": 0.2, "erase": 0.3, "channel rate": 0.1, "block pages": 0.3,
    "write overhead": 0.1, "write die time": 0.05, "link write rate": 0.1,
}  # fmt: skip
#: Steps both ways of the intervals at least: what limits a load changes within them, and so what its figure tells. Differences of two runs
#: up to so many of a figure's standard deviations are no effect of a step.
_WIDE_STEP, _UNEVEN = 0.2, 2.8
#: Numbers of channels that are tried, and multiples of the base's dies of a package; so many structures are fitted, and in longer runs,
#: each from so many starts.
_CHANNELS, _DIES, _FITTED, _REPEATED = (*range(1, 11), 12, 14, 16, 20, 24, 28, 32), (0.5, 1, 2), (14, 3), (6, 2)
#: Candidates that cost more than this multiple of the best, and this, are left out; so many at most go on.
_AS_WELL, _EXACT, _TRIED = 2.5, 1e-4, 3
#: Shares of the best rate's time that a controller is taken to be busy, a link, and channels or dies: a group for each link that writes
#: start from; and many for reads, of which the figures between two can be worse than at both.
_WRITE_SHARES = [list(product((1.0, 0.4, 0.1), (link,), (1.0, 0.4))) for link in (1.0, 0.4)]
_READ_SHARES = (np.array([0.05, 0.3, 0.3]) ** Sobol(3, rng=1).random_base2(5)).tolist()
#: Shares of spare flash to start from, with blocks so many times as long, whose erases take as many times longer.
_SPARE, _BLOCKS = (0.1, 0.18, 0.32), (0.4, 1.0, 2.5)
#: Weight of the cost of a steady state beside those of reads and writes, which are more even, where structures are compared.
_STEADY_WEIGHT = 0.1
#: Requests of a load to compare starts; and with the steps of a fit, to compare structures, to fit what is even, to compare the few that
#: are left, and to end with.
_STARTS, _COARSE, _FINE, _FEW, _LAST = 1000, (3000, 5), (20_000, 7), (20_000, 3), (20_000, 4)
#: Weights of logarithms beside that of a rate, before runs tell how even figures are: of latencies and of write amplification; and of a
#: parameter beside that of the base, so that what no figure tells stays near it.
_LATENCY_WEIGHT, _AMPLIFICATION_WEIGHT, _BASE_WEIGHT = 0.2, 2.0, 0.01
#: Share to which a figure is known at best: those that are published have two or three digits.
_KNOWN = 0.01
#: Factor by which all figures of a drive that cannot be are taken to be off.
_NO_DRIVE = 20.0
#: Runs with other seeds that tell how uneven figures are.
_REPETITIONS = 4
Values = Mapping[str, float]


@dataclass(frozen=True)
class DriveStructure:
    """Counts of a drive: channels, dies of a package, and bytes of the write buffer."""

    channels: int
    dies: int
    buffer: int


def drive_with(base: SsdParameters, structure: DriveStructure, values: Values, *, exact: bool = False) -> SsdParameters:
    """A drive like another one with these values.

    Its spare flash is as told by a smaller or larger capacity; with `exact`, by blocks and their pages, and the capacity stays.
    """
    rates: dict[str, Any] = {
        name.replace(" ", "_"): max(1, round(values[name])) for name in ("link read rate", "link write rate", "channel rate")
    }
    transfer = base.unit_size * SECONDS // rates["channel_rate"] + 1
    read, program = (max(1, round(values[f"{kind} die time"]) - transfer) for kind in ("read", "write"))
    times: dict[str, Any] = {"read": read, "program": program, "erase": round(values["erase"])}
    times |= {
        f"{kind}_pages": _scale_pages(getattr(base, f"{kind}_pages"), times[kind] / getattr(base, kind)) for kind in ("read", "program")
    }
    times |= {"slc_program": max(1, round(values["cache write time"]) - transfer)} if base.slc_cache else {}
    times["read_latency"] = read + transfer + max(1, round(values["read overhead"]))
    times["write_latency"] = program + transfer + max(1, round(values["write overhead"]))
    pools = structure.channels * base.packages_per_channel * structure.dies * base.planes_per_die
    line, reserve, capacity = base.group // base.units, base.gc_reserve + base.spare_blocks + base.own_slc_blocks, base.capacity
    needed = base.logical_pages * (1 + values["spare share"])
    pages = max(2, line, round(values["block pages"] / line) * line)
    if exact:
        choices = np.arange(max(line, int(0.8 * pages) // line * line), int(1.25 * pages) + 1, line)
        units = pools * base.units * choices
        misses = np.abs(np.maximum(2, np.round(needed / units)) * units / needed - 1)
        near = np.abs(np.log(choices / pages)) / 50  # of choices that are about as good, one with blocks as they were
        pages = int(choices[np.argmin(misses + near)])
    blocks = max(2, round(needed / (pools * pages * base.units)))
    if not exact:
        capacity = int(pools * blocks * pages * base.units / (1 + values["spare share"])) * base.unit_size
    return replace(
        base, **rates, **times, channels=structure.channels, dies_per_package=structure.dies, write_buffer=structure.buffer,
        power_protected=base.power_protected and structure.buffer > 0, pages_per_block=pages, blocks_per_plane=blocks + reserve,
        capacity=capacity,
    )  # fmt: skip


def _scale_pages(pages: Sequence[int], factor: float) -> tuple[int, ...]:
    """Times of the pages of a word line, which keep their ratios."""
    return tuple(max(1, round(each * factor)) for each in pages)


def values_of(flash: SsdParameters) -> dict[str, float]:
    """Values of a drive that `drive_with` changes."""
    transfer = flash.unit_size * SECONDS // flash.channel_rate + 1
    return {
        "read overhead": flash.read_latency - flash.read - transfer, "read die time": flash.read + transfer,
        "link read rate": flash.link_read_rate, "channel rate": flash.channel_rate,
        "write overhead": flash.write_latency - flash.program - transfer, "write die time": flash.program + transfer,
        "cache write time": (flash.slc_program or flash.program) + transfer, "link write rate": flash.link_write_rate,
        "erase": flash.erase, "spare share": flash.effective_overprovisioning,
        "block pages": flash.pages_per_block,
    }  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """A structure with the values that show figures best, and how badly they do."""

    structure: DriveStructure
    values: Mapping[str, float]
    cost: float


class DriveFit:
    """Parameters by figures: those of reads first, then writes, then the steady state, then both of writes in longer runs."""

    def __init__(self, flash: SsdParameters, figures: Sequence[DriveFigure], seed: int, progress: Progress | None) -> None:
        self.flash, self.seed, self.figures = flash, seed, figures
        #: What writes before the steady state tell: an SLC cache takes them in a time of its own.
        self.write_names = _CACHED_WRITES if flash.slc_cache else _WRITES
        self.steady = [each for each in figures if each.load.state == "steady"]
        self.reads = [each for each in figures if each.load.operation == READ and not each.load.reads and each not in self.steady]
        self.writes = [each for each in figures if each not in self.steady and each not in self.reads]
        weights = dict.fromkeys(RATES, 1.0) | {"write_amplification": _AMPLIFICATION_WEIGHT}
        self.weights = {each: weights.get(each.name, _LATENCY_WEIGHT) for each in figures}
        #: Channels and dies of a package of some that show the figures about as well.
        self.structures: list[tuple[int, int]] = []
        origin = {"flash": repr(flash), "figures": [repr(each) for each in figures], "seed": seed}
        self.runs = FigureRuns(origin, self._requests_expected(), progress)

    def run(self) -> tuple[Candidate, list[Estimate]]:
        """The best candidate, and the estimates of what figures could tell."""
        structure = DriveStructure(self.flash.channels, self.flash.dies_per_package, self.flash.write_buffer)
        candidates = [Candidate(structure, values_of(self.flash), 0.0)]
        for figures, step in ((self.reads, self._structures), (self.writes, self._with_writes), (self.steady, self._with_steady)):
            candidates = _few(step(candidates)) if figures else candidates
        others = list(dict.fromkeys((
            *(self.write_names if self.writes else ()), *(_WRITES if self.steady else ()), *(_STEADY if self.steady else ()),
        )))  # fmt: skip
        names = [*(_READS if self.reads else ()), *others]
        best = min(candidates, key=lambda one: one.cost)
        if others:
            self.runs.tell("longer runs")
            self._weigh(best, self.figures)
            candidates = [each for one in candidates for each in self._solve_anew(one, others, _FEW)]
            best = min(candidates, key=lambda one: one.cost)
            (best,) = self._solve_anew(best, others, _LAST)
            candidates = _few([*candidates, best])
        self.structures = sorted({(one.structure.channels, one.structure.dies) for one in candidates})
        point, steps = np.array([best.values[name] for name in names]), np.maximum(_WIDE_STEP, _steps(names))
        self.runs.tell("intervals")
        model, draws = self._model(best, names, self.figures, _FINE[0], self.seed), self._figures_of_seeds(best, self.figures).T
        targets, shown_here = self._targets(self.figures), model(point)
        solution, uneven = Solution(point, np.log(shown_here / targets)), _UNEVEN * draws.std(axis=1, ddof=1)
        self.runs.save()
        return best, [
            _widen(one, [each.values[one.name] for each in candidates])
            for one in estimates(names, model, solution, targets, draws, steps, _KNOWN, (1, -1), uneven)
        ]

    def _solve_anew(
        self, one: Candidate, names: Sequence[str], effort: tuple[int, int], figures: Sequence[DriveFigure] = ()
    ) -> list[Candidate]:
        """The candidate fitted on from where it is, to all figures or some, which alone are its cost."""
        return self._solve(replace(one, cost=0.0), names, figures or self.figures, [[one.values]], effort)

    def _figures_of_seeds(self, one: Candidate, figures: Sequence[DriveFigure]) -> Floats:
        """Logarithms of figures in runs with other seeds, off their mean, shape (runs, figures)."""
        seeds = range(self.seed + 1, self.seed + 1 + _REPETITIONS)
        runs = np.log([self._model(one, (), figures, _FINE[0], seed)(np.array([])) for seed in seeds])
        result: Floats = runs - runs.mean(axis=0)
        return result

    def _weigh(self, one: Candidate, figures: Sequence[DriveFigure]) -> None:
        """Let each figure count by how evenly a drive shows it."""
        self.weights |= dict.fromkeys(figures, 1.0)
        spread = np.sqrt(2) * self._figures_of_seeds(one, figures).std(axis=0, ddof=1)  # of the figure, and of the run beside it
        self.weights |= dict(zip(figures, (_KNOWN / np.hypot(_KNOWN, spread)).tolist(), strict=True))

    def _requests_expected(self) -> float:
        """About how many requests are simulated, a figure at a time."""
        reads, writes, steady = len(self.reads), len(self.writes), len(self.steady)
        structures, (coarse, fine) = len(_CHANNELS) * len(_DIES), (requests * (steps + 1) for requests, steps in (_COARSE, _FINE))
        expected = reads * structures * len(_READ_SHARES) * _STARTS
        for (most, starts), effort in ((_FITTED, coarse), (_REPEATED, fine)):
            expected += reads * most * starts * effort * len(_READS)
        expected += writes * (_TRIED + 2) * len(_WRITE_SHARES) * fine * len(_WRITES)
        expected += steady * _TRIED * len(_BLOCKS) * coarse * len(_STEADY)
        both = sum(requests * (steps + 1) for requests, steps in (_FEW, _LAST)) + 4 * _FINE[0]
        return float(expected + (writes + steady) * _TRIED * both * len(PARAMETERS))

    def _structures(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        (first,) = candidates
        targets, few = self._targets(self.reads), list[Candidate]()
        for channels, dies in product(_CHANNELS, sorted({max(1, round(factor * first.structure.dies)) for factor in _DIES})):
            structure = replace(first.structure, channels=channels, dies=dies)
            self.runs.tell(f"{channels} channels of {dies} dies")
            model = self._model(replace(first, structure=structure), _READS, self.reads, _STARTS, self.seed)
            for values in self._starts("read", self.reads, replace(first, structure=structure), _READ_SHARES):
                shown_here = model(np.array([values[name] for name in _READS]))
                few.append(Candidate(structure, values, cost(np.log(shown_here / targets))))
        for effort, (most, starts) in ((_COARSE, _FITTED), (_FINE, _REPEATED)):
            best = dict[DriveStructure, list[Candidate]]()
            for one in sorted(few, key=lambda one: one.cost):
                best.setdefault(one.structure, []).append(one)
            few = [one for group in list(best.values())[:most] for one in group[:starts]]
            self.runs.tell(f"reads of {min(most, len(best))} structures")
            few = [each for one in few for each in self._solve_anew(one, _READS, effort, self.reads)]
            self._weigh(min(few, key=lambda one: one.cost), self.reads)
        return few

    def _with_writes(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates, with the buffer that fits the best of them and what writes tell: one with a slow link, and one with slow dies."""
        best = min(candidates, key=lambda one: one.cost)

        def attempts(one: Candidate, buffer: int) -> list[Candidate]:
            self.runs.tell(f"writes with {one.structure.channels} channels")
            one = replace(one, structure=replace(one.structure, buffer=buffer))
            starts = [self._starts("write", self.writes, one, shares) for shares in _WRITE_SHARES]
            return self._solve(one, self.write_names, self.writes, starts, _FINE)

        every = [
            each for buffer in {self.flash.write_buffer} | ({0, MIB} if self.flash.group == 1 else set()) for each in attempts(best, buffer)
        ]
        buffer = min(every, key=lambda one: one.cost).structure.buffer
        return every + [each for one in candidates if one is not best for each in attempts(one, buffer)]

    def _with_steady(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates with what a steady state tells; behind a write buffer it alone tells how long a program takes."""
        every = list[Candidate]()
        for one in candidates:
            names = [*_STEADY, *(("write die time",) if self.writes and not one.structure.buffer else _WRITES)]
            self.runs.tell(f"steady state with {one.structure.channels} channels")
            erase, pages = one.values["erase"], one.values["block pages"]
            starts = [
                [{**one.values, "spare share": share, "block pages": factor * pages, "erase": factor * erase} for share in _SPARE]
                for factor in _BLOCKS
            ]
            every += [
                replace(solved, cost=one.cost + _STEADY_WEIGHT * solved.cost)
                for solved in self._solve(replace(one, cost=0.0), names, self.steady, starts)
            ]
        return every

    def _starts(self, kind: str, figures: Sequence[DriveFigure], one: Candidate, shares: Iterable[Sequence[float]]) -> list[Values]:
        """Starting points in which a controller, a link, and channels or dies are busy for such shares of the best rate's time."""
        counts = [(each.value / (each.load.size if each.name == "bandwidth" else 1), each.load) for each in figures if each.name in RATES]
        if not counts:
            return [one.values]
        flash, structure = self.flash, one.structure
        best = max(count * load.size for count, load in counts)
        single = min([SECONDS * load.depth / count for count, load in counts] + [each.value for each in figures if each.name == "mean"])
        shortest = min([SECONDS / count for count, _ in counts] + [single])
        planes = 1 if kind == "write" and flash.multi_plane else flash.planes_per_die
        at_once = flash.page_size if kind == "read" else flash.group * flash.unit_size * flash.planes_per_die // planes
        busy = structure.channels * flash.packages_per_channel * structure.dies * planes * at_once * SECONDS / best
        starts = list[Values]()
        for over, link, inner in shares:
            values = {f"{kind} overhead": over * shortest, f"link {kind} rate": best / link}
            values |= {"channel rate": best / structure.channels / inner} if kind == "read" else {}
            die = busy if kind == "read" else inner * busy
            name = self.write_names[1] if kind == "write" else "read die time"
            if not (kind == "write" and structure.buffer):  # which hides how long a program takes
                die = min(die, max(single - over * shortest - flash.unit_size * link * SECONDS / best, single / 10))
            starts.append({**one.values, **values, name: die})
        return starts

    def _solve(
        self,
        one: Candidate,
        names: Sequence[str],
        figures: Sequence[DriveFigure],
        starts: Sequence[Sequence[Values]],
        effort: tuple[int, int] = _COARSE,
    ) -> list[Candidate]:
        """The candidate with some of its values fitted to figures, from the best of each group of starts."""
        model, every, bases = self._model(one, names, figures, effort[0], self.seed), list[Candidate](), values_of(self.flash)
        targets = np.concatenate([self._targets(figures), np.array([bases[name] for name in names]) ** _BASE_WEIGHT])
        low, high = (np.array([PARAMETERS[name][side] for name in names]) for side in (1, 2))

        def with_base(point: Floats) -> Floats:
            return np.concatenate([model(point), point**_BASE_WEIGHT])

        for group in starts:
            points = [np.array([point[name] for name in names]) for point in group]
            solution = solve(with_base, targets, [points], low, high, effort[1], _steps(names))
            values = {**one.values, **dict(zip(names, solution.values.tolist(), strict=True))}
            every.append(Candidate(one.structure, values, one.cost + solution.cost))
        return every

    def _model(self, one: Candidate, names: Sequence[str], figures: Sequence[DriveFigure], requests: int, seed: int) -> Model:
        """The figures as a drive shows them over some of its values, each to the power of its weight."""
        weights = self._weights(figures)

        def model(point: Floats) -> Floats:
            try:
                drive = drive_with(self.flash, one.structure, {**one.values, **dict(zip(names, point.tolist(), strict=True))})
                result: Floats = self.runs(drive, figures, seed, requests) ** weights
            except (InvalidParameterError, RefusedError):  # no such drive: a bound of the search
                result = self._targets(figures) * _NO_DRIVE
            return result

        return model

    def _targets(self, figures: Sequence[DriveFigure]) -> Floats:
        result: Floats = np.array([each.value for each in figures]) ** self._weights(figures)
        return result

    def _weights(self, figures: Sequence[DriveFigure]) -> Floats:
        return np.array([self.weights[each] for each in figures])


def _widen(one: Estimate, others: Sequence[float]) -> Estimate:
    """An estimate whose interval holds the values of other structures that show the figures about as well."""
    bounds = one.value / UNKNOWN, one.value * UNKNOWN
    return replace(one, low=max(bounds[0], min(one.low, *others)), high=min(bounds[1], max(one.high, *others)))


def _few(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The best candidate, and some that cost little more, no two with one structure and about as fast a link for writes."""
    best = dict[tuple[DriveStructure, int], Candidate]()
    for one in sorted(candidates, key=lambda one: one.cost):
        best.setdefault((one.structure, round(np.log2(one.values["link write rate"]))), one)
    most = _AS_WELL * min(one.cost for one in candidates) + _EXACT
    return [one for one in best.values() if one.cost <= most][:_TRIED]


def _steps(names: Sequence[str]) -> Floats:
    return np.array([_LONG_STEPS.get(name, STEP) for name in names])

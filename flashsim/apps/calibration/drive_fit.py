"""A fit of a flash drive to figures: counts of its dies by trial, and times, rates and spare flash by least squares."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.stats.qmc import Sobol

from flashsim.apps.calibration.cells import STEP, UNKNOWN, Estimate, Floats, Model, Solution, cost, estimates, solve
from flashsim.apps.calibration.drive_figures import RATES, DriveFigure
from flashsim.apps.calibration.drive_values import PARAMETERS, DriveStructure, Values, drive_with, parameters_of, values_of
from flashsim.apps.calibration.figure_runs import FigureRuns
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.request import READ
from flashsim.core.units import MIB, SECONDS
from flashsim.ssd.parameters import SsdParameters

#: Parameters that figures of reads tell, of writes, with an SLC cache and without, and of the steady state.
_READS = ("read overhead", "read die time", "link read rate", "channel rate", "read submission", "read spread")
_WRITES, _CACHED_WRITES = (("write overhead", die, "link write rate", "write submission") for die in ("write die time", "cache write time"))
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
#: start from; and many for reads, of which the figures between two can be worse than at both; with submission times, the dies' share of
#: what controller and link leave of a latency comes last.
_WRITE_SHARES = [list(product((1.0, 0.4, 0.1), (link,), (1.0, 0.4))) for link in (1.0, 0.4)]
_READ_SHARES, _SUBMITTED_READ_SHARES = (
    (np.array(lowest) ** Sobol(len(lowest), rng=1).random_base2(5)).tolist() for lowest in ([0.05, 0.3, 0.3], [0.05, 0.3, 0.3, 0.3])
)
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


@dataclass(frozen=True)
class Candidate:
    """A structure with the values that show figures best, and how badly they do."""

    structure: DriveStructure
    values: Mapping[str, float]
    cost: float


class DriveFit:
    """Parameters by figures: those of reads first, then writes, then the steady state, then both of writes in longer runs."""

    def __init__(self, flash: SsdParameters, figures: Sequence[DriveFigure], seed: int, progress: Progress | None) -> None:
        self.flash, self.seed = flash, seed
        present = parameters_of(flash)
        #: What reads tell, writes in the steady state, and writes before: an SLC cache takes these in a time of its own.
        self.read_names, self.steady_write_names, self.write_names = (
            [name for name in names if name in present] for names in (_READS, _WRITES, _CACHED_WRITES if flash.slc_cache else _WRITES)
        )
        self._take(figures)
        self.candidates, self.read_candidates = list[Candidate](), list[Candidate]()
        #: Channels and dies of a package of some that show the figures about as well.
        self.structures: list[tuple[int, int]] = []
        origin = {"flash": repr(flash), "figures": [repr(each) for each in figures], "seed": seed}
        self.runs = FigureRuns(origin, self._requests_expected(), progress)

    def run(self) -> Candidate:
        """The best candidate by the figures."""
        structure = DriveStructure(self.flash.channels, self.flash.dies_per_package, self.flash.write_buffer)
        candidates = [Candidate(structure, values_of(self.flash), 0.0)]
        for figures, step in ((self.reads, self._structures), (self.writes, self._with_writes), (self.steady, self._with_steady)):
            candidates = _few(step(candidates)) if figures else candidates
        best = min(candidates, key=lambda one: one.cost)
        if others := self._written_names():
            self.runs.tell("longer runs")
            self._weigh(best, self.figures)
            candidates = [each for one in candidates for each in self._solve_anew(one, others, _FEW)]
            best = min(candidates, key=lambda one: one.cost)
            (best,) = self._solve_anew(best, others, _LAST)
            candidates = _few([*candidates, best])
        self.candidates = candidates
        return best

    def run_on(self, figures: Sequence[DriveFigure]) -> tuple[Candidate, list[Estimate]]:
        """The best candidate by these figures too, which have judged the fit, and the estimates of what all figures could tell."""
        self._take([*self.figures, *figures])
        self.runs.tell("all figures")
        self._weigh(self.candidates[0], self.figures)
        best, *candidates = self.candidates
        written = self._written_names()
        names = [*(self.read_names if self.reads else ()), *written]
        if "read submission" in names:
            near = [*self.candidates, *self._with_busy_controller(self.candidates)]
            best, *candidates = _few([each for one in near for each in self._solve_anew(one, self.read_names, _LAST, self.reads)])
        elif self.reads:
            (best,) = self._solve_anew(best, self.read_names, _LAST, self.reads)
        if written:
            (best,) = self._solve_anew(best, written, _LAST)
        candidates = [best, *candidates]
        self.structures = sorted({(one.structure.channels, one.structure.dies) for one in candidates})
        point, steps = np.array([best.values[name] for name in names]), np.maximum(_WIDE_STEP, _steps(names))
        self.runs.tell("intervals")
        model, draws = self._model(best, names, self.figures, _FINE[0], self.seed), self._figures_of_seeds(best, self.figures).T
        targets, shown_here = self._targets(self.figures), model(point)
        solution, uneven = Solution(point, np.log(shown_here / targets)), _UNEVEN * draws.std(axis=1, ddof=1)
        self.runs.save()
        return best, [
            _widen(one, [each.values[one.name] for each in [*candidates, *(self.read_candidates if one.name in self.read_names else ())]])
            for one in estimates(names, model, solution, targets, draws, steps, _KNOWN, (1, -1), uneven)
        ]

    def _written_names(self) -> list[str]:
        """Parameters that the figures of writes tell."""
        steady = [*self.steady_write_names, *_STEADY] if self.steady else []
        return list(dict.fromkeys([*(self.write_names if self.writes else ()), *steady]))

    def _take(self, figures: Sequence[DriveFigure]) -> None:
        """Fit to these figures from now on."""
        self.figures = figures
        self.steady = [each for each in figures if each.load.state == "steady"]
        self.reads = [each for each in figures if each.load.operation == READ and not each.load.reads and each not in self.steady]
        self.writes = [each for each in figures if each not in self.steady and each not in self.reads]
        weights = dict.fromkeys(RATES, 1.0) | {"write_amplification": _AMPLIFICATION_WEIGHT}
        self.weights = {each: weights.get(each.name, _LATENCY_WEIGHT) for each in figures}

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
            expected += reads * most * starts * effort * len(self.read_names)
        expected += writes * (_TRIED + 2) * len(_WRITE_SHARES) * fine * len(self.write_names)
        expected += steady * _TRIED * len(_BLOCKS) * coarse * len(_STEADY)
        both = sum(requests * (steps + 1) for requests, steps in (_FEW, _LAST)) + 4 * _FINE[0]
        return float(expected + (writes + steady) * _TRIED * both * len(PARAMETERS))

    def _structures(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        (first,) = candidates
        targets, few = self._targets(self.reads), list[Candidate]()
        shares = _SUBMITTED_READ_SHARES if "read submission" in self.read_names else _READ_SHARES
        for channels, dies in product(_CHANNELS, sorted({max(1, round(factor * first.structure.dies)) for factor in _DIES})):
            structure = replace(first.structure, channels=channels, dies=dies)
            self.runs.tell(f"{channels} channels of {dies} dies")
            model = self._model(replace(first, structure=structure), self.read_names, self.reads, _STARTS, self.seed)
            for values in self._starts("read", self.reads, replace(first, structure=structure), shares):
                shown_here = model(np.array([values[name] for name in self.read_names]))
                few.append(Candidate(structure, values, cost(np.log(shown_here / targets))))
        for effort, (most, starts) in ((_COARSE, _FITTED), (_FINE, _REPEATED)):
            best = dict[DriveStructure, list[Candidate]]()
            for one in sorted(few, key=lambda one: one.cost):
                best.setdefault(one.structure, []).append(one)
            few = [one for group in list(best.values())[:most] for one in group[:starts]]
            few += self._with_busy_controller(few) if effort == _FINE and shares is _SUBMITTED_READ_SHARES else []
            self.runs.tell(f"reads of {min(most, len(best))} structures")
            few = [each for one in few for each in self._solve_anew(one, self.read_names, effort, self.reads)]
            self._weigh(min(few, key=lambda one: one.cost), self.reads)
        self.read_candidates = _as_good(few)
        return few

    def _with_busy_controller(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates with a controller that is busy all the time at the best rate: few starts come near such a drive."""
        best = max((each.value for each in self.reads if each.name == "iops"), default=0.0)
        return [replace(one, values={**one.values, "read overhead": SECONDS / best}) for one in candidates] if best else []

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
            names = [*_STEADY, *(("write die time",) if self.writes and not one.structure.buffer else self.steady_write_names)]
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
        best, size = max((count * load.size, load.size) for count, load in counts)
        single = min([SECONDS * load.depth / count for count, load in counts] + [each.value for each in figures if each.name == "mean"])
        shortest = min([SECONDS / count for count, _ in counts] + [single])
        planes = 1 if kind == "write" and flash.multi_plane else flash.planes_per_die
        at_once = min(flash.page_size, size) if kind == "read" else flash.group * flash.unit_size * flash.planes_per_die // planes
        busy = structure.channels * flash.packages_per_channel * structure.dies * planes * at_once * SECONDS / best
        starts, submission = list[Values](), f"{kind} submission"
        for over, link, inner, *dies in shares:
            values = {f"{kind} overhead": over * shortest, f"link {kind} rate": best / link}
            values |= {"channel rate": best / structure.channels / inner} if kind == "read" else {}
            die = busy if kind == "read" else inner * busy
            name = self.write_names[1] if kind == "write" else "read die time"
            rest = max(single - over * shortest - flash.unit_size * link * SECONDS / best, single / 10)
            if not (kind == "write" and structure.buffer):  # which hides how long a program takes
                die = min(die, rest * (dies[0] if dies else 1.0))
                rest -= die
            values |= {submission: max(rest, single / 50)} if submission in (*self.read_names, *self.write_names) else {}
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
    """An estimate whose interval holds those of other structures that show the figures about as well, each as wide as its own."""
    values = (one.value, *others)
    low, high = min(values) * one.low / one.value, max(values) * one.high / one.value
    return replace(one, low=max(one.value / UNKNOWN, low), high=min(one.value * UNKNOWN, high))


def _few(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The best candidate, and some that cost little more, no two with one structure and about as fast a link for writes."""
    best = dict[tuple[DriveStructure, int], Candidate]()
    for one in sorted(candidates, key=lambda one: one.cost):
        best.setdefault((one.structure, round(np.log2(one.values["link write rate"]))), one)
    return _as_good(best.values())[:_TRIED]


def _as_good(candidates: Collection[Candidate]) -> list[Candidate]:
    most = _AS_WELL * min(one.cost for one in candidates) + _EXACT
    return [one for one in candidates if one.cost <= most]


def _steps(names: Sequence[str]) -> Floats:
    return np.array([_LONG_STEPS.get(name, STEP) for name in names])

"""A fit of a flash drive to a table of latencies under load: rows of `flashsim.apps.calibration.validation.under_load`.

The mechanisms are those of drives that were measured so before: which of them waits, paces or interrupts in which way is taken from the
preset whose rows are nearest, after its dies, times and spare flash are scaled.  What is fitted are factors to its values.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

import numpy as np

from flashsim.apps.calibration.cells import Estimate, Floats, Solution, cost, estimates
from flashsim.apps.calibration.validation import under_load
from flashsim.apps.calibration.validation.under_load import LOAD, LoadRow
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.units import GIB
from flashsim.device import presets
from flashsim.device.presets import Preset
from flashsim.experiments.runs import kept
from flashsim.experiments.runs.jobs import Job, Settings, make
from flashsim.ssd.parameters import SsdParameters

#: What is fitted, as factors: the parameters of a preset that each multiplies, the bounds, and columns of rows that tell it.
FACTORS: Mapping[str, tuple[tuple[str, ...], float, float, str]] = {
    "read": (("read", "read_pages"), 0.2, 5.0, "read_p10 and read_p50 at low rates"),
    "read spread": (("read_pages",), 0.2, 4.0, "read_p10 and read_p90 at a low rate"),
    "read submission": (("read_submission",), 0.2, 5.0, "read_p10 at the lowest and at the highest rate"),
    "write submission": (("write_submission",), 0.2, 5.0, "write_p50 at the lowest rate"),
    "program": (("program",), 0.2, 5.0, "achieved_per_s of a saturated row"),
    "program step": (("program_step",), 0.3, 4.0, "read_p90 and read_p99 at half the saturated rate"),
    "program long step": (("program_long_step",), 0.3, 4.0, "read_p99.9 at half the saturated rate"),
    "program long share": (("program_long_share",), 0.2, 2.5, "read_p99 and read_p99.9 at half the saturated rate"),
    "suspend progress": (("suspend_progress",), 0.2, 5.0, "read_p99 near the saturated rate"),
    "erase step": (("erase_step",), 0.2, 5.0, "read_p99.9 near the saturated rate"),
    "spare share": (("blocks_per_plane",), 0.2, 5.0, "achieved_per_s of a saturated row"),
    "write buffer": (("write_buffer",), 0.3, 4.0, "write_p50 and write_p99 near the saturated rate"),
    "command slots": (("command_slots",), 0.3, 4.0, "read_p50 and write_p50 of a saturated row"),
    "collection rate": (("collection_rate",), 0.3, 4.0, "write_p90 near the saturated rate"),
    "collection debt": (("collection_debt",), 0.2, 5.0, "write_p99 near the saturated rate"),
    "collection share": (("collection_share",), 0.3, 1.9, "achieved_per_s of a saturated row"),
}
#: Multiples of the time of a program to compare bases with, and of the dies that a drive of the capacity has by the base's measure.
_PROGRAMS, _DIES = (0.35, 0.5, 0.7, 1.0, 1.4), (0.5, 2.0)
#: Steps of derivatives, in logarithms: of most factors, and of those that are whole numbers or move a queue.
_STEP, _LONG_STEPS = 0.1, {"spare share": 0.2, "write buffer": 0.2, "command slots": 0.2, "erase step": 0.2, "suspend progress": 0.2}
#: Scale of runs, and steps: to compare bases, to fit the few that are nearest, to fit the best, and to go on with all rows.
_COMPARED, _COARSE, _FINE, _ALL = 0.05, (0.05, 3), (0.2, 6), (0.2, 2)
#: Steps of a saturated drive's rate, the scale of their runs, and the share to which it is met.
_RATE_STEPS, _RATE_SCALE, _RATE_MET = 5, 1.0, 0.0005
#: Dampings of a step of Gauss and Newton, its longest change of a factor (logarithm), and the share of the cost that a step must gain.
_DAMPINGS, _LONGEST, _LEAST_GAIN = (0.03, 0.3, 3.0, 30.0), 0.7, 0.02
#: Bases that are fitted.
_NEAREST = 3
#: Weights of logarithms by measure: of the rate, which decides from where requests wait, the most; writes' percentiles count little where
#: they are those of a write that finds room.
_WEIGHTS = {"achieved": 15.0, "read_p10": 1.0, "read_p50": 2.0, "read_p90": 1.0, "read_p99": 1.5, "read_p99.9": 0.7}
_WEIGHT_OF_WRITES, _WEIGHT_WITH_ROOM, _WITH_ROOM = 0.4, 0.1, 30.0
#: Residual of a figure of a drive that cannot be, and that beyond which a figure counts less.
_INVALID, _OUTLIER = 3.0, 0.5
#: Queues and command slots, by which a factor multiplies, of drives in whose slots the oldest request is next, or queues have turns.
WAITING = {"arrival": (1, 64), "turns": (8, 256)}
#: The most of values that are shares.
_MOST = {"collection_share": 1.0, "program_long_share": 0.95}
#: Rows that are needed.
LEAST_ROWS = 3
_REPETITIONS = 4


@dataclass(frozen=True)
class Base:
    """A drive of another preset's mechanisms, with so many times the dies for the capacity."""

    name: str
    capacity: int
    dies: float = 1.0
    #: How requests wait for command slots (`WAITING`), whatever the preset does; by its own way if empty.
    waiting: str = ""

    def flash(self, factors: Mapping[str, float]) -> SsdParameters:
        """The drive with factors to its values.

        Raises
        ------
        InvalidParameterError
            There is no such drive.
        """
        base = presets.load(self.name).flash
        assert base is not None
        channels = max(1, round(base.channels * self.dies * self.capacity / base.capacity))
        pools = channels / base.channels
        scales = {"program": pools * base.capacity / self.capacity} | dict.fromkeys(("write_buffer", "write_buffer_batch"), pools)
        for name, factor in factors.items():
            scales |= {field: scales.get(field, 1.0) * factor for field in FACTORS[name][0] if field != "read_pages"}
        changes: dict[str, Any] = {"channels": channels, "capacity": self.capacity // base.unit_size * base.unit_size}
        changes |= {field: _scale(getattr(base, field), factor) for field, factor in scales.items()}
        read, program = changes.get("read", base.read), changes["program"]
        changes |= {"read_latency": base.read_latency + read - base.read, "write_latency": base.write_latency + program - base.program}
        spread = np.exp(factors.get("read spread", 1.0) * np.log(np.array(base.read_pages) / base.read)) * read
        changes["read_pages"] = tuple(int(each) for each in np.maximum(1, np.round(spread)))
        units = changes["capacity"] / base.unit_size * (1 + base.effective_overprovisioning * factors.get("spare share", 1.0))
        reserve = base.gc_reserve + base.spare_blocks + base.own_slc_blocks
        changes["blocks_per_plane"] = round(units / (base.pools * pools * base.slots_per_block)) + reserve
        if batch := changes["write_buffer_batch"]:
            line = base.unit_size * base.group
            changes["write_buffer_batch"] = max(line, round(batch / line) * line)
        changes |= {field: min(most, changes.get(field, getattr(base, field))) for field, most in _MOST.items()}
        if self.waiting:
            queues, slots = WAITING[self.waiting]
            slots = round(slots * factors.get("command slots", 1.0))
            changes |= {"slot_order": self.waiting, "queues": queues, "command_slots": slots}
        return replace(base, **changes)


def _scale(value: Any, factor: float) -> Any:
    """A value by a factor: a whole number stays one, and above 0."""
    return value * factor if isinstance(value, float) else max(1, round(value * factor)) if value else value


def play_drive(
    name: str, capacity: int, dies: float, waiting: str, factors: Mapping[str, float], loads: Sequence[Mapping[str, float]],
    scale: float, seed: int, stamps: Mapping[str, str],
) -> list[dict[str, float]] | None:  # fmt: skip
    """Rate and latencies of a drive by measure, load by load; None if there is no such drive."""
    try:
        flash = Base(name, capacity, dies, waiting).flash(factors)
        original, cycle = under_load.in_use(Preset("fit", "ssd", "", flash, {}), loads[0]["used_gib"], scale, seed)
    except (InvalidParameterError, RefusedError):
        return None
    return [under_load.serve(original, cycle, load, scale, seed) for load in loads]


def bases() -> list[str]:
    """Presets whose mechanisms were fitted to reads beside writes."""
    flashes = ((name, presets.load(name).flash) for name in presets.names())
    return [name for name, flash in flashes if flash and flash.program_step and flash.read_pages and presets.load(name).array is None]


class LoadFit:
    """Factors by rows: bases compared, the nearest fitted, the best of these fitted further, at last with the rows that were kept back."""

    def __init__(self, names: Sequence[str], capacity: int, settings: Settings, progress: Progress | None) -> None:
        self.names, self.capacity, self.settings, self.progress = names, capacity, settings, progress
        self.points = 0
        steps = _NEAREST * _COARSE[1] + _FINE[1] + _ALL[1] + 2
        self.points_expected = len(names) * (len(_PROGRAMS) + (1 + len(WAITING)) * (1 + len(_DIES))) + steps * (
            len(_DAMPINGS) + len(FACTORS)
        )

    def run(self, rows: Sequence[LoadRow]) -> tuple[Base, dict[str, float]]:
        """The drive that shows the rows best."""
        starts = [(Base(name, self.capacity), {"program": factor}) for name in self.names for factor in _PROGRAMS]
        best = dict[str, tuple[Base, dict[str, float]]]()
        for base, factors in self._in_order(rows, starts):
            best.setdefault(base.name, (base, factors))
        others = [(replace(base, dies=dies), factors) for base, factors in best.values() for dies in _DIES]
        every = [*best.values(), *others]
        every += [(replace(base, waiting=waiting), factors) for base, factors in every for waiting in WAITING]
        nearest = self._in_order(rows, every)[:_NEAREST]
        fitted = [(base, *self.fit(rows, base, factors, _COARSE)) for base, factors in nearest]
        base, factors, _ = min(fitted, key=lambda one: one[2])
        return base, self._with_rate(rows, base, self.fit(rows, base, factors, _FINE)[0])

    def _with_rate(self, rows: Sequence[LoadRow], base: Base, factors: Mapping[str, float]) -> dict[str, float]:
        """The factors, with that of a program at which a saturated drive is as fast as the rows say: from there on requests wait."""
        points, full = [dict(factors)], [row for row in merge_saturated(rows) if row.is_saturated]
        misses = list[float]()
        for _ in range(_RATE_STEPS if full and "program" in factors else 0):
            (shown,) = self._play([(base, points[-1])], [_load_of(full[0])], _RATE_SCALE, self.settings.seed)
            misses.append(np.inf if shown is None else shown[0]["achieved_per_s"] / full[0].values["achieved_per_s"] - 1)
            if not _RATE_MET < abs(misses[-1]) < _LONGEST:
                break
            points.append(points[-1] | {"program": points[-1]["program"] * (1 + misses[-1])})
        return points[int(np.argmin(np.abs(misses)))] if misses else points[0]

    def _in_order(self, rows: Sequence[LoadRow], points: Sequence[tuple[Base, dict[str, float]]]) -> list[tuple[Base, dict[str, float]]]:
        """Drives, the one that shows the rows best first."""
        residuals = self._residuals(rows, points, _COMPARED)
        return [point for point, _ in sorted(zip(points, residuals, strict=True), key=lambda pair: cost(pair[1]))]

    def fit(
        self, rows: Sequence[LoadRow], base: Base, begin: Mapping[str, float], effort: tuple[float, int]
    ) -> tuple[dict[str, float], float]:
        """Factors of least cost, and their cost, from some on: by steps of Gauss and Newton, of which several lengths are tried at once."""
        names, (scale, most) = factors_of(base), effort
        low, high = (np.log([FACTORS[name][side] for name in names]) for side in (1, 2))
        lengths = np.array([_LONG_STEPS.get(name, _STEP) for name in names])

        def residuals(points: Sequence[Floats]) -> list[Floats]:
            every = [(base, dict(zip(names, np.exp(logs).tolist(), strict=True))) for logs in points]
            return self._residuals(rows, every, scale)

        at = np.clip(np.log([begin.get(name, 1.0) for name in names]), low, high)
        here: Floats | None = None
        for _ in range(most):
            steps = np.where(at + lengths < high, lengths, -lengths)
            ends = residuals([*([at] if here is None else []), *(at + np.diag(steps))])
            if here is None:
                here, *ends = ends
            slopes = np.stack([(end - here) / step for end, step in zip(ends, steps, strict=True)], axis=1)
            weights = (1 + (here / _OUTLIER) ** 2) ** -0.25  # figures that the drive cannot show must not spoil the others
            a, r = slopes * weights[:, None], here * weights
            points = [
                np.clip(at - np.clip(np.linalg.solve(a.T @ a + damping * np.eye(len(at)), a.T @ r), -_LONGEST, _LONGEST), low, high)
                for damping in _DAMPINGS
            ]
            shown = residuals(points)
            best = min(range(len(points)), key=lambda place: cost(shown[place]))
            gain = cost(here) - cost(shown[best])
            if gain > 0:
                at, here = points[best], shown[best]
            if gain < _LEAST_GAIN * cost(here):
                break
        assert here is not None
        return dict(zip(names, np.exp(at).tolist(), strict=True)), cost(here)

    def fit_all(self, rows: Sequence[LoadRow], base: Base, factors: Mapping[str, float]) -> dict[str, float]:
        """Factors fitted on, to all rows, after some of them have judged the fit."""
        return self._with_rate(rows, base, self.fit(rows, base, factors, _ALL)[0])

    def intervals(self, rows: Sequence[LoadRow], base: Base, factors: Mapping[str, float]) -> list[Estimate]:
        """The factors with their 95 % intervals."""
        names, scale = factors_of(base), _FINE[0]
        seeds = [self._residuals(rows, [(base, factors)], scale, self.settings.seed + 1 + number)[0] for number in range(_REPETITIONS)]
        draws = np.stack(seeds, axis=1)
        point = np.array([factors[name] for name in names])
        ends = self._residuals(rows, [(base, factors)], scale)[0]
        steps = np.array([_LONG_STEPS.get(name, _STEP) for name in names])
        self._residuals(rows, [(base, dict(zip(names, point * np.exp(step), strict=True))) for step in np.diag(steps)], scale)

        def model(values: Floats) -> Floats:  # of points that were just made side by side, and are kept
            return np.exp(self._residuals(rows, [(base, dict(zip(names, values.tolist(), strict=True)))], scale)[0])

        solution = Solution(point, ends)
        return estimates(names, model, solution, np.ones(len(ends)), draws - draws.mean(axis=1, keepdims=True), steps)

    def show(self, rows: Sequence[LoadRow], base: Base, factors: Mapping[str, float], scale: float = 1.0) -> list[dict[str, float]]:
        """Rate and latencies of a drive under the load of each row."""
        (result,) = self._play([(base, factors)], [_load_of(row) for row in rows], scale, self.settings.seed)
        if result is None:
            raise InvalidParameterError("figures", base.name, "no drive like it shows these figures")
        return result

    def _residuals(
        self, rows: Sequence[LoadRow], points: Sequence[tuple[Base, Mapping[str, float]]], scale: float, seed: int | None = None
    ) -> list[Floats]:
        """Weighted logarithms of figures over those of the rows, one array per point."""
        merged = merge_saturated(rows)
        shown = self._play(points, [_load_of(row) for row in merged], scale, self.settings.seed if seed is None else seed)
        targets = [target for row in merged for target in _targets(row)]
        return [
            np.array([
                weight * (_INVALID if values is None else np.log(values[place][name] / value))
                for place, row in enumerate(merged) for name, value, weight in _targets(row)
            ])
            for values in shown
        ] if targets else []  # fmt: skip

    def _play(
        self, points: Sequence[tuple[Base, Mapping[str, float]]], loads: Sequence[Mapping[str, float]], scale: float, seed: int
    ) -> list[list[dict[str, float]] | None]:
        jobs = [
            Job.of(
                play_drive, f"{base.name}, {base.dies:g} times its dies",
                group=str(number * self.settings.jobs // len(points)),  # neighbours, which share a steady state, in one process
                name=base.name, capacity=base.capacity, dies=base.dies, waiting=base.waiting,
                factors={name: round(float(factor), 6) for name, factor in factors.items()}, loads=[dict(load) for load in loads],
                scale=scale, seed=seed, stamps=kept.stamps([base.name]),
            )
            for number, (base, factors) in enumerate(points)
        ]  # fmt: skip

        def tell(done: float, total: float, message: str = "") -> None:
            if self.progress:
                self.progress(min(self.points + done, self.points_expected), self.points_expected, message)

        results = make(jobs, self.settings, tell, ["page"], kinds=("ssd",))
        self.points += len(jobs)
        return [results[job] for job in jobs]


def factors_of(base: Base) -> list[str]:
    """The factors that a drive has: those whose parameters are not 0."""
    flash = presets.load(base.name).flash
    assert flash is not None
    absent = {name for name in FACTORS if name.startswith("collection") and not flash.collection_rate}
    absent |= {name for name, (fields, *_) in FACTORS.items() if not all(getattr(flash, field) for field in fields)}
    return [name for name in FACTORS if name not in absent or (name == "command slots" and base.waiting)]


def merge_saturated(rows: Sequence[LoadRow]) -> list[LoadRow]:
    """Rows of which the saturated ones are one, their geometric mean under the lowest of their loads."""
    open_rows, full = [row for row in rows if not row.is_saturated], [row for row in rows if row.is_saturated]
    if len(full) <= 1:
        return list(rows)
    first = min(full, key=lambda row: row.values["background_per_s"])
    values = {name: geometric_mean(row.values[name] for row in full) for name in first.values if name not in LOAD}
    return [*open_rows, LoadRow(first.drive, {**first.values, **values})]


def _load_of(row: LoadRow) -> dict[str, float]:
    return {name: row.values[name] for name in LOAD}


def _targets(row: LoadRow) -> Iterator[tuple[str, float, float]]:
    """Measures of a row, their values and weights."""
    for name, value in row.values.items():
        if name in LOAD:
            continue
        of = name.removesuffix("_us").removesuffix("_per_s")
        if name.startswith("write"):
            yield name, value, _WEIGHT_OF_WRITES if value > _WITH_ROOM or of == "write_p50" else _WEIGHT_WITH_ROOM
        else:
            yield name, value, _WEIGHTS[of]


def capacity_of(rows: Sequence[LoadRow]) -> int:
    """The capacity in use, which the rows share.

    Raises
    ------
    InvalidParameterError
        They have several.
    """
    used = {row.values["used_gib"] for row in rows}
    if len(used) > 1:
        raise InvalidParameterError("figures: used_gib", ", ".join(f"{each:g}" for each in sorted(used)), "all rows must have one")
    return int(used.pop() * GIB)

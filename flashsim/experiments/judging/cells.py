"""Cells of a claim: what was published, what was measured, the rule between the two, and a null model's answer in the place of the runs.

A null model predicts a claim's cells without any simulator, from the published numbers themselves, as well as so simple a model can:

- ``constant``: one number for every row of cells;
- ``line``: a line in the inverse of the cells' place, through the cells that calibrate;
- ``equal``: all runs are the same, so that every ratio is 1 and every difference 0.

Statements, which have no published number, are put to equal runs by every null model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isnan, nan
from operator import ge, gt, lt
from typing import Any

import numpy as np

from flashsim.experiments.presentation.tables import Entry

#: Null models by name.
NULLS = ("equal", "constant", "line")
#: Share by which a published number must differ from the one before it to be a change.
CHANGE = 0.02
#: The value of what was looked for in runs and is not there, such as a crossing.
NONE = nan


@dataclass(frozen=True)
class Cell:
    """A published number or statement, and the values that it is held against."""

    name: str
    #: A number, or the statement in words.
    published: Entry
    #: Measured; None where a run is missing.
    values: tuple[float | None, ...]
    #: Distance from a published number up to which a value is inside, as a share of the number or in `points`; 0 asks for equality.
    limit: float = 0.0
    points: bool = False
    #: Whether a statement does, of the values.
    holds: Callable[..., bool] | None = field(default=None, repr=False)
    #: A null model's constant is that of a row; a place is a number along its axis.
    row: str = ""
    place: float = 0.0
    #: The values if all runs were the same.
    equal: tuple[float, ...] = (1.0,)
    #: The reading or assumption that the values belong to, if not the claim's own.
    variant: str = ""
    #: Ids of the runs that the values come from.
    runs: tuple[str, ...] = ()
    #: Whether a parameter was solved from the published number.
    calibrates: bool = False
    #: Whether the published number follows from other published ones, as a ratio does from its two sides.
    follows: bool = False
    #: The published number's name where several cells are held against one.
    printed: str = ""
    #: Decimals of the values of a statement.
    digits: int = 3

    @property
    def is_number(self) -> bool:
        return isinstance(self.published, (int, float))

    @property
    def counts(self) -> bool:
        """True for a published number that no parameter was solved from, nor is it by other numbers: they are tallied, each once."""
        return self.is_number and not self.calibrates and not self.follows and not self.variant

    @property
    def is_measured(self) -> bool:
        return None not in self.values

    @property
    def distance(self) -> float | None:
        """Distance of the value from the published number, as a share of it or in points; None of a statement or where a run is missing."""
        (value, *_) = self.values
        if value is None or not isinstance(self.published, (int, float)):
            return None
        return abs(value - self.published) if self.points else abs(value / self.published - 1)

    @property
    def inside(self) -> bool | None:
        """True if the values are inside the limit; None where one is missing."""
        if not self.is_measured:
            return None
        distance = self.distance
        return self.holds(*self.values) if self.holds else distance is not None and distance <= self.limit

    @property
    def loss(self) -> float:
        """Distance in multiples of the limit; of a statement that does not hold, and where equality fails or nothing was there, 2."""
        distance = self.distance
        if distance is None or isnan(distance) or not self.limit:
            return 0.0 if self.inside else 2.0
        return distance / self.limit

    @property
    def measured(self) -> Entry:
        """The value, or several in words."""
        if not self.is_measured:
            return None
        if len(self.values) == 1:
            (value,) = self.values
            return "none" if value is None or isnan(value) else value
        return ", ".join(f"{value:.{self.digits}f}" for value in self.values)

    def as_dict(self) -> dict[str, Any]:
        keys = ("name", "published", "measured", "limit", "points", "inside", "counts", "variant", "runs")
        return {key: getattr(self, key) for key in keys}


def number(name: str, published: float, measured: float | None, limit: float, **more: Any) -> Cell:
    """A published number, and ours within a share of it, or with ``points=True`` within `limit` points; a limit of 0 asks for equality."""
    return Cell(name, published, (measured,), limit, **more)


def statement(
    name: str, words: str, values: Sequence[float | None], holds: Callable[..., bool], equal: float | Sequence[float] = 1.0, **more: Any
) -> Cell:
    """A statement on some values, and the value, or the values, that it would be put to if all runs were the same."""
    alike = (equal,) * len(values) if isinstance(equal, (int, float)) else tuple(equal)
    return Cell(name, words, tuple(values), holds=holds, equal=alike, **more)


def difference(name: str, published: float, measured: float | None, limit: float) -> Cell:
    """A published difference, and ours within `limit` points; equal runs have none."""
    return number(name, published, measured, limit, points=True, equal=(0.0,))


def differences(name: str, words: str, values: Sequence[float | None], holds: Callable[..., bool]) -> Cell:
    """A statement on percentages that are 0 if all runs are the same."""
    return statement(name, words, values, holds, 0, digits=1)


def limit_statement(name: str, relation: str, limit: float, value: float | None, equal: float = 1.0, **more: Any) -> Cell:
    """A statement that a value is ``above``, ``below`` or ``at least`` a limit."""
    holds = {"above": gt, "below": lt, "at least": ge}[relation]
    return statement(name, f"{relation} {limit:g}", [value], lambda value: holds(value, limit), equal, **more)


def ratio(first: float | None, second: float | None) -> float | None:
    """The first value over the second; None where a run is missing."""
    return first / second if first is not None and second else None


def saving(first: float | None, second: float | None) -> float | None:
    """Percent by which the first value is below the second; None where a run is missing."""
    share = ratio(first, second)
    return None if share is None else 100 * (1 - share)


def crossing(points: Sequence[tuple[float, float | None]]) -> float:
    """Place where ratios at ascending places first pass 1, on a line between two places; `NONE` if they do not."""
    for (before, low), (after, high) in pairwise((place, share) for place, share in points if share is not None):
        if low <= 1 < high:
            return before + (after - before) * (1 - low) / (high - low)
    return NONE


def less(margin: float) -> Callable[..., bool]:
    """True if the first value is below each of the others by more than a share of it."""
    return lambda first, *others: first * (1 + margin) < min(others)


def near(place: float, points: float) -> Callable[..., bool]:
    """True if a value is at most so far from a place."""
    return lambda value: abs(value - place) <= points


def equal_to(expected: Sequence[float]) -> Callable[..., bool]:
    """True if the values are these."""
    return lambda *values: list(values) == list(expected)


def within(factor: float) -> Callable[..., bool]:
    """True if the largest value is at most `factor` times the least."""
    return lambda *values: max(values) <= factor * min(values)


def rising(margin: float) -> Callable[..., bool]:
    """True if no value is below the previous one, and the last is above the first by more than a margin."""
    return lambda *values: all(before <= after for before, after in pairwise(values)) and values[-1] - values[0] > margin


def falling(margin: float) -> Callable[..., bool]:
    """True if no value is above the previous one, and the last is below the first by more than a share of it."""
    return lambda *values: all(before >= after for before, after in pairwise(values)) and values[-1] * (1 + margin) < values[0]


def changes(cells: Sequence[Cell]) -> tuple[int, int]:
    """Number of published numbers that differ from the one before in their row by more than `CHANGE`, and of values that change as they do.

    Examples
    --------
    >>> changes([number("a", 1.0, 1.5, 0.1), number("b", 2.0, 1.6, 0.1), number("c", 2.01, 1.0, 0.1), number("d", 1.0, 1.1, 0.1)])
    (2, 1)
    """
    counted = [(after / before - 1, its / our - 1) for row in _rows(cells) for (before, our), (after, its) in pairwise(row)]
    large = [pair for pair in counted if abs(pair[0]) > CHANGE]
    return len(large), sum(published * ours > 0 for published, ours in large)


def residual(cells: Sequence[Cell]) -> float | None:
    """Share of the published numbers' variation in their rows that is left if a row's values are multiplied by the best constant.

    It is one of squares of logarithms, and 1 for values that are constant; None where published numbers do not vary.
    """
    rows = [np.log(np.array(row)) for row in _rows(cells)]
    left, total = (sum(float(np.square(each - each.mean()).sum()) for each in parts) for parts in (
        [row[:, 1] - row[:, 0] for row in rows], [row[:, 0] for row in rows],
    ))  # fmt: skip
    return left / total if total else None


def _rows(cells: Sequence[Cell]) -> list[list[tuple[float, float]]]:
    """Published numbers, those that nothing was solved from if there are any, and values, by row, in order; both above 0."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for cell in [cell for cell in cells if cell.is_number and not cell.calibrates] or cells:
        published, value = cell.published, cell.values[0]
        if not cell.points and isinstance(published, (int, float)) and value is not None and min(published, value) > 0:
            rows.setdefault(cell.row, []).append((published, value))
    return list(rows.values())


def null_cells(cells: Sequence[Cell], model: str) -> list[Cell]:
    """The cells with values of a null model (``constant``, ``line`` or ``equal``) in the place of those that were measured."""
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.is_number and model != "equal":
            rows.setdefault((cell.variant, cell.row), []).append(cell)
    values: dict[int, float] = {}
    for row in rows.values():
        values |= zip(map(id, row), _line(row) if model == "line" else [_constant(row)] * len(row), strict=True)
    return [replace(cell, values=(values[id(cell)],) if id(cell) in values else cell.equal) for cell in cells]


def _constant(row: Sequence[Cell]) -> float:
    """The number with most cells of a row inside; among those the one with the least median error."""
    published = np.array([cell.published for cell in row], np.float64)
    values = np.concatenate([published, np.linspace(published.min(), published.max(), 401)])
    scale = np.where([cell.points for cell in row], 1.0, np.abs(published))
    distances = np.abs(values[:, np.newaxis] - published) / scale
    inside = (distances <= [cell.limit for cell in row]).sum(axis=1)
    return float(values[np.lexsort((np.median(distances, axis=1), -inside))[0]])


def _line(row: Sequence[Cell]) -> list[float]:
    """Values along a line in the inverse of the place, through the cells of a row that calibrate."""
    fixed = [cell for cell in row if cell.calibrates]
    slope, constant = np.polyfit([1 / cell.place for cell in fixed], [float(cell.published) for cell in fixed], 1)  # type: ignore[arg-type]
    return [float(slope / cell.place + constant) for cell in row]

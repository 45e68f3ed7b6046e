"""Claims of papers, and the verdicts on them: from a claim's cells, its null model, and the parameters that its runs rest on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from math import inf
from statistics import median
from typing import Any

from flashsim.experiments.judging.cells import Cell, changes, null_cells, number, residual


class Verdict(Enum):
    """Verdict on a claim."""

    REPRODUCED = "reproduced"  # inside the limits, with skill, and no parameter was solved from published numbers
    FITTED = "fitted"  # inside, with skill, but a parameter was chosen with published numbers in view
    CONSISTENT = "consistent"  # inside, but so is a null model, or the runs are no nearer than it
    DIFFERS = "differs"
    NOT_ATTEMPTED = "not attempted"


#: Kind of a claim that needs the published size, at another scale.
NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class ChosenParameter:
    """A parameter that was chosen with published numbers in view."""

    name: str
    #: It was chosen, in words.
    how: str
    #: Parts of cells' names by claim; none stands for all cells of a claim.
    solved_from: Mapping[str, Sequence[str]]

    def is_solved_from(self, claim: str, cell: str) -> bool:
        """True if the parameter was solved from a cell of a claim."""
        parts = self.solved_from.get(claim)
        return parts is not None and (not parts or any(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", cell) for part in parts))


@dataclass(frozen=True)
class Claim:
    """One published result."""

    paper: str
    #: Within its paper.
    id: str
    title: str
    source: str
    #: In words; `limits` holds its numbers.
    tolerance: str
    #: The module that judges it, or None.
    exhibit: str | None = None
    #: The null model beside it (`flashsim.experiments.judging.cells`).
    null: str = "equal"
    #: Parameters of its runs that were chosen with published numbers in view.
    rests_on: Sequence[ChosenParameter] = ()
    #: Why it differs, as an experiment has shown, or an empty text.
    cause: str = ""
    #: What `flashsim reproduce` takes to make the experiment again; of a paper's file, the claim's exhibit unless it says another.
    experiment: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    #: Published values by row.
    published: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    #: Variants of which an exhibit makes cells; like all variants they are shown and decide nothing.
    stated: Sequence[str] = ()
    #: Whether more than half of the cells suffice.
    most: bool = False
    #: Whether a simulator has a part in it: without one a claim is at best consistent.
    simulated: bool = True
    #: Whether the runs, and with them the verdict, depend on the scale: such a claim is judged at the published size only.
    scaled: bool = True
    #: Limits and definitions that changed after they were first written: what, before, now, and why.
    changes: Sequence[Mapping[str, str]] = ()
    #: All that the file says, for what only one exhibit needs.
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Name of paper and claim: ``do2009/table1``."""
        return f"{self.paper}/{self.id}"

    def numbers(self, measured: Iterable[float | None], **more: Any) -> list[Cell]:
        """A cell for each row of one published number, named by the row, and our values in the same order; see `number`."""
        limit, rows = self.limits.get("points" if more.get("points") else "each", 0.0), self.published.items()
        return [number(row, published, ours, limit, **more) for (row, (published,)), ours in zip(rows, measured, strict=True)]

    def grid(self, columns: Sequence[Any], measured: Callable[[str, Any], tuple[str, float | None, str]]) -> list[Cell]:
        """A cell for each published number, by row and column; `measured` says its name, our value, and the id of its run, if one."""
        limit = self.limits["each"]
        return [
            number(name, published, value, limit, row=row, place=place if isinstance(column, str) else column, runs=(run,) if run else ())
            for row, numbers in self.published.items()
            for place, (column, published) in enumerate(zip(columns, numbers, strict=True))
            for name, value, run in [measured(row, column)]
        ]


@dataclass(frozen=True)
class Tally:
    """Published numbers inside their limit, of those that were judged and nothing was solved from; as text ``23 of 24``, or ``-``.

    A number that several cells are held against counts once, and is inside if all of them are.
    """

    inside: int = 0
    published_cells: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.inside + other.inside, self.published_cells + other.published_cells)

    def __str__(self) -> str:
        return f"{self.inside} of {self.published_cells}" if self.published_cells else "-"

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> Tally:
        """The tally of cells, wherever they were measured."""
        judged: dict[str | int, bool] = {}
        for place, cell in enumerate(cells):
            if cell.counts and cell.is_measured:
                number = cell.printed or place
                judged[number] = bool(cell.inside) and judged.get(number, True)
        return cls(sum(judged.values()), len(judged))


@dataclass(frozen=True)
class Judgement:
    """A claim and its cells, from which the verdict follows; cells with one variant are judged together."""

    claim: Claim
    cells: Sequence[Cell] = ()

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict by the claim's own cells; variants have verdicts of their own."""
        if not self._own or not all(cell.is_measured for cell in self._own):
            return Verdict.NOT_ATTEMPTED
        return self._verdict(self._own)

    @cached_property
    def variants(self) -> dict[str, Verdict]:
        """Verdicts by the cells of each variant whose runs are all there."""
        cells: dict[str, list[Cell]] = {}
        for cell in self.cells:
            if cell.variant:
                cells.setdefault(cell.variant, []).append(cell)
        return {name: self._verdict(each) for name, each in cells.items() if all(cell.is_measured for cell in each)}

    def _verdict(self, cells: Sequence[Cell]) -> Verdict:
        null = null_cells(cells, self.claim.null)
        if not self._holds(cells):
            return Verdict.DIFFERS
        if self._holds(null) or _skill(cells, null) <= 0 or not self.claim.simulated:
            return Verdict.CONSISTENT
        return Verdict.FITTED if self.claim.rests_on else Verdict.REPRODUCED

    def _holds(self, cells: Sequence[Cell]) -> bool:
        inside = sum(bool(cell.inside) for cell in cells)
        enough = 2 * inside > len(cells) if self.claim.most else inside == len(cells)
        return enough and self._median_holds(cells)

    def _median_holds(self, cells: Sequence[Cell]) -> bool:
        errors = _errors(cells)
        return not errors or median(errors) <= self.claim.limits.get("median", inf)

    @cached_property
    def null_cells(self) -> list[Cell]:
        """The cells, variants too, with the null model's values."""
        return null_cells(self.cells, self.claim.null)

    @property
    def _own_null(self) -> list[Cell]:
        return [cell for cell in self.null_cells if not cell.variant]

    @cached_property
    def _own(self) -> list[Cell]:
        return [cell for cell in self.cells if not cell.variant]

    @property
    def tally(self) -> Tally:
        return Tally.of(self.cells)

    @property
    def cells_inside(self) -> int:
        """Number of the claim's own cells inside their limits, published numbers and statements alike."""
        return sum(cell.inside is True for cell in self._own)

    @property
    def cells_judged(self) -> int:
        """Number of the claim's own cells; a cell whose run is missing counts as one that does not hold."""
        return len(self._own)

    @property
    def holds_in_words(self) -> str:
        """Number of cells inside their limits of all, such as ``11 of 12``; a dash where a run is missing."""
        return "-" if self.verdict is Verdict.NOT_ATTEMPTED else f"{self.cells_inside} of {self.cells_judged}"

    @property
    def has_median_outside(self) -> bool:
        """True if the median error is beyond the claim's limit for it."""
        return self.verdict is not Verdict.NOT_ATTEMPTED and not self._median_holds(self._own)

    @cached_property
    def null(self) -> dict[str, Any]:
        """The null model, how many published numbers it has inside, its median error, and whether it passes."""
        if self.verdict is Verdict.NOT_ATTEMPTED:
            return {"model": self.claim.null, "inside": None, "median_error": None, "passes": None}
        cells = self._own_null
        errors = _errors(cells)
        shown = {"model": self.claim.null, "inside": Tally.of(cells).inside, "median_error": median(errors) if errors else None}
        return shown | {"passes": self._holds(cells)}

    @property
    def skill(self) -> float | None:
        """Share of the null model's loss that the runs save: 1 without any error, 0 where they are no better, below where worse."""
        if self.verdict is Verdict.NOT_ATTEMPTED:
            return None
        return _skill(self._own, self._own_null)

    @cached_property
    def beyond_null(self) -> dict[str, Any] | None:
        """Gains over a constant: changes from one published number to the next (`cells.changes`) and what is left (`cells.residual`).

        None where a row has no two numbers that differ.
        """
        if self.verdict is Verdict.NOT_ATTEMPTED or not (counted := changes(self._own))[0]:
            return None
        return {"changes": counted[0], "right": counted[1], "null_right": changes(self._own_null)[1], "residual": residual(self._own)}

    @property
    def published(self) -> str:
        numbers = [float(cell.published) for cell in self._own if isinstance(cell.published, (int, float))]
        values = numbers or [value for row in self.claim.published.values() for value in row if isinstance(value, (int, float))]
        return f"{len(values)} values, {min(values):g} to {max(values):g}" if values else "holds"

    @property
    def measured(self) -> str:
        if self.verdict is Verdict.NOT_ATTEMPTED:
            return "-"
        parts = []
        if errors := _errors(self._own):
            values = [cell.values[0] or 0.0 for cell in self._own if cell.is_number and not cell.points]
            shares = f"median error {100 * median(errors):.1f} %, largest {100 * max(errors):.1f} %"
            parts.append(f"{min(values):.2f} to {max(values):.2f}; {shares}")
        if statements := [bool(cell.inside) for cell in self._own if not cell.is_number or cell.points]:
            parts.append(f"holds in {sum(statements)} of {len(statements)} comparisons")
        return "; ".join(parts)

    def outside(self) -> list[str]:
        """Cells outside the limits, each with both numbers if it has them."""
        return [_text_of(cell) for cell in self._own if cell.inside is False]

    def kind_at(self, scale: float) -> str:
        """The verdict's value, or ``not judged`` for a claim that needs the published size, at another scale."""
        return self.verdict.value if self.is_judged_at(scale) or self.verdict is Verdict.NOT_ATTEMPTED else NOT_JUDGED

    def verdict_at(self, scale: float) -> str:
        """The verdict as reports show it."""
        kind = self.kind_at(scale)
        return f"{kind} at this scale" if kind == NOT_JUDGED else kind

    def note_at(self, scale: float) -> str:
        """Note on the verdict: the parameters that were fitted, the null model that passes, or why the claim differs at scale 1."""
        missing = [cell.name for cell in self.cells if not cell.is_measured]
        variants = "; ".join(f"with {name}: {verdict.value}" for name, verdict in self.variants.items())
        return ". ".join(filter(None, [self._reason(scale, missing), variants[:1].upper() + variants[1:]]))

    def _reason(self, scale: float, missing: Sequence[str]) -> str:
        match self.verdict:
            case Verdict.DIFFERS:
                command = f"Experiment: flashsim reproduce {self.claim.paper}/{self.claim.experiment}" if self.claim.experiment else ""
                cause = ". ".join(filter(None, [self.claim.cause, command]))
                return cause if not cause or self.is_judged_at(scale) else f"at scale 1: {cause}"
            case Verdict.CONSISTENT:
                if not self.claim.simulated:
                    return "no simulator has a part in it"
                reason = f"the null model ({self.claim.null}) passes as well" if self.null["passes"] else "no nearer than the null model"
                if not (beyond := self.beyond_null):
                    return reason
                runs = f"the runs have {beyond['right']}, it has {beyond['null_right']}"
                return f"{reason}; of {beyond['changes']} changes between published numbers {runs}"
            case Verdict.FITTED:
                return "; ".join(f"{parameter.name}: {parameter.how}" for parameter in self.claim.rests_on)
            case Verdict.NOT_ATTEMPTED if missing:
                return f"not measured at this scale: {'; '.join(missing)}"
        return ""

    def is_judged_at(self, scale: float) -> bool:
        """True at the published size, and at any scale for a claim whose runs do not depend on it."""
        return scale == 1 or not self.claim.scaled

    def as_dict(self, scale: float) -> dict[str, Any]:
        claim = self.claim
        return {
            "id": claim.name,
            "verdict": self.verdict.value,
            "shown": self.verdict_at(scale),
            "held": self.cells_inside,
            "of": self.cells_judged,
            "title": claim.title,
            "source": claim.source,
            "published": self.published,
            "measured": self.measured,
            "tolerance": claim.tolerance,
            "cells": [cell.as_dict() for cell in self.cells],
            **vars(self.tally),
            "null": self.null,
            "skill": self.skill,
            "beyond_null": self.beyond_null,
            "variants": {name: verdict.value for name, verdict in self.variants.items()},
            "fitted_to": {parameter.name: dict(parameter.solved_from) for parameter in claim.rests_on},
            "changes": list(claim.changes),
            "note": self.note_at(scale),
        }


def _errors(cells: Sequence[Cell]) -> list[float]:
    """Relative errors of published numbers; of those that no parameter was solved from, if there are any."""
    numbers = [cell for cell in cells if cell.is_number and not cell.points]
    predicted = [cell for cell in numbers if not cell.calibrates] or numbers
    return [cell.distance or 0.0 for cell in predicted]


def _skill(cells: Sequence[Cell], null: Sequence[Cell]) -> float:
    predicted = [pair for pair in zip(cells, null, strict=True) if not pair[0].calibrates] or list(zip(cells, null, strict=True))
    ours, its = (sum(pair[side].loss for pair in predicted) for side in (0, 1))
    return 1 - ours / its if its else 0.0


def _text_of(cell: Cell) -> str:
    if isinstance(cell.measured, float) and isinstance(cell.published, (int, float)):
        return f"{cell.name} {cell.measured:.2f} against {cell.published:g}"
    return cell.name

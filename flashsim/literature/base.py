"""Papers and their claims: a paper is a folder of `flashsim.literature` that holds a ``claims.toml``, and every claim is judged by code.

Such a folder, say ``do2009``, has

- ``claims.toml``: title, reference, the names of its exhibits in the order of the report, the least scale that its runs make sense at, the
  flash translation layers of the drives that they use, how long it takes, and every claim with its published values;
- a module an exhibit (a table or figure) that follows `Exhibit`.  An exhibit may judge no claim: then it belongs to the report of the
  whole paper.

What papers share stands in `runs` (joins, and runs made once and kept), `formulas` and `presentation` of `flashsim.studies`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from flashsim.core.errors import DamagedFileError, FlashsimError, UnknownNameError
from flashsim.core.members import Family, optional
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry
from flashsim.studies.runs.jobs import Job, Results, Settings


class Verdict(Enum):
    """Verdict on a claim."""

    REPRODUCED = "reproduced"  # inside the tolerance
    FITTED = "fitted"  # inside, but a parameter was chosen with these very cells in view
    DIFFERS = "differs"
    NOT_ATTEMPTED = "not attempted"


#: Word for a claim that differs below scale 1.
OUTSIDE = "outside"


@dataclass(frozen=True)
class Claim:
    """One published result.

    Parameters
    ----------
    id
        Within its paper.
    tolerance
        In words; `limits` holds its numbers.
    exhibit
        The module that judges it, or None.
    fitted
        Which parameter was chosen with these cells in view, or an empty text.
    cause
        Why it differs, as an experiment has shown, or an empty text.
    published
        Published values by row.
    values
        All that the file says, for what only one exhibit needs.
    """

    paper: str
    id: str
    title: str
    source: str
    tolerance: str
    exhibit: str | None
    fitted: str
    cause: str
    limits: Mapping[str, float]
    published: Mapping[str, Sequence[Any]]
    values: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """Name of paper and claim: ``do2009/table1``."""
        return f"{self.paper}/{self.id}"


@dataclass(frozen=True)
class Cell:
    """One number of a claim: published, measured, and whether it is inside the tolerance (None: could not be measured).

    `runs` holds the ids of the runs that it was measured in.
    """

    name: str
    published: Entry
    measured: Entry
    inside: bool | None
    runs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tally:
    """Published numbers inside their tolerance, of those that were judged; as text ``23 of 24``, or ``-`` where none was."""

    inside: int = 0
    numbers: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.inside + other.inside, self.numbers + other.numbers)

    def __str__(self) -> str:
        return f"{self.inside} of {self.numbers}" if self.numbers else "-"


def _text_of(cell: Cell) -> str:
    if isinstance(cell.measured, float) and isinstance(cell.published, (int, float)):
        return f"{cell.name} {cell.measured:.2f} against {cell.published:g}"
    return cell.name


@dataclass(frozen=True)
class Judgement:
    """The verdict on a claim.

    Parameters
    ----------
    published, measured
        Each in one line.
    note
        What the exhibit has to say; `note_at` adds what the claim says.
    scaled
        Whether the verdict depends on the scale.
    """

    claim: Claim
    verdict: Verdict
    published: str
    measured: str
    cells: Sequence[Cell] = ()
    note: str = ""
    scaled: bool = True

    @property
    def tally(self) -> Tally:
        """Cells of the claim inside their tolerance, of those that were judged."""
        judged = [cell.inside for cell in self.cells if cell.inside is not None]
        return Tally(sum(judged), len(judged))

    def outside(self) -> list[str]:
        """The cells outside the tolerance, each with both numbers if it has them."""
        return [_text_of(cell) for cell in self.cells if cell.inside is False]

    def kind_at(self, scale: float) -> str:
        """The verdict's value; of one that differs at another scale than the paper's, ``outside``: there it tells nothing of the paper."""
        return OUTSIDE if self.verdict is Verdict.DIFFERS and self._is_miniature(scale) else self.verdict.value

    def verdict_at(self, scale: float) -> str:
        """The verdict as it is shown: below scale 1 it says so."""
        judged = self.verdict is not Verdict.NOT_ATTEMPTED
        return f"{self.kind_at(scale)} at {scale:g}" if judged and self._is_miniature(scale) else self.verdict.value

    def note_at(self, scale: float) -> str:
        """Note on the verdict: the fitted parameter, or the known reason why the claim differs at scale 1."""
        match self.verdict:
            case Verdict.DIFFERS:
                cause = self.claim.cause
                parts = [self.note, f"at scale 1: {cause}" if cause and self._is_miniature(scale) else cause]
            case Verdict.FITTED:
                parts = [self.claim.fitted, self.note]
            case _:
                parts = [self.note]
        return ". ".join(filter(None, parts))

    def _is_miniature(self, scale: float) -> bool:
        return self.scaled and scale != 1

    def as_dict(self, scale: float) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "id": self.claim.name,
            "verdict": self.verdict.value,
            "shown": self.verdict_at(scale),
            "title": self.claim.title,
            "source": self.claim.source,
            "published": self.published,
            "measured": self.measured,
            "tolerance": self.claim.tolerance,
            "cells": [vars(cell) for cell in self.cells],
            **vars(self.tally),
            "note": self.note_at(scale),
        }


class Exhibit(Protocol):
    """A module of a paper that makes one of its tables or figures."""

    #: Under which the report says that the exhibit is not run, where ``least_scales`` of the claims name a scale below which it is not.
    TITLE: str = ""

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        """The runs that it needs for claims with these ids."""

    @optional
    def judge(self, claim: Claim, results: Results) -> Judgement:
        """The verdict on one of its claims."""
        raise FlashsimError(f"claim {claim.name}: its exhibit {claim.exhibit} judges no claims")

    def sections(self, results: Results) -> list[Section]:
        """Sections of the report; runs may be missing that only other claims need, or that failed."""


@dataclass(frozen=True)
class Paper:
    """A paper and what it claims.

    Parameters
    ----------
    family
        Its folder, of whose modules some are exhibits.
    takes
        How long it takes, in words.
    scaled
        What the scale multiplies, in words, if not what `flashsim.studies.runs.jobs.Settings.devices` says.
    """

    name: str
    family: Family[Exhibit]
    title: str
    reference: str
    exhibits: Sequence[str]
    claims: Sequence[Claim]
    least_scale: float = 0.0
    least_scales: Mapping[str, float] = field(default_factory=dict)
    translation_layers: Sequence[str] = ()
    takes: str = ""
    scaled: str = ""

    def claim(self, claim_id: str) -> Claim:
        """The claim of that id."""
        return next(claim for claim in self.claims if claim.id == claim_id)

    def exhibit(self, name: str) -> Exhibit:
        """One of the paper's exhibits."""
        return self.family.load(name.replace("_", "-"))

    def scale_in_words(self, settings: Settings) -> str:
        """The scale, and what it does."""
        return f"scale {settings.scale:g} ({self.scaled})" if self.scaled else settings.scale_in_words

    def is_run(self, exhibit: str, scale: float) -> bool:
        """True if an exhibit is run at a scale."""
        return scale >= self.least_scales.get(exhibit, 0.0)


class PaperFolder(Protocol):
    """A paper's package; all that it has to say stands in ``claims.toml`` beside its ``__init__.py``."""

    __name__: str
    __file__: str


PAPERS = Family("flashsim.literature", "paper", PaperFolder)


def load(name: str) -> Paper:
    """The paper of that name.

    Raises
    ------
    UnknownNameError
        There is none; close names are suggested.
    DamagedFileError
        Its claims are no TOML, or lack what every paper or claim says.
    """
    folder = PAPERS.load(name)
    path = Path(folder.__file__).parent / "claims.toml"
    exhibits = Family(folder.__name__, f"exhibit of {name}", Exhibit)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        claims = [_claim(name, entry) for entry in document["claims"]]
        optional_parts = {
            key: document[key] for key in ("least_scale", "least_scales", "translation_layers", "takes", "scaled") if key in document
        }
        return Paper(name, exhibits, document["title"], document["reference"], document["exhibits"], claims, **optional_parts)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise DamagedFileError(f"{path}: {problem}") from problem
    except KeyError as missing:
        raise DamagedFileError(f"{path}: {missing} is missing") from missing


def _claim(paper: str, entry: Mapping[str, Any]) -> Claim:
    texts = (
        entry["id"],
        entry["title"],
        entry["source"],
        entry["tolerance"],
        entry.get("exhibit"),
        entry.get("fitted", ""),
        entry.get("cause", ""),
    )
    return Claim(paper, *texts, limits=entry.get("limits", {}), published=entry.get("published", {}), values=entry)


def chosen(target: str | None) -> list[tuple[Paper, list[Claim]]]:
    """The papers and claims that ``PAPER``, ``PAPER/CLAIM`` or nothing (all) stands for.

    Raises
    ------
    UnknownNameError
        There is no such paper or claim.
    """
    if target is None:
        return [(paper, list(paper.claims)) for paper in map(load, PAPERS.names())]
    name, slash, claim = target.partition("/")
    paper = load(name)
    ids = [each.id for each in paper.claims]
    if slash and claim not in ids:
        raise UnknownNameError(f"claim of {name}", claim, ids)
    return [(paper, [each for each in paper.claims if not slash or each.id == claim])]


def not_attempted(claim: Claim, note: str = "") -> Judgement:
    """The verdict on a claim that no exhibit judges, or that could not be judged; its cells show what was published, row by row."""
    cells = [Cell(row, ", ".join(map(str, values)), None, None) for row, values in claim.published.items()]
    values = [value for row in claim.published.values() for value in row]
    published = f"{len(values)} values, {min(values):g} to {max(values):g}" if len(values) > 1 else "holds"
    return Judgement(claim, Verdict.NOT_ATTEMPTED, published, "-", cells, note)


def decided(claim: Claim, holds: bool) -> Verdict:
    """The verdict on a claim that was judged."""
    if not holds:
        return Verdict.DIFFERS
    return Verdict.FITTED if claim.fitted else Verdict.REPRODUCED


def judge_holds(claim: Claim, cells: Sequence[Cell], note: str = "") -> Judgement:
    """The verdict on a claim that says what holds, cell by cell; a cell that could not be measured leaves the claim open."""
    missing = [cell.name for cell in cells if cell.inside is None]
    if missing:
        return not_attempted(claim, f"not measured at this scale: {'; '.join(missing)}")
    inside = sum(bool(cell.inside) for cell in cells)
    measured = f"holds in {inside} of {len(cells)} comparisons"
    holds = inside == len(cells)
    return Judgement(claim, decided(claim, holds), "holds", measured, cells, note)


def judge_numbers(claim: Claim, cells: Sequence[tuple[str, float, float | None]], note: str = "") -> Judgement:
    """The verdict on published numbers: each error within ``limits.each``, and the median error within ``limits.median``, if given.

    Parameters
    ----------
    cells
        Name, published and measured value; None where it could not be measured.
    """
    missing = [name for name, _, measured in cells if measured is None]
    if missing:
        return not_attempted(claim, f"not measured at this scale: {'; '.join(missing)}")
    errors = [abs((measured or 0) / published - 1) for _, published, measured in cells]
    judged = [Cell(*cell, inside=error <= claim.limits["each"]) for cell, error in zip(cells, errors, strict=True)]
    middle = median(errors)
    holds = all(cell.inside for cell in judged) and middle <= claim.limits.get("median", float("inf"))
    published = f"{min(cell[1] for cell in cells):g} to {max(cell[1] for cell in cells):g}"
    values = [cell[2] or 0 for cell in cells]
    measured = f"{min(values):.2f} to {max(values):.2f}; median error {100 * middle:.1f} %, largest {100 * max(errors):.1f} %"
    return Judgement(claim, decided(claim, holds), published, measured, judged, note)


def traced(judgement: Judgement, runs: Mapping[str, Sequence[str]]) -> Judgement:
    """The judgement with its cells' runs: ids by the name of a cell."""
    return replace(judgement, cells=[replace(cell, runs=tuple(runs.get(cell.name, ()))) for cell in judgement.cells])

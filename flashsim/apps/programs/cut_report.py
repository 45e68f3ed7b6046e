"""What power cuts of a recorded program came to: outcomes that were looked at, and failures.

A failure is told by the fewest calls whose effects were lost, or kept though others were lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from flashsim.apps.programs.volatile_files import Remains, VolatileFiles

#: Lost effects that are a short recipe, beside which none of kept ones is looked for.
_FEW = 3
#: Effects of a list too long to be read; shorter ones are told rather than that nothing is kept.
_LONG = 10


class Answer(NamedTuple):
    """A check's exit code, and the last line that it printed, in which numbers of several digits are 0: times differ from run to run."""

    code: int
    last_line: str

    @classmethod
    def of(cls, code: int, output: str) -> Answer:
        """The answer that an output ends in."""
        return cls(code, re.sub(r"0x[0-9a-f]+|\d{2,}", "0", (output.strip().splitlines() or [""])[-1]))


class Cut(NamedTuple):
    """A cut: calls before it, what of their effects is left, and what the program had printed."""

    call: int
    remains: Remains
    files: VolatileFiles
    printed: bytes


@dataclass
class Failure:
    """A cut that the check does not pass."""

    #: The call after which the power was cut, in words.
    call: str
    #: Calls whose effects are lost, or kept though others are lost, in words: the fewest found.
    recipe: tuple[str, ...]
    #: What the check printed.
    output: str
    #: What tells one failure from another.
    answer: Answer
    #: Images that fail so, each counted for one failure.
    count: int = 1


@dataclass(frozen=True)
class Coverage:
    """How much of what a cut can leave was looked at."""

    #: The call after which power was cut, in words.
    call: str
    #: Outcomes by the rules; None if more effects are pending than are counted.
    possible: int | None
    tried: int
    #: Classes of outcomes that were never tried, such as "2 lost, 1 torn".
    never: tuple[str, ...]


@dataclass
class CutReport:
    """Results of power cuts of a program."""

    calls: int = 0
    #: Outcomes of cuts that were looked at.
    cuts: int = 0
    #: Distinct states of files, and of what had been printed, that were checked.
    images: int = 0
    #: Of the cuts and the images those of the simulated drive, if there is one, and of its cuts those that lost what was durable.
    on_drive: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    #: Images that the check does not pass.
    failed_images: int = 0
    #: A row per state of the program that power was cut in.
    coverage: list[Coverage] = field(default_factory=list)
    #: What the recording does not show.
    missed: Sequence[str] = ()

    @property
    def is_complete(self) -> bool:
        """Whether these are all images that the rules allow."""
        return all(each.tried == each.possible for each in self.coverage)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        failures = [
            {"call": each.call, "recipe": list(each.recipe), "exit_code": each.answer.code, "output": each.output, "count": each.count}
            for each in self.failures
        ]
        counts: dict[str, Any] = {"calls": self.calls, "cuts": self.cuts, "images": self.images, "failed_images": self.failed_images}
        counts |= {"is_complete": self.is_complete, "coverage": [asdict(each) for each in self.coverage]}
        return counts | {"on_drive": self.on_drive, "failures": failures, "missed": list(self.missed)}


def shortest(cut: Cut, fails: Callable[[Remains], bool]) -> tuple[Remains, bool]:
    """Remains that fail with few effects lost (True), or, where many have to be lost, with few kept (False)."""
    losing = _nearer(cut.remains, cut.files.everything(), fails)
    lost = len(cut.files.effects(losing)[1])
    if lost <= _FEW:
        return losing, True
    keeping = _nearer(cut.remains, Remains(0, {}), fails)
    return (losing, True) if lost <= (len(cut.files.effects(keeping)[0]) or _LONG) else (keeping, False)


def _nearer(remains: Remains, base: Remains, fails: Callable[[Remains], bool]) -> Remains:
    """Remains made as like others as they can be while they still fail: halves of the pages, and of these halves, at once.

    A page that has to be unlike the others' is rather lost than torn.
    """
    if remains.changes != base.changes and fails(remains._replace(changes=base.changes)):
        remains = remains._replace(changes=base.changes)
    unlike = (each for each in {*remains.patches, *base.patches} if remains.patches.get(each, 0) != base.patches.get(each, 0))
    pages = sorted({*unlike, *remains.torn})
    parts = [pages] if pages else []
    while parts:
        part = parts.pop()
        torn = {page: tear for page, tear in remains.torn.items() if page not in part}
        nearer = remains._replace(patches={**remains.patches, **{page: base.patches.get(page, 0) for page in part}}, torn=torn)
        if fails(nearer):
            remains = nearer
        elif len(part) > 1:
            parts += [part[len(part) // 2 :], part[: len(part) // 2]]
        elif part[0] in remains.torn:
            nearer = nearer._replace(patches={**remains.patches, part[0]: remains.torn[part[0]].rest})
            remains = nearer if fails(nearer) else remains
        else:
            remains = _some_patches(remains, part[0], base.patches.get(part[0], 0), fails)
    step = 1 if base.changes > remains.changes else -1
    while remains.changes != base.changes and fails(nearer := remains._replace(changes=remains.changes + step)):
        remains = nearer
    return remains


def _some_patches(remains: Remains, page: tuple[int, int], count: int, fails: Callable[[Remains], bool]) -> Remains:
    """Remains with one, two, four and so on patches of a page unlike a count, the first that fail."""
    own, step = remains.patches.get(page, 0), 1
    while step < abs(own - count):
        nearer = remains._replace(patches={**remains.patches, page: count + (step if own > count else -step)})
        if fails(nearer):
            return nearer
        step *= 2
    return remains

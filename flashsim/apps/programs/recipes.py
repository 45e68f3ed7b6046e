"""A failure after a power cut, told by the fewest calls whose effects were lost, or kept though others were lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

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

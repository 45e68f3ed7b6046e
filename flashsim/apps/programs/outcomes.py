"""Outcomes of a power cut: each pending effect is lost, whole, or torn between sectors that it wrote, as the order of effects allows.

A failure among them is told by the fewest calls whose effects were lost, or kept though others were lost.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain, combinations, count, islice, product
from typing import Any, NamedTuple, Self

import numpy as np

from flashsim.apps.programs.volatile_files import OF_SIZES, PAGE, Page, Patch, Remains, Tear, VolatileFiles

#: Sectors of a page.
_SECTORS = PAGE // 512
#: Pending effects of which all outcomes are counted at most, and writes of one page between any two of which it is torn.
_COUNTED, _VERSIONS = 64, 24
#: Effects that are lost or torn by whose number classes differ, up to this; a class of so many has those with more.
_SEVERAL = 3
#: Pages of which pairs are drawn at most, and draws in a row that repeat others before no more are expected.
_PAIRED, _REPEATS = 40, 60
#: Lost effects that are a short recipe, beside which none of kept ones is looked for.
_FEW = 3
#: Effects of a list too long to be read; shorter ones are told rather than that nothing is kept.
_LONG = 10
#: Outcomes that are alike in how many pages, and the journal, lost something, and how many pages are torn.
Class = tuple[int, int]
#: Pages that lose something, with None for the journal, and pages that are torn.
_Drawn = tuple[set[Page | None], set[Page]]


class PageState(NamedTuple):
    """What the drive has of a page: how many of its writes, and where it is torn."""

    writes: int
    tear: Tear | None = None


class States(NamedTuple):
    """Distinct states of a page of which some writes may be there."""

    whole: PageState
    lost: Sequence[PageState]
    torn: Sequence[PageState]


class Outcomes:
    """Outcomes of one cut."""

    def __init__(self, files: VolatileFiles, draw: np.random.Generator, tears: bool = True) -> None:
        self.files, self._draw, self._tears = files, draw, tears
        self._end, self._visible = len(files.changes), files.visible()
        self._patches: dict[Page, list[Patch]] = {}
        for patch in files.patches:
            self._patches.setdefault(patch.page, []).append(patch)
        self._states = dict[tuple[Page, int], States]()
        self._versions = dict[Page, list[tuple[int, ...]]]()
        #: How many outcomes of each class have been given out.
        self.tried = Counter[Class]()

    @cached_property
    def possible(self) -> Counter[Class] | None:
        """How many outcomes there are of each class; None if too many effects are pending."""
        if len(self.files.patches) + self._end > _COUNTED or any(len(each) > _VERSIONS for each in self._patches.values()):
            return None
        total = Counter[Class]()
        for changes, pages in enumerate(self._visible):
            ways = {(int(changes < self._end), 0): 1}
            for states in (self._states_of(*page) for page in pages.items()):
                more = Counter[Class]()
                for (lost, torn), number in ways.items():
                    more[lost, torn] += number
                    more[min(_SEVERAL, lost + 1), torn] += number * len(states.lost)
                    more[lost, min(_SEVERAL, torn + 1)] += number * len(states.torn)
                ways = +more
            total.update(ways)
        return total

    def untried_classes(self) -> tuple[str, ...]:
        """Classes of which no outcome has been given out, in words."""
        return tuple(_words(each) for each in sorted(self._classes() - set(self.tried)))

    def _classes(self) -> set[Class]:
        if self.possible is not None:
            return set(self.possible)
        pages = self._visible[-1]
        most = len(list(islice((page for page in pages.items() if self._states_of(*page).torn), _SEVERAL)))
        parts = len(pages) + (self._end > 0)
        return {(lost, torn) for torn in range(most + 1) for lost in range(min(_SEVERAL, parts - torn) + 1)}

    def take(self, most: int) -> Iterator[Remains]:
        """All outcomes, if there are no more than `most`; else `most` without repetition, first with one effect lost and one torn."""
        if self.possible is not None and self.possible.total() <= most:
            yield from chain.from_iterable(self._all(changes) for changes in range(self._end, -1, -1))
            return
        seen, repeats = set[tuple[object, ...]](), 0
        nothing = ({page: PageState(0) for page in pages} for pages in (self._visible[0], self._visible[-1]))
        first = [(self._end, self._kept_states(self._end)), (0, next(nothing)), (self._end, next(nothing)), (0, self._kept_states(0))]
        for changes, states in chain(first, map(self._draw_states, self._draws(most // 2))):
            key = (changes, *states.items())
            repeats = repeats + 1 if key in seen else 0
            if not repeats:
                seen.add(key)
                yield self._remains(changes, states)
            if len(seen) >= most or repeats > _REPEATS:
                return

    def _all(self, changes: int) -> Iterator[Remains]:
        pages = self._visible[changes]
        of_pages = [self._states_of(*page) for page in pages.items()]
        for states in product(*((each.whole, *each.lost, *each.torn) for each in of_pages)):
            yield self._remains(changes, dict(zip(pages, states, strict=True)))

    def _kept_states(self, changes: int) -> dict[Page, PageState]:
        return {page: PageState(writes) for page, writes in self._visible[changes].items()}

    def _remains(self, changes: int, states: Mapping[Page, PageState]) -> Remains:
        """Remains of an outcome, which counts as tried."""
        torn = {page: state.tear for page, state in states.items() if state.tear}
        lost = sum(state.tear is None and self._is_lost(page, state.writes, changes) for page, state in states.items())
        self.tried[min(_SEVERAL, (changes < self._end) + lost), min(_SEVERAL, len(torn))] += 1
        return Remains(changes, {page: state.writes for page, state in states.items()}, torn)

    def _is_lost(self, page: Page, writes: int, changes: int) -> bool:
        visible = self._visible[changes][page]
        return writes != visible and self._versions_of(page)[writes] != self._versions_of(page)[visible]

    def _draws(self, pairs_first: int) -> Iterator[_Drawn]:
        """All pages torn, and of several files the last or the first write each torn or lost; pairs; then in turn all else.

        That is one lost, one torn, pairs, two torn, one kept of all, and any mixture.
        """
        pages = self._visible[-1]
        some = [list(pages)[at] for at in self._draw.permutation(len(pages))[:_PAIRED]]
        torn = [page for page in some if self._states_of(page, pages[page]).torn]
        parts: list[Page | None] = [*some, *[None] * (self._end > 0)]
        pairs: list[_Drawn] = [({lost}, {page}) for lost in parts for page in torn if lost != page]
        pairs = [pairs[at] for at in self._draw.permutation(len(pairs))]
        ends = ({patch.page[0]: patch.page for patch in patches} for patches in (self.files.patches, self.files.patches[::-1]))
        wide = [{*each.values()} for each in ends if len(each) > 1]
        yield from ((set(), pages_torn) for pages_torn in ({*pages}, *wide))
        for lost in wide:
            yield set[Page | None](lost), set()
        yield from pairs[:pairs_first]
        everything = {*pages, *parts}
        kinds: list[list[_Drawn]] = [
            [({part}, set()) for part in parts],
            [(set(), {page}) for page in torn],
            pairs,
            [(set(), {*two}) for two in combinations(torn, 2)],
            [(everything - {part}, set()) for part in parts],
        ]
        for turn in count():
            yield from (kind[turn % len(kind)] for kind in kinds if kind)
            yield self._mixture(everything)

    def _mixture(self, parts: set[Page | None]) -> _Drawn:
        """Parts of which any share is lost, and any torn."""
        lost, torn = sorted(self._draw.random(2))
        drawn = dict(zip(sorted(parts, key=str), self._draw.random(len(parts)), strict=True))
        return {part for part in parts if drawn[part] < lost}, {part for part in parts if part and lost <= drawn[part] < torn}

    def _draw_states(self, which: _Drawn) -> tuple[int, dict[Page, PageState]]:
        lost, torn = which
        changes = int(self._draw.integers(self._end)) if None in lost and self._end else self._end
        states = self._kept_states(changes)
        for page, writes in self._visible[changes].items():
            of_page = self._states_of(page, writes) if page in lost or page in torn else None
            if of_page and (choices := of_page.torn if page in torn else of_page.lost):
                states[page] = choices[int(self._draw.integers(len(choices)))]
        return changes, states

    def _versions_of(self, page: Page) -> list[tuple[int, ...]]:
        """For each number of writes of a page, the last of them that changed each sector."""
        if page in self._versions:
            return self._versions[page]
        content = self.files.contents.get(page[0], b"")[page[1] * PAGE :][:PAGE]
        is_known = not any(each.file == page[0] and each.kind in OF_SIZES for each in self.files.changes)
        versions, data = [(0,) * _SECTORS], bytearray(content)
        for number, patch in enumerate(self._patches[page], 1):
            before, begin = bytes(data), patch.offset % PAGE
            data.extend(bytes(max(0, begin - len(data))))
            data[begin : begin + len(patch.content)] = patch.content
            last = list(versions[-1])
            for sector in range(begin // 512, -(-(begin + len(patch.content)) // 512)):
                place = slice(sector * 512, sector * 512 + 512)
                if not is_known or before[place] != data[place]:
                    last[sector] = number
            versions.append(tuple(last))
        return self._versions.setdefault(page, versions)

    def _states_of(self, page: Page, visible: int) -> States:
        """Distinct states of a page of which the first writes may be there."""
        if (page, visible) in self._states:
            return self._states[page, visible]
        versions = self._versions_of(page)[: visible + 1]
        lost = {version: PageState(writes) for writes, version in reversed(list(enumerate(versions)))}
        whole, torn = versions[-1], dict[tuple[int, ...], PageState]()
        some = [0, *range(max(1, visible + 1 - _VERSIONS), visible + 1)] if self._tears else []
        for (rest, writes), sector in product(combinations(some, 2), range(1, _SECTORS)):
            old, new = versions[rest], versions[writes]
            torn.setdefault(new[:sector] + old[sector:], PageState(writes, Tear(rest, 0, sector)))
            torn.setdefault(old[:sector] + new[sector:], PageState(writes, Tear(rest, sector, _SECTORS)))
        torn = {version: state for version, state in torn.items() if version not in lost}
        states = States(PageState(visible), [state for version, state in lost.items() if version != whole], list(torn.values()))
        return self._states.setdefault((page, visible), states)


def _words(each: Class) -> str:
    """A class such as "1 lost, 2 torn"."""
    parts = [f"{number}{' or more' * (number == _SEVERAL)} {what}" for number, what in zip(each, ("lost", "torn"), strict=True) if number]
    return ", ".join(parts) or "all kept"


class CheckAnswer(NamedTuple):
    """A check's exit code, and the last line that it printed, in which numbers of several digits are 0: times differ from run to run."""

    code: int
    last_line: str

    @classmethod
    def of(cls, code: int, output: str) -> Self:
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
    output: str
    #: What tells one failure from another.
    answer: CheckAnswer
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
    failed_images: int = 0
    #: A row per state of the program that power was cut in.
    coverage: list[Coverage] = field(default_factory=list)
    #: What the recording does not show.
    missed: Sequence[str] = ()

    @property
    def is_complete(self) -> bool:
        """Whether these are all images that the rules allow."""
        return all(each.tried == each.possible for each in self.coverage)

    @property
    def share(self) -> float | None:
        """Part of all outcomes that was looked at, 0 to 1; None if a cut has more than are counted."""
        possible = [each.possible for each in self.coverage if each.possible is not None]
        if len(possible) < len(self.coverage):
            return None
        return sum(each.tried for each in self.coverage) / sum(possible) if possible else 1.0

    def as_dict(self) -> dict[str, Any]:
        failures = [
            {"call": each.call, "recipe": list(each.recipe), "exit_code": each.answer.code, "output": each.output, "count": each.count}
            for each in self.failures
        ]
        counts: dict[str, Any] = {"calls": self.calls, "cuts": self.cuts, "images": self.images, "failed_images": self.failed_images}
        counts |= {"is_complete": self.is_complete, "share": self.share, "coverage": [asdict(each) for each in self.coverage]}
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

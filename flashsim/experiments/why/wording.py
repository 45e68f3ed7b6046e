"""The answer to why in a sentence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flashsim.core.mechanisms import DeviceMechanism
from flashsim.core.units import SECONDS, format_duration, format_size
from flashsim.experiments.why.parts import PARTS
from flashsim.experiments.why.paths import PhasePath

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
#: Differences below this share of the formula need no cause; a further cause is named if it is at least this share of the first.
_SMALL, _FURTHER = 0.01, 0.25
_REQUESTS, _IDEAL = "requests counted differently", "ideal device against the formula"
_DIE = ("own", "reads", "programs", "erases", "collection", "merges", "map", "wear", "folding")


@dataclass(frozen=True)
class Cause:
    """A share of a difference: what it is called, seconds, and the mechanism, if it is one."""

    title: str
    seconds: float
    mechanism: DeviceMechanism | None = None


def sentence(run: float, formula: float | None, causes: Sequence[Cause], paths: Sequence[PhasePath]) -> str:
    """The run's seconds of I/O against the formula's, or against an ideal device, and the causes of the difference, largest first."""
    against = formula if formula is not None else run - sum(cause.seconds for cause in causes if cause.mechanism)
    what, difference = "the formula" if formula is not None else "an ideal device", run - against
    causes = [cause for cause in causes if cause.mechanism or formula is not None]
    if abs(difference) < _SMALL * against and all(abs(cause.seconds) < _SMALL * against for cause in causes):
        return f"As {what} says, within {_SMALL:.0%}."
    ratio = f"{run / against:.3g} times {what}" if against else f"{run:.3g} s beside nothing by {what}"
    along = sorted((cause for cause in causes if cause.seconds * (difference or 1) > 0), key=lambda cause: abs(cause.seconds), reverse=True)
    if not along:
        return f"{ratio}."
    first, *others = along
    share = f" ({first.seconds / difference:.0%} of the difference)" if difference else ""
    text = f"{ratio}: {in_words(first, paths)}{share}"
    further = [each for each in others if abs(each.seconds) >= _FURTHER * abs(first.seconds)]
    text += "".join(f"; {in_words(each, paths)} ({each.seconds / difference:.0%})" for each in further)
    away = [each for each in causes if each.seconds * difference < 0 and abs(each.seconds) >= _FURTHER * abs(first.seconds)]
    text += "".join(f"; against that, {in_words(each, paths)} ({each.seconds / difference:.0%})" for each in away)
    return f"{text}."


def in_words(cause: Cause, paths: Sequence[PhasePath]) -> str:
    """A cause as a main clause, from what requests waited for."""
    if cause.title == _REQUESTS:
        return f"there are {'more' if cause.seconds > 0 else 'fewer'} requests, pages or seeks than the formula counts"
    if cause.title == _IDEAL:
        amount = format_duration(round(abs(cause.seconds) * SECONDS))
        return f"requests that wait for nothing take {amount} {'more' if cause.seconds > 0 else 'less'} than by the formula's figures"
    assert cause.mechanism is not None
    if cause.mechanism.name == "dies":
        return _busy_dies(paths) or cause.mechanism.sentence
    return cause.mechanism.sentence


def _busy_dies(paths: Sequence[PhasePath]) -> str:
    """The work of the dies for which requests wait longest, as a clause."""
    names, parts = list(PARTS), np.sum([path.parts for path in paths], axis=0)
    waits = {name: int(parts[names.index(name)]) for name in _DIE}
    if not any(waits.values()):
        return ""
    most = max(waits, key=lambda name: waits[name])
    if most != "own":
        return f"requests wait for dies that are busy with {PARTS[most].removeprefix('die busy with ')}"
    lengths = dict[int, tuple[int, int]]()
    for path in paths:
        for length, (_, dies, reads) in path.reads.items():
            before = lengths.get(length, (0, 0))
            lengths[length] = before[0] + dies, before[1] + reads
    length = max(lengths, key=lambda each: lengths[each][1])
    dies, reads = lengths[length]
    in_turn = reads / max(1, dies)
    low, high = math.floor(in_turn), math.ceil(in_turn)
    count = " to ".join(dict.fromkeys(_NUMBERS[each] if each < len(_NUMBERS) else str(each) for each in (low, high)))
    return f"reads of {format_size(length)} wait for {count} page reads of one die in turn"

"""The answer to why in a sentence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flashsim.core.mechanisms import DeviceMechanism
from flashsim.core.units import SECONDS, format_duration, format_size
from flashsim.device.latency_parts import PARTS
from flashsim.experiments.why.paths import PhasePath

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
#: Differences below this share of the formula need no cause; a further cause is named if it is at least this share of the first.
_SMALL, _FURTHER = 0.01, 0.25
#: Share of the causes that are not named from which they are mentioned, and share of requests up to which a cause is not of all requests.
_OTHERS, _FEW = 0.05, 0.5
#: Multiple of the difference above which its causes cancel one another.
_MUCH = 2
#: Steps that are no mechanisms.
REQUESTS, IDEAL = "requests counted differently", "ideal device against the formula"
_BY_WORD_LINE = "word_lines"
_DIE = ("own", "reads", "programs", "erases", "collection", "merges", "map", "wear", "folding")


@dataclass(frozen=True)
class Cause:
    """A share of a difference: what it is called, seconds, and the mechanism, if it is one."""

    title: str
    seconds: float
    mechanism: DeviceMechanism | None = None
    #: What it is in a sentence, if more is known of it than its title.
    words: str = ""


def sentence(run: float, against: float, what: str, causes: Sequence[Cause], paths: Sequence[PhasePath]) -> str:
    """The run's seconds of I/O against those of the formula, or of what else `what` names, and the causes of the difference in order."""
    difference = run - against
    if abs(difference) < _SMALL * against and all(abs(cause.seconds) < _SMALL * against for cause in causes):
        return f"Within {_SMALL:.0%} of {what}."
    if not run and not against:
        return "Nothing takes time."
    ratio = f"{run / against:.3g} times {what}" if against else f"{run:.3g} s beside nothing by {what}"
    text = in_shares(_by_words([each for each in causes if each.seconds], paths), difference, against, what)
    return f"{ratio}: {text}." if text else f"{ratio}."


def in_shares(seconds_of: Mapping[str, float], difference: float, against: float, what: str) -> str:
    """Causes by their words, each with its share of a difference, after those what acts against it, and the share of all others.

    Causes that cancel one another are shares of `against`, the time compared with, which `what` names.  Empty: none acts along.
    """
    along, away = ({words: time for words, time in seconds_of.items() if time * (difference or 1) * side > 0} for side in (1, -1))
    if not along:
        return ""
    first = max(abs(time) for time in along.values())
    cancel = not difference or (first > _MUCH * abs(difference) and against > 0)
    base, of = (against, what) if cancel else (difference, "the difference")
    texts, rest = list[list[str]](), sum(seconds_of.values())
    for times in (along, away):
        large = [(words, time) for words, time in times.items() if abs(time) >= _FURTHER * first]
        rest -= sum(time for _, time in large)
        texts.append([f"{words} ({time / base:{'+' if cancel else ''}.0%})" if base else words for words, time in large])
    texts[0][0] = texts[0][0].replace("%)", f"% of {of})")
    others = f"; others {rest / base:+.0%}" if base and abs(rest) > _OTHERS * abs(base) else ""
    return "; against that, ".join("; ".join(each) for each in texts if each) + others


def _by_words(causes: Sequence[Cause], paths: Sequence[PhasePath]) -> dict[str, float]:
    """Seconds of causes by their words, in their order; those that read alike are one."""
    result, names = dict[str, float](), {cause.mechanism.name for cause in causes if cause.mechanism}
    for cause in causes:
        words = in_words(cause, paths)
        if _BY_WORD_LINE in names and words.startswith("reads of "):
            words = f"{words}, as consecutive pages share a word line"
        result[words] = result.get(words, 0.0) + cause.seconds
    return result


def in_words(cause: Cause, paths: Sequence[PhasePath]) -> str:
    """A cause as a main clause, from what requests waited for."""
    if cause.words:
        return cause.words
    if cause.title == REQUESTS:
        return f"there are {'more' if cause.seconds > 0 else 'fewer'} requests, pages or seeks than the formula counts"
    if cause.title == IDEAL:
        amount = format_duration(round(abs(cause.seconds) * SECONDS))
        return f"an ideal device takes {amount} {'more' if cause.seconds > 0 else 'less'} than by the formula's figures"
    assert cause.mechanism is not None
    if cause.mechanism.is_wait and cause.seconds < 0:
        return f"without {cause.mechanism.title} it would take longer"
    if cause.mechanism.name in ("dies", _BY_WORD_LINE):
        return _busy_dies(paths) or cause.mechanism.sentence
    if cause.mechanism.name in PARTS:
        return _of_few(cause.mechanism.sentence, cause.mechanism.name, paths)
    if cause.mechanism.one_at_a_time and paths:
        parts, titles = np.sum([path.parts for path in paths], axis=0), list(paths[0].names.values())
        share = parts.max() / max(1, parts.sum())
        return f"{cause.mechanism.sentence}, {share:.0%} of their time as '{titles[parts.argmax()]}'"
    return cause.mechanism.sentence


def _of_few(words: str, part: str, paths: Sequence[PhasePath]) -> str:
    """A clause about requests, with their share if few of them have the part."""
    place, served = list(PARTS).index(part), sum(path.served for path in paths)
    affected = sum(int(path.affected[place]) for path in paths)
    return words.replace("requests", f"{affected / served:.1%} of requests", 1) if 0 < affected < _FEW * served else words


def _busy_dies(paths: Sequence[PhasePath]) -> str:
    """The work of the dies for which requests wait longest, as a clause."""
    names, parts = list(paths[0].names), np.sum([path.parts for path in paths], axis=0)
    waits = {name: int(parts[names.index(name)]) for name in _DIE if name in names}
    if not any(waits.values()):
        return ""
    most = max(waits, key=lambda name: waits[name])
    if most != "own":
        return _of_few(f"requests wait for dies that are busy with {PARTS[most].removeprefix('die busy with ')}", most, paths)
    lengths = dict[int, tuple[int, int]]()
    for path in paths:
        for length, (dies, reads) in path.reads.items():
            before = lengths.get(length, (0, 0))
            lengths[length] = before[0] + dies, before[1] + reads
    length = max(lengths, key=lambda each: lengths[each][1], default=0)
    dies, reads = lengths.get(length, (0, 0))
    if reads <= dies:
        return "requests wait for dies that are busy with other pages of theirs"
    in_turn = reads / dies
    low, high = math.floor(in_turn), math.ceil(in_turn)
    count = " to ".join(dict.fromkeys(_NUMBERS[each] if each < len(_NUMBERS) else str(each) for each in (low, high)))
    return f"reads of {format_size(length)} wait for {count} page reads of one die in turn"

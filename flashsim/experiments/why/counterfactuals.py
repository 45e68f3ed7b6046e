"""Runs in which some mechanisms of a device are ideal, and what each is worth: alone, as the last of all, and in turn."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

from flashsim.core.mechanisms import DeviceMechanism, changes_of
from flashsim.core.request import Integers
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.experiments.runs.drives import DriveInUse, HeldDrive

#: Mechanisms that are ideal in a run, and their names.
Ideals = tuple[DeviceMechanism, ...]
_Names = frozenset[str]
#: Share of its worth that a wait for a server counts in the order of removal.
_OF_WAIT = 0.8
#: Mechanisms that have Shapley values in an exact answer.
_LARGEST = 4
#: Times of runs, ns, by the mechanisms that are ideal in them: of each phase, shape (phases,).
Evaluate = Callable[[Sequence[Ideals]], Sequence[Integers]]


@dataclass(frozen=True)
class IdealDrive:
    """A drive of which some mechanisms are ideal: a `flashsim.experiments.runs.drives.HeldDrive`."""

    held: HeldDrive
    mechanisms: Ideals

    @property
    def full(self) -> bool:
        return self.held.full

    @property
    def start(self) -> int:
        return self.held.start

    @property
    def scale(self) -> float:
        return self.held.scale

    def load(self) -> Preset:
        preset = self.held.load()
        return replace(preset, parameters=replace(preset.parameters, **changes_of(self.mechanisms)))

    def device(self, size: int) -> Device:
        """The drive at the start of a run that touches `size` bytes."""
        held, preset = self.held, self.load()
        is_fresh = isinstance(held, DriveInUse) and not held.full and not held.overwrites
        device = Device(preset) if is_fresh else held.device(size).like(preset)
        if any(each.is_split for each in self.mechanisms):
            device.maximum_command = device.longest_command
        return device


@dataclass(frozen=True)
class Worth:
    """The cost of a mechanism, ns per phase, shape (phases,)."""

    mechanism: DeviceMechanism
    #: The time that it costs where all others are as they are; and where no other is left (None: it was not run).
    alone: Integers
    last: Integers | None
    #: The time that it costs where those before it in the order of removal are ideal.
    removed: Integers
    #: Its Shapley value among the largest mechanisms, ns of all phases: the mean cost over the orders in which these can be removed.
    shapley: float | None = None


class Counterfactuals:
    """What mechanisms are worth, by runs with each of them ideal, with all, with all but each, and with one after the other.

    There are at most 2 m + 2 runs of m mechanisms: where the order of removal takes further ones, the least mechanisms have no `last`.  An
    `exact` answer has the Shapley values of the largest four, for at most 16 further runs.
    """

    def __init__(self, mechanisms: Iterable[DeviceMechanism], evaluate: Evaluate, exact: bool = False) -> None:
        self.mechanisms = {mechanism.name: mechanism for mechanism in mechanisms}
        self._evaluate, self._times = evaluate, dict[_Names, Integers]()
        every = frozenset(self.mechanisms)
        self._run([frozenset(), *(frozenset([name]) for name in self.mechanisms), every])
        alone = {name: self.base - self._times[frozenset([name])] for name in self.mechanisms}
        #: Names in the order of removal: by what they are worth alone, of all phases together.  Work goes before the server that is busy
        #: with it, where both are worth about the same.
        shares = {name: _OF_WAIT if mechanism.is_wait else 1.0 for name, mechanism in self.mechanisms.items()}
        self.order = sorted(self.mechanisms, key=lambda name: -abs(int(alone[name].sum())) * shares[name])
        worth = [name for name in self.order if alone[name].any()]
        prefixes = [frozenset(worth[:count]) for count in range(1, len(worth) + 1)]
        runs = [each for each in prefixes if each not in self._times]
        room = 2 * len(self.mechanisms) + 2 - len(self._times) - len(runs)
        others = [every - {name} for name in self.order]
        self._run([*runs, *[each for each in others if each not in self._times][: max(0, room)]])
        shapley = self._shapley(worth[:_LARGEST]) if exact else {}
        self.worths = [replace(each, shapley=shapley.get(each.mechanism.name)) for each in self._worths(alone, every)]

    def _worths(self, alone: Mapping[str, Integers], every: _Names) -> Iterable[Worth]:
        removed = _Names()
        for name in self.order:
            before, removed = removed, removed | {name}
            known = removed in self._times
            step = self._times[before] - self._times[removed] if known else np.zeros_like(self.base)
            rest = every - {name}
            last = self._times[rest] - self._times[every] if rest in self._times else None
            yield Worth(self.mechanisms[name], alone[name], last, step)
            removed = removed if known else before

    def _shapley(self, names: Sequence[str]) -> dict[str, float]:
        """Shapley values of mechanisms, all others as they are, ns of all phases."""
        subsets = [frozenset(each) for count in range(len(names) + 1) for each in combinations(names, count)]
        self._run(subsets)
        times = {each: int(self._times[each].sum()) for each in subsets}
        return {
            name: sum(
                (times[each] - times[each | {name}]) / comb(len(names) - 1, len(each)) / len(names) for each in subsets if name not in each
            )
            for name in names
        }

    def _run(self, every: Sequence[_Names]) -> None:
        missing = [each for each in dict.fromkeys(every) if each not in self._times]
        ideals = [tuple(mechanism for name, mechanism in self.mechanisms.items() if name in each) for each in missing]
        self._times |= dict(zip(missing, self._evaluate(ideals), strict=True))

    @cached_property
    def base(self) -> Integers:
        """Times as they are."""
        return self._times[frozenset()]

    @property
    def ideal(self) -> Integers:
        """Times where all that were removed in turn are ideal."""
        result: Integers = self.base - sum((each.removed for each in self.worths), np.zeros_like(self.base))
        return result

    @property
    def all_ideal(self) -> Integers:
        """Times where all mechanisms are."""
        return self._times[frozenset(self.mechanisms)]

    @property
    def runs(self) -> int:
        return len(self._times)

    @property
    def interaction(self) -> Integers:
        """The cost of all mechanisms together less the sum of their costs alone, ns per phase."""
        result: Integers = self.base - self.all_ideal - sum((each.alone for each in self.worths), np.zeros_like(self.base))
        return result

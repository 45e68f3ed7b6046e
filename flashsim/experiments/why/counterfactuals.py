"""Runs in which some mechanisms of a device are ideal, and what each is worth: alone, as the last of all, and in turn."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
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


def _prefixes(names: Sequence[str]) -> list[_Names]:
    return [frozenset(names[:count]) for count in range(1, len(names) + 1)]


class Counterfactuals:
    """What mechanisms are worth, by runs with each of them ideal, with all, with all but each, and with one after the other.

    With the run itself, whose times are the `base`, there are at most 2 m + 2 runs of m mechanisms: where the order of removal takes
    further ones, the least mechanisms have no `last`.  An `exact` answer has the Shapley values of the largest four, for at most 16 further
    runs.
    """

    def __init__(self, mechanisms: Iterable[DeviceMechanism], base: Integers, evaluate: Evaluate, exact: bool = False) -> None:
        self.mechanisms = {mechanism.name: mechanism for mechanism in mechanisms}
        self.base, self._evaluate, self._times = base, evaluate, {_Names(): base}
        every = frozenset(self.mechanisms)
        self._run([*(frozenset([name]) for name in self.mechanisms), every])
        alone = {name: base - self._times[frozenset([name])] for name in self.mechanisms}
        #: Names in the order of removal.
        self.order = self._order(alone)
        removal = [name for name in self.order if alone[name].any()]
        self._run(_prefixes(removal))
        if (self._times[frozenset(removal)] != self._times[every]).any():  # some cost nothing alone, but something behind others
            removal = self.order
            self._run(_prefixes(removal))
        removed = self._in_turn(removal)
        room = max(0, 2 * len(self.mechanisms) + 2 - len(self._times))
        others = [every - {name} for name in sorted(self.order, key=lambda name: -int(np.abs(removed[name]).sum()))]
        self._run([each for each in others if each not in self._times][:room])
        shapley = self._shapley([name for name in self.order if alone[name].any()][:_LARGEST]) if exact else {}
        rests = {name: self._times.get(every - {name}) for name in self.mechanisms}
        last = {name: None if time is None else time - self.all_ideal for name, time in rests.items()}
        self.worths = [Worth(self.mechanisms[name], alone[name], last[name], removed[name], shapley.get(name)) for name in self.order]

    def _order(self, alone: Mapping[str, Integers]) -> list[str]:
        """Names by what mechanisms are worth alone, of all phases together.

        Work goes before the server that is busy with it, where both are worth about the same.
        """
        shares = {name: _OF_WAIT if mechanism.is_wait else 1.0 for name, mechanism in self.mechanisms.items()}
        sizes = {name: abs(int(cost.sum())) * shares[name] for name, cost in alone.items()}
        return sorted(self.mechanisms, key=lambda name: (self.mechanisms[name].rank, not sizes[name], -sizes[name]))

    def _in_turn(self, removal: Sequence[str]) -> dict[str, Integers]:
        """The cost of each mechanism behind those before it in `removal`; 0 of one that is not among them."""
        sets = [_Names(), *_prefixes(removal)]
        steps = {name: self._times[before] - self._times[after] for name, (before, after) in zip(removal, pairwise(sets), strict=True)}
        return {name: steps.get(name, np.zeros_like(self.base)) for name in self.mechanisms}

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

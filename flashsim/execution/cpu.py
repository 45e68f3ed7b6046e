"""Prices of CPU work: algorithms count it by kind, a preset prices it, drivers add the kernel's time for every request."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from flashsim.core.errors import DamagedFileError, FlashsimWarning, InvalidParameterError, printable
from flashsim.core.preset_files import PresetFolder
from flashsim.core.request import Integers
from flashsim.device.block_layer import command_counts
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.execution.file_access import Group
from flashsim.execution.requests import HOST, Cpu, Work

_FOLDER = PresetFolder(Path(__file__).parent / "cpu_presets", "CPU preset")
#: Kinds of device that the kernel's prices are told apart by, and its prices.
KINDS = ("hdd", "ssd")
_PARTS = ("per_request", "per_byte")  # and per_call, which may be missing
DEFAULT = "default"  #: The name of the price of any kind of work that has none of its own.
BY_YEAR = "by-year"  #: Stands for the preset whose year is nearest to the device's.
_YEARS_APART = 10  #: Years between a CPU and a device from which on there is a warning.


@dataclass(frozen=True)
class CpuModel:
    """Prices, in nanoseconds, and how many cores there are."""

    name: str
    #: A unit of each kind of work on the host: a tuple, or for `Work.PAGE` a page.  ``default`` is the price of every other kind.
    user: Mapping[str, float]
    #: Kernel time of a device command, and of a byte moved, by kind of device.
    per_request: Mapping[str, float]
    per_byte: Mapping[str, float]
    #: Where each price comes from, by its name in the preset file, such as ``user.hash`` or ``kernel.ssd.per_byte``.
    sources: Mapping[str, str]
    #: By place.
    cores: Mapping[str, int] = field(default_factory=lambda: {HOST: 1})
    #: Prices as in `user` at the other places that do work, such as ``device``, a processor inside the drive.
    places: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: Kernel time of a call, by kind of device.  A request is a call, but for those that are handed over at once, which are one together.
    per_call: Mapping[str, float] = field(default_factory=dict)
    #: When the CPU came to market; 0: not known.
    year: int = 0

    def user_time(self, work: Mapping[str, Any], place: str = HOST) -> Any:
        """User time of some work at a place, ns: a number, or shape (n,) where counts are."""
        prices = self.user if place == HOST else self.places.get(place)
        if prices is None:
            raise InvalidParameterError("place", repr(place), f"CPU preset {self.name} has {', '.join([HOST, *self.places])}")
        time: Any = 0.0
        for kind, count in work.items():
            price = prices.get(kind, prices.get(DEFAULT))
            if price is None:
                bound = f"CPU preset {self.name} has no price for it at {place}, and no default"
                raise InvalidParameterError("work", repr(str(kind)), bound)
            time += price * count
        return time

    def kernel_times(self, kind: str, lengths: Integers, commands: Integers, calls: int | Integers = 1) -> Integers:
        """Kernel time of each request, ns, given its bytes, device commands and calls, shape (n,); a kind without prices takes none."""
        times = self.per_request.get(kind, 0.0) * commands + self.per_byte.get(kind, 0.0) * lengths + self.per_call.get(kind, 0.0) * calls
        return np.rint(times).astype(np.int64)

    def on_cores(self, count: int) -> CpuModel:
        """The prices, with `count` cores on the host."""
        if count < 1:
            raise InvalidParameterError("cores", count, "there must be at least 1")
        return replace(self, cores={**self.cores, HOST: count})

    def prices(self) -> Iterator[tuple[str, float]]:
        """Every price by its name, the host's user prices first."""
        for kind, price in self.user.items():
            yield f"user.{kind}", price
        for kind in KINDS:
            yield f"kernel.{kind}.per_request", self.per_request[kind]
            yield f"kernel.{kind}.per_byte", self.per_byte[kind]
            if kind in self.per_call:
                yield f"kernel.{kind}.per_call", self.per_call[kind]
        for place, prices in self.places.items():
            for kind, price in prices.items():
                yield f"places.{place}.{kind}", price

    def as_toml(self, comments: Sequence[str] = ()) -> str:
        """The model as the text of a preset file, which `load` reads; comments stand at its top."""
        cores = ", ".join(f"{place} = {count}" for place, count in self.cores.items())
        lines, section = [*(f"# {line}".rstrip() for line in comments), *([""] if comments else [])], ""
        lines += [*([f"year = {self.year}"] if self.year else []), f"cores = {{ {cores} }}"]
        for name, price in self.prices():
            part, _, last = name.rpartition(".")
            if part != section:
                lines += ["", f"[{part}]"]
                section = part
            lines.append(f"{last} = {{ nanoseconds = {price:g}, source = {json.dumps(self.sources[name], ensure_ascii=False)} }}")
        return "\n".join(lines) + "\n"


def mean_price(prices: Mapping[str, float]) -> float:
    """The geometric mean of the prices a tuple, ns, to three digits: what a kind of work may cost of which nothing is known."""
    logs = [math.log(price) for kind, price in prices.items() if kind != Work.PAGE and price > 0]
    return float(f"{math.exp(sum(logs) / max(1, len(logs))):.3g}")


def names() -> list[str]:
    return _FOLDER.names()


def choose(name: str | None, device: Preset | None) -> str | None:
    """The CPU preset that a name stands for on a device: for `BY_YEAR`, that of the nearest year, the newer of two.

    Where no year is known, it is the newest.
    """
    if name != BY_YEAR:
        return name
    years = {each: year for each in names() if (year := load(each).year)}
    year = (device and device.product.year) or max(years.values())
    return min(years, key=lambda each: (abs(years[each] - year), -years[each]))


def warn_of_years(name: str | None, device: Preset) -> None:
    """Warn (`FlashsimWarning`) of a CPU, by name or by `BY_YEAR`, and a device that came to market ten years or more apart."""
    if (chosen := choose(name, device)) is None:
        return
    year, own = device.product.year, load(chosen).year
    if year and own and (apart := abs(own - year)) >= _YEARS_APART:
        text = f"cpu: {chosen} is of {own}, but {device.name} of {year}: CPU times are those of a machine {apart} years "
        warnings.warn(text + ("older" if own < year else "newer"), FlashsimWarning, stacklevel=3)


def load(name: str) -> CpuModel:
    """The CPU preset of that name, or in the TOML file at that path.

    Raises UnknownNameError: no preset has that name; MissingFileError or DamagedFileError: the file does not exist; or is not a CPU preset,
    lacks a price, or has one that is no number of at least 0.
    """
    path, document = _FOLDER.read(name)
    sources: dict[str, str] = {}

    def price(entry: Mapping[str, Any], name: str) -> float:
        sources[name] = printable(str(entry.get("source", "")))
        value = float(entry["nanoseconds"])
        if not 0 <= value < math.inf:
            raise DamagedFileError(f"CPU preset: {path}: {name}: {value:g}, but a price is a number of at least 0")
        return value

    try:
        user = {kind: price(entry, f"user.{kind}") for kind, entry in document["user"].items()}
        prices = document["kernel"]
        kernel = {part: {kind: price(prices[kind][part], f"kernel.{kind}.{part}") for kind in KINDS} for part in _PARTS}
        per_call = {kind: price(prices[kind]["per_call"], f"kernel.{kind}.per_call") for kind in KINDS if "per_call" in prices[kind]}
        places = {
            place: {kind: price(entry, f"places.{place}.{kind}") for kind, entry in prices.items()}
            for place, prices in document.get("places", {}).items()
        }
        cores_of_places = {place: _whole(path, f"cores.{place}", count, 1) for place, count in document.get("cores", {}).items()}
        cores = dict.fromkeys([HOST, *places], 1) | cores_of_places
        year = _whole(path, "year", document.get("year", 0), 0)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as problem:
        raise DamagedFileError(f"CPU preset: {path} lacks or misspells {problem}") from problem
    missing = [kind for kind in Work if kind not in user]
    if missing:
        raise DamagedFileError(f"CPU preset: {path} has no price for {', '.join(missing)}")
    if strange := cores.keys() - {HOST} - places.keys():
        raise DamagedFileError(f"CPU preset: {path} counts cores of {', '.join(sorted(strange))}, which has no prices")
    return CpuModel(path.stem, user, kernel["per_request"], kernel["per_byte"], sources, cores, places, per_call, year)


def _whole(path: Path, name: str, value: object, least: int) -> int:
    if not isinstance(value, int) or value < least:
        raise DamagedFileError(f"CPU preset: {path}: {name}: {value}, but it must be a whole number of at least {least}")
    return value


def kernel_times(cpu: CpuModel | None, device: Device, lengths: Integers, calls: int | Integers = 1) -> Integers:
    """Kernel time of requests, ns, shape (n,), from the bytes of each and its number of system calls; none without prices."""
    if cpu is None:
        return np.zeros(len(lengths), np.int64)
    return cpu.kernel_times(device.kind, lengths, command_counts(lengths, device.maximum_command), calls)


def kernel_times_at_once(cpu: CpuModel | None, devices: Sequence[Device], groups: Sequence[Group]) -> Integers:
    """Kernel time of requests that one call hands over, of a group a device, ns, shape (n,): the first one's is that of the call too."""
    parts = []
    for group in groups:
        calls = np.zeros(len(group.extents.lengths), np.int64)
        calls[:1] = group is groups[0]
        parts.append(kernel_times(cpu, devices[group.extents.device], group.extents.lengths, calls))
    return np.concatenate(parts)


class UserTime:
    """User time between gathered requests, on all machines with one CPU; without its prices no time passes."""

    def __init__(self, cpu: CpuModel | None) -> None:
        self.cpu = cpu
        self.since = 0  # ns since the last request
        self.spent = 0  # ns in the present phase
        self._before: list[int] = []

    def pass_by(self, request: Cpu) -> None:
        if self.cpu is not None:
            self.pass_time(round(self.cpu.user_time(request.work)))

    def pass_time(self, time: int) -> None:
        self.since += time
        self.spent += time

    def of_each(self, works: Sequence[Mapping[str, Integers]], count: int) -> list[int]:
        """Time of work that is done `count` times, ns each, given how much of each `Cpu` by kind, shape (count,)."""
        times = np.zeros(count, np.int64)
        if self.cpu is not None:
            for work in works:
                times += np.rint(self.cpu.user_time(work)).astype(np.int64)
        each: list[int] = times.tolist()
        return each

    def gather(self) -> None:
        self._before.append(self.since)
        self.since = 0

    def take(self, firsts: Integers, count: int) -> Integers:
        """The user time before each of `count` requests, ns, given the first row of each group gathered since the last call."""
        times = np.zeros(count, np.int64)
        times[firsts] = self._before
        self._before.clear()
        return times

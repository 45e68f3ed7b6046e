"""Values of a parameter file, each with the place where it stands, and what is asked of them: numbers, lists, blocks of a kind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flashsim.core.errors import DamagedFileError, InvalidParameterError, UnknownNameError


@dataclass(frozen=True)
class Place:
    """A line of a file."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def short(self) -> str:
        """The file without its folder, and the line: what a source names."""
        return f"{self.path.name}:{self.line}"


@dataclass(frozen=True)
class Word:
    """A word or number."""

    text: str
    at: Place


@dataclass(frozen=True)
class Listing:
    """A list of values."""

    items: tuple[Value, ...]
    at: Place


@dataclass(frozen=True)
class Block:
    """A block of entries by key; what is asked for is remembered, so that what nobody understands can be refused."""

    kind: str
    name: str
    entries: dict[str, Value]
    at: Place
    _asked: set[str] = field(default_factory=set, repr=False, compare=False)

    def has(self, key: str) -> bool:
        self._asked.add(key)
        return key in self.entries

    def place(self, key: str) -> str:
        """Where a key's value stands, to be named as its source."""
        return f"{self.entries[key].at.short}, {key}" if key in self.entries else f"{self.at.short}, no {key} given"

    def number(self, key: str, default: float | None = None, least: float | None = None, most: float | None = None) -> float:
        """A number; what is missing is `default`, or refused if there is none."""
        if not self.has(key) and default is not None:
            return default
        return _number(key, self._value(key), least, most)

    def whole(self, key: str, default: int | None = None, least: int | None = None, most: int | None = None) -> int:
        """A whole number (``37.000000`` is one); otherwise as `number`."""
        value = self.number(key, default, least, most)
        if value != math.floor(value):
            raise InvalidParameterError(f"{self.entries[key].at}: {key}", value, "it must be a whole number")
        return int(value)

    def switch(self, key: str, default: bool | None = None) -> bool:
        """0 or 1."""
        return bool(self.whole(key, None if default is None else int(default), 0, 1))

    def word(self, key: str, default: str | None = None) -> str:
        if not self.has(key) and default is not None:
            return default
        value = self._value(key)
        if not isinstance(value, Word):
            raise DamagedFileError(f"{value.at}: {key} must be one word")
        return value.text

    def numbers(self, key: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        if not self.has(key) and default is not None:
            return tuple(default)
        return tuple(_number(key, item, None, None) for item in self._items(key))

    def child(self, key: str, *kinds: str) -> Block:
        """A block of one of some kinds."""
        return _of_kind(key, self._value(key), kinds)

    def children(self, key: str, *kinds: str) -> tuple[Block, ...]:
        return tuple(_of_kind(key, item, kinds) for item in self._items(key))

    def refuse_unread(self, harmless: Iterable[str] = ()) -> None:
        """Refuse keys that nobody has asked for, but for harmless ones."""
        known = self._asked | set(harmless)
        for key, value in self.entries.items():
            if key not in known:
                raise UnknownNameError(f"{value.at}: key of {self.kind}", key, known)

    def _value(self, key: str) -> Value:
        if not self.has(key):
            raise DamagedFileError(f"{self.at}: {self.kind} {self.name} gives no '{key}'".replace("  ", " "))
        return self.entries[key]

    def _items(self, key: str) -> tuple[Value, ...]:
        value = self._value(key)
        if not isinstance(value, Listing):
            raise DamagedFileError(f"{value.at}: {key} must be a list")
        return value.items


Value = Word | Listing | Block


def _number(key: str, value: Value, least: float | None, most: float | None) -> float:
    if not isinstance(value, Word):
        raise DamagedFileError(f"{value.at}: {key} must be a number")
    try:
        number = float(value.text)
    except ValueError:
        raise DamagedFileError(f"{value.at}: {key} must be a number, not '{value.text}'") from None
    if not math.isfinite(number):
        raise InvalidParameterError(f"{value.at}: {key}", value.text, "it must be finite")
    if least is not None and number < least:
        raise InvalidParameterError(f"{value.at}: {key}", value.text, f"it must be at least {least}")
    if most is not None and number > most:
        raise InvalidParameterError(f"{value.at}: {key}", value.text, f"it must be at most {most}")
    return number


def _of_kind(key: str, value: Value, kinds: Sequence[str]) -> Block:
    if not isinstance(value, Block):
        raise DamagedFileError(f"{value.at}: {key} must be a block ({' or '.join(kinds)})")
    if value.kind not in kinds:
        raise UnknownNameError(f"{value.at}: {key}", value.kind, kinds)
    return value

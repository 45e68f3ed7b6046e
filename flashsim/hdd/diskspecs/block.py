"""Values of a parameter file, each with the place where it stands; blocks of them; and what has been taken of these as parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from flashsim.core.errors import DamagedFileError, InvalidParameterError, UnknownNameError, check_known
from flashsim.core.units import MILLISECONDS

SECTOR = 512  #: Blocks of DiskSim are sectors of so many bytes.


class SourcePlace(NamedTuple):
    """A line of a file."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def short(self) -> str:
        """The file without its folder, and the line: what a source names."""
        return f"{self.path.name}:{self.line}"


class Word(NamedTuple):
    """A word or number."""

    text: str
    at: SourcePlace


class ValueList(NamedTuple):
    """A list of values."""

    items: tuple[Value, ...]
    at: SourcePlace


@dataclass(frozen=True)
class Block:
    """A block of entries by key; keys that were read are remembered, so that what nobody understands can be refused."""

    kind: str
    name: str
    entries: dict[str, Value]
    at: SourcePlace
    _read: set[str] = field(default_factory=set, repr=False, compare=False)

    def has(self, key: str) -> bool:
        self._read.add(key)
        return key in self.entries

    def place(self, key: str) -> str:
        """Place of a key's value, to be named as its source."""
        return f"{self.entries[key].at.short}, {key}" if key in self.entries else f"{self.at.short}, no {key} given"

    def number(self, key: str, default: float | None = None, least: float | None = None, most: float | None = None) -> float:
        """A number; what is missing is `default`, or refused if there is none."""
        if default is not None and not self.has(key):
            return default
        return _number(key, self._value(key, Word, "a number"), least, most)

    def whole(self, key: str, default: int | None = None, least: int | None = None, most: int | None = None) -> int:
        """A whole number (``37.000000`` is one); otherwise as `number`."""
        value = self.number(key, default, least, most)
        if value % 1:
            raise InvalidParameterError(f"{self.entries[key].at}: {key}", value, "it must be a whole number")
        return int(value)

    def switch(self, key: str, default: bool = False) -> bool:
        return bool(self.whole(key, int(default), 0, 1))

    def word(self, key: str, default: str | None = None) -> str:
        if default is not None and not self.has(key):
            return default
        return self._value(key, Word, "one word").text

    def numbers(self, key: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        if default is not None and not self.has(key):
            return tuple(default)
        return tuple(_number(key, _require_kind(key, item, Word, "a number")) for item in self._value(key, ValueList, "a list").items)

    def child(self, key: str, kind: str) -> Block:
        return _of_kind(key, self._value(key, Block, f"a block ({kind})"), kind)

    def children(self, key: str, kind: str) -> list[Block]:
        items = self._value(key, ValueList, "a list").items
        return [_of_kind(key, _require_kind(key, item, Block, f"a block ({kind})"), kind) for item in items]

    def refuse_unread(self, harmless: Iterable[str] = ()) -> None:
        """Refuse keys that nobody has read, but for harmless ones."""
        keys_in_use = self._read | set(harmless)
        for key, value in self.entries.items():
            check_known(f"{value.at}: key of {self.kind}", key, keys_in_use)

    def _value(self, key: str, kind: type[Kind], noun: str) -> Kind:
        if not self.has(key):
            raise DamagedFileError(f"{self.at}: {self.kind} {self.name} gives no '{key}'".replace("  ", " "))
        return _require_kind(key, self.entries[key], kind, noun)


Value = Word | ValueList | Block
Kind = TypeVar("Kind", Word, ValueList, Block)


def _require_kind(key: str, value: Value, kind: type[Kind], noun: str) -> Kind:
    if not isinstance(value, kind):
        raise DamagedFileError(f"{value.at}: {key} must be {noun}")
    return value


def _of_kind(key: str, block: Block, kind: str) -> Block:
    if block.kind != kind:
        raise UnknownNameError(f"{block.at}: {key}", block.kind, (kind,))
    return block


def _number(key: str, word: Word, least: float | None = None, most: float | None = None) -> float:
    try:
        number = float(word.text)
    except ValueError:
        raise DamagedFileError(f"{word.at}: {key} must be a number, not '{word.text}'") from None
    bounds = [
        (isfinite(number), "finite"),
        (least is None or number >= least, f"at least {least}"),
        (most is None or number <= most, f"at most {most}"),
    ]
    for within, bound in bounds:
        if not within:
            raise InvalidParameterError(f"{word.at}: {key}", word.text, f"it must be {bound}")
    return number


class Collection:
    """Values and sources of parameters, notes for people, and files that were read beside the parameter files."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.notes: list[str] = []
        self.files: list[Path] = []

    def put(self, name: str, value: Any, source: str) -> None:
        self.values[name], self.sources[name] = value, source

    def take(self, name: str, value: Any, block: Block, key: str, remark: str = "") -> None:
        """A value that stands at a key of a block, or follows from what stands there."""
        self.put(name, value, block.place(key) + remark)

    def take_time(self, name: str, block: Block, key: str, scale: float = 1.0) -> None:
        """A time in milliseconds, times `scale`; one that is not given is left at the parameter's default."""
        value = block.number(key, 0.0, 0.0)
        if block.has(key):
            self.take(name, milliseconds(value * scale), block, key, f" x {scale:g}" if scale != 1 else "")

    def note_unless(self, block: Block, key: str, neutral: int, says: str) -> None:
        """Say that a whole number other than `neutral` is not modelled."""
        if block.has(key) and block.whole(key) != neutral:
            self.notes.append(f"{block.place(key)} = {block.whole(key)}: {says}")


def milliseconds(value: float) -> str:
    """A duration as presets give it, exact to the nanosecond.

    >>> milliseconds(0.65), milliseconds(-0.483), milliseconds(0)
    ('0.65ms', '-0.483ms', '0ms')
    """
    nanoseconds = round(value * MILLISECONDS)
    whole, fraction = divmod(abs(nanoseconds), MILLISECONDS)
    digits = f"{whole}.{fraction:06}".rstrip("0").rstrip(".")
    return f"{'-' if nanoseconds < 0 else ''}{digits}ms"

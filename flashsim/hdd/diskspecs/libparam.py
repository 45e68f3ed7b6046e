"""The grammar of DiskSim's parameter files: blocks of ``key = value``, and statements that source, instantiate and connect them.

::

    source disk.diskspecs                       # statements of another file
    instantiate [ disk0 .. disk3 ] as SOME_DISK
    topology disksim_bus bus0 [ disksim_disk disk0 [], disksim_disk disk1 [] ]
    disksim_disk SOME_DISK {
       Model = source disk.model,               # a value of another file
       Scheduler = disksim_ioqueue { Scheduling policy = 1 },
       slips = [ 468, 526 ]
    }

Keys are words, with dots, slashes and brackets in them, up to the ``=``; ``#`` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from flashsim.core.errors import DamagedFileError, MissingFileError
from flashsim.hdd.diskspecs.block import Block, Listing, Place, Value, Word

_TOKEN = re.compile(r"#[^\n]*|\n|[={}\[\],]|[^\s#={}\[\],]+")
_MARKS = frozenset("={}[],")
#: Deeper nesting, of blocks or of sources, is no drive.
_DEEPEST = 32


@dataclass(frozen=True)
class Component:
    """A component in the topology, and what hangs on it."""

    kind: str
    name: str
    below: tuple[Component, ...]
    at: Place


@dataclass
class Document:
    """What a parameter file and all that it sources say, in order; `files` are those that were read."""

    blocks: list[Block] = field(default_factory=list)
    instances: dict[str, Word] = field(default_factory=dict)
    topology: list[Component] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)


def read(path: Path) -> Document:
    """A parameter file with all that it sources."""
    document = Document()
    _Parser(path, path.parent, document, ()).statements()
    return document


class _Parser:
    """One file under way."""

    def __init__(self, path: Path, folder: Path, document: Document, inside: tuple[Path, ...]) -> None:
        self.path, self.folder, self.document = path, folder, document
        self.inside = (*inside, path.resolve())
        document.files.append(path)
        self._tokens = list(_tokens(path))
        self._next = 0

    def statements(self) -> None:
        while self._next < len(self._tokens):
            word = self._word("a statement")
            if word.text == "source":
                self._sourced(self._word("a file name")).statements()
            elif word.text == "instantiate":
                self._instantiate()
            elif word.text == "topology":
                self.document.topology.append(self._component(0))
            elif self._peek() == "{" or self._peek(1) == "{":
                self.document.blocks.append(self._block(word, 0))
            else:
                raise DamagedFileError(f"{word.at}: '{word.text}' begins no block, and is neither source, instantiate nor topology")

    def only_value(self) -> Value:
        value = self._value(0)
        if self._next < len(self._tokens):
            raise DamagedFileError(f"{self._place()}: only one block was expected, but '{self._peek()}' follows")
        return value

    def _instantiate(self) -> None:
        names = self._listing(0, self._word_or_mark("["))
        said = self._word("'as'")
        if said.text != "as":
            raise DamagedFileError(f"{said.at}: 'as' was expected, not '{said.text}'")
        kind = self._word("a block's name")
        for name in _expanded(names):
            self.document.instances[name] = kind

    def _component(self, depth: int) -> Component:
        self._check_depth(depth)
        kind, name = self._word("a kind of component"), self._word("a component's name")
        self._word_or_mark("[")
        below: list[Component] = []
        while self._peek() != "]":
            below.append(self._component(depth + 1))
            if self._peek() == ",":
                self._next += 1
        self._next += 1
        return Component(kind.text, name.text, tuple(below), kind.at)

    def _block(self, kind: Word, depth: int) -> Block:
        self._check_depth(depth)
        name = "" if self._peek() == "{" else self._word("a block's name").text
        self._word_or_mark("{")
        entries: dict[str, Value] = {}
        while self._peek() != "}":
            at = self._place()
            key = self._key(kind)
            if key in entries:
                raise DamagedFileError(f"{at}: '{key}' is given twice in {kind.text}")
            entries[key] = self._value(depth)
            if self._peek() not in (",", "}"):
                raise DamagedFileError(f"{self._place()}: ',' or '}}' was expected after {key}, not '{self._peek()}'{self._of(kind)}")
            if self._peek() == ",":
                self._next += 1
        self._next += 1
        return Block(kind.text, name, entries, kind.at)

    def _key(self, kind: Word) -> str:
        words = []
        while (text := self._peek()) != "=":
            if text is None or text in _MARKS:
                raise DamagedFileError(f"{self._place()}: {_end(text)} where 'key = value' was expected{self._of(kind)}")
            words.append(text)
            self._next += 1
        if not words:
            raise DamagedFileError(f"{self._place()}: '=' without a key{self._of(kind)}")
        self._next += 1
        return " ".join(words)

    def _value(self, depth: int) -> Value:
        if self._peek() == "[":
            return self._listing(depth + 1, self._word_or_mark("["))
        word = self._word("a value")
        if word.text == "source" and self._peek() not in ("{", None) and self._peek() not in _MARKS:
            return self._sourced(self._word("a file name")).only_value()
        if self._peek() == "{" or (self._peek(1) == "{" and self._peek() not in _MARKS):
            return self._block(word, depth + 1)
        return word

    def _listing(self, depth: int, at: Place) -> Listing:
        self._check_depth(depth)
        items: list[Value] = []
        while self._peek() != "]":
            items.append(self._value(depth))
            if self._peek() == ",":
                self._next += 1
            elif self._peek() is None:
                raise DamagedFileError(f"{self._place()}: the file ends inside the list of line {at.line}")
        self._next += 1
        return Listing(tuple(items), at)

    def _sourced(self, name: Word) -> _Parser:
        candidates = [self.path.parent / name.text, self.folder / name.text]
        found = next((path for path in candidates if path.is_file()), None)
        if found is None:
            raise MissingFileError(f"{name.at}: there is no file {candidates[0]}")
        if found.resolve() in self.inside or len(self.inside) > _DEEPEST:
            raise DamagedFileError(f"{name.at}: {found.name} is sourced from within itself")
        return _Parser(found, self.folder, self.document, self.inside)

    def _peek(self, ahead: int = 0) -> str | None:
        place = self._next + ahead
        return self._tokens[place][0] if place < len(self._tokens) else None

    def _word(self, wanted: str) -> Word:
        text, at = self._peek(), self._place()
        if text is None or text in _MARKS:
            raise DamagedFileError(f"{at}: {_end(text)} where {wanted} was expected")
        self._next += 1
        return Word(text, at)

    def _word_or_mark(self, mark: str) -> Place:
        at = self._place()
        if self._peek() != mark:
            raise DamagedFileError(f"{at}: {_end(self._peek())} where '{mark}' was expected")
        self._next += 1
        return at

    def _place(self) -> Place:
        line = self._tokens[min(self._next, len(self._tokens) - 1)][1] if self._tokens else 1
        return Place(self.path, line)

    def _of(self, kind: Word) -> str:
        return f" (in the {kind.text} of line {kind.at.line})"

    def _check_depth(self, depth: int) -> None:
        if depth > _DEEPEST:
            raise DamagedFileError(f"{self._place()}: more than {_DEEPEST} blocks inside each other")


def _end(text: str | None) -> str:
    return "the file ends" if text is None else f"'{text}' stands"


def _tokens(path: Path) -> Iterator[tuple[str, int]]:
    try:
        if not path.is_file():
            raise MissingFileError(f"{path}: no such file")
        content = path.read_bytes()
    except OSError as problem:
        raise MissingFileError(f"{path}: {problem.strerror}") from problem
    if b"\0" in content:
        raise DamagedFileError(f"{path}:{content.count(bytes([10]), 0, content.index(0)) + 1}: no text, but binary data")
    line = 1
    for match in _TOKEN.finditer(content.decode("utf-8", errors="replace")):
        token = match.group()
        if token == "\n":
            line += 1
        elif not token.startswith("#"):
            yield token, line


def _expanded(names: Listing) -> Iterator[str]:
    """Names of a list, in which ``disk0 .. disk3`` stands for four."""
    words = [item for item in names.items if isinstance(item, Word)]
    place = 0
    while place < len(words):
        first = words[place]
        if place + 2 < len(words) and words[place + 1].text == "..":
            yield from _span(first, words[place + 2])
            place += 3
        else:
            yield first.text
            place += 1


def _span(first: Word, last: Word) -> Iterator[str]:
    parts = [re.fullmatch(r"(.*?)(\d+)", word.text) for word in (first, last)]
    begin, end = parts
    if begin is None or end is None or begin[1] != end[1] or int(end[2]) - int(begin[2]) not in range(65_536):
        raise DamagedFileError(f"{first.at}: '{first.text} .. {last.text}' is no range of names")
    for number in range(int(begin[2]), int(end[2]) + 1):
        yield f"{begin[1]}{number}"

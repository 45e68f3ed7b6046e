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
from flashsim.core.input_files import read_bytes
from flashsim.hdd.diskspecs.block import Block, SourcePlace, Value, ValueList, Word

_TOKEN = re.compile(r"#[^\n]*|\n|[={}\[\],]|[^\s#={}\[\],]+")
#: Tokens that are no words: marks, and the end of a file, which stands as an empty word behind its last line.
_MARKS = ("", *"={}[],")
_DEEPEST = 32  #: Deeper nesting, of blocks or of sources, is no drive.


@dataclass(frozen=True)
class Component:
    """A component of the topology, and those that it hangs on, outermost first."""

    kind: Word
    name: str
    above: tuple[Component, ...]


@dataclass
class Document:
    """Blocks of a parameter file and all that it sources, in order; `files` are those that were read."""

    blocks: list[Block] = field(default_factory=list)
    instances: dict[str, Word] = field(default_factory=dict)
    topology: list[Component] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)


def read(path: Path) -> Document:
    """A parameter file with all that it sources."""
    document = Document()
    _GrammarParser(path, path.parent, document, ()).statements()
    return document


class _GrammarParser:
    def __init__(self, path: Path, folder: Path, document: Document, inside: tuple[Path, ...]) -> None:
        self.path, self.folder, self.document = path, folder, document
        self.inside = (*inside, path.resolve())
        document.files.append(path)
        words = list(_words(path))
        self._words = [*words, Word("", words[-1].at if words else SourcePlace(path, 1))]
        self._next = 0

    def statements(self) -> None:
        while self._text():
            word = self._word("a statement")
            if word.text == "source":
                self._source_parser().statements()
            elif word.text == "instantiate":
                self._instantiate()
            elif word.text == "topology":
                self._component(())
            elif "{" in (self._text(), self._text(1)):
                self.document.blocks.append(self._block(word, 0))
            else:
                raise DamagedFileError(f"{word.at}: '{word.text}' begins no block, and is neither source, instantiate nor topology")

    def only_value(self) -> Value:
        value = self._value(0)
        if self._text():
            raise DamagedFileError(f"{self._at()}: only one block was expected, but '{self._text()}' follows")
        return value

    def _instantiate(self) -> None:
        names = self._listing(0)
        said = self._word("'as'")
        if said.text != "as":
            raise DamagedFileError(f"{said.at}: 'as' was expected, not '{said.text}'")
        kind = self._word("a block's name")
        self.document.instances.update((name, kind) for name in _expand_names(names))

    def _component(self, above: tuple[Component, ...]) -> None:
        self._check_depth(len(above))
        component = Component(self._word("a kind of component"), self._word("a component's name").text, above)
        self.document.topology.append(component)
        self._mark("[")
        while not self._skip("]"):
            self._component((*above, component))
            self._skip(",")

    def _block(self, kind: Word, depth: int) -> Block:
        self._check_depth(depth)
        name = "" if self._text() == "{" else self._word("a block's name").text
        self._mark("{")
        entries: dict[str, Value] = {}
        inside = f"(in the {kind.text} of line {kind.at.line})"
        while not self._skip("}"):
            at = self._at()
            key = self._key(inside)
            if key in entries:
                raise DamagedFileError(f"{at}: '{key}' is given twice in {kind.text}")
            entries[key] = self._value(depth)
            if not self._skip(",") and self._text() != "}":
                raise DamagedFileError(f"{self._at()}: ',' or '}}' was expected after {key}, not '{self._text()}' {inside}")
        return Block(kind.text, name, entries, kind.at)

    def _key(self, inside: str) -> str:
        words = []
        while not self._skip("="):
            if self._text() in _MARKS:
                raise DamagedFileError(f"{self._at()}: {self._describe_next()} where 'key = value' was expected {inside}")
            words.append(self._word("a key").text)
        if not words:
            raise DamagedFileError(f"{self._at()}: '=' without a key {inside}")
        return " ".join(words)

    def _value(self, depth: int) -> Value:
        if self._text() == "[":
            return self._listing(depth + 1)
        word = self._word("a value")
        if word.text == "source" and self._text() not in _MARKS:
            return self._source_parser().only_value()
        if self._text() == "{" or (self._text(1) == "{" and self._text() not in _MARKS):
            return self._block(word, depth + 1)
        return word

    def _listing(self, depth: int) -> ValueList:
        at = self._at()
        self._mark("[")
        self._check_depth(depth)
        items: list[Value] = []
        while not self._skip("]"):
            items.append(self._value(depth))
            if not self._skip(",") and not self._text():
                raise DamagedFileError(f"{self._at()}: the file ends inside the list of line {at.line}")
        return ValueList(tuple(items), at)

    def _source_parser(self) -> _GrammarParser:
        name = self._word("a file name")
        candidates = [self.path.parent / name.text, self.folder / name.text]
        file = next((path for path in candidates if path.is_file()), None)
        if file is None:
            raise MissingFileError(f"{name.at}: there is no file {candidates[0]}")
        if file.resolve() in self.inside or len(self.inside) > _DEEPEST:
            raise DamagedFileError(f"{name.at}: {file.name} is sourced from within itself")
        return _GrammarParser(file, self.folder, self.document, self.inside)

    def _text(self, ahead: int = 0) -> str:
        return self._words[min(self._next + ahead, len(self._words) - 1)].text

    def _at(self) -> SourcePlace:
        return self._words[self._next].at

    def _describe_next(self) -> str:
        return f"'{self._text()}' stands" if self._text() else "the file ends"

    def _word(self, expectation: str) -> Word:
        if self._text() in _MARKS:
            raise DamagedFileError(f"{self._at()}: {self._describe_next()} where {expectation} was expected")
        self._next += 1
        return self._words[self._next - 1]

    def _skip(self, mark: str) -> bool:
        """Pass over a mark; returns False if another word comes next."""
        if self._text() != mark:
            return False
        self._next += 1
        return True

    def _mark(self, mark: str) -> None:
        if not self._skip(mark):
            raise DamagedFileError(f"{self._at()}: {self._describe_next()} where '{mark}' was expected")

    def _check_depth(self, depth: int) -> None:
        if depth > _DEEPEST:
            raise DamagedFileError(f"{self._at()}: more than {_DEEPEST} blocks inside each other")


def _words(path: Path) -> Iterator[Word]:
    try:
        if not path.is_file():
            raise MissingFileError(f"{path}: no such file")
        content = read_bytes(path)
    except OSError as problem:
        raise MissingFileError(f"{path}: {problem.strerror}") from problem
    if b"\0" in content:
        raise DamagedFileError(f"{path}:{content.count(bytes([10]), 0, content.index(0)) + 1}: no text, but binary data")
    line = 1
    for token in _TOKEN.findall(content.decode("utf-8", errors="replace")):
        if token == "\n":
            line += 1
        elif not token.startswith("#"):
            yield Word(token, SourcePlace(path, line))


def _expand_names(names: ValueList) -> Iterator[str]:
    """Names of a list, in which ``disk0 .. disk3`` stands for four."""
    words = [item for item in names.items if isinstance(item, Word)]
    for place, word in enumerate(words):
        if word.text == ".." and 0 < place < len(words) - 1:
            yield from _between(words[place - 1], words[place + 1])
        else:
            yield word.text


def _between(first: Word, last: Word) -> Iterator[str]:
    begin, end = (re.fullmatch(r"(.*?)(\d+)", word.text) for word in (first, last))
    if begin is None or end is None or begin[1] != end[1] or int(end[2]) - int(begin[2]) not in range(65_536):
        raise DamagedFileError(f"{first.at}: '{first.text} .. {last.text}' is not a range of names")
    for number in range(int(begin[2]) + 1, int(end[2])):
        yield f"{begin[1]}{number}"
